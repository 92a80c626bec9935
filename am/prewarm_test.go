package am_test

import (
	"context"
	"slices"
	"testing"

	"holdfast/am/core/event"
	"holdfast/proto"
)

// The import profile that one agent reports goes to spares and to the next containers of
// the role, until one reports that the script cannot be prewarmed.
func TestContainersPrewarmWhatIsKnown(t *testing.T) {
	j := start(t, func(s *proto.JobSpec, _ *cluster) { s.Spares = 1 })
	ps, _ := j.started("ps-0")
	worker, _ := j.started("worker-0")
	says := func(a *agent, i *proto.ImportProfile) {
		a.send(&proto.FromAgent{Message: &proto.FromAgent_ImportProfile{ImportProfile: i}})
	}

	first := j.another("spare", nil)
	says(worker, &proto.ImportProfile{SysPath: []string{"/worker"}})
	r := first.prewarmed(j)
	if want := []string{"train", "--ps={ps_hosts}", "--me={role}-{index}"}; !slices.Equal(r.PrewarmPlan.Command, want) || r.Task != "worker-0" || r.PrewarmPlan.ImportProfile.SysPath[0] != "/worker" || r.MemoryMb != 64 {
		t.Errorf("the spare prewarms %v", r)
	}
	says(ps, &proto.ImportProfile{SysPath: []string{"/ps"}})
	j.lose("worker-1") // it takes the spare
	moved := first.task(j)
	if i := moved.PrewarmPlan.GetImportProfile(); i == nil || i.SysPath[0] != "/worker" || len(moved.PrewarmPlan.Command) != 3 {
		t.Errorf("worker-1's next container prewarms %v", moved.PrewarmPlan)
	}
	if moved.Routes == nil || r.Routes == nil {
		t.Error("a container that prewarms does not know where the tasks are, which its command tells")
	}

	// The next spare prewarms for the task on which others depend.
	next := j.another("spare", first)
	if i := next.prewarmed(j).PrewarmPlan.ImportProfile; i.SysPath[0] != "/ps" {
		t.Errorf("the next spare prewarms %v", i)
	}
	<-first.started
	says(first, &proto.ImportProfile{Unsupported: "threads"})
	says(first, &proto.ImportProfile{SysPath: []string{"/worker"}})
	first.exit(1)
	<-first.started // so what it said before was heard
	j.lose("worker-0")
	if moved := next.task(j); moved.PrewarmPlan != nil {
		t.Errorf("after a refusal, worker-0's next container prewarms %v", moved.PrewarmPlan)
	}
	<-next.started
	for _, a := range []*agent{first, next} {
		a.exit(0)
	}
	j.end(proto.JobState_JOB_STATE_SUCCEEDED)
}

// A container for a task that seems to be lost prewarms for that very task, and at once.
func TestAContainerForATaskThatSeemsLostHurries(t *testing.T) {
	j := start(t, nil)
	ps, _ := j.started("ps-0")
	worker, _ := j.started("worker-1")
	other, _ := j.started("worker-0")
	other.send(&proto.FromAgent{Message: &proto.FromAgent_ImportProfile{ImportProfile: &proto.ImportProfile{SysPath: []string{"/worker"}}}})
	ps.send(&proto.FromAgent{Message: &proto.FromAgent_ImportProfile{ImportProfile: &proto.ImportProfile{SysPath: []string{"/ps"}}}})
	j.mu.Lock()
	conn := j.conns[worker.container]
	j.mu.Unlock()
	conn.Close()
	next := j.another("worker-1", worker)
	if r := next.prewarmed(j); r.Task != "worker-1" || r.PrewarmPlan.ImportProfile.SysPath[0] != "/worker" {
		t.Errorf("it prewarms %v", r)
	}
	next.mu.Lock()
	if !next.prewarm.Imminent {
		t.Error("it takes its time")
	}
	next.mu.Unlock()
	j.events.Put(event.ContainerEnded{Container: worker.container, Cause: event.CauseOwnFault, Exit: 137})
	<-next.started
	for _, a := range []*agent{other, next} {
		a.exit(0)
	}
	j.end(proto.JobState_JOB_STATE_SUCCEEDED)
}

