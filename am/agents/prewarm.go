package agents

import (
	"maps"
	"slices"

	"holdfast/am/core"
	"holdfast/am/core/action"
	"holdfast/proto"
	"holdfast/runtime/framework"
)

// Prewarmer decides what containers prewarm: those that are about to run a task, or may be
// given one, prepare a Python interpreter that has done the imports of the task's script
// (package container/warm). Agents report what a script imports, its import profile. A
// Prewarmer must not be used concurrently.
type Prewarmer struct {
	messages *Messages
	profiles map[string]*proto.ImportProfile // by role
	told     map[string]bool                 // spares that were told what to prewarm, by container
}

// NewPrewarmer returns a prewarmer that knows the given import profiles, by role.
func NewPrewarmer(m *Messages, profiles map[string]*proto.ImportProfile) *Prewarmer {
	p := &Prewarmer{messages: m, profiles: maps.Clone(profiles), told: map[string]bool{}}
	if p.profiles == nil {
		p.profiles = map[string]*proto.ImportProfile{}
	}
	return p
}

// SetProfile takes the import profile that an agent reports of its task, and reports
// whether it is worth a journal entry. A role in which one task's script cannot be
// prewarmed is not prewarmed any longer.
func (p *Prewarmer) SetProfile(job *core.Job, container string, profile *proto.ImportProfile) (changed bool) {
	t, hosted := job.Hosted(container)
	if !hosted {
		return false
	}
	old := p.profiles[t.Role.Name]
	if old == nil || old.Unsupported == "" {
		p.profiles[t.Role.Name] = profile
		changed = old == nil || profile.Unsupported != ""
	}
	return changed
}

// Profiles returns the import profiles by role, for reading only until the next call of
// SetProfile.
func (p *Prewarmer) Profiles() map[string]*proto.ImportProfile { return p.profiles }

// Plan returns what a container prewarms for the next attempt of a task; nil if the task's
// imports are not known, or cannot be prewarmed.
func (p *Prewarmer) Plan(task string) *proto.PrewarmPlan {
	role := p.messages.tasks[task].Role
	profile := p.profiles[role]
	if profile == nil || profile.Unsupported != "" {
		return nil
	}
	return &proto.PrewarmPlan{Command: framework.Words(p.messages.spec, role), Env: p.messages.spec.Env, ImportProfile: profile}
}

// Spares returns what spare containers are to be told to prewarm now, by container.
func (p *Prewarmer) Spares(job *core.Job) map[string]*proto.Prewarm {
	spares := job.Spares()
	for c := range p.told {
		if !slices.ContainsFunc(spares, func(s core.Spare) bool { return s.Container == c }) {
			delete(p.told, c)
		}
	}
	messages := map[string]*proto.Prewarm{}
	for _, s := range spares {
		if s.AgentPID == 0 || p.told[s.Container] {
			continue
		}
		if a := p.assignment(job, s); a != nil {
			messages[s.Container] = &proto.Prewarm{Assign: a, Imminent: s.Imminent}
			p.told[s.Container] = true
		}
	}
	if len(messages) > 0 {
		routes := Routes(job)
		for _, m := range messages {
			m.Assign.Routes = routes
		}
	}
	return messages
}

// assignment returns the assignment for which a spare prepares: of its task, and if it has
// none of a task on which others depend, or else of any; nil if none can be prewarmed.
func (p *Prewarmer) assignment(job *core.Job, s core.Spare) *proto.Assign {
	var best core.Task
	var plan *proto.PrewarmPlan
	for _, t := range job.Tasks() {
		service := t.Role.Completion == proto.CompletionRule_COMPLETION_RULE_SERVICE
		if s.For != "" && t.Name != s.For || best.Name != "" && !service {
			continue
		}
		if next := p.Plan(t.Name); next != nil {
			best, plan = t, next
			if service {
				break
			}
		}
	}
	if best.Name == "" {
		return nil
	}
	a := p.messages.Assign(action.Assign{Task: best.Name, Port: best.Port}, 0, 0, plan)
	for _, role := range p.messages.spec.Roles {
		a.MemoryMb = max(a.MemoryMb, p.messages.containerMB(role.Name))
	}
	return a
}
