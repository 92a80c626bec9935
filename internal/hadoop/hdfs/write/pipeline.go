package write

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	pb "google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/hdfs/transfer"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// pipeline is a connection to the first DataNode of a block.
type pipeline struct {
	f       *File
	conn    net.Conn
	timeout time.Duration // of acks
	probe   *probe
	reader  chan struct{} // closed when the reader of acks has ended

	// Under File.mu: how many packets were sent that are not acked, heartbeats included; since
	// when the ack of the first of them is due; the first failure, and which node it was (see
	// connect); and the block's end, once it is sent.
	unacked int
	due     time.Time
	broken  error
	bad     int
	closing *closing
}

// connectLimit bounds the TCP connection to a DataNode.
const connectLimit = 10 * time.Second

// connect sets up the pipeline of the current block and nodes. On failure it returns
// the index of the node that failed, 0 if that is not known; or -1 if none did and all
// are only slow, and waits longer from then on.
func (f *File) connect(stage wire.OpWriteBlockProto_BlockConstructionStage, stamp uint64) (bad int, err error) {
	timeout := f.c.o.Timeout + time.Duration(len(f.s.nodes))*5*time.Second
	conn, err := f.dial(f.s.nodes[0], f.s.token)
	if err != nil {
		return 0, err
	}
	defer context.AfterFunc(f.running, func() { conn.Close() })()
	f.mu.Lock()
	acked, sent := f.s.acked, f.s.sent
	f.mu.Unlock()
	op := &wire.OpWriteBlockProto{
		Header:       f.header(f.s.token),
		Stage:        &stage,
		PipelineSize: pb.Uint32(uint32(len(f.s.nodes))),
		MinBytesRcvd: pb.Uint64(uint64(acked)), MaxBytesRcvd: pb.Uint64(uint64(sent)),
		LatestGenerationStamp: &stamp,
		RequestedChecksum:     f.requestedChecksum(),
		StorageType:           f.s.nodes[0].storageType.Enum(),
	}
	for _, n := range f.s.nodes[1:] {
		op.Targets = append(op.Targets, n.info)
		op.TargetStorageTypes = append(op.TargetStorageTypes, n.storageType)
	}
	r := bufio.NewReader(conn)
	probe, limit := f.probe(), timeout
	impatient := stage == wire.OpWriteBlockProto_PIPELINE_SETUP_CREATE && !f.s.slowSetup
	if impatient {
		limit = min(limit, answerLimit)
	}
	resp, err := transfer.Operate(conn, r, transfer.WriteBlock, op, limit)
	if err != nil {
		conn.Close()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			if bad = probe.silent(); bad >= 0 {
				err = errSilent
			}
			f.s.slowSetup = f.s.slowSetup || bad < 0
			if !impatient {
				bad = max(bad, 0)
			}
		}
		return bad, fmt.Errorf("DataNode %s: %w", address(f.s.nodes[max(bad, 0)].info.GetId()), err)
	}
	if resp.GetStatus() != wire.Status_SUCCESS {
		conn.Close()
		if resp.GetStatus() == wire.Status_ERROR_ACCESS_TOKEN {
			return 0, fmt.Errorf("DataNode %s answers %s %s: %w", address(f.s.nodes[0].info.GetId()), resp.GetStatus(), resp.GetMessage(), transfer.ErrTokenRefused)
		}
		return f.indexOf(resp.GetFirstBadLink()), fmt.Errorf("DataNode %s answers %s %s", resp.GetFirstBadLink(), resp.GetStatus(), resp.GetMessage())
	}
	p := &pipeline{f: f, conn: conn, timeout: timeout, probe: probe, reader: make(chan struct{}), bad: -1}
	f.s.pipe = p
	f.mu.Lock()
	f.s.sample.Start(f.s.acked, true)
	f.mu.Unlock()
	go p.readAcks(r, len(f.s.nodes))
	return -1, nil
}

func (f *File) requestedChecksum() *wire.ChecksumProto {
	sums := f.c.o.Checksum
	return &wire.ChecksumProto{Type: sums.Type.Enum(), BytesPerChecksum: pb.Uint32(uint32(sums.Bytes))}
}

func (f *File) dial(n node, token *wire.BlockTokenProto) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(f.running, connectLimit)
	defer cancel()
	return f.c.o.Dial(ctx, n.info.GetId(), token)
}

func (f *File) header(token *wire.BlockTokenProto) *wire.ClientOperationHeaderProto {
	return &wire.ClientOperationHeaderProto{
		BaseHeader: &wire.BaseHeaderProto{Block: f.s.block, Token: token},
		ClientName: &f.c.name,
	}
}

// indexOf finds the node that a DataNode names as ip:port; 0 if it names none.
func (f *File) indexOf(link string) int {
	for i, n := range f.s.nodes {
		if link != "" && (address(n.info.GetId()) == link || strings.HasPrefix(link, address(n.info.GetId())+" ")) {
			return i
		}
	}
	return 0
}

