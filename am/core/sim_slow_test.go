package core_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"holdfast/am/core"
	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/core/pace"
)

// simSlow makes tasks of a simulated job slow, and tells the application master what all have
// done. What must hold: who is named as a straggler was slow for as long as is stated, and is
// moved no more often than the job allows.
type simSlow struct {
	s     *sim
	r     *rand.Rand // its own: what goes wrong in other jobs does not depend on it
	on    bool
	is    map[string]bool      // tasks that are slow
	since map[string]time.Time // task -> when it became slow, short pauses aside
	where map[string]string    // and on which node it is; empty: on any
	ended map[string]time.Time // when it was slow last
	moved map[string]int
}

// slowFor is Limits.StragglerTime in simulated jobs, and slowMoves their StragglerMoves.
const (
	slowFor   = 8 * time.Second
	slowMoves = 1
)

func newSimSlow(s *sim) *simSlow {
	return &simSlow{s: s, r: rand.New(rand.NewPCG(s.seed, 3)), on: s.seed%4 == 3,
		is: map[string]bool{}, since: map[string]time.Time{}, where: map[string]string{}, ended: map[string]time.Time{}, moved: map[string]int{}}
}

// limits adds what the job allows.
func (m *simSlow) limits(l core.Limits) core.Limits {
	l.StragglerTime = -1
	if m.on {
		l.StragglerTime, l.StragglerMoves = slowFor, slowMoves
	}
	return l
}

// begin has tasks become slow, and counts what they do.
func (m *simSlow) begin() {
	if m.on {
		m.s.after(time.Duration(m.r.Int64N(int64(10*time.Second))), m.fault)
		m.s.after(slowFor/pace.CountsWithin, m.report)
	}
}

// fault makes a task slow where it is, or anywhere, for a while.
func (m *simSlow) fault() {
	s := m.s
	if !s.now.Before(s.calm) || s.finish != nil {
		return
	}
	s.after(time.Duration(m.r.Int64N(int64(20*time.Second))), m.fault)
	tasks := slices.DeleteFunc(slices.Sorted(maps.Keys(s.alive)), func(t string) bool { return !makesSteps(t) })
	if len(tasks) == 0 {
		return
	}
	task := tasks[m.r.IntN(len(tasks))]
	if m.is[task] {
		return
	}
	m.is[task], m.where[task] = true, ""
	if s.now.Sub(m.ended[task]) > slowFor {
		m.since[task] = s.now
	}
	if m.r.IntN(3) > 0 {
		m.where[task] = s.alive[task].box.node
	}
	s.log("%s is slow on node %q", task, m.where[task])
	s.after(time.Duration(m.r.Int64N(int64(2*time.Minute))), func() {
		m.slow(s.alive[task])
		delete(m.is, task)
		s.log("%s is not slow any longer", task)
	})
}

// slow reports whether a process is slow now.
func (m *simSlow) slow(p *simProcess) bool {
	if p == nil {
		return false
	}
	is := m.is[p.task] && (m.where[p.task] == "" || m.where[p.task] == p.box.node)
	if is {
		m.ended[p.task] = m.s.now
	}
	return is
}

// report tells what all processes have done.
func (m *simSlow) report() {
	s := m.s
	if s.finish != nil {
		return
	}
	s.after(slowFor/pace.CountsWithin, m.report)
	var e event.StepsReported
	for _, task := range slices.Sorted(maps.Keys(s.alive)) {
		p, slow := s.alive[task], m.slow(s.alive[task])
		if !makesSteps(task) || p.lingers || !p.box.connected || p.box.master != s.epoch {
			continue
		}
		c := &p.count
		c.Task, c.Looks, c.Works = task, c.Looks+10, c.Works+3
		if slow {
			c.Works += 7
		}
		if n := int64(8); !s.stuck() {
			if slow && !s.together(task) {
				n = 2
			}
			c.Reports, c.Step, c.At = c.Reports+n, c.Step+n, s.now
		}
		e.Counts = append(e.Counts, *c)
	}
	if len(e.Counts) > 0 {
		s.tellAM(20*time.Millisecond, e)
	}
}

// told checks what is told of stragglers.
func (m *simSlow) told(a action.Record) {
	switch {
	case a.Kind == action.KindLost && strings.Contains(a.Text, event.CauseStraggler.String()):
		if m.moved[a.Task]++; m.moved[a.Task] > slowMoves && !m.s.forgotten {
			m.s.fail("%s was moved %d times as a straggler, and may be %d times", a.Task, m.moved[a.Task], slowMoves)
		}
	case a.Kind == action.KindStraggler && strings.HasPrefix(a.Text, "it is slower"):
		if m.s.now.Sub(m.since[a.Task]) < slowFor || m.s.now.Sub(m.ended[a.Task]) > slowFor {
			m.s.fail("%s is said to be slow, and is not, or not for long", a.Task)
		}
	}
}
