package container_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/proto"
)

// leased is an assignment with a lease.
func leased(lease time.Duration) *proto.Assign {
	return assignment(func(a *proto.Assign) { a.LeaseMs = lease.Milliseconds() })
}

const longLease = 10 * patience

// runs is an agent with a task that does not end by itself, and its process.
func (m *master) runs(assign *proto.Assign) (*running, *connected, int) {
	m.t.Helper()
	r := m.startAgent("c1", nil)
	c := m.agent()
	c.send(assign)
	c.prepared()
	c.send(&proto.Start{Command: shell(`trap '' TERM; sleep 1000`)})
	pid := int(c.started().Pid)
	<-c.beats
	return r, c, pid
}

func TestWithoutALeaseABrokenStreamEndsTheTask(t *testing.T) {
	m := newMaster(t)
	r, c, pid := m.runs(assignment(nil))
	close(c.drop)
	if err := r.end(); err == nil || !strings.Contains(err.Error(), m.address) {
		t.Fatalf("the agent ended with %v, which does not name its master", err)
	}
	if alive(pid) {
		t.Fatal("the task outlived the stream")
	}
}

func TestATaskRunsOnWhenItsStreamBreaks(t *testing.T) {
	m := newMaster(t)
	m.startAgent("c1", nil)
	c := m.agent()
	c.send(leased(longLease))
	port := c.prepared().Port
	c.send(&proto.Start{Attempt: 3, Command: shell(`sleep 1000`)})
	pid := c.started().Pid
	close(c.drop)
	c = m.agent()
	if h := c.hello; h.Task != "ps-1" || h.Port != port || h.Attempt != 3 || h.TaskPid != pid || h.Exited != nil {
		t.Fatalf("it comes back with %v", h)
	}
	// What is ordered now is done as ever.
	c.send(&proto.Stop{GraceMs: 60000})
	if e := c.exited(); e.Attempt != 3 || !e.Stopped {
		t.Fatalf("exited: %v", e)
	}
	c.send(&proto.Start{Attempt: 4, Command: shell(`exit 5`)})
	if e := c.exited(); e.Attempt != 4 || e.Code != 5 {
		t.Fatalf("exited: %v", e)
	}
}

// TestTheNextMasterHearsWhatIsStopped: since when an attempt is to end, and for what, as it was
// said; a later stop counts.
func TestTheNextMasterHearsWhatIsStopped(t *testing.T) {
	m := newMaster(t)
	m.startAgent("c1", nil)
	c := m.agent()
	c.send(leased(longLease))
	c.prepared()
	c.send(&proto.Start{Attempt: 3, Command: shell(`trap 'echo' TERM; echo ready; while :; do sleep 0.02; done`)})
	c.started()
	again := func() *proto.Stopping {
		t.Helper()
		close(c.drop)
		c = m.agent()
		return c.hello.Stopping
	}
	if s := again(); s != nil {
		t.Errorf("stopping: %v", s)
	}
	const grace = 2 * patience
	c.send(&proto.Stop{GraceMs: grace.Milliseconds(), Reason: "together"})
	eventually(t, "the agent's word of it", func() bool {
		s := again()
		return s != nil && s.Reason == "together" && s.KillInMs > 0 && s.KillInMs <= grace.Milliseconds()
	})
	c.send(&proto.Stop{GraceMs: 2 * grace.Milliseconds(), Reason: "leave", Cause: 4})
	eventually(t, "the agent's word of the later one", func() bool {
		s := again()
		return s.Reason == "leave" && s.Cause == 4 && s.KillInMs > 0 && s.KillInMs <= grace.Milliseconds()
	})
	c.send(&proto.Stop{})
	if e := c.exited(); e.Attempt != 3 || !e.Stopped {
		t.Errorf("exited: %v", e)
	}
	if s := again(); s != nil {
		t.Errorf("an attempt that has ended is said to be stopping: %v", s)
	}
}

