package core_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/am/core"
	"holdfast/proto"
)

var update = flag.Bool("update", false, "rewrite the golden transcripts")

// player plays a job against a cluster that does what it is asked, and writes
// down every event and action. Scenarios say only what goes wrong.
type player struct {
	t     *testing.T
	job   *core.Job
	now   time.Time
	start time.Time
	log   strings.Builder

	limits core.Limits
	spares int
	made   map[string]int64 // steps, by task

	containers int
	node       func(container int) string
	port       func(task, container string) int
	mute       map[string]bool   // kinds of answers that do not come: "allocated", "attached", ...
	unanswered string            // a request for which there is no container
	forgets    bool              // takeOver finds no journal
	known      []core.TaskRecord // and what then is known of tasks
	hosted     map[string]string
	lastEnd    core.Finish
}

func play(t *testing.T, roles []*proto.RoleSpec, restarts int) *player {
	t.Helper()
	return playWith(t, roles, restarts, 0, core.Limits{})
}

func playWith(t *testing.T, roles []*proto.RoleSpec, restarts, spares int, limits core.Limits) *player {
	t.Helper()
	var tasks []core.Task
	for _, r := range roles {
		for i := range int(r.Count) {
			tasks = append(tasks, core.Task{Name: fmt.Sprintf("%s-%d", r.Name, i), Role: r, Index: i})
		}
	}
	p := &player{
		t: t, job: core.New(tasks, restarts, spares, limits),
		now: time.Unix(1000, 0), start: time.Unix(1000, 0), limits: limits, spares: spares,
		node:   func(c int) string { return fmt.Sprintf("n%d", c%3) },
		port:   func(string, string) int { return 20000 },
		mute:   map[string]bool{},
		hosted: map[string]string{},
	}
	return p
}

// step gives an event to the job and lets the cluster answer.
func (p *player) step(e core.Event) {
	p.t.Helper()
	queue := []core.Event{e}
	for len(queue) > 0 {
		e, queue = queue[0], queue[1:]
		text := fmt.Sprintf("%+v", e)
		if a, ok := e.(core.AgentConnected); ok && a.Exited != nil {
			x := *a.Exited
			a.Exited = nil
			text = fmt.Sprintf("%+v, exited %+v", a, x)
		}
		fmt.Fprintf(&p.log, "%6.1fs %T%s\n", p.now.Sub(p.start).Seconds(), e, text)
		for _, a := range p.job.Step(p.now, e) {
			fmt.Fprintf(&p.log, "          -> %T%+v\n", a, a)
			if next := p.answer(a); next != nil && !p.mute[strings.TrimPrefix(fmt.Sprintf("%T", next), "core.")] {
				queue = append(queue, next)
			}
		}
	}
}

func (p *player) answer(a core.Action) core.Event {
	switch a := a.(type) {
	case core.Ask:
		if a.Request == p.unanswered {
			return nil
		}
		p.containers++
		c := fmt.Sprintf("c%d", p.containers)
		return core.Allocated{Request: a.Request, Container: c, Node: p.node(p.containers)}
	case core.Launch:
		return core.AgentConnected{Container: a.Container, Host: "h", PID: 100}
	case core.Assign:
		port := a.Port
		if port == 0 {
			port = p.port(a.Task, a.Container)
		}
		if taken := p.port(a.Task, a.Container); taken < 0 {
			port = -taken
		}
		p.hosted[a.Task] = a.Container
		return core.AgentPrepared{Container: a.Container, Port: port}
	case core.Start:
		return core.TaskStarted{Container: a.Container, Attempt: a.Attempt, PID: 200}
	case core.Vacate:
		return p.answer(core.Stop{Container: a.Container})
	case core.Stop:
		e := core.TaskExited{Container: a.Container, Attempt: p.task(a.Container).Attempt, Signal: 15, Stopped: true}
		if a.Stack {
			e.Stack = []string{"Current thread 0x1 (most recent call first):", `  File "session.py", line 7 in wait`, `  File "train.py", line 3 in <module>`}
		}
		return e
	case core.ReleaseAgent:
		return core.AgentDisconnected{Container: a.Container, Orderly: true}
	case core.Release:
		return core.ContainerEnded{Container: a.Container, Cause: core.CauseReleased}
	case core.PrepareStore:
		return core.StorePrepared{Notes: []string{"checkpoint 12 is used"}}
	case core.Finish:
		p.lastEnd = a
	}
	return nil
}

