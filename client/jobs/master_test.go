package jobs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"holdfast/client"
	"holdfast/client/cluster"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/yarn"
	"holdfast/internal/jobtls"
	"holdfast/proto"
	"holdfast/test/silence"
)

// answers are what the application master of a test's job does.
type answers struct {
	proto.UnimplementedJobServiceServer
	kill func(context.Context) error
	exec func(*proto.ExecRequest, proto.JobService_ExecServer) error
	// watch is called once the state has been sent, if there is one; else it is sent no more.
	watch func(proto.JobService_WatchServer) error
	grace time.Duration // that Kill promises
	host  *silence.Host // set by answered
}

func (a *answers) Kill(ctx context.Context, _ *proto.KillRequest) (*proto.KillResponse, error) {
	return &proto.KillResponse{StopGraceMs: a.grace.Milliseconds()}, a.kill(ctx)
}

func (*answers) Status(context.Context, *proto.StatusRequest) (*proto.JobStatus, error) {
	return &proto.JobStatus{State: proto.JobState_JOB_STATE_RUNNING}, nil
}

func (a *answers) Exec(r *proto.ExecRequest, s proto.JobService_ExecServer) error {
	return a.exec(r, s)
}

func (a *answers) Watch(_ *proto.StatusRequest, s proto.JobService_WatchServer) error {
	if err := s.Send(&proto.JobStatus{State: proto.JobState_JOB_STATE_RUNNING}); err != nil {
		return err
	}
	if a.watch != nil {
		return a.watch(s)
	}
	<-s.Context().Done()
	return s.Context().Err()
}

// answered returns a job on this machine whose application master answers so.
func answered(t *testing.T, a *answers) *Job {
	t.Helper()
	set, err := jobtls.New("local-test")
	if err != nil {
		t.Fatal(err)
	}
	tls, err := set.Master.Server()
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	// A host that has fallen silent breaks nothing: so the server does not either.
	patient := keepalive.ServerParameters{Time: math.MaxInt64}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(tls)), grpc.KeepaliveParams(patient))
	proto.RegisterJobServiceServer(server, a)
	a.host = silence.Listener(l)
	go func() { _ = server.Serve(a.host) }() // until Stop
	t.Cleanup(server.Stop)
	home, err := store.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	j := OnMachine(home, "local-test")
	t.Cleanup(j.Close)
	where, err := proto.Address{Address: l.Addr().String()}.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if err := store.MkdirAll(t.Context(), home, j.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := store.WriteFile(t.Context(), home, j.dir+"/"+proto.AddressFile, where, 0o600); err != nil {
		t.Fatal(err)
	}
	j.SetStarted(set.Client, make(chan struct{})) // which runs
	return j
}

// TestASecondSignalLeavesTheKill: it ends the wait for the end, and not the request.
func TestASecondSignalLeavesTheKill(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	abandoned := make(chan error, 1)
	j := answered(t, &answers{kill: func(ctx context.Context) error {
		close(arrived)
		select {
		case <-release:
			abandoned <- nil
			return nil
		case <-ctx.Done():
			abandoned <- ctx.Err()
			return ctx.Err()
		}
	}})
	signals := make(chan os.Signal, 2)
	signals <- syscall.SIGTERM
	signals <- syscall.SIGTERM
	var out bytes.Buffer
	ended := make(chan error, 1)
	go func() {
		_, err := Follow(t.Context(), j, FollowOptions{Out: &out, Interrupts: signals})
		ended <- err
	}()
	select {
	case <-arrived:
	case err := <-ended:
		t.Fatalf("the request was not sent, and it ended with %v: %s", err, out.String())
	}
	for deadline := time.Now().Add(time.Minute); len(signals) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the second signal is not received")
		}
	}
	close(release)
	if err := <-abandoned; err != nil {
		t.Errorf("the request was given up: %v", err)
	}
	if err := <-ended; !errors.Is(err, client.ErrInterrupted) || !strings.Contains(out.String(), "local-test is being killed, and may still end: see yarn-submit status local-test") {
		t.Errorf("it ended with %v: %s", err, out.String())
	}
}

// TestAKillThatIsNotConfirmed: it is said that the job may still run.
func TestAKillThatIsNotConfirmed(t *testing.T) {
	j := answered(t, &answers{kill: func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}})
	signals := make(chan os.Signal, 3)
	for range cap(signals) { // the third is not for waiting
		signals <- syscall.SIGTERM
	}
	var out bytes.Buffer
	_, err := Follow(t.Context(), j, FollowOptions{Out: &out, Interrupts: signals})
	if !errors.Is(err, client.ErrInterrupted) || !strings.Contains(out.String(), "the kill was not confirmed; the job may still run: yarn-submit kill local-test") {
		t.Errorf("it ended with %v: %s", err, out.String())
	}
}

