package am

import (
	"fmt"
	"time"

	"holdfast/am/core"
	"holdfast/proto"
)

// incidentLimit bounds how many incidents are kept; of more, the oldest go.
const incidentLimit = 500

// recordIncidents writes down losses and returns.
func recordIncidents(s *proto.JobStatus, job *core.Job, moments []*proto.Moment) {
	for _, m := range moments {
		if m.Kind != core.KindLost && m.Kind != core.KindBack {
			continue
		}
		t := taskOf(job, m.Task)
		if t == nil {
			continue
		}
		if m.Kind == core.KindBack {
			closeIncidents(s, t, m)
			continue
		}
		i := &proto.Incident{
			AtUnixMs: m.AtUnixMs, Task: m.Task, Attempt: int32(t.Attempt), Cause: t.Cause.String(), Evidence: t.Why,
			Step: s.Step, WholeStep: s.WholeStep,
		}
		for _, k := range s.Tasks { // as it was shown before
			if k.Task == m.Task {
				i.Container, i.Node = k.Container, k.Node
			}
		}
		s.Incidents = append(s.Incidents, i)
		if n := len(s.Incidents) - incidentLimit; n > 0 {
			s.Incidents = s.Incidents[n:]
		}
	}
}

// closeIncidents says of a task's losses how it came back.
func closeIncidents(s *proto.JobStatus, t *core.Task, back *proto.Moment) {
	for _, i := range s.Incidents {
		if i.Task != t.Name || i.BackUnixMs != 0 {
			continue
		}
		i.BackUnixMs, i.TookMs = back.AtUnixMs, back.AtUnixMs-i.AtUnixMs
		i.How = "in place"
		if i.Container != t.Container {
			i.How = "in another container, on " + t.Node
		}
	}
}

func taskOf(job *core.Job, name string) *core.Task {
	for _, t := range job.Tasks() {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// recordStep takes in a step that a task has made, and says of the incidents
// that are over what they cost.
func recordStep(s *proto.JobStatus, step int64) {
	for _, i := range s.Incidents {
		if i.BackUnixMs != 0 && i.ResumedStep == 0 {
			i.ResumedStep = step
			i.LostSteps = max(0, i.Step-step)
		}
	}
	s.Step = step
}

const (
	// stallFactor is by how much a pause must be longer than the longest one of
	// late to be called a stall, and stallLeast how long it must be at least:
	// saving, evaluating and compiling take their time.
	stallFactor = 10
	stallLeast  = 2 * time.Minute
	pauseMemory = 50 // pauses that count as of late
)

// watch follows the steps of a job. It is not safe for concurrent use.
type watch struct {
	steps  map[string]int64
	moved  map[string]time.Time // when a task made its last step
	pauses []time.Duration      // between steps of the job
	last   time.Time            // when a step was made; zero: none since the job was last whole
	rate   float64              // steps a second
	from   time.Time            // since when the rate is counted
	base   int64                // and from which step
	stall  bool
}

func newWatch() *watch { return &watch{steps: map[string]int64{}, moved: map[string]time.Time{}} }

// heard takes in the step that a task tells; it returns whether that is a new one.
func (w *watch) heard(now time.Time, task string, step int64) bool {
	if step == 0 || w.steps[task] == step {
		return false
	}
	w.steps[task], w.moved[task] = step, now
	if !w.last.IsZero() {
		w.pauses = append(w.pauses, now.Sub(w.last))
		w.pauses = w.pauses[max(0, len(w.pauses)-pauseMemory):]
	}
	w.last = now
	if w.from.IsZero() || step < w.base || now.Sub(w.from) > time.Minute {
		w.from, w.base = now, step
	} else if d := now.Sub(w.from).Seconds(); d >= 1 {
		w.rate = float64(step-w.base) / d
	}
	return true
}

// interrupted says that not all tasks run: then no step is due.
func (w *watch) interrupted() { w.last, w.from = time.Time{}, time.Time{} }

// look tells of the beginning or the end of a stall; "" if there is nothing new.
func (w *watch) look(now time.Time) string {
	limit := stallLeast
	for _, p := range w.pauses {
		limit = max(limit, stallFactor*p)
	}
	stalled := !w.last.IsZero() && len(w.pauses) > 0 && now.Sub(w.last) > limit
	switch {
	case stalled == w.stall:
		return ""
	case !stalled:
		w.stall = false
		return "steps are made again"
	}
	w.stall = true
	quietest, since := "", now
	for task, at := range w.moved {
		if at.Before(since) || at.Equal(since) && task < quietest {
			quietest, since = task, at
		}
	}
	return fmt.Sprintf("no task has made a step for %s, more than %d times the longest pause of late; the longest silent is %s, since step %d, %s ago",
		now.Sub(w.last).Round(time.Second), stallFactor, quietest, w.steps[quietest], now.Sub(since).Round(time.Second))
}
