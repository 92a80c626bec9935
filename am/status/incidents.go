package status

import (
	"time"

	"holdfast/am/core"
	"holdfast/am/core/action"
	"holdfast/proto"
)

// maxIncidents bounds the list of incidents; the oldest are dropped.
const maxIncidents = 500

// recordIncidents opens an incident for each loss among events, and completes those of
// tasks that have recovered.
func recordIncidents(s *proto.JobStatus, totals *Totals, job *core.Job, events []*proto.JobEvent) {
	for _, e := range events {
		if e.Kind == action.KindResized {
			completeParked(s, totals, job, e)
		}
		if e.Kind != action.KindLost && e.Kind != action.KindRecovered {
			continue
		}
		t, ok := job.Task(e.Task)
		if !ok {
			continue
		}
		if e.Kind == action.KindRecovered {
			completeIncidents(s, totals, t, e)
			continue
		}
		i := &proto.Incident{
			AtUnixMs: e.AtUnixMs - e.SinceLossMs, Task: e.Task, Attempt: int32(t.Attempt), Cause: t.Cause.String(), Evidence: t.Why,
			Step: reached(s), CompleteStep: s.CompleteStep, RolledBack: rollsBack(t), TasksBefore: working(s, t),
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

// recordStep takes in that a task has made a step, and when, which may have been long before it
// is told. It completes the incidents whose tasks were back by then with their cost: how long
// the job made no progress, and how many steps it repeats. A step that was made before is lost as
// well, if the model's state is.
func recordStep(s *proto.JobStatus, totals *Totals, t *proto.TaskStatus, step int64, made time.Time) {
	at := made.UnixMilli()
	if i := wentBackAfter(s, t, step, at); i != nil {
		i.RolledBack, i.Step = true, max(i.Step, reached(s))
		if i.ResumedStep != 0 { // others had gone on
			resume(s, i, step, at)
			totals.RepeatedSteps += uint64(i.LostSteps)
		}
	}
	for _, i := range s.Incidents {
		switch {
		case i.ResumedStep != 0:
		case madeAfter(i, t, at):
			resume(s, i, step, at)
			totals.progressed(i)
		case i.RolledBack:
			i.Step = max(i.Step, step)
		}
	}
	s.Step = step
	t.Step, t.StepAtUnixMs = step, at
	stepOfGeneration(s, step, made)
}

// madeAfter reports whether a step that a task t made at a time was made when the task of an
// incident was back, or the others went on without it. That task's own attempts tell it also
// while its start has not been heard of.
func madeAfter(i *proto.Incident, t *proto.TaskStatus, at int64) bool {
	if t.Task == i.Task {
		return t.Attempt > i.Attempt
	}
	return i.RecoveredUnixMs != 0 && at > i.RecoveredUnixMs
}

// resume records in an incident with which step the job has gone on.
func resume(s *proto.JobStatus, i *proto.Incident, step, at int64) {
	i.ResumedStep = step
	i.ProgressUnixMs = at
	i.ProgressAfterMs = i.ProgressUnixMs - i.AtUnixMs
	i.LostSteps = lostSteps(s, i)
}

// wentBackAfter returns the incident of a task that has put a checkpoint in the place of the
// model's state when it was back, as a step of a task t shows; nil if it shows none, or what is
// known.
//
// Which task restores a checkpoint is not known here: where parameter servers have run on, only
// the chief does. But no task makes steps again that it has made, unless the job has gone back.
// Steps of different tasks are not compared, as each may count its own. Once the task that was
// back has made a step, it restores nothing any more.
func wentBackAfter(s *proto.JobStatus, t *proto.TaskStatus, step, at int64) *proto.Incident {
	if step > t.Step {
		return nil
	}
	var found *proto.Incident
	for _, i := range s.Incidents {
		switch own := i.Task == t.Task; {
		case !madeAfter(i, t, at):
		case i.RolledBack:
			if i.ResumedStep == 0 || t.StepAtUnixMs <= i.ProgressUnixMs {
				return nil // it was known: t had not made a step since
			}
		case step == t.Step && !own: // told again
		case !mayRestore(s, i):
		case found == nil || own:
			found = i
		}
	}
	return found
}

// mayRestore reports whether the task of an incident is one that makes steps, and has made none
// since it was back.
func mayRestore(s *proto.JobStatus, i *proto.Incident) bool {
	for _, t := range s.Tasks {
		if t.Task == i.Task {
			return t.Step != 0 && (i.RecoveredUnixMs == 0 || t.StepAtUnixMs <= i.RecoveredUnixMs)
		}
	}
	return false
}

// reached returns the highest step that the job has made, as far as it has not gone back since.
func reached(s *proto.JobStatus) int64 {
	var back int64
	for _, i := range s.Incidents {
		if i.RolledBack {
			back = max(back, i.ProgressUnixMs)
		}
	}
	var highest int64
	for _, t := range s.Tasks {
		if t.StepAtUnixMs >= back {
			highest = max(highest, t.Step)
		}
	}
	if highest == 0 {
		return s.Step
	}
	return highest
}

// lostSteps returns how many steps from before a loss are repeated. A job that rolls back
// continues from its newest complete checkpoint; the first step that it reports may be
// much later than that.
func lostSteps(s *proto.JobStatus, i *proto.Incident) int64 {
	if !i.RolledBack {
		return 0
	}
	complete := s.CompleteStep // which may have been sealed a moment after the loss
	if complete > i.Step || complete > i.ResumedStep {
		complete = i.CompleteStep // or when the job had gone on
	}
	return max(0, i.Step-complete)
}
