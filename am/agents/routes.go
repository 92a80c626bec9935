package agents

import (
	"iter"

	"holdfast/am/core"
	"holdfast/proto"
)

// Router decides which agents are to be told which addresses of tasks: each is told all of
// them once, and then what has changed. Both messages are the same for many agents, so the
// work grows with the number of tasks times that of changes, and no faster. It must not be
// used concurrently.
type Router struct {
	index    map[string]int      // of tasks, by name
	informed map[string]bool     // containers whose agents know the addresses in latest
	latest   []proto.TaskAddress // by the task's index in the job
	all      *proto.ToAgent      // the message with all of latest; nil: not made yet
}

// NewRouter returns a router that has told nobody anything.
func NewRouter(job *core.Job) *Router {
	r := &Router{index: make(map[string]int, job.Size()), informed: map[string]bool{}, latest: make([]proto.TaskAddress, job.Size())}
	for i, t := range job.Tasks() {
		r.index[t.Name] = i
	}
	return r
}

func addressOf(t core.Task) proto.TaskAddress {
	p := proto.TaskAddress{Port: t.Port}
	if t.RealPort != 0 {
		p.Host, p.RealPort = t.Host, t.RealPort
	}
	return p
}

// Started reports whether any agent knows the addresses. From then on others are told
// them with their assignment.
func (r *Router) Started() bool { return len(r.informed) > 0 }

// Forget records that an agent may have missed a message.
func (r *Router) Forget(container string) { delete(r.informed, container) }

// Dispatch is a message for several agents.
type Dispatch struct {
	Containers []string
	Message    *proto.ToAgent
}

// Update takes over the tasks' present addresses, and returns what agents are to be told:
// those of running tasks and of tasks that are about to start, whose containers are in
// starting. Agents close their connections to the tasks in cut.
func (r *Router) Update(tasks iter.Seq2[int, core.Task], cut []string, starting map[string]bool) []Dispatch {
	moved, addresses := r.takeOver(tasks)
	var closed []int
	for _, name := range cut {
		closed = append(closed, r.index[name])
	}
	var changes, all Dispatch
	informed := make(map[string]bool, len(r.informed)) // without containers that are gone
	for _, t := range tasks {
		switch {
		case t.Container == "":
			continue
		case r.informed[t.Container]:
			changes.Containers = append(changes.Containers, t.Container)
		case t.State == proto.TaskState_TASK_STATE_RUNNING || starting[t.Container]:
			all.Containers = append(all.Containers, t.Container)
		default:
			continue
		}
		informed[t.Container] = true
	}
	r.informed = informed
	var list []Dispatch
	if len(moved)+len(closed) > 0 && len(changes.Containers) > 0 {
		changes.Message = routesMessage(proto.NewRoutes(moved, addresses, closed))
		list = append(list, changes)
	}
	if len(all.Containers) > 0 {
		all.Message = r.allRoutes()
		list = append(list, all)
	}
	return list
}

// takeOver updates latest, and returns the indices and addresses of the tasks that have
// moved. The indices are not nil, which to NewRoutes would mean all tasks.
func (r *Router) takeOver(tasks iter.Seq2[int, core.Task]) (moved []int, addresses []proto.TaskAddress) {
	moved = []int{}
	for i, t := range tasks {
		if now := addressOf(t); now != r.latest[i] {
			r.latest[i] = now
			moved, addresses = append(moved, i), append(addresses, now)
		}
	}
	if len(moved) > 0 {
		r.all = nil
	}
	return moved, addresses
}

func (r *Router) allRoutes() *proto.ToAgent {
	if r.all == nil {
		r.all = routesMessage(proto.NewRoutes(nil, r.latest, nil))
	}
	return r.all
}

// AddTo adds all addresses, as of the latest Update, to the assignment of the agent in a
// container.
func (r *Router) AddTo(container string, a *proto.Assign) {
	a.Routes = r.allRoutes().GetRoutes()
	r.informed[container] = true
}

// Routes returns the present addresses of all tasks. It does not need a Router, which knows
// none as long as no task has started.
func Routes(job *core.Job) *proto.Routes {
	addresses := make([]proto.TaskAddress, job.Size())
	for i, t := range job.Tasks() {
		addresses[i] = addressOf(t)
	}
	return proto.NewRoutes(nil, addresses, nil)
}

func routesMessage(m *proto.Routes) *proto.ToAgent {
	return &proto.ToAgent{Message: &proto.ToAgent_Routes{Routes: m}}
}
