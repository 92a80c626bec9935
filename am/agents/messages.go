package agents

import (
	"time"

	"holdfast/am/core"
	"holdfast/am/core/action"
	"holdfast/proto"
	"holdfast/runtime"
	"holdfast/runtime/framework"
)

// Messages turns core's actions into messages to agents. It does not change, and may be
// used concurrently.
type Messages struct {
	job   string // its ID
	spec  *proto.JobSpec
	tasks map[string]framework.Task
	brief *proto.JobSpec // what agents need of the spec
}

// NewMessages returns the messages of a job with a complete spec (runtime.Complete).
func NewMessages(job string, spec *proto.JobSpec) *Messages {
	grace := core.DefaultStop.Milliseconds()
	if spec.StopGraceMs != nil {
		grace = *spec.StopGraceMs
	}
	m := &Messages{job: job, spec: spec, tasks: map[string]framework.Task{}, brief: &proto.JobSpec{
		Framework: spec.Framework, Tf1: spec.Tf1, KeepInterpreterWaits: spec.KeepInterpreterWaits, Cold: spec.Cold,
		StopGraceMs: &grace,
	}}
	for _, r := range spec.Roles {
		m.brief.Roles = append(m.brief.Roles, &proto.RoleSpec{Name: r.Name, Count: r.Count, Gpus: r.Gpus, Processes: r.Processes, Launcher: r.Launcher})
	}
	for _, t := range runtime.Tasks(spec) {
		m.tasks[t.Name] = t
	}
	return m
}

// Assign returns a task's assignment to an agent. lease is how long it lets the task run
// without a master, heartbeat the interval of its heartbeats, and plan what it prewarms;
// nil: nothing.
func (m *Messages) Assign(a action.Assign, lease, heartbeat time.Duration, plan *proto.PrewarmPlan) *proto.Assign {
	t := m.tasks[a.Task]
	return &proto.Assign{
		Job: m.job, Task: a.Task, Role: t.Role, Index: int32(t.Index), Port: int32(a.Port),
		Checkpoints: m.spec.Checkpoints, Files: m.spec.Files,
		LeaseMs: lease.Milliseconds(), HeartbeatIntervalMs: heartbeat.Milliseconds(), Progress: m.progress(t.Role), MemoryMb: m.containerMB(t.Role),
		PrewarmPlan: plan, Spec: m.brief, MorePorts: int32(runtime.MorePorts(m.spec, t)), WatchWork: m.watchesWork(t.Role),
	}
}

// watchesWork reports whether it matters how often a role's tasks are at work: they wait for
// each other in each step, so that it shows which of them is the slowest.
func (m *Messages) watchesWork(role string) bool {
	for _, r := range m.spec.Roles {
		if r.Name == role {
			return r.Loss == proto.LossRule_LOSS_RULE_ALL && r.Count > 1 && m.spec.StragglerTimeMs > 0
		}
	}
	return false
}

// progress is the pattern of steps in the output of a role's tasks; empty for services,
// which make none, whatever they print of those that others make.
func (m *Messages) progress(role string) string {
	for _, r := range m.spec.Roles {
		if r.Name == role && r.Completion == proto.CompletionRule_COMPLETION_RULE_SERVICE {
			return ""
		}
	}
	return m.spec.Progress
}

// containerMB is the memory in MB that a role's containers have at least; 0 where nothing
// limits it.
func (m *Messages) containerMB(role string) int64 {
	for _, r := range m.spec.Roles {
		if r.Name == role && !m.spec.Local {
			return r.MemoryMb
		}
	}
	return 0
}

// Start returns the message that starts an attempt.
func (m *Messages) Start(a action.Start) *proto.ToAgent {
	return &proto.ToAgent{Message: &proto.ToAgent_Start{Start: &proto.Start{
		Attempt: int32(a.Attempt), Generation: int32(a.Generation),
		Command: framework.Words(m.spec, m.tasks[a.Task].Role), Env: m.spec.Env, ConsistentServerState: a.ConsistentServerState, Absent: a.Absent, WorldChanged: a.WorldChanged,
	}}}
}

// Stop returns the message that stops the attempt in a container, with grace between SIGTERM and
// SIGKILL.
func (m *Messages) Stop(job *core.Job, container string, grace time.Duration, dumpStacks bool) *proto.ToAgent {
	reason, cause := job.Stopping(container)
	return &proto.ToAgent{Message: &proto.ToAgent_Stop{Stop: &proto.Stop{
		GraceMs: grace.Milliseconds(), DumpStacks: dumpStacks, Reason: string(reason), Cause: int32(cause),
	}}}
}

// Release returns the message that tells an agent to exit.
func (m *Messages) Release(why string) *proto.ToAgent {
	return &proto.ToAgent{Message: &proto.ToAgent_Release{Release: &proto.Release{Why: why}}}
}

// Prewarm returns the message by which a spare container prepares for a task.
func (m *Messages) Prewarm(p *proto.Prewarm) *proto.ToAgent {
	return &proto.ToAgent{Message: &proto.ToAgent_Prewarm{Prewarm: p}}
}
