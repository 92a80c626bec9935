package agents_test

import (
	"slices"
	"testing"

	"holdfast/am/agents"
	"holdfast/am/core"
	"holdfast/proto"
)

// fleet applies what a router dispatches to the addresses that each agent knows.
type fleet struct {
	router *agents.Router
	tasks  []core.Task
	knows  map[string][]proto.TaskAddress // by container
	cuts   map[string][]uint32            // the same: connections that are to be closed
}

func newFleet(names ...string) *fleet {
	f := &fleet{knows: map[string][]proto.TaskAddress{}, cuts: map[string][]uint32{}}
	role := &proto.RoleSpec{Name: "worker", Count: int32(len(names))}
	for i, n := range names {
		f.tasks = append(f.tasks, core.Task{
			Name: n, Role: role, Index: i, State: proto.TaskState_TASK_STATE_READY,
			Container: "c-" + n, Host: "h-" + n, Port: 20000 + i, RealPort: 20000 + i,
		})
	}
	f.router = agents.NewRouter(core.New(f.tasks, 0, 0, core.Limits{}))
	return f
}

// update returns how many messages the agents of each container get.
func (f *fleet) update(t *testing.T, cut []string, starting ...string) map[string]int {
	t.Helper()
	start := map[string]bool{}
	for _, c := range starting {
		start[c] = true
	}
	messages := map[string]int{}
	for _, d := range f.router.Update(slices.All(f.tasks), cut, start) {
		for _, c := range d.Containers {
			messages[c]++
			if f.knows[c] == nil {
				f.knows[c] = make([]proto.TaskAddress, len(f.tasks))
			}
			r := d.Message.GetRoutes()
			if err := r.Apply(f.knows[c]); err != nil {
				t.Fatal(err)
			}
			f.cuts[c] = append(f.cuts[c], r.Disconnect...)
		}
	}
	return messages
}

// current reports whether the agent of a container knows the tasks' addresses.
func (f *fleet) current(container string) bool {
	for i, t := range f.tasks {
		if f.knows[container] == nil || f.knows[container][i] != (proto.TaskAddress{Port: t.Port, Host: t.Host, RealPort: t.RealPort}) {
			return false
		}
	}
	return true
}

// Agents whose tasks start are told all addresses; from then on, what has changed.
func TestAgentsKnowTheAddressesOfAllTasks(t *testing.T) {
	f := newFleet("a", "b", "c")
	f.update(t, nil, "c-a", "c-b")
	if !f.current("c-a") || !f.current("c-b") || f.knows["c-c"] != nil {
		t.Fatalf("at the start, agents know %v", f.knows)
	}
	if n := f.update(t, nil); len(n) != 0 {
		t.Errorf("nothing has changed, and agents get messages: %v", n)
	}
	f.tasks[2].Container, f.tasks[2].Host, f.tasks[2].RealPort = "c-c2", "h-2", 20009
	f.update(t, []string{"c"}, "c-c2")
	for _, c := range []string{"c-a", "c-b", "c-c2"} {
		if !f.current(c) {
			t.Errorf("after c has moved, %s knows %v", c, f.knows[c])
		}
	}
	if !slices.Equal(f.cuts["c-a"], []uint32{2}) || len(f.cuts["c-c2"]) != 0 {
		t.Errorf("connections to %v are closed", f.cuts)
	}
}

// An agent that has connected again is told all addresses.
func TestAnAgentThatMayHaveMissedAMessage(t *testing.T) {
	f := newFleet("a", "b")
	f.update(t, nil, "c-a", "c-b")
	f.router.Forget("c-a")
	delete(f.knows, "c-a")
	f.tasks[0].State = proto.TaskState_TASK_STATE_RUNNING
	if n := f.update(t, nil); n["c-a"] != 1 || n["c-b"] != 0 || !f.current("c-a") {
		t.Errorf("messages %v, it knows %v", n, f.knows["c-a"])
	}
}

// An assignment carries the addresses once tasks have started, and is not repeated.
func TestAnAssignmentCarriesTheAddresses(t *testing.T) {
	f := newFleet("a", "b")
	if f.router.Started() {
		t.Error("nobody knows any address")
	}
	f.update(t, nil, "c-a")
	assign := &proto.Assign{}
	f.router.AddTo("c-b", assign)
	f.knows["c-b"] = make([]proto.TaskAddress, 2)
	if err := assign.Routes.Apply(f.knows["c-b"]); err != nil || !f.current("c-b") || !f.router.Started() {
		t.Errorf("it knows %v (%v)", f.knows["c-b"], err)
	}
	if n := f.update(t, nil, "c-b"); n["c-b"] != 0 {
		t.Error("it is told twice")
	}
}