// TestAKillThatIsForced: an application master that has agreed to end, and does not, is ended, and that
// the job ends is confirmed one time.
func TestAKillThatIsForced(t *testing.T) {
	j := answered(t, &answers{
		kill:  func(context.Context) error { return nil },
		grace: 100*time.Millisecond - shutdownLimit, // for which it is waited no longer
	})
	if err := store.WriteFile(t.Context(), j.home, j.dir+"/"+proto.StatusFile, []byte(`{"state":"JOB_STATE_RUNNING"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	confirmed := make(chan struct{})
	if _, already, err := j.kill(t.Context(), "for a test", func() { close(confirmed) }); err != nil || already {
		t.Errorf("it had ended: %v, %v", already, err)
	}
	select {
	case <-confirmed:
	default:
		t.Error("that it ends is not confirmed")
	}
}

// TestACommandWhoseEndIsNotKnown: that nothing was run is said only where that is known; it has run if
// it has printed something.
func TestACommandWhoseEndIsNotKnown(t *testing.T) {
	for _, c := range []struct {
		output string
		code   codes.Code
		want   string
		notRun bool
	}{
		{"", codes.FailedPrecondition, "nothing was run in the container of worker-0", true},
		{"", codes.Unavailable, "it is not known whether the command was run in the container of worker-0", false},
		{"half", codes.Unavailable, "the connection to the container of worker-0 broke; how the command ended is not known", false},
	} {
		j := answered(t, &answers{exec: func(_ *proto.ExecRequest, s proto.JobService_ExecServer) error {
			if c.output != "" {
				if err := s.Send(&proto.ExecOutput{Output: []byte(c.output)}); err != nil {
					return err
				}
			}
			return status.Error(c.code, "the agent is gone")
		}})
		_, err := j.Exec(t.Context(), "worker-0", []string{"true"}, false, io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, ErrNotRun) != c.notRun {
			t.Errorf("after %q: %v", c.output, err)
		}
	}
	j := answered(t, &answers{})
	where, err := proto.Address{Address: "127.0.0.1:1"}.Marshal() // where nobody listens
	if err != nil {
		t.Fatal(err)
	}
	if err := store.WriteFile(t.Context(), j.home, j.dir+"/"+proto.AddressFile, where, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Exec(t.Context(), "worker-0", []string{"true"}, false, io.Discard); !errors.Is(err, ErrNotRun) {
		t.Errorf("without an application master: %v", err)
	}
}

// TestTheNodeOfTheMasterFallsSilent: who follows a job, and sends nothing, is told that its application
// master does not answer, and gets the states from the one that answers again.
func TestTheNodeOfTheMasterFallsSilent(t *testing.T) {
	t.Parallel()
	a := &answers{}
	j := answered(t, a)
	if err := store.WriteFile(t.Context(), j.home, j.dir+"/"+proto.StatusFile, []byte(`{"state":"JOB_STATE_RUNNING","tasks":[{"task":"worker-0"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // it takes 10 to 25 seconds
	defer cancel()
	answers, silent, again := 0, false, false
	_, err := j.Watch(ctx, func(s *proto.JobStatus) {
		switch {
		case len(s.Tasks) > 0: // as it was saved
			silent = strings.Contains(s.Why, "the application master does not answer")
		case silent:
			again = true
			cancel()
		default:
			if answers++; answers > 1 {
				return
			}
			if err := a.host.Fall(); err != nil {
				t.Error(err)
			}
		}
	})
	if !again {
		t.Errorf("while its node is silent, it is told: %v; that another answers: %v; then %v", silent, again, err)
	}
}

// TestAStreamBreaksAfterALongTime: how long nobody may answer is counted from when it broke, and not
// from when it began.
func TestAStreamBreaksAfterALongTime(t *testing.T) {
	var later atomic.Int64 // than now, in ns
	var streams atomic.Int32
	j := answered(t, &answers{watch: func(s proto.JobService_WatchServer) error {
		if streams.Add(1) == 1 {
			later.Add(int64(2 * silenceLimit))
			return status.Error(codes.Unavailable, "the application master is restarted")
		}
		return s.Send(&proto.JobStatus{State: proto.JobState_JOB_STATE_SUCCEEDED})
	}})
	// YARN, which is asked in between, does not answer at all.
	rm, err := yarn.NewClient(conf.New(map[string]string{"yarn.resourcemanager.address": "127.0.0.1:1"}), yarn.Options{User: "alice", Retry: rpc.Retry{Limit: time.Millisecond}, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	j.cluster = &cluster.Cluster{RM: rm, User: "alice"}
	now := func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	s, err := j.watch(t.Context(), func(*proto.JobStatus) {}, newContact(j.ID, now))
	if err != nil || s.State != proto.JobState_JOB_STATE_SUCCEEDED {
		t.Errorf("after the stream has broken: %v, %v", s, err)
	}
}

// TestStacksOfTheOtherTasks: where the answer of a task breaks off, or it can print no stacks, those
// of the others are there all the same.
func TestStacksOfTheOtherTasks(t *testing.T) {
	j := answered(t, &answers{exec: func(r *proto.ExecRequest, s proto.JobService_ExecServer) error {
		switch r.Task {
		case "worker-1":
			return s.Send(&proto.ExecOutput{Error: "it is a shell"})
		case "worker-2":
			if err := s.Send(&proto.ExecOutput{Output: []byte("the half")}); err != nil {
				return err
			}
			return status.Error(codes.Unavailable, "its agent is gone")
		}
		if err := s.Send(&proto.ExecOutput{Output: []byte("all of " + r.Task)}); err != nil {
			return err
		}
		return s.Send(&proto.ExecOutput{Done: true})
	}})
	var told []string
	err := j.Stacks(t.Context(), []string{"worker-0", "worker-1", "worker-2", "worker-3"}, func(s TaskStacks) {
		told = append(told, s.Stacks+": "+s.Error)
	})
	if err == nil || errors.Is(err, ErrNoStacks) || !strings.Contains(err.Error(), "worker-2") {
		t.Errorf("%v", err)
	}
	if len(told) != 4 || told[0] != "all of worker-0: " || !strings.Contains(told[1], "it is a shell") ||
		!strings.Contains(told[2], "the half: the connection to the container of worker-2 broke") || told[3] != "all of worker-3: " {
		t.Errorf("%q", told)
	}
	if err := j.Stacks(t.Context(), []string{"worker-1"}, func(s TaskStacks) { t.Errorf("%+v", s) }); !errors.Is(err, ErrNoStacks) {
		t.Errorf("of the only task: %v", err)
	}
}
