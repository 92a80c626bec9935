package core

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"holdfast/proto"
)

// host puts a task into a container; "" takes it out of the one it has.
func (j *Job) host(t *Task, container string) {
	delete(j.hosted, t.Container)
	t.Container = container
	if container != "" {
		j.hosted[container] = t
	}
}

// await notes a task's outstanding request; "" takes it back.
func (j *Job) await(t *Task, request string) {
	delete(j.asked, t.request)
	t.request = request
	if request != "" {
		j.asked[request] = t
	}
}

// ask wants a container for a task: a spare one, or its stand-in, or else a new
// one.
func (j *Job) ask(t *Task) {
	if s := j.spareFor(t); s != nil {
		j.useSpare(t, s)
		return
	}
	if s := j.standIn(t); s != nil {
		j.awaitStandIn(t, s)
		return
	}
	a := j.request(t)
	j.await(t, a.Request)
	t.State = proto.TaskState_TASK_STATE_WAITING
	j.do(a)
}

// request is an ask for a container for a task.
func (j *Job) request(t *Task) Ask {
	j.requests++
	return Ask{
		Request: fmt.Sprintf("%s/%d", t.Name, j.requests), Task: t.Name, Role: t.Role.Name,
		MemoryMB: t.memoryMB, VCores: t.Role.Vcores, GPUs: t.Role.Gpus,
		Avoid: j.avoid(),
	}
}

// avoid names the nodes that have given trouble twice lately, and those that
// are taken out of service.
func (j *Job) avoid() []string {
	var nodes []string
	for n, at := range j.nodeTrouble {
		if j.within(at) >= 2 {
			nodes = append(nodes, n)
		}
	}
	nodes = slices.AppendSeq(nodes, maps.Keys(j.closing))
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

func (j *Job) allocated(e Allocated) {
	if s := j.spareByRequest(e.Request); s != nil {
		s.request, s.container, s.node = "", e.Container, e.Node
		s.deadline = j.now.Add(j.limits.Attach)
		j.do(Launch{e.Container})
		return
	}
	t := j.asked[e.Request]
	if t == nil {
		j.do(Release{e.Container})
		return
	}
	j.await(t, "")
	j.host(t, e.Container)
	t.Node = e.Node
	t.State = proto.TaskState_TASK_STATE_PREPARING
	t.prepared, t.silent = false, time.Time{}
	t.deadline = j.now.Add(j.limits.Attach)
	j.do(Launch{e.Container})
}

func (j *Job) attached(e AgentConnected) {
	if s := j.spareByContainer(e.Container); s != nil && !j.ending() {
		j.spareAttached(s, e)
		return
	}
	t := j.Hosted(e.Container)
	if t == nil || j.ending() && t.finishBy.IsZero() {
		j.overlooked(e)
		j.drainOn(e.Container, j.now)
		j.do(ReleaseAgent{e.Container, notNeeded})
		return
	}
	t.Host, t.AgentPID = e.Host, e.PID
	if e.Task == t.Name && e.Port != 0 {
		j.rejoined(t, e)
		return
	}
	t.silent = time.Time{}
	t.deadline = j.now.Add(j.limits.Prepare)
	j.do(Assign{Container: e.Container, Task: t.Name, Port: t.Port})
}

// overlooked takes in what an agent ran whose container nobody has told this
// master of, and who comes too late for its survey: the next attempt has a higher
// number, and waits for the end of that one.
func (j *Job) overlooked(e AgentConnected) {
	if t := j.named[e.Task]; t != nil && t.Attempt < e.Attempt && t.State != proto.TaskState_TASK_STATE_RUNNING {
		t.Attempt, t.Port = e.Attempt, cmp.Or(t.Port, e.PeerPort)
		j.drain(t, e.Container, j.now.Add(j.limits.LeaseExpiry))
		if t.together() {
			j.generation = max(j.generation, e.Generation+1)
		}
	}
}

// rejoined takes an agent in that was here before, and puts right what one of
// the two sides has missed.
func (j *Job) rejoined(t *Task, e AgentConnected) {
	if t.unreachable() {
		what := fmt.Sprintf("its agent on %s is connected again", t.Node)
		if t.orphan != nil {
			what += ", and the task moves: " + t.orphan.why
		}
		j.record(t, KindNote, "%s", what)
	}
	t.silent, t.deadline = time.Time{}, time.Time{}
	t.prepared = true
	t.RealPort = e.Port
	if t.Port == 0 {
		t.Port = e.Port
	}
	switch t.State {
	case proto.TaskState_TASK_STATE_PREPARING:
		t.State = proto.TaskState_TASK_STATE_READY
	case proto.TaskState_TASK_STATE_RUNNING:
		switch {
		case e.Attempt < t.Attempt && t.stopping: // it never heard of this attempt, and need not
			t.stopping = false
			t.State = proto.TaskState_TASK_STATE_READY
		case e.Attempt < t.Attempt: // it never heard of this attempt
			j.do(Start{Container: t.Container, Task: t.Name, Attempt: t.Attempt, Generation: j.generation, ConsistentServerState: t.kept})
		case e.Exited != nil:
			x := *e.Exited
			x.Container = e.Container
			j.exited(x)
		case t.PID == 0 && e.TaskPID != 0:
			j.started(TaskStarted{Container: e.Container, Attempt: e.Attempt, PID: e.TaskPID})
		}
		switch {
		case t.stopping && t.stopBy.After(j.now): // it is not to get less than was said
			j.do(Vacate{t.Container, t.stopBy.Sub(j.now)})
		case t.stopping || t.hung:
			j.do(Stop{Container: t.Container, Stack: t.hung})
		}
	}
	j.do(Route{})
}

func (j *Job) ready(e AgentPrepared) {
	t := j.Hosted(e.Container)
	if t == nil || j.ending() || t.unreachable() || t.State != proto.TaskState_TASK_STATE_PREPARING { // it may say so twice
		return
	}
	for _, n := range e.Notes {
		j.record(t, KindNote, "%s", n)
	}
	t.prepared = true
	t.deadline = time.Time{}
	if t.Port == 0 {
		t.Port = e.Port
	} else if t.Port != e.Port {
		j.record(t, KindNote, "port %d is taken on %s; it listens on %d there, and the others' connections are steered to it", t.Port, t.Node, e.Port)
	}
	t.RealPort = e.Port
	t.State = proto.TaskState_TASK_STATE_READY
	j.do(Route{})
}
