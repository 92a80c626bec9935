package container_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"holdfast/container"
	"holdfast/container/gpu"
	"holdfast/proto"
)

// several assigns a task of PyTorch that runs as so many processes.
func several(processes int32) *proto.Assign {
	grace := time.Minute.Milliseconds()
	return assignment(func(a *proto.Assign) {
		a.Task, a.Role, a.Index, a.Progress = "worker-1", "worker", 1, `step (\d+)`
		a.Spec = &proto.JobSpec{Framework: "pytorch", StopGraceMs: &grace, Roles: []*proto.RoleSpec{{Name: "worker", Count: 2, Processes: processes}}}
		a.Routes = &proto.Routes{Full: true, PeerPorts: []uint32{20100, 20101}, Hosts: []uint32{1, 1}, RealPorts: []uint32{0, 0}, HostNames: []string{"127.0.0.1"}}
	})
}

// TestStepsOfAProgramThatPrintsNothing: each process has a progress file of its own, in each
// attempt, and the step is that of the first.
func TestStepsOfAProgramThatPrintsNothing(t *testing.T) {
	m := newMaster(t)
	r := m.startAgent("c1", nil)
	c := m.agent()
	c.send(several(2))
	c.prepared()
	for attempt, first := range []int64{12, 30} {
		hold := filepath.Join(t.TempDir(), "hold")
		c.send(&proto.Start{Attempt: int32(attempt), Command: shell(fmt.Sprintf(
			`test -e "$HOLDFAST_PROGRESS_FILE" && exit 3; echo "{\"step\": $((%d + LOCAL_RANK)), \"total\": 500, \"loss\": 0.5}" > "$HOLDFAST_PROGRESS_FILE"; while ! test -e %s; do sleep 0.05; done`, first, hold))})
		c.started()
		eventually(t, "the step and the loss", func() bool {
			b := <-c.beats
			return b.Step == first && b.TotalSteps == 500 && b.ReportedSteps == 1 && len(b.Scalars) == 1 && b.Scalars[0].Name == "loss" && b.Scalars[0].Value == 0.5
		})
		if err := os.WriteFile(hold, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if e := c.exited(); e.Code != 0 || e.Signal != 0 || e.Step != first {
			t.Fatalf("exited: %v", e)
		}
	}
	c.send(&proto.Release{Why: "done"})
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
}

// TestSeveralProcesses: each has a rank and a log of its own, the task has succeeded when all
// have, and its step is that of the first.
func TestSeveralProcesses(t *testing.T) {
	m := newMaster(t)
	r := m.startAgent("c1", nil)
	c := m.agent()
	c.send(several(3))
	c.prepared()
	hold := filepath.Join(t.TempDir(), "hold")
	c.send(&proto.Start{Attempt: 2, Command: shell(fmt.Sprintf(
		`echo "I am $RANK of $WORLD_SIZE, $LOCAL_RANK of $LOCAL_WORLD_SIZE on $NODE_RANK, {rank}"; echo "step $((7 + LOCAL_RANK))"; test $LOCAL_RANK = 1 && exit; while ! test -e %s; do sleep 0.05; done`, hold))})
	c.started()
	var age int64
	eventually(t, "the step of the first process, and that it was made a while ago", func() bool {
		b := <-c.beats
		age = b.StepAgeMs
		return b.Step == 7 && b.RssBytes > 0 && age >= 100
	})
	if err := os.WriteFile(hold, nil, 0o644); err != nil { // the others run on after one has succeeded
		t.Fatal(err)
	}
	if e := c.exited(); e.Code != 0 || e.Signal != 0 || e.Attempt != 2 || e.Stopped || e.Step != 7 || e.StepAgeMs < age {
		t.Fatalf("exited: %v", e)
	}
	c.send(&proto.Release{Why: "done"})
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	for local, name := range []string{"2.log", "2.1.log", "2.2.log"} {
		want := fmt.Sprintf("I am %d of 6, %d of 3 on 1, %d\nstep %d\n", 3+local, local, 3+local, 7+local)
		for _, file := range []string{filepath.Join(r.config.LogDir, "worker-1."+name), filepath.Join(m.jobDir, "logs", "worker-1", name)} {
			if b, err := os.ReadFile(file); err != nil || string(b) != want {
				t.Errorf("%s: %q, %v, want %q", file, b, err, want)
			}
		}
	}
}

// TestOneProcessFails: it ends the others, and is what the task's end is reported as.
func TestOneProcessFails(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		code   int32
		signal syscall.Signal
		detail string
		tail   string // first line
		error  string
	}{
		"by an exit code": {
			script: `echo process $LOCAL_RANK; test $LOCAL_RANK = 1 && exit 3; exec sleep 1000`,
			code:   3, detail: "process 1 of 0 to 2: exited with 3", tail: "process 1",
		},
		"by a signal": {
			script: `echo process $LOCAL_RANK; test $LOCAL_RANK = 2 && kill -9 $$; exec sleep 1000`,
			code:   -1, signal: syscall.SIGKILL, detail: "process 2 of 0 to 2: killed by SIGKILL", tail: "process 2",
		},
		"after another has succeeded": {
			script: `echo process $LOCAL_RANK; case $LOCAL_RANK in 0) exit 0;; 1) sleep 0.3; exit 4;; esac; exec sleep 1000`,
			code:   4, detail: "process 1 of 0 to 2: exited with 4", tail: "process 1",
		},
		// What a lost peer takes down ends sooner than the peer, which has an error of its own.
		"and takes its peers down": {
			script: `case $LOCAL_RANK in 0) trap 'exit 1' TERM; echo "ValueError: no such layer"; while :; do sleep 0.05; done;; 1) sleep 0.3; echo "RuntimeError: Connection closed by peer"; exit 1;; esac; exec sleep 1000`,
			code:   1, detail: "process 0 of 0 to 2: exited with 1", tail: "ValueError: no such layer", error: "ValueError: no such layer",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMaster(t)
			m.startAgent("c1", nil)
			a := m.agent()
			a.send(several(3))
			a.prepared()
			a.send(&proto.Start{Command: shell(c.script)})
			a.started()
			e := a.exited()
			if e.Code != c.code || syscall.Signal(e.Signal) != c.signal || e.Detail != c.detail || e.Stopped || e.PeerLost || e.Error != c.error || e.Tail[0] != c.tail {
				t.Errorf("exited: %v", e)
			}
			// Nothing of it is left, or this attempt could not run in its place.
			a.send(&proto.Start{Attempt: 1, Command: shell(`exit $LOCAL_RANK`)})
			a.started()
			if e := a.exited(); e.Attempt != 1 || e.Code == 0 {
				t.Errorf("the next attempt: %v", e)
			}
		})
	}
}

