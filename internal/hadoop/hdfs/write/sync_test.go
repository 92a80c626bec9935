package write_test

import (
	"testing"
	"time"
)

// TestSyncReachesTheDisks: after Sync each DataNode of the pipeline has called
// fsync, also where all bytes had been sent, or flushed, before.
func TestSyncReachesTheDisks(t *testing.T) {
	const replication = 2
	c := client(t, replication, 16<<20)
	cluster := shared.Get(t)
	before, want := cluster.Fsyncs(t), 0
	for _, size := range []int{1, 512, 1 << 20, 1<<20 + 1} {
		for _, flushed := range []bool{false, true} {
			f := create(t, c, "/synced")
			if _, err := f.Write(content(1, size)); err != nil {
				t.Fatal(err)
			}
			if flushed {
				if err := f.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			want += 2 * replication // by Sync, and as the block ends
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	// A DataNode's answer is up to 11 s old (MetricsSourceAdapter.java).
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		n := cluster.Fsyncs(t) - before
		if n >= want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the DataNodes called fsync %d times, want %d", n, want)
		}
	}
}
