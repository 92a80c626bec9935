package am_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"google.golang.org/grpc"

	"holdfast/am"
	"holdfast/am/core"
	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/recovery"
	"holdfast/am/server"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/jobtls"
	"holdfast/internal/mailbox"
	"holdfast/proto"
	"holdfast/runtime"
)

// job is a master that runs on a cluster.
type job struct {
	*cluster
	spec   *proto.JobSpec
	logged logtest.Hook // by the masters
	store  store.Store
	client proto.JobServiceClient
	dir    string
	final  chan *proto.JobStatus
	ended  chan struct{}
	stop   context.CancelFunc
	app    *am.Master
}

func start(t *testing.T, change func(*proto.JobSpec, *cluster)) *job {
	t.Helper()
	return startAttempt(t, 0, change)
}

// startAttempt runs a master that another may take over from, unless attempt is 0.
func startAttempt(t *testing.T, attempt int, change func(*proto.JobSpec, *cluster)) *job {
	t.Helper()
	spec := &proto.JobSpec{
		Name: "test", Framework: "none", User: "alice", Restarts: 2,
		Roles:   []*proto.RoleSpec{{Name: "ps", Count: 1, MemoryMb: 64, Vcores: 1}, {Name: "worker", Count: 2, MemoryMb: 64, Vcores: 1}},
		Command: []string{"train", "--ps={ps_hosts}", "--me={role}-{index}"},
	}
	keys, err := jobtls.New("test")
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{t: t, keys: keys, events: mailbox.New[event.Event](), superseded: make(chan error, 1), agents: map[string]*agent{}, byName: map[string]string{}, conns: map[string]*grpc.ClientConn{}}
	j := &job{cluster: c, spec: spec, dir: t.TempDir()}
	checkpoints := filepath.Join(j.dir, "checkpoints")
	spec.Checkpoints = []*proto.CheckpointSpec{{Path: "./train_logs", Uri: checkpoints}}
	if change != nil {
		change(spec, c)
	}
	if err := runtime.Complete(spec); err != nil {
		t.Fatal(err)
	}
	if j.store, err = openHanging(t.Context(), j.dir, &c.jobDirHangs); err != nil {
		t.Fatal(err)
	}
	j.run(attempt, nil)
	return j
}

func (j *job) config(attempt int) am.Config {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	quiet.AddHook(&j.logged)
	return am.Config{
		ID: "job_1", Spec: j.spec, Dir: j.store, Keys: j.keys.Master, Log: logrus.NewEntry(quiet),
		Attempt: attempt,
		OpenStore: func(ctx context.Context, uri string) (store.Store, error) {
			return openHanging(ctx, uri, &j.checkpointsHang)
		},
		Limits: core.Limits{Lease: 4 * time.Second, Stop: 100 * time.Millisecond, Leave: time.Second, Save: time.Hour, QuorumWait: 100 * time.Millisecond},
	}
}

// hanging is a store in which nothing can be listed or written once it hangs.
type hanging struct {
	*store.Local
	hangs *atomic.Bool
}

func openHanging(ctx context.Context, dir string, hangs *atomic.Bool) (store.Store, error) {
	opened, err := store.Open(ctx, dir, nil)
	if err != nil {
		return nil, err
	}
	h := hanging{opened.(*store.Local), hangs}
	return h, h.wait(ctx)
}

func (h hanging) wait(ctx context.Context) error {
	if !h.hangs.Load() {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (h hanging) List(ctx context.Context, name string) ([]store.Info, error) {
	if err := h.wait(ctx); err != nil {
		return nil, err
	}
	return h.Local.List(ctx, name)
}

func (h hanging) Create(ctx context.Context, name string, perm fs.FileMode) (store.Writer, error) {
	if err := h.wait(ctx); err != nil {
		return nil, err
	}
	return h.Local.Create(ctx, name, perm)
}

// run runs a master in the background.
func (j *job) run(attempt int, before *recovery.Predecessor) {
	j.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	j.stop, j.final, j.ended = stop, make(chan *proto.JobStatus, 1), make(chan struct{})
	cfg := j.config(attempt)
	cfg.Predecessor = before
	var err error
	if cfg.Listener, err = server.Listen("127.0.0.1"); err != nil {
		j.t.Fatal(err)
	}
	if err := recovery.Announce(ctx, j.store, attempt, cfg.Listener.Address()); err != nil {
		j.t.Fatal(err)
	}
	m, err := am.New(cfg)
	if err != nil {
		j.t.Fatal(err)
	}
	if j.endLimit > 0 {
		m.ShortenEnd(j.endLimit)
	}
	j.master, j.app = cfg.Listener.Address(), m
	j.client = proto.NewJobServiceClient(dial(j.t, j.keys.Client, j.master))
	final, ended := j.final, j.ended
	go func() {
		defer close(ended)
		s, err := m.Run(ctx, j.cluster)
		if err != nil && !errors.Is(err, am.ErrLeft) {
			j.t.Errorf("Run: %v", err)
		}
		final <- s
	}()
	j.t.Cleanup(func() {
		stop()
		<-ended
	})
}

// takeOver ends the master as the loss of its host would, and starts its successor.
func (j *job) takeOver(attempt int) {
	j.t.Helper()
	j.stop()
	<-j.ended
	j.keepContainers()
	before, err := recovery.FindPredecessor(j.t.Context(), j.config(attempt).Recovery())
	if err != nil {
		j.t.Fatal(err)
	}
	j.run(attempt, before)
}

func (j *job) end(want proto.JobState) *proto.JobStatus {
	j.t.Helper()
	select {
	case s := <-j.final:
		if s.State != want {
			j.t.Fatalf("the job ended as %s (%s), want %s", s.State, s.Why, want)
		}
		return s
	case <-time.After(time.Minute):
		j.t.Fatal("the job does not end")
		return nil
	}
}

// eventually waits until ok.
func (j *job) eventually(what string, ok func() bool) {
	j.t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			j.t.Fatalf("in vain waited for %s", what)
		}
	}
}

// awaitEvents waits until the event log has these kinds of events for a task, in order.
// Notes count only if one is wanted.
func (j *job) awaitEvents(task string, want ...string) {
	j.t.Helper()
	var kinds []string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		status, err := j.client.Status(context.Background(), &proto.StatusRequest{})
		if err != nil {
			j.t.Fatal(err)
		}
		kinds = nil
		for _, m := range status.Events {
			if m.Task == task && (m.Kind != action.KindNote || slices.Contains(want, action.KindNote)) {
				kinds = append(kinds, m.Kind)
			}
		}
		if slices.Equal(kinds, want) {
			return
		}
	}
	j.t.Fatalf("the events of %s are %v, want %v", task, kinds, want)
}
