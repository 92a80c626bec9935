package hdfs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	pb "google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/hdfs/transfer"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// dataNode answers READ_BLOCK from the content of one block, over pipes.
type dataNode struct {
	content []byte
	pause   time.Duration // before each packet, of a slow disk
	broken  atomic.Bool   // refuses connections
	opened  atomic.Int32  // connections
}

func (d *dataNode) dial() (net.Conn, error) {
	if d.broken.Load() {
		return nil, errors.New("refused")
	}
	d.opened.Add(1)
	ours, theirs := net.Pipe()
	go func() {
		defer theirs.Close()
		_ = d.serve(theirs) // the reader may hang up
	}()
	return ours, nil
}

func (d *dataNode) serve(conn net.Conn) error {
	r := bufio.NewReader(conn)
	if _, err := r.Discard(3); err != nil {
		return err
	}
	op := &wire.OpReadBlockProto{}
	if err := transfer.Receive(r, op); err != nil {
		return err
	}
	at := int64(op.GetOffset()) / 512 * 512
	answer, err := pb.Marshal(&wire.BlockOpResponseProto{
		Status: wire.Status_SUCCESS.Enum(),
		ReadOpChecksumInfo: &wire.ReadOpChecksumInfoProto{
			Checksum:    &wire.ChecksumProto{Type: wire.ChecksumTypeProto_CHECKSUM_CRC32C.Enum(), BytesPerChecksum: pb.Uint32(512)},
			ChunkOffset: pb.Uint64(uint64(at)),
		},
	})
	if err != nil {
		return err
	}
	if _, err := conn.Write(append(binary.AppendUvarint(nil, uint64(len(answer))), answer...)); err != nil {
		return err
	}
	for end := int64(op.GetOffset() + op.GetLen()); at < end; {
		time.Sleep(d.pause)
		n := min(64<<10, end-at)
		if _, err := conn.Write(packet(at, d.content[at:at+n], false)); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// newReader reads a file of one block that lies on some DataNodes.
func newReader(t *testing.T, shared *Shared, nodes map[string]*dataNode) *Reader {
	log := logrus.New()
	log.SetOutput(t.Output())
	var locs []*wire.DatanodeInfoProto
	var size int
	for uuid, d := range nodes {
		locs = append(locs, &wire.DatanodeInfoProto{Id: &wire.DatanodeIDProto{DatanodeUuid: &uuid}})
		size = len(d.content)
	}
	dial := func(_ context.Context, id *wire.DatanodeIDProto, _ *wire.BlockTokenProto) (net.Conn, error) {
		return nodes[id.GetDatanodeUuid()].dial()
	}
	src := &source{c: &Client{dial: dial, log: log, shared: shared}, path: "/a", size: int64(size), bad: map[string]bool{}, blocks: []*wire.LocatedBlockProto{{
		B: &wire.ExtendedBlockProto{
			PoolId: pb.String("pool"), BlockId: pb.Uint64(1), GenerationStamp: pb.Uint64(1), NumBytes: pb.Uint64(uint64(size)),
		},
		BlockToken: &wire.BlockTokenProto{Identifier: []byte{}, Password: []byte{}, Kind: pb.String(""), Service: pb.String("")},
		Offset:     pb.Uint64(0),
		Locs:       locs,
	}}}
	r := &Reader{src: src, pieces: map[int64]*piece{}}
	r.life, r.end = context.WithCancel(context.Background())
	t.Cleanup(func() { r.Close() })
	return r
}

// TestReadAheadOfASlowReader: what was fetched ahead is kept until it is read,
// so that two connections do: one for the file's beginning, one for the rest.
func TestReadAheadOfASlowReader(t *testing.T) {
	d := &dataNode{content: bytes.Repeat([]byte("0123456789abcdef"), 1<<20)}
	r := newReader(t, NewShared(), map[string]*dataNode{"a": d})
	got := make([]byte, 64<<10)
	for off := 0; off < len(d.content); off += len(got) {
		if n, err := r.ReadAt(got, int64(off)); n != len(got) || err != nil && err != io.EOF {
			t.Fatalf("at %d: %d bytes, %v", off, n, err)
		}
		if !bytes.Equal(got, d.content[off:off+len(got)]) {
			t.Fatalf("at %d other bytes are read", off)
		}
		r.wg.Wait() // until nothing more is fetched ahead
	}
	if n := d.opened.Load(); n > 2 {
		t.Errorf("%d connections were opened", n)
	}
}

// TestSlowDataNodes: a reader that waits for a slow DataNode has the others
// that hold the block help, and all bytes come at their places.
func TestSlowDataNodes(t *testing.T) {
	content := make([]byte, 48<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content)
	nodes := map[string]*dataNode{}
	for _, name := range []string{"a", "b", "c"} {
		nodes[name] = &dataNode{content: content, pause: 300 * time.Microsecond}
	}
	r := newReader(t, NewShared(), nodes)
	got := make([]byte, len(content))
	for off := 0; off < len(got); off += 1 << 20 {
		if n, err := r.ReadAt(got[off:off+1<<20], int64(off)); n != 1<<20 || err != nil && err != io.EOF {
			t.Fatalf("at %d: %d bytes, %v", off, n, err)
		}
	}
	if !bytes.Equal(got, content) {
		t.Error("other bytes were read")
	}
	for name, d := range nodes {
		if d.opened.Load() == 0 {
			t.Errorf("DataNode %s was not asked", name)
		}
	}
	// One that fails meanwhile is replaced.
	nodes["b"].broken.Store(true)
	r = newReader(t, NewShared(), nodes)
	for off := 0; off < len(got); off += 1 << 20 {
		if n, err := r.ReadAt(got[:1<<20], int64(off)); n != 1<<20 || !bytes.Equal(got[:n], content[off:off+n]) {
			t.Fatalf("at %d: %d bytes, %v", off, n, err)
		}
	}
}

// TestADataNodeThatWasSilent: what has not answered one reader of this process
// lately no other asks while there is another replica.
func TestADataNodeThatWasSilent(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789abcdef"), 1<<10)
	nodes := map[string]*dataNode{"mute": {content: content, pause: time.Minute}, "well": {content: content}}
	shared := NewShared()
	for range 20 { // of which each would choose a DataNode by chance
		r := newReader(t, shared, nodes)
		got := make([]byte, len(content))
		if n, err := r.ReadAt(got, 0); n != len(got) || err != nil && err != io.EOF || !bytes.Equal(got, content) {
			t.Fatalf("%d bytes, %v", n, err)
		}
	}
	if n := nodes["mute"].opened.Load(); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
}

// TestOneSlowDataNode: a reader is not held up by one DataNode of three that gives a
// megabyte a second, and leaves it.
func TestOneSlowDataNode(t *testing.T) {
	content := make([]byte, 64<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(content)
	nodes := map[string]*dataNode{"brisk": {content: content}, "fresh": {content: content}, "tired": {content: content, pause: 64 * time.Millisecond}}
	r := newReader(t, NewShared(), nodes)
	slices.SortFunc(r.src.blocks[0].Locs, func(a, b *wire.DatanodeInfoProto) int { // the slow one is asked first
		return strings.Compare(b.GetId().GetDatanodeUuid(), a.GetId().GetDatanodeUuid())
	})
	began := time.Now()
	got := make([]byte, len(content))
	for off := 0; off < len(got); off += 1 << 20 {
		if n, err := r.ReadAt(got[off:off+1<<20], int64(off)); n != 1<<20 || err != nil && err != io.EOF {
			t.Fatalf("at %d: %d bytes, %v", off, n, err)
		}
	}
	took := time.Since(began)
	if !bytes.Equal(got, content) {
		t.Error("other bytes were read")
	}
	// Two thirds of it at the speed of the slow one take 20 s and more.
	if t.Logf("it took %s", took); took > 8*time.Second {
		t.Errorf("it took %s", took)
	}
}

// TestWorkIsTakenOver: a lane that has nothing left takes over half of what another one
// has, so that the end of what is read does not wait for the slowest DataNode.
func TestWorkIsTakenOver(t *testing.T) {
	r := newReader(t, NewShared(), map[string]*dataNode{"a": {content: make([]byte, stripeSize*pieceSize)}})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lanes = []lane{{}, {next: 0, end: stripeSize}}
	r.frontier, r.horizon = stripeSize, stripeSize
	p := r.nextPiece(&r.lanes[0])
	if p == nil || p.index != stripeSize/2 || r.lanes[0].end != stripeSize || r.lanes[1].end != stripeSize/2 {
		t.Errorf("it fetches %+v next, and the lanes are %+v", p, r.lanes)
	}
}

// TestTooSlow: a lane's DataNode is left when it is much slower than another lane's,
// and is not fast anyway.
func TestTooSlow(t *testing.T) {
	after := func(pieces int, each time.Duration) lane {
		return lane{trial: trial{pieces: pieces, took: time.Duration(pieces) * each}}
	}
	const slowly, well, fast = 250 * time.Millisecond, 5 * time.Millisecond, 500 * time.Microsecond
	for name, c := range map[string]struct {
		mine, other lane
		want        bool
	}{
		"much slower":          {after(4, slowly), after(20, well), true},
		"too early to tell":    {after(3, slowly), after(20, well), false},
		"nothing to compare":   {after(9, slowly), after(3, well), false},
		"both slow":            {after(9, slowly), after(9, slowly/3), false},
		"slower, but well off": {after(9, well), after(9, fast), false},
		"the faster one":       {after(9, well), after(9, slowly), false},
	} {
		r := &Reader{lanes: []lane{c.mine, c.other}}
		if got := r.tooSlow(&r.lanes[0]); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	// Who is left is asked last.
	r := newReader(t, NewShared(), map[string]*dataNode{"a": {}, "b": {}, "c": {}})
	b := r.src.blocks[0]
	b.B.NumBytes = pb.Uint64(1)
	r.src.markSlow(&fileStream{s: r.src, b: b, from: b.Locs[0].GetId()})
	if _, order := r.src.at(0, 0); len(order) != 3 || order[2] != b.Locs[0].GetId() {
		t.Errorf("the order is %v", order)
	}
}
