package am

import (
	"holdfast/am/core"
	"holdfast/proto"
)

// incidentLimit bounds how many incidents are kept; of more, the oldest go.
const incidentLimit = 500

// recordIncidents writes down losses and returns.
func recordIncidents(s *proto.JobStatus, job *core.Job, moments []*proto.Moment) {
	var places map[string]int // of tasks in the job, made when needed
	for _, m := range moments {
		if m.Kind != core.KindLost && m.Kind != core.KindBack {
			continue
		}
		if places == nil {
			places = map[string]int{}
			for i, t := range job.Tasks() {
				places[t.Name] = i
			}
		}
		at, ok := places[m.Task]
		if !ok {
			continue
		}
		t := job.Tasks()[at]
		if m.Kind == core.KindBack {
			closeIncidents(s, t, m)
			continue
		}
		i := &proto.Incident{
			AtUnixMs: m.AtUnixMs - m.TookMs, Task: m.Task, Attempt: int32(t.Attempt), Cause: t.Cause.String(), Evidence: t.Why,
			Step: s.Step, WholeStep: s.WholeStep,
		}
		if at < len(s.Tasks) { // as it was shown before
			i.Container, i.Node = s.Tasks[at].Container, s.Tasks[at].Node
		}
		s.Incidents = append(s.Incidents, i)
		if n := len(s.Incidents) - incidentLimit; n > 0 {
			s.Incidents = s.Incidents[n:]
		}
	}
}

// closeIncidents says of a task's losses how it came back.
func closeIncidents(s *proto.JobStatus, t *core.Task, back *proto.Moment) {
	for _, i := range s.Incidents {
		if i.Task != t.Name || i.BackUnixMs != 0 {
			continue
		}
		i.BackUnixMs, i.TookMs = back.AtUnixMs, back.AtUnixMs-i.AtUnixMs
		i.How = "in place"
		if i.Container != t.Container {
			i.How = "in another container, on " + t.Node
		}
	}
}

// recordStep takes in a step that a task has made, and says of the incidents
// that are over what they cost.
func recordStep(s *proto.JobStatus, step int64) {
	for _, i := range s.Incidents {
		if i.BackUnixMs != 0 && i.ResumedStep == 0 {
			i.ResumedStep = step
			i.LostSteps = max(0, i.Step-step)
		}
	}
	s.Step = step
}