// Import profiles outlive the master: where its node is lost with all containers of a role,
// the container that replaces one prewarms all the same.
func TestWhatScriptsImportOutlivesTheMaster(t *testing.T) {
	j := startAttempt(t, 1, nil)
	ps, _ := j.started("ps-0")
	workers := []*agent{}
	for _, task := range []string{"worker-0", "worker-1"} {
		a, _ := j.started(task)
		workers = append(workers, a)
	}
	ps.send(&proto.FromAgent{Message: &proto.FromAgent_ImportProfile{ImportProfile: &proto.ImportProfile{SysPath: []string{"/ps"}}}})
	j.saved("what was found out", proto.JournalDir+"/1.json", `"/ps"`, 1)
	j.mu.Lock()
	delete(j.agents, "ps-0")
	j.mu.Unlock()
	j.takeOver(2)
	for _, a := range workers {
		j.connect(a)
	}
	next := j.another("ps-0", nil)
	if r := next.prewarmed(j); r.Task != "ps-0" || r.PrewarmPlan.ImportProfile.SysPath[0] != "/ps" {
		t.Errorf("it prewarms %v", r)
	}
	j.events.Put(event.ContainerEnded{Container: ps.container, Cause: event.CauseOwnFault, Exit: 137})
	<-next.started
	for _, a := range workers {
		a.exit(0)
	}
	j.end(proto.JobState_JOB_STATE_SUCCEEDED)
}

// A spare that has prewarmed is there for the next master, with what it has imported: a lost
// task goes on in it.
func TestASpareThatHasPrewarmedOutlivesTheMaster(t *testing.T) {
	j := startAttempt(t, 1, func(s *proto.JobSpec, _ *cluster) { s.Spares = 1 })
	ps, _ := j.started("ps-0")
	agents := []*agent{ps}
	for _, task := range []string{"worker-0", "worker-1"} {
		a, _ := j.started(task)
		agents = append(agents, a)
	}
	ps.send(&proto.FromAgent{Message: &proto.FromAgent_ImportProfile{ImportProfile: &proto.ImportProfile{SysPath: []string{"/ps"}}}})
	spare := j.another("spare", nil)
	if r := spare.prewarmed(j); r.PrewarmPlan.ImportProfile.SysPath[0] != "/ps" {
		t.Fatalf("it prewarms %v", r)
	}
	j.saved("the spare, and what was found out", proto.JournalDir+"/1.json", `"/ps"`, 1)
	j.saved("the spare, and what was found out", proto.JournalDir+"/1.json", spare.container, 1)
	j.takeOver(2)
	for _, a := range append(agents, spare) {
		j.connect(a)
	}
	j.eventually("the spare's agent", func() bool {
		s, err := j.client.Status(context.Background(), &proto.StatusRequest{})
		return err == nil && len(s.Spares) == 1 && s.Spares[0].AgentPid != 0
	})
	j.lose("ps-0")
	if moved := spare.task(j); moved.Task != "ps-0" || moved.PrewarmPlan.GetImportProfile().GetSysPath()[0] != "/ps" {
		t.Errorf("the spare is given %v", moved)
	}
	if s := <-spare.started; s.Attempt != 1 {
		t.Errorf("ps-0 goes on in it as attempt %d", s.Attempt)
	}
	for _, a := range agents[1:] {
		a.exit(0)
	}
	j.end(proto.JobState_JOB_STATE_SUCCEEDED)
}

// All tasks are lost with the master, as when the power is cut. The containers that replace
// theirs prewarm while the old leases run out. They need the tasks' ports for that, since
// commands may contain them.
func TestContainersPrewarmWhereNoTaskIsLeft(t *testing.T) {
	j := startAttempt(t, 1, nil)
	ps, _ := j.started("ps-0")
	for _, task := range []string{"worker-0", "worker-1"} {
		j.started(task)
	}
	ps.send(&proto.FromAgent{Message: &proto.FromAgent_ImportProfile{ImportProfile: &proto.ImportProfile{SysPath: []string{"/ps"}}}})
	j.saved("what was found out", proto.JournalDir+"/1.json", `"/ps"`, 1)
	j.mu.Lock()
	clear(j.agents)
	j.mu.Unlock()
	j.takeOver(2)
	r := j.another("ps-0", nil).prewarmed(j)
	addresses := make([]proto.TaskAddress, 3)
	if err := r.Routes.Apply(addresses); err != nil || slices.ContainsFunc(addresses, func(p proto.TaskAddress) bool { return p.Port == 0 }) {
		t.Errorf("it is told the addresses %v (%v)", addresses, err)
	}
}

// another waits for the agent of another container that was asked for a task, or as a spare.
func (j *job) another(task string, than *agent) *agent {
	j.t.Helper()
	var a *agent
	j.eventually("another container for "+task, func() bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		a = j.agents[task]
		return a != nil && a != than
	})
	return a
}

// prewarmed waits until the agent is told to prewarm.
func (a *agent) prewarmed(j *job) *proto.Assign {
	j.t.Helper()
	var r *proto.Assign
	j.eventually("a spare that prewarms", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		r = a.prewarm.GetAssign()
		return r != nil
	})
	return r
}

// task waits until the agent is assigned a task.
func (a *agent) task(j *job) *proto.Assign {
	j.t.Helper()
	var t *proto.Assign
	j.eventually("a spare that has a task", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		t = a.assigned
		return t != nil
	})
	return t
}
