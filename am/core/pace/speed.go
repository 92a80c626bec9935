package pace

import (
	"slices"
	"time"
)

// How fast single tasks are, in comparison with those that do the same. What is counted of each
// is taken in a few times in the time for which one must be slow, and compared over the last
// half of that time, or longer where steps are seldom. Nothing is said of a task where what is
// counted does not show it.

// Count is what an attempt has done, counted since it began.
type Count struct {
	Task    string
	Step    int64     // the last that it has reported
	Reports int64     // how many steps it has reported
	At      time.Time // when it reported the last of them; zero: none
	Looks   int64     // how often it was looked at whether it is at work; 0: it is not
	Works   int64     // and how often it was
}

const (
	// CountsWithin is how many Counts are taken in the time for which a task must be slow.
	CountsWithin = 4
	// countsKept bounds the Counts of an attempt, and with them how seldom steps may be.
	countsKept = 2*CountsWithin + 1
	// leastReports is how many steps a task must report to be compared with, and leastLooks
	// how often it must be looked at: fewer may be slow or fast by accident.
	leastReports = 4
	leastLooks   = 16
	// busyShare is the share of the time for which a task must be at work if others are to
	// wait for it.
	busyShare = 0.7
	// alike is by how much the times of steps may differ if all tasks count the same ones.
	alike = 1.25
)

// Counts are the last ones of an attempt. The zero value: none.
type Counts struct{ list []Count }

// Take takes in the next Count.
func (c *Counts) Take(n Count) {
	if last := len(c.list) - 1; last >= 0 && (n.Reports < c.list[last].Reports || n.Looks < c.list[last].Looks) {
		c.list = c.list[:0] // of another attempt
	}
	if len(c.list) == countsKept {
		c.list = append(c.list[:0], c.list[1:]...)
	}
	n.Task = "" // whose they are is known
	c.list = append(c.list, n)
}

// over returns what was counted in the last n intervals; false if it is not known.
func (c *Counts) over(n int) (span, bool) {
	last := len(c.list) - 1
	if last < n {
		return span{}, false
	}
	from, to := c.list[last-n], c.list[last]
	return span{from, to}, true
}

// span is what was counted from one time to another.
type span struct{ from, to Count }

// reports is how many steps were reported, 0 also before the first.
func (s span) reports() int64 {
	if s.from.Reports == 0 {
		return 0
	}
	return s.to.Reports - s.from.Reports
}

// perReport is the time from one report to the next; 0: not known.
func (s span) perReport() time.Duration {
	if s.reports() == 0 {
		return 0
	}
	return s.to.At.Sub(s.from.At) / time.Duration(s.reports())
}

// perStep is the time that a step takes; 0: not known, or steps were counted anew.
func (s span) perStep() time.Duration {
	if s.reports() == 0 || s.to.Step <= s.from.Step {
		return 0
	}
	return s.to.At.Sub(s.from.At) / time.Duration(s.to.Step-s.from.Step)
}

// work is the share of the time at work; less than 0: not known.
func (s span) work() float64 {
	looks := s.to.Looks - s.from.Looks
	if looks < leastLooks {
		return -1
	}
	return float64(s.to.Works-s.from.Works) / float64(looks)
}

// Measure is what tasks are compared by.
type Measure int

// The measures.
const (
	ByStep   Measure = iota // the time that a step takes, by the number of the step
	ByReport                // the time from one report of a step to the next: all tasks count the same steps
	ByWork                  // the share of the time at work: the tasks wait for each other
)

// Speed is what is known of how fast a task is. The zero value: nothing.
type Speed struct {
	Time   time.Duration // of a step, or from one report to the next; 0: not known
	Of     Measure       // which of the two Time is
	Work   float64       // share of the time at work
	Worked bool          // Work is known
	// By is the measure by which the task is slowest, Median what that is of the tasks that
	// it is compared with, as seconds or as a share, and Ratio how many times as much it is
	// for this task. Ratio 0: it cannot be compared, as one that reports no step any longer.
	By     Measure
	Median float64
	Ratio  float64
	// Counts is over how many intervals between Counts the comparison is. A single pause, as
	// for a checkpoint, makes a task slow in as many comparisons at most.
	Counts int
}

