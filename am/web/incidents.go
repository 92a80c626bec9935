package web

import (
	"fmt"
	"slices"
	"time"

	"holdfast/am/web/drawing"
	"holdfast/am/web/text"
	"holdfast/proto"
)

// incidentsShown bounds the incidents of the page.
const incidentsShown = 50

// incidentView is an incident, and what the page says of it besides.
type incidentView struct {
	*proto.Incident
	ID   string   // of the element that has its details
	Tail []string // last lines of the lost attempt, as far as they are known
	Open bool     // the task is not back yet
}

// newestIncidents returns the newest incidents of a part of the job's life, the newest first, and
// how many older ones there are in it. nil is all of it.
func newestIncidents(status *proto.JobStatus, part *drawing.Axis) (list []incidentView, omitted int) {
	tasks := map[string]*proto.TaskStatus{}
	for _, t := range status.Tasks {
		tasks[t.Task] = t
	}
	for _, i := range slices.Backward(status.Incidents) {
		switch {
		case !part.Whole() && !part.Has(i.AtUnixMs):
			continue
		case len(list) == incidentsShown:
			omitted++
			continue
		}
		v := incidentView{Incident: i, ID: drawing.IncidentID(i), Open: status.IsOpen(i)}
		// A task has the last lines of its last attempt that failed.
		if t := tasks[i.Task]; t != nil && proto.ReasonOf(status, t) == i.Attempt {
			v.Tail = t.Tail
		}
		list = append(list, v)
	}
	return list, omitted
}

// aroundIncident is how much of the job's life before an incident and after it is shown with it.
const aroundIncident = 10 * time.Minute

// Around returns the address of the page of the job with its life around the incident.
func (i incidentView) Around() string {
	end := max(i.AtUnixMs, i.RecoveredUnixMs, i.ProgressUnixMs)
	around := aroundIncident.Milliseconds()
	return "./?" + drawing.Part{From: i.AtUnixMs - around, To: end + around}.Values().Encode() + "#timeline"
}

// Cost says what the incident cost the job, in short.
func (i incidentView) Cost() string {
	if i.ResumedStep == 0 {
		return ""
	}
	text := fmt.Sprintf("no step for %s", text.Duration(text.Milliseconds(i.ProgressAfterMs)))
	switch i.LostSteps {
	case 0:
	case 1:
		text += ", 1 step repeated"
	default:
		text += fmt.Sprintf(", %d steps repeated", i.LostSteps)
	}
	return text
}
