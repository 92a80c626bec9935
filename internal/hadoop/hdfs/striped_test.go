package hdfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/sirupsen/logrus"
	pb "google.golang.org/protobuf/proto"

	wire "holdfast/internal/hadoop/wire/hdfs"
)

// units lays a group's bytes out, each unit on a DataNode of its own.
func units(t testing.TB, p *policy, content []byte) []*dataNode {
	t.Helper()
	coder, err := NewShared().coder(p)
	if err != nil {
		t.Fatal(err)
	}
	nodes := make([]*dataNode, p.units())
	for i := range nodes {
		nodes[i] = &dataNode{}
	}
	for rest := content; len(rest) > 0; {
		cells := make([][]byte, p.units())
		for i := range cells {
			cells[i] = make([]byte, p.cell)
		}
		lengths := make([]int, p.units())
		for i := range p.data {
			lengths[i] = copy(cells[i], rest)
			rest = rest[lengths[i]:]
		}
		if err := coder.Encode(cells); err != nil {
			t.Fatal(err)
		}
		for i := range cells {
			if i >= p.data {
				lengths[i] = lengths[0]
			}
			nodes[i].content = append(nodes[i].content, cells[i][:lengths[i]]...)
		}
	}
	for i, n := range nodes {
		if int64(len(n.content)) != p.length(int64(len(content)), i) {
			t.Fatalf("unit %d has %d bytes, and %d are expected", i, len(n.content), p.length(int64(len(content)), i))
		}
	}
	return nodes
}

// newGroupReader reads a file of one block group.
func newGroupReader(t testing.TB, shared *Shared, p *policy, nodes []*dataNode, size int) *Reader {
	log := logrus.New()
	log.SetOutput(t.Output())
	b := &wire.LocatedBlockProto{
		B: &wire.ExtendedBlockProto{
			PoolId: pb.String("pool"), BlockId: pb.Uint64(1 << 10), GenerationStamp: pb.Uint64(1), NumBytes: pb.Uint64(uint64(size)),
		},
		BlockToken: &wire.BlockTokenProto{Identifier: []byte{}, Password: []byte{}, Kind: pb.String(""), Service: pb.String("")},
		Offset:     pb.Uint64(0),
	}
	for i, n := range nodes {
		if len(n.content) > 0 {
			b.Locs = append(b.Locs, &wire.DatanodeInfoProto{Id: &wire.DatanodeIDProto{DatanodeUuid: pb.String(fmt.Sprint(i))}})
			b.BlockIndices = append(b.BlockIndices, byte(i))
		}
	}
	dial := func(_ context.Context, id *wire.DatanodeIDProto, _ *wire.BlockTokenProto) (net.Conn, error) {
		var i int
		_, _ = fmt.Sscan(id.GetDatanodeUuid(), &i)
		return nodes[i].dial()
	}
	src := &source{c: &Client{dial: dial, log: log, shared: shared}, path: "/a", size: int64(size), policy: p, bad: map[string]bool{}, blocks: []*wire.LocatedBlockProto{b}}
	r := &Reader{src: src, pieces: map[int64]*piece{}}
	r.life, r.end = context.WithCancel(context.Background())
	t.Cleanup(func() { r.Close() })
	return r
}

// TestLostUnits reads with each set of units lost that the parity makes up for, from
// the beginning to the end and at some places.
func TestLostUnits(t *testing.T) {
	shared := NewShared()
	p := &policy{"OWN", codecRS, 3, 2, 64 << 10}
	for _, size := range []int{1, 64<<10 + 1, 400_000, 656_360, 3_000_001} {
		content := make([]byte, size)
		_, _ = rand.NewChaCha8([32]byte{byte(size)}).Read(content)
		for lost := range 1 << p.units() {
			var which []int
			nodes := units(t, p, content)
			for i, n := range nodes {
				if lost>>i&1 == 1 {
					which = append(which, i)
					n.broken.Store(true)
				}
			}
			if len(which) > p.parity {
				continue
			}
			r := newGroupReader(t, shared, p, nodes, size)
			got, err := io.ReadAll(io.NewSectionReader(r, 0, int64(size)))
			if err != nil || !bytes.Equal(got, content) {
				t.Fatalf("%d bytes, units %v lost: %d bytes, the same %v, %v", size, which, len(got), bytes.Equal(got, content), err)
			}
			r.Close()
			r = newGroupReader(t, shared, p, nodes, size)
			places := rand.New(rand.NewPCG(uint64(size), uint64(lost)))
			for range 5 {
				at := places.IntN(size)
				b := make([]byte, min(1+places.IntN(300_000), size-at))
				if n, err := r.ReadAt(b, int64(at)); n != len(b) || !bytes.Equal(b, content[at:at+n]) {
					t.Fatalf("%d bytes, units %v lost, at %d: %d bytes of %d, %v", size, which, at, n, len(b), err)
				}
			}
			r.Close()
		}
	}
	if n := shared.memory.Held(); n != 0 {
		t.Errorf("closed readers hold %d bytes", n)
	}
}

// TestUnitLostMeanwhile: a DataNode that goes away while its unit is read is done
// without, and one too many is an error that says so.
func TestUnitLostMeanwhile(t *testing.T) {
	p := &policy{"OWN", codecXOR, 2, 1, 64 << 10}
	content := make([]byte, 4<<20)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content)
	nodes := units(t, p, content)
	r := newGroupReader(t, NewShared(), p, nodes, len(content))
	g := openGroup(t.Context(), r.src, r.src.blocks[0], 0, int64(len(content)))
	defer g.close()
	got := make([]byte, len(content))
	if _, err := io.ReadFull(g, got[:1_000_000]); err != nil {
		t.Fatal(err)
	}
	nodes[0].broken.Store(true)
	g.units[0].stream.conn.Close()
	if _, err := io.ReadFull(g, got[1_000_000:2_000_000]); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got[:2_000_000], content[:2_000_000]) {
		t.Error("other bytes are read")
	}
	nodes[2].broken.Store(true)
	g.units[2].stream.conn.Close()
	if n, err := io.ReadFull(g, got[2_000_000:]); !errors.Is(err, errTooFewUnits) {
		t.Errorf("with two of three lost, %d bytes, %v", n, err)
	}
}
