package am

import (
	"time"

	"holdfast/am/core"
	"holdfast/proto"
)

// incidentLimit bounds how many incidents are kept; of more, the oldest go.
const incidentLimit = 500

// recordIncidents writes down losses and returns.
func recordIncidents(s *proto.JobStatus, job *core.Job, moments []*proto.JobEvent) {
	for _, m := range moments {
		if m.Kind != core.KindLost && m.Kind != core.KindBack {
			continue
		}
		t, ok := job.Task(m.Task)
		if !ok {
			continue
		}
		if m.Kind == core.KindBack {
			closeIncidents(s, t, m)
			continue
		}
		i := &proto.Incident{
			AtUnixMs: m.AtUnixMs - m.SinceLossMs, Task: m.Task, Attempt: int32(t.Attempt), Cause: t.Cause.String(), Evidence: t.Why,
			Step: s.Step, CompleteStep: s.CompleteStep, RolledBack: goesBack(t),
		}
		if t.Place < len(s.Tasks) { // as it was shown before
			i.Container, i.Node = s.Tasks[t.Place].Container, s.Tasks[t.Place].Node
		}
		s.Incidents = append(s.Incidents, i)
		if n := len(s.Incidents) - incidentLimit; n > 0 {
			s.Incidents = s.Incidents[n:]
		}
	}
}

// goesBack tells whether the loss of a task takes the model along.
func goesBack(t core.Task) bool {
	return t.Role.Loss == proto.LossRule_LOSS_RULE_ALL || t.Role.Completion == proto.CompletionRule_COMPLETION_RULE_SERVICE
}

// closeIncidents says of a task's losses how it came back.
func closeIncidents(s *proto.JobStatus, t core.Task, back *proto.JobEvent) {
	for _, i := range s.Incidents {
		if i.Task != t.Name || i.RecoveredUnixMs != 0 {
			continue
		}
		i.RecoveredUnixMs, i.RecoveredAfterMs = back.AtUnixMs, back.AtUnixMs-i.AtUnixMs
		i.Recovery = "in place"
		if i.Container != t.Container {
			i.Recovery = "in another container, on " + t.Node
		}
	}
}

// recordStep takes in a step that a task has made, and says of the incidents that are
// over what they cost: how long the job made no steps, and how many it makes again.
func recordStep(s *proto.JobStatus, step int64, at time.Time) {
	for _, i := range s.Incidents {
		if i.RecoveredUnixMs == 0 || i.ResumedStep != 0 {
			continue
		}
		i.ResumedStep = step
		i.ProgressUnixMs = at.UnixMilli()
		i.ProgressAfterMs = i.ProgressUnixMs - i.AtUnixMs
		i.LostSteps = lostSteps(s, i)
	}
	s.Step = step
}

// lostSteps is how many of the steps that were made before a loss are made again. A job
// that goes back begins with its newest complete checkpoint: the first step that it
// tells of may be much later. It goes back if it says so, or where the model went with
// the task, as with a parameter server.
func lostSteps(s *proto.JobStatus, i *proto.Incident) int64 {
	if i.ResumedStep > i.Step && !i.RolledBack {
		return 0
	}
	whole := s.CompleteStep // which may have been sealed a moment after the loss
	if whole > i.Step {
		whole = i.CompleteStep
	}
	return max(0, i.Step-whole)
}
