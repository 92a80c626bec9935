package am

import (
	"slices"
	"time"

	"holdfast/am/core"
	"holdfast/proto"
	"holdfast/runtime"
)

// rehearseLimit is core's Limits.Prewarm where there is something to rehearse: a
// busy machine takes so long to import TensorFlow.
const rehearseLimit = 20 * time.Second

// rehearsals is what agents have found out about the tasks' scripts, and who was
// told: containers that are about to run a task, or may be given one, get an
// interpreter ready for it (package container/warm). It is the loop's.
type rehearsals struct {
	orders *orders
	known  map[string]*proto.ImportProfile // by role
	told   map[string]bool                 // spares, by container
}

func newRehearsals(o *orders) *rehearsals {
	return &rehearsals{orders: o, known: map[string]*proto.ImportProfile{}, told: map[string]bool{}}
}

// hear takes in what an agent has found out about its task, and tells whether
// that is worth writing down. What one task of a role does not bear, none does.
func (r *rehearsals) hear(job *core.Job, container string, i *proto.ImportProfile) (news bool) {
	t, hosted := job.Hosted(container)
	if !hosted {
		return false
	}
	old := r.known[t.Role.Name]
	if old == nil || old.Unsupported == "" {
		r.known[t.Role.Name] = i
		news = old == nil || i.Unsupported != ""
	}
	return news
}

// journal is what another master should know, by role.
func (r *rehearsals) journal() map[string]imported {
	list := map[string]imported{}
	for role, i := range r.known {
		list[role] = imported{i}
	}
	return list
}

func (r *rehearsals) resume(list map[string]imported) {
	for role, i := range list {
		r.known[role] = i.ImportProfile
	}
}

// of says what a task's next attempt will be like; nil if that is not known, or
// no interpreter bears it.
func (r *rehearsals) of(task string) *proto.PrewarmPlan {
	role := r.orders.tasks[task].Role
	i := r.known[role]
	if i == nil || i.Unsupported != "" {
		return nil
	}
	return &proto.PrewarmPlan{Command: runtime.Words(r.orders.spec, role), Env: r.orders.spec.Env, ImportProfile: i}
}

// spares are what spare containers are to get ready for now, by container: their
// task, or one on which others depend, if there is one.
func (r *rehearsals) spares(job *core.Job) map[string]*proto.Prewarm {
	there := job.Spares()
	for c := range r.told {
		if !slices.ContainsFunc(there, func(s core.Spare) bool { return s.Container == c }) {
			delete(r.told, c)
		}
	}
	tasks := map[string]*proto.Prewarm{}
	for _, s := range there {
		if s.AgentPID == 0 || r.told[s.Container] {
			continue
		}
		if a := r.forSpare(job, s); a != nil {
			tasks[s.Container] = &proto.Prewarm{Assign: a, Imminent: s.Imminent}
			r.told[s.Container] = true
		}
	}
	return tasks
}

func (r *rehearsals) forSpare(job *core.Job, s core.Spare) *proto.Assign {
	var best core.Task
	var rehearsal *proto.PrewarmPlan
	for _, t := range job.Tasks() {
		service := t.Role.Completion == proto.CompletionRule_COMPLETION_RULE_SERVICE
		if s.For != "" && t.Name != s.For || best.Name != "" && !service {
			continue
		}
		if next := r.of(t.Name); next != nil {
			best, rehearsal = t, next
			if service {
				break
			}
		}
	}
	if best.Name == "" {
		return nil
	}
	a := r.orders.assign(core.Assign{Task: best.Name, Port: best.Port}, 0, 0, rehearsal)
	for _, role := range r.orders.spec.Roles {
		a.MemoryMb = max(a.MemoryMb, r.orders.containerMB(role.Name))
	}
	return a
}

// spareStatus is what is shown of the spares; known is what was shown.
func spareStatus(spares []core.Spare, known []*proto.SpareStatus) []*proto.SpareStatus {
	var list []*proto.SpareStatus
	for _, s := range spares {
		shown := &proto.SpareStatus{Container: s.Container, Node: s.Node, AgentPid: int32(s.AgentPID)}
		for _, k := range known {
			if k.Container == s.Container {
				shown.AgentRssBytes, shown.WarmRssBytes, shown.WarmStatus = k.AgentRssBytes, k.WarmRssBytes, k.WarmStatus
			}
		}
		list = append(list, shown)
	}
	return list
}
