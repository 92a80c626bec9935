package write_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/internal/hadoop/hdfs/budget"
	"holdfast/internal/hadoop/hdfs/write"
)

// TestWritersHaveIdleReadersGiveWay: when what readers keep leaves no room, who writes has that
// dropped, and does not write in small packets because of it.
func TestWritersHaveIdleReadersGiveWay(t *testing.T) {
	const limit, size = 4 << 20, 8 << 20
	idle := int64(2 * limit)
	var mu sync.Mutex
	var memory *budget.Memory
	memory = budget.New(limit, func() {
		mu.Lock()
		defer mu.Unlock()
		memory.Add(-int(idle))
		idle = 0
	})
	memory.Add(int(idle))
	f := create(t, clientWith(t, write.Options{Replication: 1, BlockSize: 16 << 20, Memory: memory}), "/relieved")
	want := content(3, size)
	if _, err := f.Write(want[:100_000]); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	left := idle
	mu.Unlock()
	if left > 0 || memory.Short() {
		t.Errorf("after the first write readers keep %d bytes, and all hold %d", left, memory.Held())
	}
	if _, err := f.Write(want[100_000:]); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	same(t, "/relieved", want)
}

// TestMemoryIsShared writes many files at once, with memory for few of them:
// all get on, together they hold little, and nothing once they are closed.
func TestMemoryIsShared(t *testing.T) {
	const files, size, piece, limit = 24, 3 << 20, 100_003, 1 << 20
	memory := budget.New(limit, nil)
	c := clientWith(t, write.Options{Replication: 2, BlockSize: 16 << 20, Memory: memory})
	all := make([]*write.File, files)
	for i := range all {
		all[i] = create(t, c, fmt.Sprintf("/shared-%d", i))
	}
	peak := make(chan int64)
	stop := make(chan struct{})
	go func() {
		most := int64(0)
		for tick := time.NewTicker(100 * time.Microsecond); ; {
			select {
			case <-stop:
				peak <- most
				return
			case <-tick.C:
				most = max(most, memory.Held())
			}
		}
	}()
	var writing errgroup.Group
	for i, f := range all {
		writing.Go(func() error {
			for b := content(uint64(i), size); len(b) > 0; {
				n := min(piece, len(b))
				if _, err := f.Write(b[:n]); err != nil {
					return err
				}
				b = b[n:]
			}
			return nil
		})
	}
	if err := writing.Wait(); err != nil {
		t.Fatal(err)
	}
	close(stop)
	// A packet and a half for each, which hold what was written last.
	most := <-peak
	t.Logf("%d files hold %d KB at most", files, most>>10)
	if bound := int64(limit + files*400<<10); most > bound {
		t.Errorf("%d files held %d KB, and the bound is %d", files, most>>10, bound>>10)
	}
	for i, f := range all {
		end := f.Close
		if i%2 == 1 {
			end = f.Abort
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	if n := memory.Held(); n != 0 {
		t.Errorf("closed files hold %d bytes", n)
	}
	same(t, "/shared-0", content(0, size))
	same(t, "/shared-22", content(22, size))
}