// task is the task that a container hosts, and the zero Task for one that hosts none.
func (p *player) task(container string) core.Task {
	t, _ := p.job.Hosted(container)
	return t
}

// named is the task of that name.
func (p *player) named(name string) core.Task {
	p.t.Helper()
	t, ok := p.job.Task(name)
	if !ok {
		p.t.Fatalf("no task %s", name)
	}
	return t
}

// takeOver replaces the job by one that knows the journal only.
func (p *player) takeOver(e core.Recovered) {
	p.t.Helper()
	var tasks []core.Task
	for _, t := range p.job.Tasks() {
		tasks = append(tasks, core.Task{Name: t.Name, Role: t.Role, Index: t.Index})
	}
	text, err := json.Marshal(p.job.Journal())
	if err != nil {
		p.t.Fatal(err)
	}
	var journal core.Journal
	if err := json.Unmarshal(text, &journal); err != nil {
		p.t.Fatal(err)
	}
	if p.forgets {
		journal = core.Journal{Partial: true, Tasks: p.known}
	}
	p.job = core.New(tasks, 3, p.spares, p.limits)
	p.job.Resume(journal)
	p.step(e)
}

// exit ends the attempt that runs as a task.
func (p *player) exit(task string, e core.TaskExited) {
	p.t.Helper()
	t := p.named(task)
	e.Container, e.Attempt = t.Container, t.Attempt
	p.step(e)
}

// wait lets time pass up to the job's next deadline, d at most.
func (p *player) wait(d time.Duration) {
	p.t.Helper()
	end := p.now.Add(d)
	for {
		next, ok := p.job.Deadline()
		if !ok || next.After(end) {
			p.now = end
			return
		}
		p.now = next
		p.step(core.Tick{})
	}
}

func (p *player) golden() {
	p.t.Helper()
	state, why := p.job.State()
	fmt.Fprintf(&p.log, "%s %s\n", state, why)
	for _, t := range p.job.Tasks() {
		fmt.Fprintf(&p.log, "  %s %s attempt %d\n", t.Name, t.State, t.Attempt)
	}
	file := filepath.Join("testdata", strings.ReplaceAll(p.t.Name(), "/", "-")+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(p.log.String()), 0o644); err != nil {
			p.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		p.t.Fatalf("%v; write it with: go test ./am/core -update", err)
	}
	if string(want) != p.log.String() {
		p.t.Errorf("the transcript differs from %s; it is now:\n%s", file, p.log.String())
	}
}

func (p *player) state(want proto.JobState) {
	p.t.Helper()
	if got, why := p.job.State(); got != want {
		p.t.Fatalf("the job is %s (%s), want %s\n%s", got, why, want, p.log.String())
	}
}

func psAndWorkers(ps, workers int32) []*proto.RoleSpec {
	return []*proto.RoleSpec{
		{Name: "ps", Count: ps, MemoryMb: 1024, Vcores: 1, Loss: proto.LossRule_LOSS_RULE_ALONE, Completion: proto.CompletionRule_COMPLETION_RULE_SERVICE},
		{Name: "worker", Count: workers, MemoryMb: 2048, Vcores: 1, Loss: proto.LossRule_LOSS_RULE_ALONE, Completion: proto.CompletionRule_COMPLETION_RULE_REQUIRED},
	}
}

// coordinated has a chief that coordinates parameter servers and workers.
func coordinated(ps, workers int32) []*proto.RoleSpec {
	roles := psAndWorkers(ps, workers)
	roles[1].Completion = proto.CompletionRule_COMPLETION_RULE_EITHER
	return append(roles, &proto.RoleSpec{Name: "chief", Count: 1, MemoryMb: 1024, Vcores: 1, Loss: proto.LossRule_LOSS_RULE_ALONE, Completion: proto.CompletionRule_COMPLETION_RULE_REQUIRED})
}

func ranks(n int32) []*proto.RoleSpec {
	return []*proto.RoleSpec{{Name: "worker", Count: n, MemoryMb: 1024, Vcores: 1, Loss: proto.LossRule_LOSS_RULE_ALL, Completion: proto.CompletionRule_COMPLETION_RULE_REQUIRED}}
}

