package core

import (
	"regexp"
	"slices"
	"time"

	"holdfast/proto"
)

// The failure of tasks that restart together is attributed to one of them. The end of one breaks the
// connections of the others, and the one that failed may take seconds to end while
// the others say at once that a peer has gone: whose end is heard first is no sign of
// who failed. So that is decided once none of them runs any longer, and a generation
// that failed counts as one failure, of the job: it is charged to one task.

// FaultKind is what the end of a task says about its generation's failure. Of two
// kinds, the greater is the stronger sign.
type FaultKind int

// The kinds of faults.
const (
	FaultNone FaultKind = iota
	FaultLost           // it went with its container, or left it: nobody's failure
	FaultPeer           // it ended because of a peer, it says
	FaultLate           // it failed after it had been told to stop
	FaultOwn            // it failed
)

// Fault is such an end, until it is attributed.
type Fault struct {
	Kind FaultKind `json:"kind"`
	AtMS int64     `json:"at,omitempty"` // Unix milliseconds, by the clock of its node
}

// together tells whether the task restarts with all others of its kind.
func (t *Task) together() bool { return t.Role.Loss == proto.LossRule_LOSS_RULE_ALL }

// noteFault notes what the end of an attempt says of a generation's failure; the
// strongest sign counts.
func (j *Job) noteFault(t *Task, kind FaultKind, atMS int64) {
	if !t.together() || kind <= t.fault.Kind {
		return
	}
	if atMS == 0 {
		atMS = j.now.UnixMilli()
	}
	if t.fault.Kind == FaultNone {
		j.openFaults++
	}
	t.fault = Fault{kind, atMS}
}

// terminated is the exit code of a program that ends itself properly by SIGTERM.
const terminated = 128 + 15

// failedStopping tells whether an attempt that was to be stopped had failed itself:
// before that, or while it had time to end.
func failedStopping(e TaskExited) bool {
	switch {
	case e.PeerLost || e.Code == terminated:
		return false
	case e.Stopped && e.Signal != 0: // with which it is stopped; it may have said already what is wrong
		return e.Error != ""
	}
	return e.Code != 0 || e.Signal != 0
}

// endedStopping takes in the end of a task of a generation that is being stopped.
func (j *Job) endedStopping(t *Task, e TaskExited) {
	switch {
	case !failedStopping(e):
		if e.PeerLost && !e.Stopped {
			j.noteFault(t, FaultPeer, e.AtMS)
		}
		return
	case e.Stopped:
		j.noteFault(t, FaultLate, e.AtMS)
	default:
		j.noteFault(t, FaultOwn, e.AtMS)
	}
	t.Tail, t.Why = e.Tail, describeExit(e)
	t.failing = e
	if e.Stopped {
		return
	}
	j.lost(t, exitCause(e))
	if e.OutOfMemory && !j.ending() {
		j.moveToGrow(t)
	}
}

// attributeFailure decides whose failure it was that the generation ended, once none of its
// tasks runs any longer: of those who failed by themselves, of the one that did first.
// Where a container was lost, that is the reason if nobody failed before it was told
// to stop. It tells whether it was decided.
func (j *Job) attributeFailure() bool {
	if j.openFaults == 0 || j.any(func(t *Task) bool { return t.together() && t.State == proto.TaskState_TASK_STATE_RUNNING }) {
		return false
	}
	var first *Task
	lost := j.oustedLately()
	for _, t := range j.tasks {
		switch k := t.fault.Kind; {
		case k == FaultNone:
		case k == FaultLost:
			lost = true
		case first == nil || k > first.fault.Kind || k == first.fault.Kind && t.fault.AtMS < first.fault.AtMS:
			first = t
		}
	}
	if first != nil && (first.fault.Kind == FaultOwn || !lost) {
		if first.fault.Kind == FaultLate { // else it was told
			j.lost(first, CauseOwnFault)
		}
		j.countFailure(first)
	}
	j.clearFaults()
	return true
}

// clearFaults forgets all that was noted until the failure is attributed.
func (j *Job) clearFaults() {
	for _, t := range j.tasks {
		t.fault = Fault{}
	}
	j.openFaults = 0
}

// failuresWith are the failures that count with a task's: its own, and where all
// restart together, everybody's. Each generation's failure is one task's.
func (j *Job) failuresWith(t *Task) []time.Time {
	if !t.together() {
		return t.failures
	}
	var all []time.Time
	for _, o := range j.tasks {
		if o.together() {
			all = append(all, o.failures...)
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return all
}

// early is what is known of the failures of a task, or of tasks that restart together,
// that have all come before the first step, and soon.
type early struct {
	Error string `json:"error,omitempty"` // the same each time
	Times int    `json:"times,omitempty"`
	Over  bool   `json:"over,omitempty"` // one came later, or was another: this is looked at no longer
}

// earlyOf is what counts for a task.
func (j *Job) earlyOf(t *Task) *early {
	if t.together() {
		return &j.early
	}
	return &t.early
}

// failsAlike takes in a failure that is charged to a task, and tells whether no attempt will
// do better: it has failed twice, and each time soon, before it made a step, and in the
// same way.
func (j *Job) failsAlike(t *Task) bool {
	e, how := j.earlyOf(t), likeness(t.failing)
	stepped := j.any(func(o *Task) bool { return o.step != 0 && (o == t || o.together() && t.together()) })
	if how == "" || stepped || t.started.IsZero() || j.now.Sub(t.started) >= j.limits.Calm || e.Times > 0 && e.Error != how {
		e.Over = true
	}
	e.Error, e.Times = how, e.Times+1
	return !e.Over && e.Times > 1
}

// numbers differ between attempts that fail in the same way: addresses, times, processes.
var numbers = regexp.MustCompile(`0x[0-9a-fA-F]+|[0-9]+`)

// likeness is what ends of attempts have in common that fail in the same way; empty: it
// is not known how this one failed.
func likeness(e TaskExited) string {
	text := e.Error
	if text == "" && e.Code > 0 && len(e.Tail) > 0 {
		text = e.Tail[len(e.Tail)-1]
	}
	return numbers.ReplaceAllString(text, "#")
}
