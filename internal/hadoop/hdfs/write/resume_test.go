package write_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"
)

// blocksOf is how many blocks a file has, as Hadoop counts.
func blocksOf(t *testing.T, path string) int {
	t.Helper()
	out, err := shared.Get(t).Hadoop(t.Context(), "org.apache.hadoop.hdfs.tools.DFSck", path)
	if err != nil {
		t.Fatalf("fsck %s: %v\n%s", path, err, out)
	}
	m := regexp.MustCompile(`Total blocks \(validated\):\s+(\d+)`).FindSubmatch([]byte(out))
	if m == nil {
		t.Fatalf("fsck says no number of blocks:\n%s", out)
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestAppendGoesOnWithTheLastBlock: reopening begins no new block, wherever in a
// chunk the file ends and wherever it is flushed, and also across a block's end.
func TestAppendGoesOnWithTheLastBlock(t *testing.T) {
	const block = 1 << 20
	c := client(t, 3, block)
	rng := rand.New(rand.NewPCG(1, 2))
	var want []byte
	f := create(t, c, "/grows")
	for round := 0; len(want) < 2*block+block/2; round++ {
		for range 1 + rng.IntN(3) {
			n := 1 + rng.IntN([]int{5, 600, 5000, 300_000}[rng.IntN(4)])
			b := content(uint64(len(want)), n)
			want = append(want, b...)
			if _, err := f.Write(b); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			if rng.IntN(2) == 0 {
				if err := f.Flush(t.Context()); err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
			}
		}
		if err := f.Close(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		var err error
		if f, err = c.Append(t.Context(), "/grows"); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	if err := f.Close(); err != nil { // with nothing added
		t.Fatal(err)
	}
	same(t, "/grows", want)
	if n := blocksOf(t, "/grows"); n != 3 {
		t.Errorf("%d bytes are in %d blocks, want 3", len(want), n)
	}
}

// TestAppendWithoutADataNode: one DataNode is lost while a file is closed, and
// another while what is added is written.
func TestAppendWithoutADataNode(t *testing.T) {
	for _, when := range []string{"closed", "written"} {
		t.Run(when, func(t *testing.T) {
			c := client(t, 3, 16<<20)
			path, want := "/append-"+when, content(1, 1000)
			f := create(t, c, path)
			_, _ = f.Write(want)
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			lose := func() {
				for i := range 2 { // of 4, and 3 have the block: one of the two at least
					victim := shared.Get(t).Daemon(fmt.Sprintf("dn%d", i))
					if err := victim.Kill(); err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() {
						if err := victim.Restart(context.Background()); err != nil {
							t.Error(err)
						}
					})
				}
			}
			if when == "closed" {
				lose()
			}
			f, err := c.Append(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 20 {
				if i == 10 && when == "written" {
					lose()
				}
				b := content(uint64(i), 777)
				want = append(want, b...)
				if _, err := f.Write(b); err != nil {
					t.Fatal(err)
				}
				if err := f.Drain(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			same(t, path, want)
			if n := blocksOf(t, path); n != 1 {
				t.Errorf("it has %d blocks", n)
			}
		})
	}
}
