package core_test

import (
	"maps"
	"slices"
	"strings"
	"time"

	"holdfast/am/core/event"
	"holdfast/am/core/journal"
	"holdfast/am/core/pace"
)

// hang has the job make no steps any longer, if it is known by now how it makes them:
// until a process is replaced, or all are, or for ever.
func (s *sim) hang(p *simProcess) {
	if !paced(s.saved) || s.stuck() || p.lingers {
		return
	}
	s.doomed = s.r.IntN(6) == 0
	polls := s.r.IntN(2) == 0
	all := s.r.IntN(2) == 0
	s.log("%s hangs; all: %v, for ever: %v", p.task, all, s.doomed)
	for _, o := range s.alive {
		o.hangs = (all || o == p) && !o.lingers
		o.polls = o.hangs && polls
	}
}

// hanging reports whether no steps will be made again without a restart.
func (s *sim) hanging() bool {
	hanging := s.doomed
	for _, p := range s.alive {
		hanging = hanging || p.hangs
	}
	return hanging
}

// exporting reports whether no steps are made because a process does something else.
func (s *sim) exporting() bool {
	return s.exports != nil && s.alive[s.exports.task] == s.exports && s.now.Before(s.exported)
}

// stuck reports whether no steps can be made.
func (s *sim) stuck() bool {
	stuck := s.hanging() || s.exporting()
	if stuck {
		s.stuckAt = s.now
	}
	return stuck
}

// export has the job make no steps while a process works on something else, for less than
// the time that busy tasks get.
func (s *sim) export(p *simProcess) {
	if !paced(s.saved) || s.stuck() || !makesSteps(p.task) || p.lingers {
		return
	}
	s.exports, s.exported = p, s.now.Add(s.upTo(100*time.Second))
	s.log("%s exports until %s", p.task, s.exported)
}

// makesSteps reports whether a task is one that makes steps.
func makesSteps(task string) bool {
	return !strings.HasPrefix(task, "ps") && !strings.HasPrefix(task, "evaluator")
}

// reportUsage tells what processes have used.
func (s *sim) reportUsage() {
	const every = 10 * time.Second
	if s.finish != nil {
		return
	}
	s.after(every, s.reportUsage)
	var e event.StepsReported
	for _, task := range slices.Sorted(maps.Keys(s.alive)) {
		p := s.alive[task]
		if !s.hanging() && !s.exporting() && !p.lingers || p.polls || s.exporting() && p == s.exports {
			p.cpu += min(every, s.now.Sub(p.started))
		}
		if p.box.connected && p.box.master == s.epoch {
			p.reports++
			e.Usage = append(e.Usage, pace.Usage{Task: task, CPU: p.cpu})
		}
	}
	if len(e.Usage) > 0 {
		s.tellAM(20*time.Millisecond, e)
	}
}

// makeSteps tells of steps, as long as some are made.
func (s *sim) makeSteps() {
	if s.finish != nil {
		return
	}
	s.after(stepEvery, s.makeSteps)
	if s.quiet && s.seed%2 == 0 {
		s.mute = false // after all
	}
	if s.stuck() || s.down || s.mute {
		return
	}
	s.steps++
	var e event.StepsReported
	for _, task := range slices.Sorted(maps.Keys(s.alive)) {
		if makesSteps(task) && !s.alive[task].lingers {
			s.alive[task].steps = s.steps
			e.Steps = append(e.Steps, event.Step{Task: task, Step: s.steps})
		}
	}
	if len(e.Steps) > 0 {
		s.tellAM(20*time.Millisecond, e)
	}
}

// simStall is Limits.Stall in simulated jobs.
const simStall = 40 * time.Second

// checkQuiet checks that the event log says of a job that tells of no steps that it does not.
func (s *sim) checkQuiet() {
	switch {
	case !s.mute:
	case !s.job.Complete():
		s.whole = time.Time{}
	case s.whole.IsZero():
		s.whole = s.now
	case !s.quiet && s.now.Sub(s.whole) > pace.Leniency*simStall:
		s.fail("no step was told of for %s, and the event log does not say so", s.now.Sub(s.whole))
	}
}

// paced reports whether a journal has enough of the job's steps to do something about a stall.
func paced(r journal.Journal) bool {
	made := slices.ContainsFunc(r.Tasks, func(k journal.TaskRecord) bool { return k.Step != 0 })
	return r.Pace != nil && (r.Pace.Assumed && made || r.Pace.Pauses >= pace.Enough)
}
