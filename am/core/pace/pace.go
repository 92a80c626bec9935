// Package pace measures how fast a job goes: the pauses between its steps, from which it follows
// when it has stalled, and what its tasks use of CPUs and files, which shows that one is at
// work although it makes no steps. What is done about a stall, package core decides. It reads
// no clock.
package pace

import (
	"fmt"
	"time"
)

const (
	// Factor is by how much a pause must be longer than the longest recent one to
	// be called a stall: saving, evaluating and compiling take their time.
	Factor      = 10
	pauseMemory = 50 // pauses that count as recent
	// Enough is how many must be known before anything is done about a stall:
	// the first steps compile.
	Enough = 10
	// Leniency is by how much the limit is longer while the job's pace is only assumed,
	// and at most for the sake of tasks that are busy.
	Leniency = 3
)

// Pace follows the steps of the job, to see that it has stalled. While all tasks run that
// the job needs, steps are due.
type Pace struct {
	Tried  int  // what was done about the stall: restarts
	Warned bool // of the stall
	Waits  bool // for tasks that are busy, of which the event log has a line
	Quiet  bool // the event log has a line that no step was made, of a job of which no pace is known

	pauses  []time.Duration // the recent ones between steps of the job
	firsts  time.Duration   // the longest that a first step has taken since all tasks ran
	assumed bool            // how steps were made is not known any longer, only that some were
	begun   time.Time       // since when all tasks run; zero: they do not
	last    time.Time       // when a step was made, or something was saved, since begun; zero: none was
}

// Record is the job's pace in a Journal. Times are milliseconds.
type Record struct {
	Pauses  int   `json:"pauses"` // how many are known, pauseMemory at most
	Pause   int64 `json:"pause"`  // the longest of them
	Firsts  int64 `json:"firsts"` // the longest that a first step has taken
	Assumed bool  `json:"assumed,omitempty"`
	Tried   int   `json:"tried,omitempty"`
}

// Assumed is that of a job of which it is only known that it has begun, so that it
// can stall.
func Assumed() *Record { return &Record{Assumed: true} }

// Measured reports whether anything is known of the job's steps.
func (p *Pace) Measured() bool { return p.assumed || len(p.pauses) > 0 }

// Guessed reports whether it is only assumed that the job makes steps.
func (p *Pace) Guessed() bool { return p.assumed && len(p.pauses) == 0 }

// Record returns what a Journal keeps; nil if nothing is known.
func (p *Pace) Record() *Record {
	if !p.Measured() {
		return nil
	}
	return &Record{Pauses: len(p.pauses), Pause: p.longest().Milliseconds(), Firsts: p.firsts.Milliseconds(), Assumed: p.assumed, Tried: p.Tried}
}

// Resume goes on with what a Journal has kept; nil: nothing.
func (p *Pace) Resume(r *Record) {
	if r == nil {
		return
	}
	p.pauses = make([]time.Duration, min(r.Pauses, pauseMemory))
	if len(p.pauses) > 0 {
		p.pauses[len(p.pauses)-1] = time.Duration(r.Pause) * time.Millisecond
	}
	p.firsts, p.assumed, p.Tried = time.Duration(r.Firsts)*time.Millisecond, r.Assumed, r.Tried
}

func (p *Pace) longest() time.Duration {
	var longest time.Duration
	for _, d := range p.pauses {
		longest = max(longest, d)
	}
	return longest
}

// Known reports whether enough is known of the job's steps to do something about a stall.
// Until then another application master, which has to find it out again, knows no less.
func (p *Pace) Known() bool { return p.assumed || len(p.pauses) >= Enough }

// Due reports whether steps are due: all tasks run that the job needs.
func (p *Pace) Due() bool { return !p.begun.IsZero() }

// Since is when the job last gave a sign of progress.
func (p *Pace) Since() time.Time {
	if p.last.IsZero() {
		return p.begun
	}
	return p.last
}

// Limit is how long the job may make no step now, at least for least. What comes before
// the first step after a start may take as long as it ever has, and more.
func (p *Pace) Limit(least time.Duration) time.Duration {
	if p.assumed {
		least *= Leniency
	}
	least = max(least, Factor*p.longest())
	if p.last.IsZero() {
		least = max(least, Factor*p.firsts)
	}
	return least
}

// Restart measures anew: not all tasks run, or none that does makes steps. All tasks run
// since begun; zero: they do not.
func (p *Pace) Restart(begun time.Time) { p.begun, p.last, p.Waits = begun, time.Time{}, false }

// Step takes in that a step was made.
func (p *Pace) Step(now time.Time) {
	p.Tried, p.Waits = 0, false
	if p.last.IsZero() {
		p.firsts = max(p.firsts, now.Sub(p.begun))
	} else {
		p.pauses = append(p.pauses, now.Sub(p.last))
		p.pauses = p.pauses[max(0, len(p.pauses)-pauseMemory):]
	}
	p.assumed = p.assumed && len(p.pauses) < Enough
	p.last = now
}

// Saved takes in that part of a checkpoint was written: that is no stall, however long it
// takes.
func (p *Pace) Saved(now time.Time) {
	if p.last.IsZero() {
		p.begun = now
	} else {
		p.last = now
	}
}

// A task that makes no steps may be at work all the same, as when it exports or evaluates a
// model. Its use of CPUs and files shows that, though not with certainty: a collective
// operation that polls uses a whole CPU while it hangs. So a task that is busy postpones
// what is done about a stall, and only up to Leniency times the limit.

// UsageInterval is how often Usage is to be reported.
const UsageInterval = time.Minute

// A task is busy that used at least one of these since the report before.
const (
	busyCPUs = 0.25      // idle threads of TensorFlow and gloo use a few hundredths
	busyRate = 100 << 10 // bytes per second
)

// Usage is what the processes of a task's attempt have used since it was started: CPU
// time, and bytes read and written, of files and of whatever else they read and write.
type Usage struct {
	Task  string
	CPU   time.Duration
	Bytes int64
}

// Meter is what is known of an attempt's Usage. The zero value: nothing.
type Meter struct {
	at   time.Time // of the last report
	last Usage
	cpus float64   // that were used between the last two reports
	rate float64   // of bytes per second, the same
	busy time.Time // when the attempt was last found busy; zero: never
}

// Take takes in what the attempt has used.
func (u *Meter) Take(now time.Time, r Usage) {
	if passed := now.Sub(u.at).Seconds(); !u.at.IsZero() && passed > 0 {
		u.cpus = (r.CPU - u.last.CPU).Seconds() / passed
		u.rate = float64(r.Bytes-u.last.Bytes) / passed
		if u.cpus >= busyCPUs || u.rate >= busyRate {
			u.busy = now
		}
	}
	u.at, u.last = now, r
}

// BusyFor is for how long a task counts as busy after it was found so.
const BusyFor = 2 * UsageInterval

// Busy is when the attempt was last found busy; zero: never.
func (u *Meter) Busy() time.Time { return u.busy }

// CPUs is how many were used between the last two reports.
func (u *Meter) CPUs() float64 { return u.cpus }

// String says, for the user, what the attempt uses.
func (u *Meter) String() string {
	return fmt.Sprintf("it uses %.1f CPUs and reads and writes %.1f MB/s", u.cpus, u.rate/1e6)
}
