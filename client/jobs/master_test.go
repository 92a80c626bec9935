package jobs

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"holdfast/client"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/jobtls"
	"holdfast/proto"
)

// answers are what the application master of a test's job does.
type answers struct {
	proto.UnimplementedJobServiceServer
	kill func(context.Context) error
	exec func(*proto.ExecRequest, proto.JobService_ExecServer) error
}

func (a *answers) Kill(ctx context.Context, _ *proto.KillRequest) (*proto.KillResponse, error) {
	return &proto.KillResponse{}, a.kill(ctx)
}

func (a *answers) Exec(r *proto.ExecRequest, s proto.JobService_ExecServer) error {
	return a.exec(r, s)
}

func (*answers) Watch(_ *proto.StatusRequest, s proto.JobService_WatchServer) error {
	if err := s.Send(&proto.JobStatus{State: proto.JobState_JOB_STATE_RUNNING}); err != nil {
		return err
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
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(tls)))
	proto.RegisterJobServiceServer(server, a)
	go func() { _ = server.Serve(l) }() // until Stop
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

// TestACommandWhoseEndIsNotKnown: it has run, if it has printed something.
func TestACommandWhoseEndIsNotKnown(t *testing.T) {
	for _, c := range []struct {
		output, want string
		notRun       bool
	}{
		{"", "nothing was run in the container of worker-0", true},
		{"half", "the connection to the container of worker-0 broke; how the command ended is not known", false},
	} {
		j := answered(t, &answers{exec: func(_ *proto.ExecRequest, s proto.JobService_ExecServer) error {
			if c.output != "" {
				if err := s.Send(&proto.ExecOutput{Output: []byte(c.output)}); err != nil {
					return err
				}
			}
			return status.Error(codes.Unavailable, "the agent is gone")
		}})
		_, err := j.Exec(t.Context(), "worker-0", []string{"true"}, false, io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.Is(err, ErrNotRun) != c.notRun {
			t.Errorf("after %q: %v", c.output, err)
		}
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
