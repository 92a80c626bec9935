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
	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/core/journal"
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
	mute       map[string]bool      // kinds of answers that do not come: "allocated", "attached", ...
	unanswered string               // a request for which there is no container
	forgets    bool                 // takeOver finds no journal
	known      []journal.TaskRecord // and what then is known of tasks
	hosted     map[string]string
	lastEnd    action.Finish
}

// usual leaves out of a transcript what is so of nearly all.
var usual = strings.NewReplacer(" NeedsPeers:false", "", " Stopping:<nil>", "", "FixedWorld:false", "", " Absent:[]", "", " Fenced:[]", "", " Observed:false", "", " WorldChanged:false", "", " Pause:0s", "", " Others:map[]", "", " Near:[]", "", " Counts:[]", "", " PeerPort:0 Notes:", " Notes:")

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
func (p *player) step(e event.Event) {
	p.t.Helper()
	queue := []event.Event{e}
	for len(queue) > 0 {
		e, queue = queue[0], queue[1:]
		text := fmt.Sprintf("%+v", e)
		if a, ok := e.(event.AgentConnected); ok && a.Exited != nil {
			x := *a.Exited
			a.Exited = nil
			text = fmt.Sprintf("%+v, exited %+v", a, x)
		} else if ok && a.Stopping != nil {
			s := *a.Stopping
			a.Stopping = nil
			text = fmt.Sprintf("%+v, stopping %+v", a, s)
		}
		if s, ok := e.(event.StepsReported); ok && len(s.Counts) > 0 {
			text = ""
			for _, c := range s.Counts {
				text += fmt.Sprintf(" %s: step %d, %d reports, at work %d of %d;", c.Task, c.Step, c.Reports, c.Works, c.Looks)
			}
		}
		text = usual.Replace(text)
		fmt.Fprintf(&p.log, "%6.1fs %T%s\n", p.now.Sub(p.start).Seconds(), e, text)
		for _, a := range p.job.Step(p.now, e) {
			fmt.Fprintf(&p.log, "          -> %T%s\n", a, usual.Replace(fmt.Sprintf("%+v", a)))
			if next := p.answer(a); next != nil && !p.mute[strings.TrimPrefix(fmt.Sprintf("%T", next), "event.")] {
				queue = append(queue, next)
			}
		}
	}
}

func (p *player) answer(a action.Action) event.Event {
	switch a := a.(type) {
	case action.Ask:
		if a.Request == p.unanswered {
			return nil
		}
		p.containers++
		c := fmt.Sprintf("c%d", p.containers)
		return event.Allocated{Request: a.Request, Container: c, Node: p.node(p.containers)}
	case action.Launch:
		return event.AgentConnected{Container: a.Container, Host: "h", PID: 100}
	case action.Assign:
		port := a.Port
		if port == 0 {
			port = p.port(a.Task, a.Container)
		}
		if taken := p.port(a.Task, a.Container); taken < 0 {
			port = -taken
		}
		p.hosted[a.Task] = a.Container
		return event.AgentPrepared{Container: a.Container, Port: port}
	case action.ChangePort:
		return event.AgentPrepared{Container: a.Container, Port: a.Port, PeerPort: a.Port}
	case action.EndLingering:
		return event.LetEnd{Container: a.Container, Attempt: p.task(a.Container).Attempt}
	case action.Start:
		return event.TaskStarted{Container: a.Container, Attempt: a.Attempt, PID: 200}
	case action.Vacate:
		return p.answer(action.Stop{Container: a.Container})
	case action.Stop:
		e := event.TaskExited{Container: a.Container, Attempt: p.task(a.Container).Attempt, Signal: 15, Stopped: true}
		if a.Stack {
			e.Stack = []string{"Current thread 0x1 (most recent call first):", `  File "session.py", line 7 in wait`, `  File "train.py", line 3 in <module>`}
		}
		return e
	case action.ReleaseAgent:
		return event.AgentDisconnected{Container: a.Container, Orderly: true}
	case action.Release:
		return event.ContainerEnded{Container: a.Container, Cause: event.CauseReleased}
	case action.PrepareStore:
		return event.StorePrepared{Notes: []string{"checkpoint 12 is used"}}
	case action.Finish:
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
func (p *player) takeOver(e event.Recovered) {
	p.t.Helper()
	var tasks []core.Task
	for _, t := range p.job.Tasks() {
		tasks = append(tasks, core.Task{Name: t.Name, Role: t.Role, Index: t.Index})
	}
	text, err := json.Marshal(p.job.Journal())
	if err != nil {
		p.t.Fatal(err)
	}
	var saved journal.Journal
	if err := json.Unmarshal(text, &saved); err != nil {
		p.t.Fatal(err)
	}
	if p.forgets {
		saved = journal.Journal{Partial: true, Tasks: p.known}
	}
	p.job = core.New(tasks, 3, p.spares, p.limits)
	p.job.Resume(saved)
	p.step(e)
}

// exit ends the attempt that runs as a task.
func (p *player) exit(task string, e event.TaskExited) {
	p.t.Helper()
	t := p.named(task)
	e.Container, e.Attempt = t.Container, t.Attempt
	p.step(e)
}

// wait lets time pass up to the job's next deadline, d at most.
func (p *player) wait(d time.Duration) {
	p.t.Helper()
	end, at := p.now.Add(d), 0 // at counts what happens at one time
	for {
		next, ok := p.job.Deadline()
		if !ok || next.After(end) {
			p.now = end
			return
		}
		if at++; next.After(p.now) {
			at = 0
		}
		if at > 1000 {
			p.t.Fatal("time does not go on")
		}
		p.now = next
		p.step(event.Tick{})
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

func growing(roles []*proto.RoleSpec, to int64) []*proto.RoleSpec {
	for _, r := range roles {
		r.MemoryMaxMb = to
	}
	return roles
}
