package status

import (
	"slices"
	"time"

	"holdfast/am/core"
	"holdfast/proto"
)

// maxGenerations bounds the list of generations; the oldest are dropped.
const maxGenerations = 100

// recordGeneration begins the record of a generation once its tasks start, and ends that of
// the one before once these are stopped.
func recordGeneration(s *proto.JobStatus, job *core.Job, at time.Time) {
	g, number := job.Group(), int32(job.Generation())
	if g.All == 0 {
		return
	}
	last := s.PresentGeneration()
	if last != nil && (last.Number != number || !g.Formed) {
		endGeneration(s, at.UnixMilli())
		last = nil
	}
	if last != nil || !g.Formed || !anyRuns(s) {
		return
	}
	n := int32(g.All - len(g.Parked))
	s.Generations = append(s.Generations, &proto.Generation{Number: number, StartedUnixMs: at.UnixMilli(), Tasks: n, Of: int32(g.All), Least: int32(g.Least), Parked: g.Parked})
	if more := len(s.Generations) - maxGenerations; more > 0 {
		s.Generations = s.Generations[more:]
	}
	for _, i := range s.Incidents {
		if i.TasksBefore != 0 && i.TasksAfter == 0 {
			i.TasksAfter = n
		}
	}
}

// anyRuns reports whether a task has a process.
func anyRuns(s *proto.JobStatus) bool {
	for _, t := range s.Tasks {
		if t.State == proto.TaskState_TASK_STATE_RUNNING && t.Pid != 0 {
			return true
		}
	}
	return false
}

func endGeneration(s *proto.JobStatus, at int64) {
	if g := s.PresentGeneration(); g != nil {
		g.EndedUnixMs = at
	}
}

// rateSpan is the shortest time over which a generation's rate is told: two ranks report the
// same steps moments apart.
const rateSpan = time.Second

// stepOfGeneration takes in a step of the job, and when it was made. One that was made when the
// generation had ended, and before another had begun, is of that generation.
func stepOfGeneration(s *proto.JobStatus, step int64, at time.Time) {
	n := len(s.Generations)
	for n > 0 && s.Generations[n-1].StartedUnixMs > at.UnixMilli() {
		n--
	}
	if n == 0 {
		return
	}
	g := s.Generations[n-1]
	if g.FirstStep == 0 {
		g.FirstStep, g.FirstStepAtUnixMs = step, at.UnixMilli()
	}
	g.LastStep = step
	if passed := at.Sub(time.UnixMilli(g.FirstStepAtUnixMs)); passed >= rateSpan && g.EndedUnixMs == 0 {
		g.StepsPerSecond = float64(g.LastStep-g.FirstStep) / passed.Seconds()
	}
}

// working is how many tasks worked together with one that is lost, and it; 0: it works alone.
func working(s *proto.JobStatus, t core.Task) int32 {
	n := len(s.Generations)
	if n == 0 || t.Role.Loss != proto.LossRule_LOSS_RULE_ALL || slices.Contains(s.Generations[n-1].Parked, t.Name) {
		return 0
	}
	return s.Generations[n-1].Tasks
}
