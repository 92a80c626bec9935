package core

import (
	"fmt"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/pace"
	"holdfast/proto"
)

// A task that is slower than the others of its role for a while is a straggler: the event log
// says so, and where the job wants that, the task is moved to another node as off one that
// closes (moving.go). How tasks are compared is decided in package pace. A task that no node
// makes faster is moved no more often than the job allows.

// speed is how fast an attempt is. The zero value: nothing is known.
type speed struct {
	counts pace.Counts
	known  pace.Speed // by the last of them
	slow   time.Time  // when it was found slower than the others, and not otherwise since; zero: it was not
	well   time.Time  // since when a straggler is as fast as the others again; zero: it is not
	since  time.Time  // since when it is slower, and was told of as a straggler; zero: it is none
}

// CountInterval is how often StepsReported is to have what tasks have done; 0: never.
func (j *Job) CountInterval() time.Duration {
	return max(0, j.limits.StragglerTime) / pace.CountsWithin
}

// takeCounts takes in what the tasks that run have done, and looks which are stragglers.
func (j *Job) takeCounts(counts []pace.Count) {
	if len(counts) == 0 || j.limits.StragglerTime < 0 {
		return
	}
	counted := make(map[*task]bool, len(counts))
	for _, c := range counts {
		if t := j.named[c.Task]; t != nil && t.state == running {
			t.run.speed.counts.Take(c)
			counted[t] = true
		}
	}
	for first := 0; first < len(j.tasks); {
		n := 1
		for first+n < len(j.tasks) && j.tasks[first+n].role == j.tasks[first].role {
			n++
		}
		j.compare(j.tasks[first:first+n], counted)
		first += n
	}
}

// compare compares the tasks of a role.
func (j *Job) compare(tasks []*task, counted map[*task]bool) {
	counts := make([]*pace.Counts, len(tasks))
	for i, t := range tasks {
		if counted[t] {
			counts[i] = &t.run.speed.counts
		} else {
			t.run.speed = speed{}
			j.endSlow(t)
		}
	}
	how := pace.Role{Shared: len(j.services) > 0 && !tasks[0].together(), Waits: tasks[0].together()}
	for i, s := range how.Compare(counts) {
		if counts[i] != nil {
			tasks[i].run.speed.known = s
			j.judgeSpeed(tasks[i])
		}
	}
}

// judgeSpeed takes in how fast a task is in comparison.
func (j *Job) judgeSpeed(t *task) {
	s, limit := &t.run.speed, j.limits.StragglerTime
	switch {
	case s.known.Ratio == 0: // what it does is not known
		s.well = time.Time{}
		if s.known.Counts == 0 || s.known.Time != 0 || s.known.Worked { // nor whether it is slow, for want of others
			s.slow = time.Time{}
		}
	case s.known.Ratio < j.limits.StragglerFactor:
		s.slow = time.Time{}
		if s.well.IsZero() {
			s.well = j.now
		}
		if !s.since.IsZero() && j.now.Sub(s.well) >= limit/2 {
			s.since = time.Time{}
			j.endSlow(t)
			j.record(t, action.KindResumed, "it is as fast as the others again: %s", comparison(s.known).Compared())
		}
	default:
		s.well = time.Time{}
		if s.slow.IsZero() {
			s.slow = j.now
		}
		least := max(limit, time.Duration(s.known.Counts)*j.CountInterval())
		if slow := j.now.Sub(s.slow); s.since.IsZero() && slow >= least {
			s.since = s.slow
			j.record(t, action.KindStraggler, "it is slower than the others of the role %s, for %s: %s%s",
				t.role.Name, slow.Round(time.Second), comparison(s.known).Evidence(), j.moveSlow(t))
		}
	}
}

// moveSlow has a straggler move if the job wants that, and says what follows.
func (j *Job) moveSlow(t *task) string {
	switch {
	case j.limits.StragglerMoves == 0:
		return ""
	case t.history.moves >= j.limits.StragglerMoves:
		return fmt.Sprintf("; it was moved %s for that, and stays where it is", times(t.history.moves))
	}
	t.history.moves++
	j.noteTrouble(t.loc.node, t.name+" was slower there than the others", true)
	j.becomeSlow(t)
	return "; it moves to another node"
}

// saveSlow is how long a straggler waits for a checkpoint before it moves, if it restarts
// together with others: all make again what they have made since the last one.
const saveSlow = 10 * time.Minute

// slowMayMove reports whether it is the moment for a straggler to leave, which has a
// stand-in. One that is alone takes nothing of the others with it.
func (j *Job) slowMayMove(t *task) bool {
	return !t.together() || j.justSealed || j.past(j.slowBy(t))
}

// slowBy is when a straggler that restarts with others moves, if no checkpoint is complete
// before.
func (j *Job) slowBy(t *task) time.Time {
	return t.run.speed.since.Add(j.limits.StragglerTime + saveSlow)
}

// stayIfNowhere leaves a straggler where it is if its stand-in is no better: there is no other
// node, or none has room. It reports whether the task stays.
func (j *Job) stayIfNowhere(t *task, s *spare) bool {
	if s == nil || s.node != t.loc.node {
		return false
	}
	j.giveUpSpare(s)
	j.endSlow(t)
	j.record(t, action.KindStraggler, "no other node than %s has room for it; it stays there", t.loc.node)
	return true
}

var measures = [...]string{pace.ByStep: proto.ByStep, pace.ByReport: proto.ByReport, pace.ByWork: proto.ByWork}

// comparison is that of a task with the others of its role, as users see it.
func comparison(s pace.Speed) *proto.Straggler {
	k := &proto.Straggler{By: measures[s.By], Value: s.Time.Seconds(), Median: s.Median}
	if s.By == pace.ByWork {
		k.Value = s.Work
	}
	return k
}

// Straggler is how a straggler is slower than the others; nil if the task is none.
func (t Task) Straggler() *proto.Straggler {
	if t.slowSince.IsZero() {
		return nil
	}
	k := &proto.Straggler{}
	if t.Speed.Ratio != 0 { // else what it does is not known now
		k = comparison(t.Speed)
	}
	k.SinceUnixMs = t.slowSince.UnixMilli()
	return k
}
