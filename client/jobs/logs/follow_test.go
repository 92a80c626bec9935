package logs

import (
	"context"
	"fmt"
	"path"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"holdfast/client/jobs"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/jobtls"
	"holdfast/proto"
)

// away is a store that does not answer some times.
type away struct {
	store.Store
	times atomic.Int32
	back  func() // called before the last of them
}

func (a *away) answer() error {
	switch left := a.times.Add(-1); {
	case left < 0:
		return nil
	case left == 0:
		a.back()
	}
	return fmt.Errorf("ask: %w", syscall.ECONNREFUSED)
}

func (a *away) List(ctx context.Context, name string) ([]store.Info, error) {
	if err := a.answer(); err != nil {
		return nil, err
	}
	return a.Store.List(ctx, name)
}

func (a *away) Open(ctx context.Context, name string) (store.Reader, error) {
	if err := a.answer(); err != nil {
		return nil, err
	}
	return a.Store.Open(ctx, name)
}

// TestLogsAreFollowedThroughAnOutage: while HDFS does not answer, as during a failover, it is asked
// again, and what is written meanwhile is shown after it.
func TestLogsAreFollowedThroughAnOutage(t *testing.T) {
	const id = "local-test"
	home, err := store.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		t.Helper()
		name = path.Join(jobs.Directory(id), name)
		err := store.MkdirAll(t.Context(), home, path.Dir(name), 0o700)
		if err == nil {
			err = store.WriteFile(t.Context(), home, name, []byte(text), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	log := path.Join(proto.LogsDir, "worker-0", "0.log")
	put(proto.StatusFile, `{"state":"JOB_STATE_RUNNING"}`)
	put(log, "one\n")
	a := &away{Store: home, back: func() {
		put(log, "one\ntwo\n")
		put(proto.StatusFile, `{"state":"JOB_STATE_SUCCEEDED"}`)
	}}
	j := jobs.OnMachine(a, id)
	defer j.Close()
	j.SetStarted(jobtls.Keys{}, make(chan struct{})) // which runs
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var lines []string
	_, err = Read(ctx, j, Options{Attempt: All, Tail: All, Follow: true}, func(l Line) error {
		lines = append(lines, l.Text)
		if len(lines) == 1 {
			a.times.Store(3)
		}
		return nil
	})
	if err != nil || !slices.Equal(lines, []string{"one", "two"}) {
		t.Errorf("shown are %q, %v", lines, err)
	}
}
