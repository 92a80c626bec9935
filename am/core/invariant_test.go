package core

import (
	"fmt"
	"testing"
	"time"

	"holdfast/am/core/event"
	"holdfast/am/core/journal"
	"holdfast/proto"
)

// CheckInvariants returns the first thing about the job's state that cannot be after a
// step: a field that is set in a state or phase that it does not belong to (doc.go), or
// an index that does not fit.
func (j *Job) CheckInvariants() error {
	if (j.phase == reconciling) != (j.reports != nil) {
		return fmt.Errorf("the job is in phase %d, with reconciliation %v", j.phase, j.reports)
	}
	if j.phase != assembling && j.gang != (gangStart{}) {
		return fmt.Errorf("the job waits for a gang start in phase %d", j.phase)
	}
	if (j.phase == jobStopping || j.phase == releasing) != !j.phaseEnds.IsZero() {
		return fmt.Errorf("phase %d ends at %v", j.phase, j.phaseEnds)
	}
	if waitsFor := j.any(func(t *task) bool {
		return t.loc.agentPID != 0 && (j.phase == releasing || t.state == stopping) || t.state == finishing
	}); !waitsFor && (j.phase == jobStopping || j.phase == releasing) {
		return fmt.Errorf("the job is in phase %d and waits until %v for nobody", j.phase, j.phaseEnds)
	}
	hosted, asked, orphans, faults := 0, 0, 0, 0
	for _, t := range j.tasks {
		if what := j.misplaced(t); what != "" {
			return fmt.Errorf("%s is in state %d and has %s: %+v", t.name, t.state, what, *t)
		}
		if t.loc.container != "" {
			hosted++
		}
		if t.request != "" {
			asked++
		}
		if t.loc.orphan != nil {
			orphans++
		}
		if t.loss.fault.Kind != journal.FaultNone {
			faults++
		}
	}
	if hosted != len(j.hosted) || asked != len(j.asked) || orphans != j.orphans || faults != j.openFaults {
		return fmt.Errorf("%d, %d, %d, %d tasks are hosted, asked for, orphans, with faults; the job counts %d, %d, %d, %d",
			hosted, asked, orphans, faults, len(j.hosted), len(j.asked), j.orphans, j.openFaults)
	}
	if j.unexplained != nil && j.phase == jobRunning {
		return fmt.Errorf("generation %d runs, and nothing was said of why", j.generation)
	}
	return nil
}

// misplaced names what a task has that does not belong to its state; "" if there is
// nothing.
func (j *Job) misplaced(t *task) string {
	s, at := t.state, t.loc
	placed := at.container != ""
	ended := s.done() || s == stopped
	due := s == launching || s == preparing || t.unreachable()
	switch {
	case placed && (s == waiting || s == surplus || j.hosted[at.container] != t):
		return "a container"
	case !placed && s != waiting && s != surplus && !ended:
		return "no container"
	case !placed && at != location{}:
		return "part of a location"
	case (t.request != "") != (s == waiting) && j.phase != reconciling && j.phase != finished:
		return "a request, or none"
	case t.request != "" && j.asked[t.request] != t:
		return "a request that is not known"
	case s == launching && (at.agentPID != 0 || at.port != 0):
		return "an agent"
	case t.unreachable() && at.agentPID != 0:
		return "an agent that is unreachable"
	case at.deadline.IsZero() == due && !j.ending():
		return "a deadline, or none"
	case !at.told.asked.IsZero() && !(s == running || t.awaitsPort() || s == succeeded || j.ending()):
		return "something told"
	case at.told.asked.IsZero() && !t.unreachable() && (t.awaitsPort() || s == running && t.run.pid == 0) && !j.ending():
		return "nothing told that is to be answered"
	case !at.told.asked.IsZero() && at.told.until.IsZero() != (t.unreachable() || j.unsent(at.told.asked)):
		return "a time to answer, or none"
	case t.run.pid != 0 && !s.active():
		return "a process"
	case t.run.pid != 0 && !t.loss.since.IsZero():
		return "a process, and is not back"
	case (t.run.stop != stop{}) != (s == stopping):
		return "a stop, or none"
	case s == stopping && t.run.stop.until.IsZero() != (t.unreachable() || j.phase == reconciling || j.unsent(t.run.stop.asked)):
		return "a time by which it must have ended, or none"
	case t.run.stop.cause != event.CauseUnknown && !t.leavesNow():
		return "a cause to leave"
	case t.run.finishBy.IsZero() == (s == finishing):
		return "a time to finish, or none"
	case s == finishing && !j.ending():
		return "time to finish"
	case s.active() && (t.loss.blamesPeer || t.loss.suspectsServices || t.notBefore.After(j.now)):
		return "what belongs to a loss"
	case at.leave.by.IsZero() && at.leave != leaveOrder{}:
		return "half an order to leave"
	case s == surplus && !t.surplus && j.phase != reconciling:
		return "no reason to be surplus"
	case j.isParked(t) && t.loss.since != time.Time{}:
		return "a loss, and the others work without it"
	case (s == succeeded || s == surplus) && t.loss.since != time.Time{}:
		return "a loss"
	}
	return ""
}

// TestEveryStateIsShown: as one of those that users know, and as running if there is an
// attempt.
func TestEveryStateIsShown(t *testing.T) {
	for s := waiting; s <= stopped; s++ {
		shown := s.shown()
		if shown == proto.TaskState_TASK_STATE_UNSPECIFIED || s.active() != (shown == proto.TaskState_TASK_STATE_RUNNING) {
			t.Errorf("state %d is shown as %s", s, shown)
		}
	}
}