// TestAProcessThatDoesNotEnd is killed after the grace.
func TestAProcessThatDoesNotEnd(t *testing.T) {
	m := newMaster(t)
	m.startAgent("c1", nil)
	c := m.agent()
	assign := several(2)
	*assign.Spec.StopGraceMs = 300
	c.send(assign)
	c.prepared()
	c.send(&proto.Start{Command: shell(`test $LOCAL_RANK = 1 && sleep 0.2 && exit 5; trap '' TERM; while :; do sleep 0.1; done`)})
	c.started()
	if e := c.exited(); e.Code != 5 || e.Detail != "process 1 of 0 to 1: exited with 5" {
		t.Errorf("exited: %v", e)
	}
}

// TestStopEndsAllProcesses, each once and in its own way.
func TestStopEndsAllProcesses(t *testing.T) {
	m := newMaster(t)
	m.startAgent("c1", nil)
	c := m.agent()
	c.send(several(2))
	c.prepared()
	dir := t.TempDir()
	c.send(&proto.Start{Command: shell(fmt.Sprintf(`cd %s; trap 'echo TERM >>$LOCAL_RANK; test $LOCAL_RANK = 0 && exit 9; sleep 0.3; exit 0' TERM; touch $LOCAL_RANK; while :; do sleep 0.05; done`, dir))})
	c.started()
	eventually(t, "both processes to be ready", func() bool {
		files, err := os.ReadDir(dir)
		return err == nil && len(files) == 2
	})
	c.send(&proto.Stop{GraceMs: time.Minute.Milliseconds()})
	if e := c.exited(); !e.Stopped || e.Code != 9 {
		t.Errorf("exited: %v", e)
	}
	for _, process := range []string{"0", "1"} {
		if b, err := os.ReadFile(filepath.Join(dir, process)); err != nil || string(b) != "TERM\n" {
			t.Errorf("process %s got %q, %v", process, b, err)
		}
	}
	// Without grace, neither notices.
	c.send(&proto.Start{Attempt: 1, Command: shell(`trap 'echo caught' TERM; echo ready; while :; do sleep 0.05; done`)})
	c.started()
	c.send(&proto.Stop{})
	if e := c.exited(); !e.Stopped || syscall.Signal(e.Signal) != syscall.SIGKILL {
		t.Errorf("exited: %v", e)
	}
}