func TestTranscripts(t *testing.T) {
	succeeded, failed, killed, running := proto.JobState_JOB_STATE_SUCCEEDED, proto.JobState_JOB_STATE_FAILED, proto.JobState_JOB_STATE_KILLED, proto.JobState_JOB_STATE_RUNNING
	for _, s := range []struct {
		name     string
		roles    []*proto.RoleSpec
		restarts int
		script   func(p *player)
		want     proto.JobState
	}{
		{"all goes well", psAndWorkers(1, 2), 3, func(p *player) {
			p.step(core.Begin{})
			p.exit("worker-0", core.TaskExited{})
			p.exit("worker-1", core.TaskExited{})
		}, succeeded},
		{"a process dies", psAndWorkers(1, 1), 3, func(p *player) {
			p.step(core.Begin{})
			p.exit("ps-0", core.TaskExited{Signal: 9})
		}, running},
		{"a process dies again and again", psAndWorkers(1, 1), 2, func(p *player) {
			p.step(core.Begin{})
			for range 3 {
				p.exit("worker-0", core.TaskExited{Code: 1, Step: 9, Tail: []string{"ValueError"}})
				p.wait(time.Minute)
			}
		}, failed},
		{"a process dies now and then", psAndWorkers(1, 1), 3, func(p *player) {
			p.step(core.Begin{})
			for range 3 {
				p.wait(3 * time.Minute)
				p.exit("ps-0", core.TaskExited{Signal: 9})
			}
		}, running},
		{"a container is lost", psAndWorkers(1, 1), 3, func(p *player) {
			p.step(core.Begin{})
			p.step(core.AgentDisconnected{Container: "c1"})
			p.step(core.ContainerEnded{Container: "c1", Cause: core.CauseOwnFault, Exit: 137})
		}, running},
		{"an agent is silent and its container does not end", psAndWorkers(1, 1), 3, func(p *player) {
			p.step(core.Begin{})
			p.step(core.AgentDisconnected{Container: "c1"})
			p.wait(time.Minute)
		}, running},
		{"an agent is connected again", psAndWorkers(1, 1), 3, func(p *player) {
			p.step(core.Begin{})
			p.step(core.AgentDisconnected{Container: "c1"})
			p.wait(2 * time.Second)
			p.step(core.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "ps-0", Port: 20000, TaskPID: 200})
			p.wait(time.Minute)
		}, running},
		{"a process ends while its agent is not connected", psAndWorkers(1, 1), 3, func(p *player) {
			p.step(core.Begin{})
			p.step(core.AgentDisconnected{Container: "c2"})
			p.wait(2 * time.Second)
			p.step(core.AgentConnected{Container: "c2", Host: "h", PID: 100, Task: "worker-0", Port: 20000, Exited: &core.TaskExited{}})
		}, succeeded},
		{"a worker comes back to what the parameter servers hold", psAndWorkers(1, 1), 9, func(p *player) {
			p.step(core.Begin{})
			p.exit("worker-0", core.TaskExited{Signal: 9}) // nothing is saved yet
			p.wait(time.Minute)
			p.step(core.CheckpointSealed{})
			p.step(core.CheckpointSealed{})
			p.exit("worker-0", core.TaskExited{Signal: 9})
			p.wait(time.Minute)
			p.exit("worker-0", core.TaskExited{Code: 1}) // maybe because of what they hold
			p.wait(time.Minute)
			// It may have put the last checkpoint on half of them.
			p.step(core.ContainerEnded{Container: "c2", Cause: core.CausePreempted, Diagnostics: "preempted"})
			p.wait(time.Minute)
			p.step(core.CheckpointSealed{})
			p.step(core.CheckpointSealed{})
			p.step(core.ContainerEnded{Container: "c3", Cause: core.CausePreempted, Diagnostics: "preempted"})
			p.wait(time.Minute)
			p.exit("ps-0", core.TaskExited{Signal: 9})
			p.exit("worker-0", core.TaskExited{Signal: 9, PeerLost: true})
			p.wait(time.Minute)
			p.step(core.CheckpointSealed{}) // it may be of before
			p.exit("worker-0", core.TaskExited{Signal: 9})
			p.wait(time.Minute)
			p.step(core.CheckpointSealed{})
			p.step(core.CheckpointSealed{})
			p.exit("worker-0", core.TaskExited{Signal: 9})
			p.wait(time.Minute)
		}, running},
		{"an agent that is silent had prepared its task", psAndWorkers(0, 1), 3, func(p *player) {
			p.mute["AgentPrepared"] = true
			p.step(core.Begin{})
			p.step(core.AgentDisconnected{Container: "c1"})
			p.mute["AgentPrepared"] = false
			p.step(core.AgentPrepared{Container: "c1", Port: 20000}) // heard late
			p.wait(time.Minute)
		}, running},
		{"an agent never heard of an attempt", psAndWorkers(0, 1), 3, func(p *player) {
			p.mute["TaskStarted"] = true
			p.step(core.Begin{})
			p.step(core.AgentDisconnected{Container: "c1"})
			p.mute["TaskStarted"] = false
			p.step(core.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "worker-0", Port: 20000, Attempt: -1})
		}, running},
		{"an agent never heard that its attempt is to go on from what parameter servers hold", psAndWorkers(1, 1), 3, func(p *player) {
			p.step(core.Begin{})
			p.step(core.CheckpointSealed{})
			p.step(core.CheckpointSealed{})
			p.mute["TaskStarted"] = true
			p.exit("worker-0", core.TaskExited{Signal: 9})
			p.takeOver(core.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c2": "n2"}})
			p.mute["TaskStarted"] = false
			p.step(core.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "ps-0", Port: 20000, TaskPID: 200})
			p.step(core.AgentConnected{Container: "c2", Host: "h", PID: 100, Task: "worker-0", Port: 20000, Exited: &core.TaskExited{Signal: 9}})
		}, running},
		{"a NodeManager is lost and its containers go on", psAndWorkers(1, 1), 3, func(p *player) {
			p.mute["AgentDisconnected"] = true
			p.step(core.Begin{})
			p.step(core.ContainerEnded{Container: "c1", Cause: core.CauseNodeLost, Diagnostics: "node lost"})
			p.wait(2 * time.Second)
			p.step(core.AgentDisconnected{Container: "c1", Orderly: true})
		}, running},
		{"a second loss while the store is made safe", psAndWorkers(2, 1), 3, func(p *player) {
			p.step(core.Begin{})
			p.mute["StorePrepared"] = true
			p.exit("ps-0", core.TaskExited{Signal: 9})
			p.now = p.now.Add(time.Second)
			p.exit("ps-1", core.TaskExited{Signal: 9})
			p.now = p.now.Add(time.Second)
			p.mute["StorePrepared"] = false
			p.step(core.StorePrepared{})
		}, running},
		{"another application master takes over", psAndWorkers(2, 2), 3, func(p *player) {
			p.step(core.Begin{})
			p.exit("worker-1", core.TaskExited{})
			p.exit("ps-0", core.TaskExited{Signal: 9})
			p.takeOver(core.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c3": "n0", "c9": "n2"}})
			p.step(core.ContainerEnded{Container: "c2", Cause: core.CauseKilled, Exit: 137})
			p.step(core.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "ps-0", Port: 20000, Attempt: 1, TaskPID: 200})
			p.wait(time.Second)
			p.step(core.AgentConnected{Container: "c3", Host: "h", PID: 100, Task: "worker-0", Port: 20000, Exited: &core.TaskExited{}})
		}, succeeded},
		{"another application master is not told what became of a container", psAndWorkers(1, 1), 3, func(p *player) {
			p.step(core.Begin{})
			p.takeOver(core.Recovered{Attempt: 2, Containers: map[string]string{"c2": "n2"}})
			p.step(core.AgentConnected{Container: "c2", Host: "h", PID: 100, Task: "worker-0", Port: 20000, Attempt: 0, TaskPID: 200})
			p.wait(time.Minute)
		}, running},
		{"another application master takes over, and the node manager of the one before is gone", psAndWorkers(1, 1), 3, func(p *player) {
			p.step(core.Begin{})
			p.takeOver(core.Recovered{Attempt: 2, Containers: map[string]string{"c2": "n2"}})
			p.step(core.AgentConnected{Container: "c2", Host: "h", PID: 100, Task: "worker-0", Port: 20000, Attempt: 0, TaskPID: 200})
			p.step(core.ContainerEnded{Container: "c1", Cause: core.CauseNodeLost, Diagnostics: "lost"})
			p.step(core.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "ps-0", Port: 20000, Attempt: 0, TaskPID: 200})
			p.wait(time.Minute)
		}, running},
		{"another application master brings a rank back that had succeeded", ranks(2), 3, func(p *player) {
			p.step(core.Begin{})
			p.exit("worker-1", core.TaskExited{})
			p.step(core.ContainerEnded{Container: "c2", Cause: core.CausePreempted})
			p.takeOver(core.Recovered{Attempt: 2, Containers: map[string]string{}})
			p.wait(time.Minute)
		}, running},
		{"an agent does not come back to another application master", psAndWorkers(0, 1), 3, func(p *player) {
			p.step(core.Begin{})
			p.takeOver(core.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1"}})
			p.wait(time.Minute)
		}, running},
		{"a worker ends because its parameter server was lost", psAndWorkers(1, 1), 0, func(p *player) {
			p.step(core.Begin{})
			p.exit("worker-0", core.TaskExited{Code: 1, PeerLost: true})
			p.step(core.ContainerEnded{Container: "c1", Cause: core.CauseKilled, Diagnostics: "killed"})
			p.wait(time.Minute)
		}, running},
		{"two workers blame each other for ever", psAndWorkers(0, 2), 3, func(p *player) {
			p.step(core.Begin{})
			for i := 0; !p.job.Finished() && i < 100; i++ {
				p.exit(fmt.Sprintf("worker-%d", i%2), core.TaskExited{Code: 1, PeerLost: true})
				p.wait(5 * time.Second)
			}
		}, failed},
		{"a worker blames a peer that was never lost", psAndWorkers(1, 1), 0, func(p *player) {
			p.step(core.Begin{})
			p.exit("worker-0", core.TaskExited{Code: 1, PeerLost: true})
			p.wait(time.Minute)
		}, failed},
		{"the port is taken on the new node", psAndWorkers(1, 1), 3, func(p *player) {
			p.step(core.Begin{})
			p.port = func(string, string) int { return -20007 }
			p.step(core.ContainerEnded{Container: "c1", Cause: core.CausePreempted})
		}, running},
		{"all ranks start again", ranks(3), 3, func(p *player) {
			p.step(core.Begin{})
			p.exit("worker-1", core.TaskExited{Code: 1})
			p.exit("worker-0", core.TaskExited{})
			p.exit("worker-2", core.TaskExited{Signal: 11})
			p.wait(time.Minute)
			for i := range 3 {
				p.exit(fmt.Sprintf("worker-%d", i), core.TaskExited{})
			}
		}, succeeded},
		{"no journal is found, and one agent is silent", psAndWorkers(1, 2), 3, func(p *player) {
			p.step(core.Begin{})
			p.forgets = true
			p.takeOver(core.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c2": "n2", "c3": "n0"}})
			p.step(core.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "ps-0", Port: 20001, PeerPort: 20000, TaskPID: 200})
			p.step(core.AgentConnected{Container: "c3", Host: "h", PID: 100, Task: "worker-1", Port: 20000, PeerPort: 20000, TaskPID: 200})
			p.containers = 3
			p.wait(12 * time.Second)
		}, running},
		{"no journal is found, and an agent comes that nobody knows of", ranks(1), 3, func(p *player) {
			p.step(core.Begin{})
			p.forgets = true
			p.mute["Allocated"] = true
			p.takeOver(core.Recovered{Attempt: 2, Containers: map[string]string{}})
			p.wait(12 * time.Second)
			p.mute["Allocated"] = false
			p.step(core.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "worker-0", Port: 20000, PeerPort: 20000, Attempt: 6, Generation: 3, TaskPID: 200})
			p.step(core.Allocated{Request: "worker-0/1", Container: "c2", Node: "n2"})
			p.step(core.AgentDisconnected{Container: "c1", Orderly: true})
		}, running},
		{"no journal is found, and all ranks report", ranks(2), 3, func(p *player) {
			p.step(core.Begin{})
			p.forgets = true
			p.takeOver(core.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c2": "n2"}})
			p.step(core.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "worker-0", Port: 20000, PeerPort: 20000, Attempt: 4, Generation: 5, TaskPID: 200})
			p.step(core.AgentConnected{Container: "c2", Host: "h", PID: 100, Task: "worker-1", Port: 20000, PeerPort: 20000, Attempt: 3, Generation: 4,
				Exited: &core.TaskExited{Attempt: 3, Signal: 15, Stopped: true}})
		}, running},
		{"a user kills the job", psAndWorkers(1, 1), 3, func(p *player) {
			p.step(core.Begin{})
			p.step(core.Kill{Why: "killed by alice"})
		}, killed},
		{"killed while it waits", psAndWorkers(1, 1), 3, func(p *player) {
			p.mute["Allocated"] = true
			p.step(core.Begin{})
			p.step(core.Waiting{Why: "the queue is full"})
			p.step(core.Kill{Why: "killed by alice"})
		}, killed},
		{"a task does not stop", psAndWorkers(1, 1), 3, func(p *player) {
			p.step(core.Begin{})
			p.mute["TaskExited"], p.mute["AgentDisconnected"] = true, true
			p.step(core.Kill{Why: "killed by alice"})
			p.wait(time.Minute)
		}, killed},
		{"the command is not there", psAndWorkers(1, 1), 3, func(p *player) {
			p.step(core.Begin{})
			p.exit("worker-0", core.TaskExited{Code: 127, CommandMissing: true, Detail: "pyton: not found"})
		}, failed},
		{"a node cannot mount", psAndWorkers(0, 1), 3, func(p *player) {
			p.mute["AgentPrepared"] = true
			p.step(core.Begin{})
			for i := range 3 {
				p.step(core.AgentFailed{Container: fmt.Sprintf("c%d", i+1), Detail: "no /dev/fuse", NodeSpecific: true})
			}
		}, proto.JobState_JOB_STATE_WAITING},
		{"nothing can mount", psAndWorkers(0, 1), 3, func(p *player) {
			p.mute["AgentPrepared"] = true
			p.step(core.Begin{})
			for i := 1; !p.job.Finished() && i < 100; i++ {
				p.step(core.AgentFailed{Container: fmt.Sprintf("c%d", i), Detail: "no /dev/fuse", NodeSpecific: true})
			}
		}, failed},
		{"an agent never comes up", psAndWorkers(0, 1), 3, func(p *player) {
			p.mute["AgentConnected"] = true
			p.step(core.Begin{})
			p.wait(61 * time.Second)
		}, proto.JobState_JOB_STATE_WAITING},
		{"out of memory", psAndWorkers(0, 1), 1, func(p *player) {
			p.step(core.Begin{})
			for i := range 2 {
				p.step(core.ContainerEnded{Container: fmt.Sprintf("c%d", i+1), Cause: core.CauseOutOfMemory, Diagnostics: "beyond physical memory limits"})
			}
		}, failed},
		{"a container grows after it was too small", growing(psAndWorkers(0, 1), 5000), 3, func(p *player) {
			p.step(core.Begin{})
			p.step(core.ContainerEnded{Container: "c1", Cause: core.CauseOutOfMemory, Diagnostics: "beyond physical memory limits"})
			p.exit("worker-0", core.TaskExited{Signal: 9, OutOfMemory: true})
			p.wait(time.Minute)
		}, running},
		{"a node limits virtual memory", growing(psAndWorkers(0, 1), 3000), 1, func(p *player) {
			p.step(core.Begin{})
			for i := range 3 {
				p.step(core.ContainerEnded{Container: fmt.Sprintf("c%d", i+1), Cause: core.CauseVirtualLimit, Diagnostics: "beyond the 'VIRTUAL' memory limit"})
			}
		}, failed},
		{"a late container is given back", psAndWorkers(0, 1), 3, func(p *player) {
			p.step(core.Begin{})
			p.step(core.Allocated{Request: "worker-0/99", Container: "c99", Node: "n1"})
		}, running},
		{"the evaluator does not matter", append(psAndWorkers(0, 1), &proto.RoleSpec{Name: "evaluator", Count: 1,
			Loss: proto.LossRule_LOSS_RULE_ALONE, Completion: proto.CompletionRule_COMPLETION_RULE_OPTIONAL}), 0, func(p *player) {
			p.step(core.Begin{})
			p.exit("evaluator-0", core.TaskExited{Code: 1})
			p.exit("worker-0", core.TaskExited{})
		}, succeeded},
		{"the chief is done and its workers serve on", coordinated(1, 2), 0, func(p *player) {
			p.step(core.Begin{})
			p.exit("worker-1", core.TaskExited{}) // which is as good
			p.exit("chief-0", core.TaskExited{})
		}, succeeded},
		{"a worker of a chief fails too often", coordinated(1, 2), 0, func(p *player) {
			p.step(core.Begin{})
			p.exit("worker-1", core.TaskExited{Code: 1})
		}, failed},
		{"the cluster breaks", psAndWorkers(1, 1), 3, func(p *player) {
			p.step(core.Begin{})
			p.step(core.Broken{Why: "the ResourceManager does not know this attempt"})
		}, failed},
	} {
		t.Run(strings.ReplaceAll(s.name, " ", "-"), func(t *testing.T) {
			p := play(t, s.roles, s.restarts)
			p.t = t
			s.script(p)
			p.state(s.want)
			if s.want.Done() != p.job.Finished() {
				t.Errorf("finished: %v", p.job.Finished())
			}
			p.golden()
		})
	}
}

