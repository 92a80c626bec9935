package hdfs

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"holdfast/internal/hadoop/hdfs/zone"
)

// TestEncrypted: a file in an encryption zone is read in order, over several
// connections at once and anywhere, and each piece is decrypted once.
func TestEncrypted(t *testing.T) {
	cipher, err := zone.NewCipher([]byte("0123456789abcdef"), []byte("fedcba9876543210"))
	if err != nil {
		t.Fatal(err)
	}
	plain := make([]byte, 40<<20+12345)
	_, _ = rand.NewChaCha8([32]byte{}).Read(plain)
	content := bytes.Clone(plain)
	cipher.XOR(content, 0)
	nodes := map[string]*dataNode{}
	for _, name := range []string{"a", "b", "c"} {
		nodes[name] = &dataNode{content: content, pause: 300 * time.Microsecond}
	}
	r := newReader(t, NewShared(), nodes)
	r.src.cipher = cipher
	got := make([]byte, len(plain))
	for off := 0; off < len(got); off += 1 << 20 {
		part := got[off:min(off+1<<20, len(got))]
		if n, err := r.ReadAt(part, int64(off)); n != len(part) || err != nil && !errors.Is(err, io.EOF) {
			t.Fatalf("at %d: %d bytes, %v", off, n, err)
		}
	}
	if !bytes.Equal(got, plain) {
		t.Error("other bytes were read in order")
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				from := rand.IntN(len(plain))
				b := make([]byte, min(1+rand.IntN(700_000), len(plain)-from))
				if n, err := r.ReadAt(b, int64(from)); n != len(b) || !bytes.Equal(b, plain[from:from+n]) {
					t.Errorf("%d other bytes were read at %d, %v", len(b), from, err)
				}
			}
		})
	}
	wg.Wait()
}