// hung is a directory on a file system that does not answer, until answer is called, and what is
// closed once somebody has looked for a file there.
func hung(t *testing.T) (dir string, asked <-chan struct{}, answer func()) {
	t.Helper()
	d, answers := t.TempDir(), make(chan struct{})
	root := &hangingDir{asked: make(chan struct{}), answers: answers}
	server, err := fs.Mount(d, root, &fs.Options{MountOptions: fuse.MountOptions{DirectMount: true}})
	if err != nil {
		t.Fatal(err)
	}
	answer = sync.OnceFunc(func() { close(answers) })
	t.Cleanup(func() {
		answer()
		// By force: mount namespaces of other tests, which begin meanwhile, have it, too.
		if err := unix.Unmount(d, unix.MNT_FORCE|unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
		server.Wait()
	})
	return d, root.asked, answer
}

type hangingDir struct {
	fs.Inode
	once           sync.Once
	asked, answers chan struct{}
}

func (d *hangingDir) Lookup(context.Context, string, *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	d.once.Do(func() { close(d.asked) })
	<-d.answers
	return nil, syscall.ENOENT
}

// TestAnAgentLeavesWhatCannotBeKilled: one that is to end waits for what hangs in the kernel no
// longer than its application master does, says so, and does not leave in order: something of
// its task may still be there.
func TestAnAgentLeavesWhatCannotBeKilled(t *testing.T) {
	needRoot(t)
	for name, c := range map[string]struct {
		lease time.Duration
		runs  func(c *connected, hangs []string)
		end   func(m *master, c *connected)
		says  []string
	}{
		"an attempt, when it is released": {longLease,
			func(c *connected, hangs []string) { c.send(&proto.Start{Command: hangs}) },
			func(_ *master, c *connected) { c.send(&proto.Release{Why: "over"}) },
			[]string{"attempt 0 has not ended within 1s of SIGKILL"}},
		"a command beside it, when the lease ends": {5 * time.Second,
			func(c *connected, hangs []string) {
				c.send(&proto.Start{Command: shell("exec sleep 1000")})
				c.started()
				c.send(&proto.Exec{Id: 1, Command: hangs})
			},
			func(m *master, _ *connected) { m.server.Stop() },
			[]string{"lease", "something of the task does not end"}},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			dir, asked, _ := hung(t)
			m := newMaster(t)
			r := m.startAgent("c1", func(c *container.Config) { c.EndLimit = time.Second })
			a := m.agent()
			a.send(leased(c.lease))
			a.prepared()
			c.runs(a, []string{"stat", filepath.Join(dir, "file")})
			select {
			case <-asked:
			case <-time.After(patience):
				t.Fatal("no process waits for the file system")
			}
			c.end(m, a)
			err := r.end()
			for _, s := range c.says {
				if err == nil || !strings.Contains(err.Error(), s) {
					t.Errorf("the agent ended with %v, which does not say %q", err, s)
				}
			}
			for range a.heard {
			}
			if a.orderly {
				t.Error("the agent has left in order")
			}
		})
	}
}

// TestACommandOfSeveralIsMissing: none of the processes is left running.
func TestACommandOfSeveralIsMissing(t *testing.T) {
	m := newMaster(t)
	m.startAgent("c1", nil)
	c := m.agent()
	c.send(several(2))
	c.prepared()
	// The second process's command is another file.
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "run-2"), []byte("#!/bin/sh\nexec sleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c.send(&proto.Start{Command: []string{filepath.Join(dir, "run-{rank}")}})
	if e := c.exited(); !e.CommandMissing || e.Code != 127 || !strings.Contains(e.Detail, "run-3") {
		t.Errorf("exited: %v", e)
	}
	c.send(&proto.Start{Attempt: 1, Command: shell("true")})
	if e := c.exited(); e.Attempt != 1 || e.Code != 0 {
		t.Errorf("the next attempt: %v", e)
	}
}