// TestLossesThatEndAJob: containers that are lost again and again are a reason
// to give up, but not where the cluster loses or wants back the nodes.
func TestLossesThatEndAJob(t *testing.T) {
	for cause, want := range map[core.Cause]proto.JobState{
		core.CauseKilled:    proto.JobState_JOB_STATE_FAILED,
		core.CauseNodeLost:  proto.JobState_JOB_STATE_RUNNING,
		core.CausePreempted: proto.JobState_JOB_STATE_RUNNING,
	} {
		p := play(t, psAndWorkers(1, 1), 3)
		p.step(core.Begin{})
		for range 12 {
			if state, _ := p.job.State(); state == proto.JobState_JOB_STATE_RUNNING {
				p.step(core.ContainerEnded{Container: p.named("ps-0").Container, Cause: cause})
				p.wait(time.Minute)
			}
		}
		p.state(want)
	}
}

// TestNothingIsAskedForOnceTheJobEnds: also by what is found lost at the same time, and
// by a container whose agent cannot be started.
func TestNothingIsAskedForOnceTheJobEnds(t *testing.T) {
	for name, lose := range map[string]func(p *player){
		"two agents are silent for too long": func(p *player) {
			p.step(core.ContainerEnded{Container: "c1", Cause: core.CauseKilled})
			p.mute["TaskExited"], p.mute["AgentDisconnected"] = true, true
			p.step(core.AgentDisconnected{Container: p.named("worker-0").Container})
			p.step(core.AgentDisconnected{Container: "c2"})
			p.wait(13 * time.Second)
		},
		"an agent cannot be started": func(p *player) {
			p.mute["AgentConnected"], p.mute["ContainerEnded"] = true, true
			p.step(core.ContainerEnded{Container: p.named("worker-1").Container, Cause: core.CausePreempted})
			p.mute["TaskExited"], p.mute["AgentDisconnected"] = true, true
			p.step(core.Kill{Why: "killed"})
			p.step(core.LaunchFailed{Container: p.named("worker-1").Container, Why: "no"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := playWith(t, psAndWorkers(0, 2), 3, 0, core.Limits{Losses: 1})
			p.step(core.Begin{})
			lose(p)
			_, after, ends := strings.Cut(p.log.String(), "the job is stopped")
			if !ends || strings.Contains(after, "core.Ask") || strings.Contains(after, "core.Assign") {
				t.Errorf("it ends: %v, and asks for containers after that\n%s", ends, p.log.String())
			}
		})
	}
}

// TestTranscriptsOfSpares: a lost container's task moves into a spare one.
func TestTranscriptsOfSpares(t *testing.T) {
	for _, s := range []struct {
		name   string
		script func(p *player)
	}{
		{"a container is lost", func(p *player) {
			p.step(core.ContainerEnded{Container: "c1", Cause: core.CauseKilled, Diagnostics: "killed"})
			p.exit("worker-0", core.TaskExited{})
		}},
		{"the spare is lost", func(p *player) {
			p.step(core.ContainerEnded{Container: "c3", Cause: core.CausePreempted, Diagnostics: "preempted"})
			p.step(core.ContainerEnded{Container: "c1", Cause: core.CauseKilled, Diagnostics: "killed"})
			p.exit("worker-0", core.TaskExited{})
		}},
		{"two agents are silent", func(p *player) { // the spare takes one of the tasks
			p.step(core.AgentDisconnected{Container: "c1"})
			p.step(core.AgentDisconnected{Container: "c2"})
			p.wait(time.Minute)
			p.exit("worker-0", core.TaskExited{})
		}},
		{"spares are lost again and again", func(p *player) {
			for i := range 20 {
				p.step(core.AgentDisconnected{Container: fmt.Sprintf("c%d", i+3)})
			}
			p.exit("worker-0", core.TaskExited{})
		}},
		{"the spare has not come up", func(p *player) {
			p.mute["AgentConnected"] = true
			p.step(core.ContainerEnded{Container: "c3", Cause: core.CausePreempted, Diagnostics: "preempted"})
			p.mute["AgentConnected"] = false
			p.step(core.ContainerEnded{Container: "c1", Cause: core.CauseKilled, Diagnostics: "killed"})
			p.wait(2 * time.Minute)
			p.exit("worker-0", core.TaskExited{})
		}},
	} {
		t.Run(strings.ReplaceAll(s.name, " ", "-"), func(t *testing.T) {
			p := playWith(t, psAndWorkers(1, 1), 3, 1, core.Limits{})
			p.t = t
			p.step(core.Begin{})
			s.script(p)
			p.state(proto.JobState_JOB_STATE_SUCCEEDED)
			p.golden()
		})
	}
}

func growing(roles []*proto.RoleSpec, to int64) []*proto.RoleSpec {
	for _, r := range roles {
		r.MemoryMaxMb = to
	}
	return roles
}

// TestTranscriptsOfStarts: with fewer tasks than asked for, and too late.
func TestTranscriptsOfStarts(t *testing.T) {
	fewer := psAndWorkers(1, 3)
	fewer[1].Min = 2
	for _, s := range []struct {
		name   string
		limits core.Limits
		roles  []*proto.RoleSpec
		script func(p *player)
		want   proto.JobState
	}{
		{"with fewer, and one comes late", core.Limits{}, fewer, func(p *player) {
			p.wait(31 * time.Second)
			p.step(core.Allocated{Request: "worker-2/4", Container: "c9", Node: "n1"})
			for i := range 3 {
				p.exit(fmt.Sprintf("worker-%d", i), core.TaskExited{})
			}
		}, proto.JobState_JOB_STATE_SUCCEEDED},
		{"with fewer to the end", core.Limits{}, fewer, func(p *player) {
			p.wait(31 * time.Second)
			p.exit("worker-0", core.TaskExited{})
			p.exit("worker-1", core.TaskExited{})
		}, proto.JobState_JOB_STATE_SUCCEEDED},
		{"too late", core.Limits{Start: time.Minute}, psAndWorkers(1, 3), func(p *player) {
			p.step(core.Waiting{Why: "the queue default is full"})
			p.wait(time.Minute)
		}, proto.JobState_JOB_STATE_FAILED},
		{"for long after it had begun", core.Limits{Start: time.Minute}, ranks(2), func(p *player) {
			p.mute["Allocated"] = true
			p.step(core.ContainerEnded{Container: "c2", Cause: core.CausePreempted, Diagnostics: "preempted"})
			p.wait(3 * time.Minute)
			p.takeOver(core.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1"}})
			p.step(core.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "worker-0", Port: 20000, Exited: &core.TaskExited{Signal: 15, Stopped: true}})
			p.wait(3 * time.Minute)
			p.mute["Allocated"] = false
			p.step(core.Allocated{Request: "worker-1/4", Container: "c9", Node: "n1"})
		}, proto.JobState_JOB_STATE_RUNNING},
	} {
		t.Run(strings.ReplaceAll(s.name, " ", "-"), func(t *testing.T) {
			p := playWith(t, s.roles, 3, 0, s.limits)
			p.t = t
			p.unanswered = "worker-2/4"
			p.step(core.Begin{})
			s.script(p)
			p.state(s.want)
			p.golden()
		})
	}
}

func TestCausesAreNamed(t *testing.T) {
	seen := map[string]bool{}
	for c := core.CauseUnknown; c <= core.CauseVirtualLimit; c++ {
		s := c.String()
		if s == "" || seen[s] {
			t.Errorf("cause %d has no text of its own: %q", c, s)
		}
		seen[s] = true
	}
}
