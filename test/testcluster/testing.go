package testcluster

import (
	"context"
	"time"
)

// startLimit is how long a cluster may take to start; the first one downloads Hadoop.
const startLimit = 10 * time.Minute

// TB is what ForTest needs of a *testing.T.
type TB interface {
	Helper()
	Cleanup(func())
	Error(args ...any)
	Fatalf(format string, args ...any)
}

// ForTest starts a cluster for a test, or fails the test; the cluster is stopped when
// the test is over.
func ForTest(t TB, opts Options) *Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	c, err := Start(ctx, opts)
	if err != nil {
		t.Fatalf("starting the test cluster: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}