func TestTheNextMasterHearsWhatItMissed(t *testing.T) {
	m := newMaster(t)
	m.startAgent("c1", nil)
	c := m.agent()
	c.send(leased(longLease))
	c.prepared()
	c.send(&proto.Start{Attempt: 0, Command: shell(`while ! test -e go; do sleep 0.02; done; exit 7`)})
	pid := int(c.started().Pid)
	m.server.Stop()
	if err := os.WriteFile(filepath.Join(lastWorkDir(m), "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the task's end", func() bool { return !alive(pid) })
	next := m.successor()
	c = next.agent()
	if x := c.hello.Exited; c.hello.TaskPid != 0 || c.hello.Attempt != 0 || x == nil || x.Code != 7 {
		// It may have come before the agent had seen the end; then it says so.
		if e := c.exited(); e.Attempt != 0 || e.Code != 7 {
			t.Fatalf("hello %v, then %v", c.hello, e)
		}
	}
	if c.hello.Task != "ps-1" {
		t.Errorf("hello: %v", c.hello)
	}
}

func TestAnAssignmentThatWasAnsweredInVain(t *testing.T) {
	m := newMaster(t)
	m.startAgent("c1", nil)
	c := m.agent()
	close(c.drop) // before it was assigned anything
	c = m.agent()
	if c.hello.Task != "" || c.hello.Attempt != -1 {
		t.Errorf("hello: %v", c.hello)
	}
	c.send(leased(longLease))
	port := c.prepared().Port
	close(c.drop)
	c = m.agent()
	c.send(leased(longLease)) // this master has not heard that it was prepared
	if p := c.prepared().Port; p != port {
		t.Errorf("prepared on port %d, and before that on %d", p, port)
	}
}

func TestTheLeaseEndsTheTask(t *testing.T) {
	const lease = 2 * time.Second
	for _, x := range []struct {
		name string
		cut  func(m *master, c *connected)
	}{
		{"the master is gone", func(m *master, _ *connected) { m.server.Stop() }},
		{"the master does not answer", func(m *master, c *connected) {
			m.deaf.Store(true) // also where a stream is opened anew
			c.deaf.Store(true)
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			m := newMaster(t)
			r, c, pid := m.runs(leased(lease))
			x.cut(m, c)
			cut := time.Now()
			if err := r.end(); err == nil || !strings.Contains(err.Error(), "lease") {
				t.Fatalf("the agent ended with %v", err)
			}
			if alive(pid) {
				t.Fatal("the task outlived the lease")
			}
			// The upper bound is what an AM counts on before it starts another.
			if took := time.Since(cut); took > 3*lease {
				t.Errorf("it took %v, with a lease of %v", took, lease)
			}
		})
	}
}

// TestTheLeasesEndIsNoError: a task that writes to the store when its lease ends is
// killed without an error, which it might tell its peers.
func TestTheLeasesEndIsNoError(t *testing.T) {
	needRoot(t)
	m := newMaster(t)
	dir := t.TempDir()
	told := filepath.Join(dir, "told")
	r := m.startAgent("c1", nil)
	c := m.agent()
	c.send(assignment(func(a *proto.Assign) {
		a.LeaseMs = 1000
		a.Checkpoints = []*proto.CheckpointSpec{{Path: "./train_logs", Uri: filepath.Join(dir, "store")}}
	}))
	c.prepared()
	c.send(&proto.Start{Command: shell(`while mkdir train_logs/x && rmdir train_logs/x; do :; done; echo >` + told)})
	c.started()
	<-c.beats
	m.server.Stop()
	if err := r.end(); err == nil || !strings.Contains(err.Error(), "lease") {
		t.Errorf("the agent ended with %v", err)
	}
	if _, err := os.Stat(told); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the task was told of the lease's end by an error: %v", err)
	}
}