// Role says how tasks of a role may be compared.
type Role struct {
	Shared bool // they may count steps together, as workers of parameter servers do
	Waits  bool // they wait for each other in each step
}

// Compare returns the speed of each of the tasks of a role; nil stands for a task of which
// nothing is counted.
func (r Role) Compare(tasks []*Counts) []Speed {
	speeds := make([]Speed, len(tasks))
	spans, n := r.spans(tasks)
	r.compareSteps(speeds, spans)
	if r.Waits {
		compareWork(speeds, spans)
	}
	for i := range speeds {
		speeds[i].Counts = n
	}
	return speeds
}

// spans returns what was counted over the last half of the time for which a task must be slow,
// or longer, if steps are so seldom, and over how many intervals that is. What is not known is
// empty, and all is if no step was made in the last half of it.
func (Role) spans(tasks []*Counts) ([]span, int) {
	for n := CountsWithin / 2; n < countsKept; n++ {
		spans, late := make([]span, len(tasks)), false
		var reports []int64
		for i, c := range tasks {
			if c == nil {
				continue
			}
			spans[i], _ = c.over(n)
			if k := spans[i].reports(); k > 0 {
				reports = append(reports, k)
				last, _ := c.over((n + 1) / 2)
				late = late || last.reports() > 0
			}
		}
		slices.Sort(reports)
		if len(reports) > 0 && reports[len(reports)/2] >= leastReports && late {
			return spans, n
		}
	}
	return make([]span, len(tasks)), 0
}

// compareSteps compares tasks by their steps. With a number that all count together, each
// seems to be as fast as all are: then it counts how often each reports one, and three must.
func (r Role) compareSteps(speeds []Speed, spans []span) {
	var steps, reports []float64
	for _, s := range spans {
		if t := s.perStep(); t > 0 {
			steps = append(steps, t.Seconds())
		}
		if t := s.perReport(); t > 0 {
			reports = append(reports, t.Seconds())
		}
	}
	slices.Sort(steps)
	slices.Sort(reports)
	of, values, value := ByStep, steps, span.perStep
	if r.Shared && len(steps) > 0 && steps[len(steps)-1] <= alike*steps[0] {
		of, values, value = ByReport, reports, span.perReport
	}
	compared := len(values) > 1 && (of == ByStep || len(values) > 2)
	for i, s := range spans {
		t := value(s)
		speeds[i].Time, speeds[i].Of = t, of
		if !compared || t == 0 {
			continue
		}
		speeds[i].By, speeds[i].Median = of, median(values)
		speeds[i].Ratio = t.Seconds() / speeds[i].Median
	}
}

// compareWork compares tasks that wait for each other: who is slower waits less. Where none
// waits, as where they poll, or all for something else, that does not show.
func compareWork(speeds []Speed, spans []span) {
	var shares []float64
	for i, s := range spans {
		if w := s.work(); w >= 0 {
			speeds[i].Work, speeds[i].Worked = w, true
			shares = append(shares, w)
		}
	}
	if len(shares) < 2 {
		return
	}
	slices.Sort(shares)
	m := max(median(shares), 0.01)
	for i := range speeds {
		s := &speeds[i]
		ratio := s.Work / m
		if s.Work < busyShare {
			ratio = min(ratio, 1)
		}
		if s.Worked && ratio > s.Ratio {
			s.By, s.Median, s.Ratio = ByWork, m, ratio
		}
	}
}

// median is that of values in order; of two in the middle the less, which is that of the
// faster task.
func median(values []float64) float64 { return values[(len(values)-1)/2] }
