package status

import (
	"time"

	"holdfast/am/core"
	"holdfast/proto"
)

// maxIncidents bounds the list of incidents; the oldest are dropped.
const maxIncidents = 500

// recordIncidents opens an incident for each loss among events, and completes those of
// tasks that have recovered.
func recordIncidents(s *proto.JobStatus, totals *Totals, job *core.Job, events []*proto.JobEvent) {
	for _, e := range events {
		if e.Kind == core.KindResized {
			completeParked(s, totals, job, e)
		}
		if e.Kind != core.KindLost && e.Kind != core.KindRecovered {
			continue
		}
		t, ok := job.Task(e.Task)
		if !ok {
			continue
		}
		if e.Kind == core.KindRecovered {
			completeIncidents(s, totals, t, e)
			continue
		}
		i := &proto.Incident{
			AtUnixMs: e.AtUnixMs - e.SinceLossMs, Task: e.Task, Attempt: int32(t.Attempt), Cause: t.Cause.String(), Evidence: t.Why,
			Step: s.Step, CompleteStep: s.CompleteStep, RolledBack: rollsBack(t), TasksBefore: working(s, t),
		}
		if t.Ordinal < len(s.Tasks) { // as it was shown before
			i.Container, i.Node = s.Tasks[t.Ordinal].Container, s.Tasks[t.Ordinal].Node
		}
		s.Incidents = append(s.Incidents, i)
		totals.lost(i)
		if n := len(s.Incidents) - maxIncidents; n > 0 {
			s.Incidents = s.Incidents[n:]
		}
	}
}

// rollsBack reports whether the loss of a task loses the model's state with it.
func rollsBack(t core.Task) bool {
	return t.Role.Loss == proto.LossRule_LOSS_RULE_ALL || t.Role.Completion == proto.CompletionRule_COMPLETION_RULE_SERVICE && !t.Role.Coordinates
}

// completeParked records in the open incidents of tasks without which the job goes on
// that it does.
func completeParked(s *proto.JobStatus, totals *Totals, job *core.Job, resized *proto.JobEvent) {
	for _, i := range s.Incidents {
		if t, ok := job.Task(i.Task); ok && t.Parked && i.RecoveredUnixMs == 0 {
			i.RecoveredUnixMs, i.RecoveredAfterMs = resized.AtUnixMs, resized.AtUnixMs-i.AtUnixMs
			i.Recovery = "the others go on without it"
			totals.recovered(i)
		}
	}
}

// completeIncidents records in the open incidents of a task how it recovered.
func completeIncidents(s *proto.JobStatus, totals *Totals, t core.Task, back *proto.JobEvent) {
	for _, i := range s.Incidents {
		if i.Task != t.Name || i.RecoveredUnixMs != 0 {
			continue
		}
		i.RecoveredUnixMs, i.RecoveredAfterMs = back.AtUnixMs, back.AtUnixMs-i.AtUnixMs
		i.Recovery = "in place"
		if i.Container != t.Container {
			i.Recovery = "in another container, on " + t.Node
		}
		totals.recovered(i)
	}
}

// recordStep takes in a step that a task has made. It completes the incidents whose tasks
// have recovered with their cost: how long the job made no progress, and how many steps
// it repeats. A step that is reported before its task has recovered is lost as well, if the
// model's state is.
func recordStep(s *proto.JobStatus, totals *Totals, step int64, at time.Time) {
	for _, i := range s.Incidents {
		if i.RecoveredUnixMs == 0 && i.RolledBack {
			i.Step = max(i.Step, step)
		}
		if i.RecoveredUnixMs == 0 || i.ResumedStep != 0 {
			continue
		}
		i.ResumedStep = step
		i.ProgressUnixMs = at.UnixMilli()
		i.ProgressAfterMs = i.ProgressUnixMs - i.AtUnixMs
		i.LostSteps = lostSteps(s, i)
		totals.progressed(i)
	}
	s.Step = step
	stepOfGeneration(s, step, at)
}

// lostSteps returns how many steps from before a loss are repeated. A job that rolls back
// continues from its newest complete checkpoint; the first step that it reports may be
// much later than that. It has rolled back if it reports an earlier step than before the
// loss, or if the model's state was lost with the task, as with a parameter server.
func lostSteps(s *proto.JobStatus, i *proto.Incident) int64 {
	if i.ResumedStep > i.Step && !i.RolledBack {
		return 0
	}
	complete := s.CompleteStep // which may have been sealed a moment after the loss
	if complete > i.Step {
		complete = i.CompleteStep
	}
	return max(0, i.Step-complete)
}
