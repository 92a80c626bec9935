package core_test

import (
	"slices"
	"strings"
	"time"

	"holdfast/am/core"
	"holdfast/am/core/action"
	"holdfast/proto"
)

// check looks at what must hold after each step.
func (s *sim) check() {
	known := map[string]bool{}
	for _, c := range slices.Concat(s.job.Containers(), s.job.Journal().Containers()) {
		known[c] = true
	}
	for _, b := range s.boxes {
		switch {
		case b.ended || known[b.id] || b.excused && !b.connected || s.now.Before(s.held): // a connected agent can be released, once it can be told
			b.astray = time.Time{}
		case b.astray.IsZero():
			b.astray = s.now
		case s.now.Sub(b.astray) > 30*time.Second:
			s.fail("container %s is left, and the job does not know of it", b.id)
		}
	}
	if err := s.job.CheckInvariants(); err != nil {
		s.fail("%v", err)
	}
	if task := s.job.Overlooked(); task != "" {
		s.fail("%s has been overlooked", task)
	}
	if n := s.job.IdleSpares(); n > s.spares {
		s.fail("there are %d spares, and %d are wanted", n, s.spares)
	}
	for _, t := range s.job.Tasks() {
		if t.Failures() > s.faults[t.Name] {
			s.fail("%s is charged with %d failures, and was at fault %d times", t.Name, t.Failures(), s.faults[t.Name])
		}
		if n := s.missed[t.Name]; !s.forgotten && n > s.restarts+s.losses+2 {
			s.fail("%s was lost %d times, and may fail %d times and lose its container %d times", t.Name, n, s.restarts, s.losses)
		}
	}
}

// unneeded is what the event log says of a loss that is not counted.
const unneeded = "not counted, since the job can do without it"

// checkUnneeded checks what a loss counts for of a task without which the others work.
func (s *sim) checkUnneeded(a action.Record) {
	name, _, ends := strings.Cut(strings.TrimPrefix(a.Text, "the job is stopped: "), " lost its container ")
	ends = ends && a.Kind == action.KindEnded
	if !ends {
		name = a.Task
	}
	t, is := s.before[name]
	if !is {
		return
	}
	fit := func(o core.Task) bool {
		return slices.Contains([]proto.TaskState{proto.TaskState_TASK_STATE_RUNNING, proto.TaskState_TASK_STATE_READY, proto.TaskState_TASK_STATE_RESTARTING}, o.State)
	}
	works, there := int32(0), int32(0) // others of its role, before the step, and before or after it
	for _, after := range s.job.Tasks() {
		o := s.before[after.Name]
		if o.Role != t.Role || o.Name == name {
			continue
		}
		if o.State == proto.TaskState_TASK_STATE_RUNNING && !o.Parked && o.AgentPID != 0 { // else it may be lost, too
			works++
		}
		if fit(o) || fit(after) {
			there++
		}
	}
	idle := t.State != proto.TaskState_TASK_STATE_RUNNING
	switch can := t.Role.Min > 0 && t.Role.Min < t.Role.Count && t.Role.Completion != proto.CompletionRule_COMPLETION_RULE_OPTIONAL; {
	case ends && can && idle && (t.Parked || works >= t.Role.Min && t.Role.Loss != proto.LossRule_LOSS_RULE_ALL):
		s.fail("the job ends by the loss of the container of %s, which it can do without: %s", name, a.Text)
	case a.Kind != action.KindLost:
	case t.Container != "" && t.Parked && s.parked(name): // else the others do not work either, since this step
		s.fail("%s is said to be lost, without which the others work: %s", name, a.Text)
	case strings.Contains(a.Text, unneeded) && !s.listened && (!can || !idle || there < t.Role.Min):
		s.fail("%s is not charged with the loss of its container, and %d others are there: %s", name, there, a.Text)
	}
}

// parked reports whether the others work without a task.
func (s *sim) parked(name string) bool {
	t, _ := s.job.Task(name)
	return t.Parked
}

// exhausted reports whether a task has used up what it may fail or lose. Without
// a journal, the application master that ends the job may not be the one that counted.
func (s *sim) exhausted() bool {
	failed := func(t core.Task) int {
		if s.forgotten {
			return s.faults[t.Name]
		}
		return t.Failures()
	}
	all := 0 // of tasks that restart together, each failure is the job's
	for _, t := range s.job.Tasks() {
		if t.Role.Loss == proto.LossRule_LOSS_RULE_ALL {
			all += failed(t)
		}
	}
	for _, t := range s.job.Tasks() {
		failures := failed(t)
		if t.Role.Completion == proto.CompletionRule_COMPLETION_RULE_OPTIONAL {
			continue // whatever becomes of it
		}
		if t.Role.Loss == proto.LossRule_LOSS_RULE_ALL {
			failures = all
		}
		if failures > s.restarts || s.missed[t.Name] > s.losses {
			return true
		}
	}
	return false
}

// checkOrder checks the numbers of a process that is about to run.
func (s *sim) checkOrder(p *simProcess) {
	before := s.newest[p.task]
	s.newest[p.task] = p
	if s.unsure[p.task] {
		before = nil
	}
	delete(s.unsure, p.task)
	together := s.together(p.task)
	if before != nil && before.attempt >= p.attempt {
		s.fail("attempt %d of %s runs after attempt %d", p.attempt, p.task, before.attempt)
	}
	if before != nil && (before.generation > p.generation || together && before.generation == p.generation) {
		s.fail("%s runs again in generation %d, after %d", p.task, p.generation, before.generation)
	}
	for _, o := range s.alive {
		if together && o.generation != p.generation && s.together(o.task) && !s.fenced[o.box.id] {
			s.fail("%s runs in generation %d, and %s in %d", p.task, p.generation, o.task, o.generation)
		}
	}
}

// together reports whether a task restarts with others.
func (s *sim) together(task string) bool {
	return s.roles[0].Loss == proto.LossRule_LOSS_RULE_ALL && !strings.HasPrefix(task, "evaluator")
}
