package write_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"holdfast/internal/hadoop/conf"
)

// TestSyncReachesTheDisks: after Sync each DataNode of the pipeline has called
// fsync, also where all bytes had been sent, or flushed, before.
func TestSyncReachesTheDisks(t *testing.T) {
	const replication = 2
	c := client(t, replication, 16<<20)
	before, want := fsyncs(t), 0
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
			want += replication
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	// A DataNode's answer is up to 11 s old (MetricsSourceAdapter.java).
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		n := fsyncs(t) - before
		if n >= want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the DataNodes called fsync %d times, want %d", n, want)
		}
	}
}

// fsyncs is how often the DataNodes have called fsync, by their own count.
func fsyncs(t *testing.T) int {
	t.Helper()
	total := 0
	for i := range dataNodes {
		c, err := conf.Load(filepath.Join(shared.Get(t).Dir(), fmt.Sprintf("dn%d", i), "conf"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.Get("http://" + c.Get("dfs.datanode.http.address") + "/jmx?qry=Hadoop:service=DataNode,name=DataNodeActivity-*")
		if err != nil {
			t.Fatal(err)
		}
		var answer struct{ Beans []struct{ FsyncCount int } }
		err = json.NewDecoder(resp.Body).Decode(&answer)
		resp.Body.Close()
		if err != nil || len(answer.Beans) != 1 {
			t.Fatalf("the metrics of DataNode %d: %+v, %v", i, answer, err)
		}
		total += answer.Beans[0].FsyncCount
	}
	return total
}
