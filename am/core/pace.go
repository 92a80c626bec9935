package core

import (
	"fmt"
	"time"
)

const (
	// stallFactor is by how much a pause must be longer than the longest recent one to
	// be called a stall: saving, evaluating and compiling take their time.
	stallFactor = 10
	pauseMemory = 50 // pauses that count as recent
	// pausesKnown is how many must be known before anything is done about a stall:
	// the first steps compile.
	pausesKnown = 10
	// leniency is by how much the limit is longer while the job's pace is only assumed,
	// and at most for the sake of tasks that are busy.
	leniency = 3
)

// pace follows the steps of the job, to see that it has stalled. While all tasks run that
// the job needs, steps are due.
type pace struct {
	pauses  []time.Duration // the recent ones between steps of the job
	firsts  time.Duration   // the longest that a first step has taken since all tasks ran
	assumed bool            // how steps were made is not known any longer, only that some were
	begun   time.Time       // since when all tasks run; zero: they do not
	last    time.Time       // when a step was made, or something was saved, since begun; zero: none was
	tried   int             // what was done about the stall: restarts
	warned  bool            // of the stall
	waits   bool            // for tasks that are busy, of which the event log has a line
}

// PaceRecord is the job's pace in a Journal. Times are milliseconds.
type PaceRecord struct {
	Pauses  int   `json:"pauses"` // how many are known, pauseMemory at most
	Pause   int64 `json:"pause"`  // the longest of them
	Firsts  int64 `json:"firsts"` // the longest that a first step has taken
	Assumed bool  `json:"assumed,omitempty"`
	Tried   int   `json:"tried,omitempty"`
}

// assumedPace is that of a job of which it is only known that it has begun, so that it
// can stall.
func assumedPace() *PaceRecord { return &PaceRecord{Assumed: true} }

func (p *pace) record() *PaceRecord {
	if len(p.pauses) == 0 && !p.assumed {
		return nil
	}
	return &PaceRecord{Pauses: len(p.pauses), Pause: p.longest().Milliseconds(), Firsts: p.firsts.Milliseconds(), Assumed: p.assumed, Tried: p.tried}
}

func (p *pace) resume(r *PaceRecord) {
	if r == nil {
		return
	}
	p.pauses = make([]time.Duration, min(r.Pauses, pauseMemory))
	if len(p.pauses) > 0 {
		p.pauses[len(p.pauses)-1] = time.Duration(r.Pause) * time.Millisecond
	}
	p.firsts, p.assumed, p.tried = time.Duration(r.Firsts)*time.Millisecond, r.Assumed, r.Tried
}

func (p *pace) longest() time.Duration {
	var longest time.Duration
	for _, d := range p.pauses {
		longest = max(longest, d)
	}
	return longest
}

// known reports whether enough is known of the job's steps to do something about a stall.
// Until then another application master, which has to find it out again, knows no less.
func (p *pace) known() bool { return p.assumed || len(p.pauses) >= pausesKnown }

// since is when the job last gave a sign of progress.
func (p *pace) since() time.Time {
	if p.last.IsZero() {
		return p.begun
	}
	return p.last
}

// limit is how long the job may make no step now, at least for least. What comes before
// the first step after a start may take as long as it ever has, and more.
func (p *pace) limit(least time.Duration) time.Duration {
	if p.assumed {
		least *= leniency
	}
	least = max(least, stallFactor*p.longest())
	if p.last.IsZero() {
		least = max(least, stallFactor*p.firsts)
	}
	return least
}

// restart measures anew: not all tasks run, or none that does makes steps.
func (p *pace) restart(begun time.Time) { p.begun, p.last, p.waits = begun, time.Time{}, false }

// step takes in that a step was made.
func (p *pace) step(now time.Time) {
	p.tried, p.waits = 0, false
	if p.last.IsZero() {
		p.firsts = max(p.firsts, now.Sub(p.begun))
	} else {
		p.pauses = append(p.pauses, now.Sub(p.last))
		p.pauses = p.pauses[max(0, len(p.pauses)-pauseMemory):]
	}
	p.assumed = p.assumed && len(p.pauses) < pausesKnown
	p.last = now
}

// saved takes in that part of a checkpoint was written: that is no stall, however long it
// takes.
func (p *pace) saved(now time.Time) {
	if p.last.IsZero() {
		p.begun = now
	} else {
		p.last = now
	}
}

// A task that makes no steps may be at work all the same, as when it exports or evaluates a
// model. Its use of CPUs and files shows that, though not with certainty: a collective
// operation that polls uses a whole CPU while it hangs. So a task that is busy postpones
// what is done about a stall, and only up to leniency times the limit.

// UsageInterval is how often StepsReported has Usage.
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

// usage is what is known of an attempt's Usage. The zero value: nothing.
type usage struct {
	at   time.Time // of the last report
	last Usage
	cpus float64   // that were used between the last two reports
	rate float64   // of bytes per second, the same
	busy time.Time // when the attempt was last found busy; zero: never
}

// takeUsage takes in what tasks have used.
func (j *Job) takeUsage(reports []Usage) {
	for _, r := range reports {
		t := j.named[r.Task]
		if t == nil || t.notRunning() {
			continue
		}
		u := &t.run.usage
		if passed := j.now.Sub(u.at).Seconds(); !u.at.IsZero() && passed > 0 {
			u.cpus = (r.CPU - u.last.CPU).Seconds() / passed
			u.rate = float64(r.Bytes-u.last.Bytes) / passed
			if u.cpus >= busyCPUs || u.rate >= busyRate {
				u.busy = j.now
			}
		}
		u.at, u.last = j.now, r
	}
}

// remembered is for how long a task counts as busy after it was found so.
const remembered = 2 * UsageInterval

// busiest is the task that uses most CPU of those that are busy and that are to make
// steps; nil if there is none.
func (j *Job) busiest() *task {
	var found *task
	for _, t := range j.tasks {
		if !t.makesSteps() || j.now.Sub(t.run.usage.busy) >= remembered {
			continue
		}
		if found == nil || t.run.usage.cpus > found.run.usage.cpus {
			found = t
		}
	}
	return found
}

// idleAgain is when no task is busy any longer, unless another report says that one is.
func (j *Job) idleAgain() time.Time {
	var last time.Time
	for _, t := range j.tasks {
		if t.makesSteps() && t.run.usage.busy.After(last) {
			last = t.run.usage.busy
		}
	}
	return last.Add(remembered)
}

// makesSteps reports whether the task runs and may be one that makes the job's steps.
func (t *task) makesSteps() bool { return t.state == running && !t.optional() && !t.service() }

// describeUsage is for the user.
func (t *task) describeUsage() string {
	u := t.run.usage
	return fmt.Sprintf("%s is busy: it uses %.1f CPUs and reads and writes %.1f MB/s", t.name, u.cpus, u.rate/1e6)
}
