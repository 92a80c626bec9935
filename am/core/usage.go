package core

import (
	"fmt"
	"time"
)

// A task that makes no steps may be at work all the same: it exports a model, or evaluates
// it. Its use of CPUs and files shows that, though not with certainty: collective operations may
// poll, and so use a whole CPU, while they hang. So a task that is busy postpones what is
// done about a stall, and only up to leniency times the limit.

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
