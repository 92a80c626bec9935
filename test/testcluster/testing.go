package testcluster

import (
	"context"
	"fmt"
	"os"
	"sync"
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

// Shared is a cluster for all tests of a package. The first test that calls Get starts
// it, so that tests which need none run without one. Its methods may be called from many
// goroutines.
type Shared struct {
	Options Options

	mu      sync.Mutex
	cluster *Cluster
}

// Get returns the cluster. It fails the test if the cluster does not start.
func (s *Shared) Get(t TB) *Cluster {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster == nil {
		ctx, cancel := context.WithTimeout(context.Background(), startLimit)
		defer cancel()
		c, err := Start(ctx, s.Options)
		if err != nil {
			t.Fatalf("starting the test cluster: %v", err)
		}
		s.cluster = c
	}
	return s.cluster
}

// Run is for a package's TestMain: it runs the tests, stops the cluster if one was
// started, and returns the exit code.
func (s *Shared) Run(m interface{ Run() int }) int {
	code := m.Run()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster == nil {
		return code
	}
	if err := s.cluster.Stop(); err != nil {
		fmt.Fprintf(os.Stderr, "stopping the test cluster: %v\n", err)
		return max(code, 1)
	}
	return code
}
