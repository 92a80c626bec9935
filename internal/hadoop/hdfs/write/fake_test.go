package write

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/encoding/protodelim"
	pb "google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/hdfs/transfer"
	"holdfast/internal/hadoop/rpc"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// fakeNN is a NameNode of one file.
type fakeNN struct {
	nodes []*wire.DatanodeInfoProto

	mu      sync.Mutex
	stamp   uint64
	blocks  []uint64
	lengths map[uint64]int64 // what a new reader is told of each block
}

func dn(name string, port uint32) *wire.DatanodeInfoProto {
	return &wire.DatanodeInfoProto{Id: &wire.DatanodeIDProto{
		IpAddr: pb.String("10.0.0.1"), HostName: &name, DatanodeUuid: &name, XferPort: &port, InfoPort: pb.Uint32(0), IpcPort: pb.Uint32(0),
	}}
}

func noToken() *wire.BlockTokenProto {
	return &wire.BlockTokenProto{Identifier: []byte{}, Password: []byte{}, Kind: pb.String(""), Service: pb.String("")}
}

func (n *fakeNN) visible() (all int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, l := range n.lengths {
		all += l
	}
	return all
}

func (n *fakeNN) commit(b *wire.ExtendedBlockProto) {
	if b != nil {
		n.lengths[b.GetBlockId()] = int64(b.GetNumBytes())
	}
}

func (n *fakeNN) Call(ctx context.Context, method string, req, resp pb.Message) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.lengths == nil {
		n.lengths = map[uint64]int64{}
	}
	switch r := resp.(type) {
	case *wire.CreateResponseProto:
		c := req.(*wire.CreateRequestProto)
		r.Fs = &wire.HdfsFileStatusProto{FileId: pb.Uint64(7), Blocksize: c.BlockSize, BlockReplication: c.Replication}
	case *wire.AddBlockResponseProto:
		a := req.(*wire.AddBlockRequestProto)
		n.commit(a.Previous)
		n.stamp++
		id := uint64(len(n.blocks) + 100)
		n.blocks = append(n.blocks, id)
		r.Block = &wire.LocatedBlockProto{B: &wire.ExtendedBlockProto{PoolId: pb.String("p"), BlockId: &id, GenerationStamp: pb.Uint64(n.stamp)}, BlockToken: noToken()}
		for _, d := range n.nodes {
			if !slices.ContainsFunc(a.ExcludeNodes, func(e *wire.DatanodeInfoProto) bool {
				return e.GetId().GetDatanodeUuid() == d.GetId().GetDatanodeUuid()
			}) {
				r.Block.Locs = append(r.Block.Locs, d)
				r.Block.StorageIDs = append(r.Block.StorageIDs, d.GetId().GetDatanodeUuid())
			}
		}
		if len(r.Block.Locs) == 0 {
			return &rpc.RemoteError{Class: "java.io.IOException", Message: "File /f could only be written to 0 of the 1 minReplication nodes."}
		}
	case *wire.FsyncResponseProto:
		if l := req.(*wire.FsyncRequestProto).GetLastBlockLength(); l > 0 {
			n.lengths[n.blocks[len(n.blocks)-1]] = l
		}
	case *wire.UpdateBlockForPipelineResponseProto:
		n.stamp++
		b := pb.Clone(req.(*wire.UpdateBlockForPipelineRequestProto).Block).(*wire.ExtendedBlockProto)
		b.GenerationStamp = pb.Uint64(n.stamp)
		r.Block = &wire.LocatedBlockProto{B: b, BlockToken: noToken()}
	case *wire.GetAdditionalDatanodeResponseProto:
		return errors.New("there is no other")
	case *wire.CompleteResponseProto:
		n.commit(req.(*wire.CompleteRequestProto).Last)
		r.Result = pb.Bool(true)
	case *wire.GetFileInfoResponseProto:
		r.Fs = &wire.HdfsFileStatusProto{FileId: pb.Uint64(7)}
	}
	return nil
}

// fakeDN says how a DataNode behaves after it has accepted a pipeline.
type fakeDN struct {
	acks      bool        // it acks packets
	reads     bool        // it reads packets at all
	answers   bool        // it answers probes
	endless   bool        // its connection ends with a block's last packet, which it does not get
	failsSync atomic.Bool // it fails once, when it is asked for its disk: it has the packet's bytes then
	disks     *fakeDisks  // or nil

	pause time.Duration // before an ack, and in the middle of it
}

// fakeDisks are what the DataNodes of a pipeline have of each block, in memory and on their disks.
type fakeDisks struct {
	mu     sync.Mutex
	blocks map[uint64]*fakeReplica
}

