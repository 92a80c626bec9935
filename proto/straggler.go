package proto

import (
	"fmt"
	"strings"
	"time"
)

// What stragglers are compared with the others of their role by, Straggler.by.
const (
	ByStep   = "step"   // the time that a step takes
	ByReport = "report" // the time from one report of a step to the next
	ByWork   = "work"   // the share of the time at work
)

// Compared says, for people, by what a task is compared with the others, and how it does.
func (k *Straggler) Compared() string {
	switch k.GetBy() {
	case ByStep:
		return fmt.Sprintf("a step takes %s, and %s in the median (%.1f times)", shortTime(k.Value), shortTime(k.Median), k.Value/k.Median)
	case ByReport:
		return fmt.Sprintf("it reports a step each %s, and the median is %s (%.1f times)", shortTime(k.Value), shortTime(k.Median), k.Value/k.Median)
	case ByWork:
		return fmt.Sprintf("it is at work for %.0f%% of the time, and the median is %.0f%%", k.Value*100, k.Median*100)
	}
	return "what it does is not known"
}

// Evidence is Compared, with what follows if the task is slower than the others.
func (k *Straggler) Evidence() string {
	if k.GetBy() == ByWork {
		return k.Compared() + ": the others wait for it"
	}
	return k.Compared()
}

// Slow says how a task is slower than the others, and in what else it differs from them; "" if
// it is no straggler.
func (t *TaskStatus) Slow() string {
	k := t.GetStraggler()
	if k == nil {
		return ""
	}
	text := fmt.Sprintf("slower than the others since %s: %s", time.UnixMilli(k.SinceUnixMs).UTC().Format("15:04:05 UTC"), k.Evidence())
	return strings.Join(append([]string{text}, k.Differs...), "; ")
}

// StepTime returns how long a step of the task takes, or how much time is between the steps that
// it reports, for people; "" if that is not known.
func (t *TaskStatus) StepTime() string {
	if t.GetStepSeconds() == 0 {
		return ""
	}
	return shortTime(t.StepSeconds)
}

// Stragglers names the tasks that are stragglers, for people; "" if there are none.
func (s *JobStatus) Stragglers() string {
	var names []string
	for _, t := range s.GetTasks() {
		if t.Straggler != nil {
			names = append(names, t.Task)
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return names[0] + " is slower than the others of its role"
	}
	return Some(names) + " are slower than the others of their roles"
}

// Waits says, for people, how much processes wait where a task is.
func (p *Pressure) Waits() string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("for a CPU %.0f%%, memory %.0f%%, a disk %.0f%% of the last minute", p.Cpu*100, p.Memory*100, p.Io*100)
}

// shortTime formats seconds with two digits or more.
func shortTime(s float64) string {
	switch {
	case s < 0.01:
		return fmt.Sprintf("%.2g ms", s*1000)
	case s < 1:
		return fmt.Sprintf("%.0f ms", s*1000)
	case s < 10:
		return fmt.Sprintf("%.1f s", s)
	}
	return fmt.Sprintf("%.0f s", s)
}
