package hdfs

import (
	"bytes"
	"io"
	"testing"
	"time"
)

// TestReadWithoutMemory: a reader gets on when all memory is used up, holds
// little, and leaves nothing.
func TestReadWithoutMemory(t *testing.T) {
	shared := newShared(0)
	memory := shared.memory
	memory.Add(1) // others'
	d := &dataNode{content: bytes.Repeat([]byte("0123456789abcdef"), 1<<20)}
	r := newReader(t, shared, map[string]*dataNode{"a": d})
	got := make([]byte, 100_000)
	for off := 0; off < len(d.content); off += len(got) {
		n, err := r.ReadAt(got, int64(off))
		if err != nil && err != io.EOF || !bytes.Equal(got[:n], d.content[off:off+n]) || n < min(len(got), len(d.content)-off) {
			t.Fatalf("at %d: %d bytes, %v", off, n, err)
		}
		// What is read, and one piece that is on its way.
		if held := memory.Held() - 1; held > (keepShort+1)*pieceSize {
			t.Fatalf("at %d the reader holds %d bytes", off, held)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if held := memory.Held(); held != 1 {
		t.Errorf("after closing, %d bytes are held", held-1)
	}
}

// TestIdleReadersGiveWay: what idle Readers keep goes when memory is short, the
// least recently used first, and what is being used stays.
func TestIdleReadersGiveWay(t *testing.T) {
	const limit = 64 << 20
	shared := newShared(limit)
	memory := shared.memory
	d := &dataNode{content: bytes.Repeat([]byte("0123456789abcdef"), 1<<19)}
	begun := time.Now()
	var readers []*Reader
	for range 6 {
		r := newReader(t, shared, map[string]*dataNode{"a": d})
		got := make([]byte, 3<<20)
		if _, err := r.ReadAt(got, 0); err != nil {
			t.Fatal(err)
		}
		r.wg.Wait() // until nothing more is fetched ahead
		readers = append(readers, r)
	}
	full := memory.Held()
	if full < 6*(3<<20) {
		t.Fatalf("idle readers hold %d bytes", full)
	}
	p, err := readers[0].get(0) // used now
	if err != nil {
		t.Fatal(err)
	}
	readers[0].wg.Wait()
	others := int(limit - full + full/4) // as writers do; some readers keep what they have read
	memory.Add(others)
	shared.relieve(begun) // however long that has taken, all was used later
	if !memory.Short() {
		t.Error("what was used just now went")
	}
	shared.relieve(time.Now().Add(time.Minute))
	if memory.Short() || memory.Held() < limit-pieceSize {
		t.Errorf("%d bytes are held, and %d may be", memory.Held(), limit)
	}
	if p.data == nil {
		t.Error("a piece went while it was used")
	}
	readers[0].release(p)
	var stay []int // of each reader, of what it has read
	for _, r := range readers[1:] {
		n := 0
		for _, p := range r.pieces {
			if p.read {
				n++
			}
		}
		stay = append(stay, n)
	}
	if stay[0] > 0 || stay[len(stay)-1] == 0 {
		t.Errorf("of the readers in the order of their last use, %v pieces stay", stay)
	}
	memory.Add(-others)
	for _, r := range readers { // what went is fetched again
		got := make([]byte, 3<<20)
		if _, err := r.ReadAt(got, 0); err != nil || !bytes.Equal(got, d.content[:3<<20]) {
			t.Error("other bytes are read", err)
		}
		r.Close()
	}
	if held := memory.Held(); held != 0 {
		t.Errorf("closed readers hold %d bytes", held)
	}
}