// TestMorePortsThanOne: each is another port, and free for the task to listen on.
func TestMorePortsThanOne(t *testing.T) {
	m := newMaster(t)
	m.startAgent("c1", nil)
	c := m.agent()
	c.send(assignment(func(a *proto.Assign) { a.MorePorts = 2 }))
	p := c.prepared()
	c.send(&proto.Start{Command: []string{"python3", "-c", `
import socket
ports = [{port}, {port2}, {port3}]
sockets = [socket.create_server(("", p)) for p in ports]
print(*ports)
`}})
	e := c.exited()
	ports := strings.Fields(strings.Join(e.Tail, " "))
	if e.Code != 0 || len(ports) != 3 || ports[0] != fmt.Sprint(p.Port) || len(slices.Compact(slices.Sorted(slices.Values(ports)))) != 3 {
		t.Errorf("exited: %v; the ports are %q", e, ports)
	}
}

// TestTasksOfANodeHaveGPUsOfTheirOwn, and one that asks for none sees none.
func TestTasksOfANodeHaveGPUsOfTheirOwn(t *testing.T) {
	dir := t.TempDir()
	node := gpu.Node{Proc: filepath.Join(dir, "proc"), Dev: filepath.Join(dir, "dev"), Open: func(string) error { return nil }}
	for i := range 4 {
		at := filepath.Join(node.Proc, fmt.Sprintf("%04x:%02x:00.0", os.Getpid()&0xffff, i))
		for file, text := range map[string]string{
			filepath.Join(at, "information"):                    fmt.Sprintf("Device Minor: \t %d\n", i),
			filepath.Join(node.Dev, fmt.Sprintf("nvidia%d", i)): "",
		} {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	// What nvidia-smi says of them, where there are some.
	said := ""
	for i := range 4 {
		said += fmt.Sprintf("0000%04X:%02X:00.0, GPU-%d, %d, %d, 81559\n", os.Getpid()&0xffff, i, i, 20*i, 1000*i)
	}
	tools := t.TempDir()
	if err := os.WriteFile(filepath.Join(tools, "nvidia-smi"), []byte("#!/bin/sh\ncat <<END\n"+said+"END\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", tools+":"+os.Getenv("PATH"))
	for i, c := range []struct {
		task    string
		environ []string
		want    string
	}{
		{"worker-0", nil, "0,1"},
		{"worker-1", nil, "2,3"},
		{"ps-0", nil, "-1"},
	} {
		role, _, _ := strings.Cut(c.task, "-")
		m := newMaster(t)
		m.startAgent(fmt.Sprintf("c%d", i), func(cfg *container.Config) { cfg.GPUs = &node })
		a := m.agent()
		a.send(assignment(func(a *proto.Assign) {
			a.Task, a.Role = c.task, role
			a.Spec.Roles[1].Count, a.Spec.Roles[1].Gpus = 2, 2
		}))
		a.prepared()
		for attempt := range int32(2) {
			a.send(&proto.Start{Attempt: attempt, Command: shell(`echo $CUDA_VISIBLE_DEVICES`)})
			if e := a.exited(); !slices.Equal(e.Tail, []string{c.want}) {
				t.Errorf("%s sees the GPUs %q, want %q", c.task, e.Tail, c.want)
			}
		}
		if c.task != "worker-1" {
			continue
		}
		a.send(&proto.Start{Attempt: 2, Command: shell("exec sleep 600")})
		var g *proto.GPUUse
		for end := time.After(30 * time.Second); g == nil; {
			select {
			case b := <-a.beats:
				g = b.Gpu
			case <-end:
				t.Fatalf("nothing is said of the GPUs of %s", c.task)
			}
		}
		if g.Percent != 50 || g.MemoryBytes != 5000<<20 || g.MemoryLimitBytes != 2*81559<<20 {
			t.Errorf("of the GPUs of %s it is said: %v", c.task, g)
		}
	}
}