type fakeReplica struct{ got, synced int64 }

// take writes what a packet brings. It syncs as BlockReceiver.receivePacket does: if asked to,
// for a packet that is empty or brings bytes that were not there.
func (d *fakeDisks) take(block uint64, h *wire.PacketHeaderProto, sync bool) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.blocks[block]
	if r == nil {
		r = &fakeReplica{}
		if d.blocks == nil {
			d.blocks = map[uint64]*fakeReplica{}
		}
		d.blocks[block] = r
	}
	end := h.GetOffsetInBlock() + int64(h.GetDataLen())
	brings := end > r.got
	r.got = max(r.got, end)
	if sync && (h.GetDataLen() == 0 || brings) {
		r.synced = r.got
	}
}

// sizes adds up what all DataNodes have, and what of it is on their disks.
func (d *fakeDisks) sizes() (got, synced int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.blocks {
		got += r.got
		synced += r.synced
	}
	return got, synced
}

func (d *fakeDN) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	var head [3]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return
	}
	op := transfer.Operation(head[2])
	if op != transfer.WriteBlock {
		_ = protodelim.UnmarshalFrom(r, &wire.OpReadBlockProto{})
		if d.answers {
			_, _ = protodelim.MarshalTo(c, &wire.BlockOpResponseProto{Status: wire.Status_ERROR.Enum()})
		} else {
			_, _ = io.Copy(io.Discard, r)
		}
		return
	}
	req := &wire.OpWriteBlockProto{}
	if err := protodelim.UnmarshalFrom(r, req); err != nil {
		return
	}
	_, _ = protodelim.MarshalTo(c, &wire.BlockOpResponseProto{Status: wire.Status_SUCCESS.Enum()})
	if req.GetStage() == wire.OpWriteBlockProto_PIPELINE_CLOSE_RECOVERY {
		return // the block has ended (DataXceiver.writeBlock)
	}
	if !d.reads {
		_ = c.(interface{ hold() error }).hold()
		return
	}
	acks := make(chan *wire.PipelineAckProto, 1000)
	defer close(acks)
	go func() {
		for a := range acks {
			var b bytes.Buffer
			_, _ = protodelim.MarshalTo(&b, a)
			time.Sleep(d.pause)
			_, _ = c.Write(b.Next(3))
			time.Sleep(d.pause)
			_, _ = c.Write(b.Bytes())
		}
	}()
	for {
		var l [6]byte
		if _, err := io.ReadFull(r, l[:]); err != nil {
			return
		}
		header := make([]byte, binary.BigEndian.Uint16(l[4:]))
		if _, err := io.ReadFull(r, header); err != nil {
			return
		}
		h := &wire.PacketHeaderProto{}
		if err := pb.Unmarshal(header, h); err != nil {
			panic(err)
		}
		if _, err := io.CopyN(io.Discard, r, int64(binary.BigEndian.Uint32(l[:]))-4); err != nil {
			return
		}
		if h.GetLastPacketInBlock() && d.endless {
			return
		}
		fails := h.GetSyncBlock() && d.failsSync.CompareAndSwap(true, false)
		d.disks.take(req.GetHeader().GetBaseHeader().GetBlock().GetBlockId(), h, h.GetSyncBlock() && !fails)
		if fails {
			return
		}
		if d.acks {
			a := &wire.PipelineAckProto{Seqno: h.Seqno}
			for range len(req.Targets) + 1 {
				a.Reply = append(a.Reply, wire.Status_SUCCESS)
			}
			acks <- a
		}
	}
}

// held is the far end of a connection that is read no further until the near end is closed.
type held struct {
	net.Conn
	gone chan struct{}
}

// hold waits until the other end is closed, or for longer than any test should.
func (h *held) hold() error {
	select {
	case <-h.gone:
	case <-time.After(time.Hour):
	}
	return nil
}

type nearEnd struct {
	net.Conn
	once sync.Once
	gone chan struct{}
}

func (n *nearEnd) Close() error {
	n.once.Do(func() { close(n.gone) })
	return n.Conn.Close()
}

func dialTo(all map[string]*fakeDN) func(context.Context, *wire.DatanodeIDProto, *wire.BlockTokenProto) (net.Conn, error) {
	return func(_ context.Context, n *wire.DatanodeIDProto, _ *wire.BlockTokenProto) (net.Conn, error) {
		near, far := net.Pipe()
		gone := make(chan struct{})
		go all[n.GetDatanodeUuid()].serve(&held{far, gone})
		return &nearEnd{Conn: near, gone: gone}, nil
	}
}
