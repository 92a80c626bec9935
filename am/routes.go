package am

import (
	"iter"

	"holdfast/am/core"
	"holdfast/proto"
)

// router has agents told where the tasks are: all of it once, then what has
// changed. Both are the same for many agents, so what is said grows with the
// number of tasks times that of changes, and no faster. It is the loop's.
type router struct {
	index map[string]int  // of tasks, by name
	told  map[string]bool // containers whose agents know what is shown
	shown []proto.Place   // by the task's place in the job
	whole *proto.ToAgent  // that says it; nil: not made yet
}

func newRouter(job *core.Job) *router {
	r := &router{index: make(map[string]int, job.Size()), told: map[string]bool{}, shown: make([]proto.Place, job.Size())}
	for i, t := range job.Tasks() {
		r.index[t.Name] = i
	}
	return r
}

func placeOf(t core.Task) proto.Place {
	p := proto.Place{Port: t.Port}
	if t.RealPort != 0 {
		p.Host, p.RealPort = t.Host, t.RealPort
	}
	return p
}

// known tells whether any agent knows where the tasks are: then others are told
// with their assignment.
func (r *router) known() bool { return len(r.told) > 0 }

// forget notes that an agent may have missed something.
func (r *router) forget(container string) { delete(r.told, container) }

// dispatch is a message for several agents.
type dispatch struct {
	containers []string
	message    *proto.ToAgent
}

// news shows where the tasks are now, and gives what agents are to be told of
// that: those of running tasks and of tasks that are about to start, in starting,
// and whose connections to the tasks in cut are to be shut down.
func (r *router) news(tasks iter.Seq2[int, core.Task], cut []string, starting map[string]bool) []dispatch {
	moved := []int{} // nil would mean all
	var places []proto.Place
	for i, t := range tasks {
		if now := placeOf(t); now != r.shown[i] {
			r.shown[i] = now
			moved, places = append(moved, i), append(places, now)
		}
	}
	if len(moved) > 0 {
		r.whole = nil
	}
	var shut []int
	for _, name := range cut {
		shut = append(shut, r.index[name])
	}
	var changes, all dispatch
	told := make(map[string]bool, len(r.told)) // without those that are gone
	for _, t := range tasks {
		switch {
		case t.Container == "":
			continue
		case r.told[t.Container]:
			changes.containers = append(changes.containers, t.Container)
		case t.State == proto.TaskState_TASK_STATE_RUNNING || starting[t.Container]:
			all.containers = append(all.containers, t.Container)
		default:
			continue
		}
		told[t.Container] = true
	}
	r.told = told
	var list []dispatch
	if len(moved)+len(shut) > 0 && len(changes.containers) > 0 {
		changes.message = routes(proto.NewRoutes(moved, places, shut))
		list = append(list, changes)
	}
	if len(all.containers) > 0 {
		all.message = r.all()
		list = append(list, all)
	}
	return list
}

// all says where all tasks are, as shown last.
func (r *router) all() *proto.ToAgent {
	if r.whole == nil {
		r.whole = routes(proto.NewRoutes(nil, r.shown, nil))
	}
	return r.whole
}

// placesOf says where all tasks are, also if nobody was shown it yet: so it is in a master
// that has not started any.
func placesOf(job *core.Job) *proto.Routes {
	places := make([]proto.Place, job.Size())
	for i, t := range job.Tasks() {
		places[i] = placeOf(t)
	}
	return proto.NewRoutes(nil, places, nil)
}

// tell puts it into an assignment.
func (r *router) tell(container string, a *proto.Assign) {
	a.Routes = r.all().GetRoutes()
	r.told[container] = true
}

func routes(m *proto.Routes) *proto.ToAgent {
	return &proto.ToAgent{Message: &proto.ToAgent_Routes{Routes: m}}
}
