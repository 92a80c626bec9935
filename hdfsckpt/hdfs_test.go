package hdfsckpt_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/conf"
	"holdfast/test/testcluster"
)

var (
	shared = testcluster.Shared{Options: testcluster.Options{HDFSOnly: true}}
	roots  atomic.Int64
)

func TestMain(m *testing.M) { os.Exit(shared.Run(m)) }

// openHDFS opens an empty store on HDFS.
func openHDFS(t *testing.T) store.Store {
	t.Helper()
	cluster := shared.Get(t)
	hadoop, err := conf.Load(cluster.ConfDir())
	must(t, err)
	s, err := store.Open(context.Background(), fmt.Sprintf("%s/stores/%d", cluster.HDFS(), roots.Add(1)), hadoop)
	must(t, err)
	return s
}

func openLocal(t testing.TB, dir string) store.Store {
	t.Helper()
	s, err := store.Open(context.Background(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestCheckpointsOnHDFS lists many checkpoints.
func TestCheckpointsOnHDFS(t *testing.T) {
	s := openHDFS(t)
	defer s.Close()
	var wg sync.WaitGroup
	const count = 40
	for g := range 8 {
		wg.Go(func() {
			for i := g; i < count; i += 8 {
				putCheckpoint(t, s, fmt.Sprintf("model.ckpt-%d", i), nil)
			}
		})
	}
	wg.Wait()
	start := time.Now()
	found := list(t, s)
	t.Logf("%d checkpoints listed in %s", len(found), time.Since(start))
	newest := format.NewestComplete(found)
	if len(found) != count || newest == nil || newest.Step != count-1 {
		t.Errorf("%d found, the newest is %+v", len(found), newest)
	}
}
