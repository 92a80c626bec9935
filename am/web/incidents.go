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
// how many older ones there are in it. nil is all of it. Those of a task alone are returned if one
// is named.
func newestIncidents(status *proto.JobStatus, part *drawing.Axis, task string) (list []incidentView, omitted int) {
	ids := incidentIDs(status)
	tasks := map[string]*proto.TaskStatus{}
	for _, t := range status.Tasks {
		tasks[t.Task] = t
	}
	for _, i := range slices.Backward(status.Incidents) {
		switch {
		case task != "" && i.Task != task:
			continue
		case !part.Whole() && !part.Has(i.AtUnixMs):
			continue
		case len(list) == incidentsShown:
			omitted++
			continue
		}
		v := incidentView{Incident: i, ID: ids[i], Open: status.IsOpen(i)}
		// A task has the last lines of its last attempt that failed.
		if t := tasks[i.Task]; t != nil && proto.ReasonOf(status, t) == i.Attempt {
			v.Tail = t.Tail
		}
		list = append(list, v)
	}
	return list, omitted
}

// incidentIDs returns the ids of the elements that have the details of a job's incidents. An
// attempt has several where the task was lost again before the next one had begun.
func incidentIDs(status *proto.JobStatus) map[*proto.Incident]string {
	ids, known := make(map[*proto.Incident]string, len(status.Incidents)), map[string]int{}
	for _, i := range status.Incidents {
		id := fmt.Sprintf("incident-%s-%d", i.Task, i.Attempt)
		known[id]++
		ids[i] = id
		if n := known[id]; n > 1 {
			ids[i] = fmt.Sprintf("%s.%d", id, n)
		}
	}
	return ids
}

// addressesOf returns where the details of each incident of a job are: of those that are shown on
// the page at an address there, and of others on the page of the job's life around them.
func addressesOf(status *proto.JobStatus, shown []incidentView, page string) func(*proto.Incident) string {
	ids, here := incidentIDs(status), map[*proto.Incident]bool{}
	for _, v := range shown {
		here[v.Incident] = true
	}
	return func(i *proto.Incident) string {
		if here[i] {
			return page + "#" + ids[i]
		}
		return around(i) + "#" + ids[i]
	}
}

// aroundIncident is how much of the job's life before an incident and after it is shown with it.
const aroundIncident = 10 * time.Minute

// Around returns the address of the page of the job with its life around the incident.
func (i incidentView) Around() string { return around(i.Incident) + "#timeline" }

func around(i *proto.Incident) string {
	end := max(i.AtUnixMs, i.RecoveredUnixMs, i.ProgressUnixMs)
	around := aroundIncident.Milliseconds()
	return "./?" + drawing.Part{From: i.AtUnixMs - around, To: end + around}.Values().Encode()
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