// send writes a packet; a failure sets broken. It takes as long as the reader of acks waits.
func (p *pipeline) send(b []byte) {
	p.f.mu.Lock()
	if p.unacked++; p.unacked == 1 {
		p.awaitAck()
	}
	p.f.mu.Unlock()
	if _, err := p.conn.Write(b); err != nil {
		// The DataNodes may have reported which of them failed.
		select {
		case <-p.reader:
		case <-time.After(time.Second):
			p.fail(0, err)
		}
	}
}

// awaitAck notes that an ack is due from now on; under File.mu.
func (p *pipeline) awaitAck() {
	p.due = time.Now()
	_ = p.conn.SetReadDeadline(p.due.Add(min(p.timeout, answerLimit))) // fails only when closed, and then so does the read
}

// taken notes that an ack came. They come in the order of the packets, so that the next one is
// due from now on. File.mu is held.
func (p *pipeline) taken() {
	if p.unacked--; p.unacked > 0 {
		p.awaitAck()
		return
	}
	_ = p.conn.SetReadDeadline(time.Time{}) // fails only when closed, and then so does the read
}

// fail records the first failure, and ends the connection and so whoever sends.
func (p *pipeline) fail(bad int, err error) {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	if p.broken == nil {
		p.broken, p.bad = err, bad
		p.f.cond.Broadcast()
	}
	p.conn.Close()
}

// close ends the connection and the reader.
func (p *pipeline) close() {
	p.conn.Close()
	<-p.reader
}

// readAcks processes acks until the connection ends or a DataNode reports a failure.
func (p *pipeline) readAcks(r *bufio.Reader, nodes int) {
	defer close(p.reader)
	defer context.AfterFunc(p.f.running, func() { p.conn.Close() })()
	slow := make([]int, nodes) // acks in a row that said so
	for {
		ack := &wire.PipelineAckProto{}
		err := transfer.Receive(r, ack)
		if errors.Is(err, os.ErrDeadlineExceeded) && p.mayTakeLonger() {
			continue
		}
		if err != nil {
			p.fail(0, fmt.Errorf("the pipeline ended: %w", err))
			return
		}
		for i, s := range ack.GetReply() {
			if s != wire.Status_SUCCESS {
				p.fail(i, fmt.Errorf("DataNode %d of %d reports %s", i+1, nodes, s))
				return
			}
		}
		for i, flag := range ack.GetFlag() {
			if i >= nodes {
				break
			}
			if !saysSlow(flag) {
				slow[i] = 0
			} else if slow[i]++; slow[i] >= slowAcks && nodes > 2 { // of two, better a slow one than one alone
				p.fail(i, fmt.Errorf("DataNode %d of %d: %w", i+1, nodes, errSlow))
				return
			}
		}
		if ack.GetSeqno() == heartbeatSeq {
			p.f.mu.Lock()
			p.taken()
			p.f.mu.Unlock()
			continue
		}
		if err := p.acked(ack.GetSeqno()); err != nil {
			p.fail(0, err)
			return
		}
	}
}

// mayTakeLonger reports whether an overdue ack can be waited for; if not, it returns why.
func (p *pipeline) mayTakeLonger() bool {
	silent := p.probe.silent()
	p.f.mu.Lock()
	waited := time.Since(p.due)
	longer := silent < 0 && waited < p.timeout
	if longer {
		_ = p.conn.SetReadDeadline(time.Now().Add(min(p.timeout-waited, answerLimit))) // fails only when closed, and then so does the read
	}
	p.f.mu.Unlock()
	if !longer {
		err := fmt.Errorf("no ack for %s", waited.Round(time.Second))
		if silent >= 0 {
			err = fmt.Errorf("%w: %w", err, errSilent)
		}
		p.fail(max(silent, 0), err)
	}
	return longer
}

func (p *pipeline) acked(seq int64) error {
	f := p.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := p.closing; c != nil && c.last.seq == seq && !c.ended {
		c.ended = true
		f.cond.Broadcast()
		return nil
	}
	if p.broken != nil || p.closing != nil || len(f.acks) == 0 || f.acks[0].seq != seq {
		return fmt.Errorf("an ack came for packet %d, which was not due", seq)
	}
	done := f.acks[0]
	f.acks = f.acks[1:]
	f.held -= done.n
	f.ackedTo = seq + 1
	f.progress()
	f.s.acked = max(f.s.acked, done.end())
	done.free()
	if len(f.queue)+len(f.acks) == 0 {
		f.s.sample.Pause()
	}
	p.taken()
	f.cond.Broadcast()
	return nil
}

// slowAcks is how many acks in a row may have a DataNode's flag for being slow, which
// DataNodes set if dfs.pipeline.slownode is on; as
// dfs.client.mark.slownode.as.badnode.threshold.
const slowAcks = 10

// errSlow: a DataNode reports that it is slow.
var errSlow = errors.New("it reports that it is slow")

// saysSlow reads a DataNode's flag in an ack (PipelineAck.java: the status has 4 bits,
// one is reserved, ECN has 2, and then 2 are SLOW, of which 2 is the value SLOW).
func saysSlow(flag uint32) bool { return flag>>7&3 == 2 }
