package hdfsckpt_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/storetest"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/testcluster"
)

var (
	cluster *testcluster.Cluster
	roots   atomic.Int64
)

func TestMain(m *testing.M) {
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
func openHDFS(t *testing.T) hdfsckpt.Store {
	t.Helper()
	s, err := hdfsckpt.Open(context.Background(), fmt.Sprintf("%s/stores/%d", cluster.HDFS(), roots.Add(1)), clusterConf(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestHDFS(t *testing.T) { storetest.Run(t, openHDFS) }
