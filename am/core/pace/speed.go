package pace

import (
	"math"
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
	// leastReports is how many steps a task must report to be compared with, or ranks must
	// make, and leastLooks how often it must be looked at: fewer may be slow or fast by
	// accident. Where reports are counted, manyReports are better.
	leastReports = 4
	manyReports  = 20
	leastLooks   = 16
	// busyShare is the share of the time for which a task must be at work if others are to
	// wait for it.
	busyShare = 0.7
	// alike is by how much the times of steps may differ if all tasks count the same ones.
	alike = 1.25
)

// Counts are the last ones of an attempt. The zero value: none.
type Counts struct{ list []mark }

// mark is a Count, in few bytes: there are several of each task.
type mark struct {
	step, reports, at int64 // at: of the last report, in nanoseconds since 1970
	looks, works      int32
}

// Take takes in the next Count.
func (c *Counts) Take(n Count) {
	m := mark{step: n.Step, reports: n.Reports, at: n.At.UnixNano(), looks: int32(n.Looks), works: int32(n.Works)}
	if last := len(c.list) - 1; last >= 0 && (m.reports < c.list[last].reports || m.looks < c.list[last].looks) {
		c.list = c.list[:0] // of another attempt
	}
	if len(c.list) == countsKept {
		c.list = append(c.list[:0], c.list[1:]...)
	}
	c.list = append(c.list, m)
}

// over returns what was counted in the last n intervals; nothing if that is not known.
func (c *Counts) over(n int) span {
	last := len(c.list) - 1
	if last < n {
		return span{}
	}
	return span{c.list[last-n], c.list[last]}
}

// span is what was counted from one time to another.
type span struct{ from, to mark }

// reports is how many steps were reported, 0 also before the first.
func (s span) reports() int64 {
	if s.from.reports == 0 {
		return 0
	}
	return s.to.reports - s.from.reports
}

// steps is how many steps were made, by their numbers, as far as reports tell of it; 0 also
// before the first report.
func (s span) steps() int64 {
	if n := s.reports(); n > 0 {
		return max(n, s.to.step-s.from.step)
	}
	return 0
}

// perReport is the time from one report to the next; 0: not known.
func (s span) perReport() time.Duration {
	if s.reports() == 0 {
		return 0
	}
	return time.Duration((s.to.at - s.from.at) / s.reports())
}

// perStep is the time that a step takes; 0: not known, or steps were counted anew.
func (s span) perStep() time.Duration {
	if s.reports() == 0 || s.to.step <= s.from.step {
		return 0
	}
	return time.Duration((s.to.at - s.from.at) / (s.to.step - s.from.step))
}

// work is the share of the time at work; less than 0: not known.
func (s span) work() float64 {
	looks := s.to.looks - s.from.looks
	if looks < leastLooks {
		return -1
	}
	return float64(s.to.works-s.from.works) / float64(looks)
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
func (r Role) spans(tasks []*Counts) (spans []span, n int) {
	spans = make([]span, len(tasks))
	for i := CountsWithin / 2; i < countsKept; i++ {
		longer, made := r.spansOver(tasks, i)
		if made >= leastReports {
			spans, n = longer, i
		}
		if made >= manyReports || n > 0 && !r.Shared {
			break
		}
	}
	return spans, n
}

// spansOver returns what was counted in the last n intervals, and how many steps the median of
// the tasks has reported, or, of ranks, of which each step takes all equally long, has made; 0
// if none was made in the last half of it.
func (r Role) spansOver(tasks []*Counts, n int) ([]span, int64) {
	spans, late := make([]span, len(tasks)), false
	made := span.reports
	if r.Waits {
		made = span.steps
	}
	var counts []int64
	for i, c := range tasks {
		if c == nil {
			continue
		}
		spans[i] = c.over(n)
		if k := made(spans[i]); k > 0 {
			counts = append(counts, k)
			late = late || c.over((n+1)/2).reports() > 0
		}
	}
	if len(counts) == 0 || !late {
		return spans, 0
	}
	slices.Sort(counts)
	return spans, counts[len(counts)/2]
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
		if of == ByReport {
			speeds[i].Ratio *= certainty(s.reports())
		}
	}
}

// certainty is what part of the time between reports is sure, if there were n. Of steps that all
// count together, a task may report those that its program tells of, as each hundredth, only
// where it has made that one itself: by chance.
func certainty(n int64) float64 {
	counted := float64(n)
	return counted / (counted + 2*math.Sqrt(counted+1))
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
