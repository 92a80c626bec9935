package hdfsckpt_test

import (
	"context"
	"flag"
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
	cluster *testcluster.Cluster
	roots   atomic.Int64
)

func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.fuzz").Value.String() != "" {
		os.Exit(m.Run()) // fuzzing needs no cluster, and each worker of it is a process that comes here
	}
	os.Exit(testcluster.Run(m, testcluster.Options{HDFSOnly: true}, func(c *testcluster.Cluster) { cluster = c }))
}

func clusterConf(t *testing.T) *conf.Conf {
	t.Helper()
	c, err := conf.Load(cluster.ConfDir())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// openHDFS opens an empty store on HDFS.
func openHDFS(t *testing.T) store.Store {
	t.Helper()
	s, err := store.Open(context.Background(), fmt.Sprintf("%s/stores/%d", cluster.HDFS(), roots.Add(1)), clusterConf(t))
	if err != nil {
		t.Fatal(err)
	}
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