// TestNoMasterAtAll: where there is certainly no master that could give the task
// away, it outlives its lease, until there may be one.
func TestNoMasterAtAll(t *testing.T) {
	const lease = 2 * time.Second
	lives := func(m *master) func() {
		return func() {
			now := time.Now()
			if err := os.Chtimes(filepath.Join(m.jobDir, proto.AddressFile), now, now); err != nil {
				t.Error(err)
			}
		}
	}
	for name, end := range map[string]func(m *master) (then func()){
		"a master lives that cannot be reached": lives,
		"another master lives that cannot be reached": func(m *master) func() {
			m.tell(proto.Address{Address: "127.0.0.1:1", Attempt: 2})
			return lives(m)
		},
		"the job has ended": func(m *master) func() {
			m.tell(proto.Address{Address: m.address, Attempt: 1, Ended: true})
			return func() {}
		},
		"nobody knows": func(m *master) func() {
			if err := os.Remove(filepath.Join(m.jobDir, proto.AddressFile)); err != nil {
				t.Error(err)
			}
			return func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMaster(t)
			m.tell(proto.Address{Address: m.address, Attempt: 1})
			r, _, pid := m.runs(leased(lease))
			m.server.Stop()
			for alone := time.Now(); time.Since(alone) < 2*lease; time.Sleep(10 * time.Millisecond) { // it has to pass
				if !alive(pid) {
					t.Fatalf("the task has ended %v after its master", time.Since(alone))
				}
			}
			then, begin := end(m), time.Now()
			for ; alive(pid); time.Sleep(10 * time.Millisecond) {
				if then(); time.Since(begin) > patience {
					t.Fatal("the task runs on")
				}
			}
			if err := r.end(); err == nil || !strings.Contains(err.Error(), "lease") {
				t.Errorf("the agent ended with %v", err)
			}
			if took := time.Since(begin); took > 2*lease { // another may count on the lease's end
				t.Errorf("it took %v, with a lease of %v", took, lease)
			}
		})
	}
}

// TestAMasterThatComesLate finds the tasks as they were.
func TestAMasterThatComesLate(t *testing.T) {
	const lease = 2 * time.Second
	m := newMaster(t)
	m.tell(proto.Address{Address: m.address, Attempt: 1})
	_, _, pid := m.runs(leased(lease))
	m.server.Stop()
	for alone := time.Now(); time.Since(alone) < 2*lease; time.Sleep(10 * time.Millisecond) { // it has to pass
	}
	if h := m.successor().agent().hello; int(h.TaskPid) != pid {
		t.Errorf("it comes back with %v", h)
	}
}

// TestAMasterThatStartsSlowly: one that has announced itself may take longer than a lease
// to read what its predecessor left and to register with the cluster. It gives no task
// away before that, so the tasks outlive it.
func TestAMasterThatStartsSlowly(t *testing.T) {
	const lease = 2 * time.Second
	for name, after := range map[string]time.Duration{"announced at once": 0, "announced late in the lease": lease * 2 / 3} {
		t.Run(name, func(t *testing.T) {
			m := newMaster(t)
			m.tell(proto.Address{Address: m.address, Attempt: 1})
			_, _, pid := m.runs(leased(lease))
			m.server.Stop()
			announced := false
			for alone := time.Now(); time.Since(alone) < 4*lease; time.Sleep(10 * time.Millisecond) { // it has to pass
				if !announced && time.Since(alone) >= after {
					announced = true
					m.tell(proto.Address{Address: "127.0.0.1:1", Attempt: 2})
				}
				if !alive(pid) {
					t.Fatalf("the task has ended %v after its master", time.Since(alone))
				}
			}
			if h := m.successor().agent().hello; int(h.TaskPid) != pid {
				t.Errorf("it comes back with %v", h)
			}
		})
	}
}

// TestAStreamLateInTheLease: an agent gives a stream up when half its lease has
// passed without an answer. The next one has its chance all the same.
func TestAStreamLateInTheLease(t *testing.T) {
	m := newMaster(t)
	m.startAgent("c1", nil)
	c := m.agent()
	c.send(leased(4 * time.Second))
	c.prepared()
	c.send(&proto.Start{Command: shell(`sleep 1000`)})
	pid := c.started().Pid
	<-c.beats
	c.deaf.Store(true)
	c = m.agent()
	if c.hello.TaskPid != pid {
		t.Fatalf("it comes back with %v", c.hello)
	}
	c.send(&proto.Stop{})
	if e := c.exited(); !e.Stopped {
		t.Fatalf("exited: %v", e)
	}
}

// TestAStoppedAgent: what an agent has slept through counts.
func TestAStoppedAgent(t *testing.T) {
	needRoot(t)
	m := newMaster(t)
	agent := m.startAgentProcess("c1", 0, nil)
	c := m.agent()
	c.send(leased(2 * time.Second))
	c.prepared()
	c.send(&proto.Start{Command: shell(`sleep 1000`)})
	pid := int(c.started().Pid)
	<-c.beats
	if err := agent.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) { // its lease has to pass
	}
	if !alive(pid) {
		t.Fatal("a task does not end while its agent is stopped")
	}
	if err := agent.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the task's end", func() bool { return !alive(pid) })
}
