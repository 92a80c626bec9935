package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/am/core"
	"holdfast/am/core/action"
	"holdfast/am/core/pace"
	"holdfast/proto"
)

// CountEvery sets how often core is told what tasks have done; 0: never.
func (s *Store) CountEvery(interval time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.every = interval
}

// updateSpeed copies what core knows of how fast a task is.
func updateSpeed(s *proto.TaskStatus, t core.Task) {
	s.StepSeconds, s.SharedSteps = t.Speed.Time.Seconds(), t.Speed.Of == pace.ByReport
	s.WorkShare = nil
	if t.Speed.Worked {
		s.WorkShare = &t.Speed.Work
	}
	k := t.Straggler()
	if before := s.Straggler; k != nil && before != nil {
		if k.By == "" { // what it does is not known now
			k.By, k.Value, k.Median = before.By, before.Value, before.Median
		}
		k.Differs = before.Differs
	}
	s.Straggler = k
}

// tellDifferences says of each straggler what else differs from the others of its role, also in
// the event that names it, which comes before the status is updated otherwise.
func tellDifferences(status *proto.JobStatus, events []*proto.JobEvent) {
	for _, t := range status.Tasks {
		if t.Straggler == nil {
			continue
		}
		first := t.Straggler.Differs == nil
		t.Straggler.Differs = differences(t, status.Tasks)
		for _, e := range events {
			if first && e.Task == t.Task && e.Kind == action.KindStraggler && len(t.Straggler.Differs) > 0 {
				e.Text += "; " + strings.Join(t.Straggler.Differs, "; ")
			}
		}
	}
}

// trait is what may differ between a task and the others of its role.
type trait struct {
	what  string
	value func(*proto.TaskStatus) (float64, bool) // false: it is not known
	text  func(float64) string
	// differs reports whether a task's value is another than the median of the others.
	differs func(own, others float64) bool
}

var traits = []trait{
	{"it uses %s CPUs, and the others %s", func(t *proto.TaskStatus) (float64, bool) { return t.CpuCores, t.RssBytes > 0 },
		func(v float64) string { return fmt.Sprintf("%.1f", v) },
		func(own, others float64) bool {
			return max(own, others) > 0.2 && (own > 1.5*others || others > 1.5*own)
		}},
	{"it has %s of its memory in use, and the others %s", func(t *proto.TaskStatus) (float64, bool) {
		return float64(t.RssBytes) / float64(max(1, t.MemoryLimitBytes)), t.RssBytes > 0 && t.MemoryLimitBytes > 0
	}, percent, func(own, others float64) bool { return own > 0.9 && others < 0.8 }},
	{"where it is, processes wait for a CPU in %s of the time, and where the others are in %s", pressureOf((*proto.Pressure).GetCpu), percent, more},
	{"where it is, processes wait for memory in %s of the time, and where the others are in %s", pressureOf((*proto.Pressure).GetMemory), percent, more},
	{"where it is, processes wait for a disk in %s of the time, and where the others are in %s", pressureOf((*proto.Pressure).GetIo), percent, more},
	{"its GPUs compute in %s of the time, and those of the others in %s", func(t *proto.TaskStatus) (float64, bool) { return t.GpuPercent / 100, t.HasGPUUse() },
		percent, func(own, others float64) bool { return more(own, others) || more(others, own) }},
	{"it sends and receives %s, and the others %s", func(t *proto.TaskStatus) (float64, bool) {
		return t.SentBytesPerSecond + t.ReceivedBytesPerSecond, t.HasTraffic()
	}, func(v float64) string { return fmt.Sprintf("%.1f MB/s", v/1e6) },
		func(own, others float64) bool {
			return max(own, others) > 1e6 && (own > 1.5*others || others > 1.5*own)
		}},
	{"the load of its node is %s for each CPU, and that of the others' nodes %s", pressureOf((*proto.Pressure).GetLoad),
		func(v float64) string { return fmt.Sprintf("%.1f", v) },
		func(own, others float64) bool { return own > 1 && own > 1.5*others }},
}

func percent(v float64) string { return fmt.Sprintf("%.0f%%", v*100) }

// more reports whether a share of the time is clearly more than that of the others.
func more(own, others float64) bool { return own > others+0.1 && own > 1.5*others }

func pressureOf(get func(*proto.Pressure) float64) func(*proto.TaskStatus) (float64, bool) {
	return func(t *proto.TaskStatus) (float64, bool) { return get(t.Pressure), t.Pressure != nil }
}

// differences says in what a task differs from the median of the others of its role.
func differences(t *proto.TaskStatus, all []*proto.TaskStatus) []string {
	var list []string
	for _, k := range traits {
		own, known := k.value(t)
		var others []float64
		for _, o := range all {
			if v, ok := k.value(o); ok && o != t && o.Role == t.Role && o.State == proto.TaskState_TASK_STATE_RUNNING {
				others = append(others, v)
			}
		}
		if !known || len(others) == 0 {
			continue
		}
		slices.Sort(others)
		if m := others[(len(others)-1)/2]; k.differs(own, m) {
			list = append(list, fmt.Sprintf(k.what, k.text(own), k.text(m)))
		}
	}
	return list
}
