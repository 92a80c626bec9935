package am

import (
	"time"

	"holdfast/am/core"
	"holdfast/proto"
	"holdfast/runtime"
)

// orders turns core's actions into messages to agents. It knows the job's
// spec, and nothing that changes.
type orders struct {
	id    string
	spec  *proto.JobSpec
	tasks map[string]runtime.Task
	told  *proto.JobSpec // as agents need it
}

func newOrders(id string, spec *proto.JobSpec) *orders {
	o := &orders{id: id, spec: spec, tasks: map[string]runtime.Task{}, told: &proto.JobSpec{
		Framework: spec.Framework, Tf1: spec.Tf1, KeepInterpreterWaits: spec.KeepInterpreterWaits, Cold: spec.Cold,
	}}
	for _, r := range spec.Roles {
		o.told.Roles = append(o.told.Roles, &proto.RoleSpec{Name: r.Name, Count: r.Count, Gpus: r.Gpus})
	}
	for _, t := range runtime.Tasks(spec) {
		o.tasks[t.Name] = t
	}
	return o
}

// assign gives a task to an agent; rehearsal may be nil.
func (o *orders) assign(a core.Assign, lease, beat time.Duration, rehearsal *proto.PrewarmPlan) *proto.Assign {
	t := o.tasks[a.Task]
	return &proto.Assign{
		Job: o.id, Task: a.Task, Role: t.Role, Index: int32(t.Index), Port: int32(a.Port),
		Checkpoints: o.spec.Checkpoints, Files: o.spec.Files,
		LeaseMs: lease.Milliseconds(), HeartbeatIntervalMs: beat.Milliseconds(), Progress: o.spec.Progress, MemoryMb: o.containerMB(t.Role),
		PrewarmPlan: rehearsal, Spec: o.told,
	}
}

// containerMB is the memory that containers of a role have at least, in MB; 0 where
// nothing limits it.
func (o *orders) containerMB(role string) int64 {
	for _, r := range o.spec.Roles {
		if r.Name == role && !o.spec.Local {
			return r.MemoryMb
		}
	}
	return 0
}

// start makes the message that starts an attempt.
func (o *orders) start(a core.Start) *proto.ToAgent {
	return &proto.ToAgent{Message: &proto.ToAgent_Start{Start: &proto.Start{
		Attempt: int32(a.Attempt), Generation: int32(a.Generation),
		Command: runtime.Words(o.spec, o.tasks[a.Task].Role), Env: o.spec.Env, ConsistentServerState: a.Kept,
	}}}
}

func (o *orders) stop(graceMS int64, stack bool) *proto.ToAgent {
	return &proto.ToAgent{Message: &proto.ToAgent_Stop{Stop: &proto.Stop{GraceMs: graceMS, DumpStacks: stack}}}
}

func (o *orders) bye(why string) *proto.ToAgent {
	return &proto.ToAgent{Message: &proto.ToAgent_Release{Release: &proto.Release{Why: why}}}
}
