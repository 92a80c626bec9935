package drawing

import (
	"cmp"
	"fmt"
	"slices"

	"holdfast/am/web/text"
	"holdfast/proto"
)

const (
	// rowsShown bounds the rows of the timeline. Of a larger job, it shows the tasks that
	// were lost, the last ones first, and one row for all others of each role.
	rowsShown = 40
	// MinBar is the least width of a bar, in percent of the timeline.
	MinBar = 0.15
)

// Timeline is the job's life, drawn from its event log and incidents.
type Timeline struct {
	Axis
	Rows    []timelineRow
	address func(*proto.Incident) string
}

// timelineRow is a row of the timeline: the job, a task, or the tasks of a role of which
// nothing stands out.
type timelineRow struct {
	Title string
	Bars  []Bar
	Marks []Mark
}

// Bar is an attempt.
type Bar struct {
	X, Width float64 // percent
	Class    string  // lost, ended or running
	Title    string
}

// Mark is a moment.
type Mark struct {
	X       float64 // percent
	Class   string  // lost, recovered, stalled, resumed or note
	Title   string
	Address string // of the incident; "" if there is none
}

// AddCheckpoints adds a row of when checkpoints were complete; none if there are none.
func (t *Timeline) AddCheckpoints(list []Mark) {
	if t != nil && len(list) > 0 {
		t.Rows = slices.Insert(t.Rows, 0, timelineRow{Title: "checkpoints", Marks: list})
	}
}

// NewTimeline draws the part of a job's life that an axis has; nil without one. address returns
// where the details of an incident are.
func NewTimeline(status *proto.JobStatus, a *Axis, address func(*proto.Incident) string) *Timeline {
	if a == nil {
		return nil
	}
	t := &Timeline{Axis: *a, address: address}
	t.addRows(status)
	return t
}

// addRows adds the row of the job, and those of the tasks.
func (t *Timeline) addRows(status *proto.JobStatus) {
	of := map[string][]*proto.JobEvent{}
	for _, e := range status.Events {
		of[e.Task] = append(of[e.Task], e)
	}
	job := timelineRow{Title: "job"}
	for _, e := range of[""] {
		if t.Has(e.AtUnixMs) {
			job.Marks = append(job.Marks, Mark{X: t.X(e.AtUnixMs), Class: e.Kind, Title: text.MomentTitle(e.AtUnixMs, e.Text)})
		}
	}
	if len(job.Marks) > 0 {
		t.Rows = append(t.Rows, job)
	}
	incidents := map[string][]*proto.Incident{}
	for _, i := range status.Incidents {
		incidents[i.Task] = append(incidents[i.Task], i)
	}
	own := ownRows(status, incidents)
	others := map[string]*timelineRow{}
	var roles []string
	for _, task := range status.Tasks {
		if own[task.Task] {
			t.Rows = append(t.Rows, t.taskRow(status, task, of[task.Task], incidents[task.Task]))
			continue
		}
		row := others[task.Role]
		if row == nil {
			row = &timelineRow{}
			others[task.Role], roles = row, append(roles, task.Role)
		}
		row.Bars = append(row.Bars, t.taskRow(status, task, of[task.Task], nil).Bars...)
	}
	for _, role := range roles {
		n := 0
		for _, task := range status.Tasks {
			if task.Role == role && !own[task.Task] {
				n++
			}
		}
		if row := others[role]; len(row.Bars) > 0 {
			t.Rows = append(t.Rows, timelineRow{Title: fmt.Sprintf("%s: %d others", role, n), Bars: []Bar{union(row.Bars)}})
		}
	}
}

// ownRows returns the tasks that have a row of their own.
func ownRows(status *proto.JobStatus, incidents map[string][]*proto.Incident) map[string]bool {
	own := map[string]bool{}
	if len(status.Tasks) <= rowsShown {
		for _, t := range status.Tasks {
			own[t.Task] = true
		}
		return own
	}
	var lost []string
	for task := range incidents {
		lost = append(lost, task)
	}
	last := func(task string) int64 { l := incidents[task]; return l[len(l)-1].AtUnixMs }
	slices.SortFunc(lost, func(a, b string) int { return cmp.Or(cmp.Compare(last(b), last(a)), cmp.Compare(a, b)) })
	for _, task := range lost[:min(len(lost), rowsShown)] {
		own[task] = true
	}
	return own
}

// union returns the bar that covers all of a list.
func union(list []Bar) Bar {
	from, to := list[0].X, list[0].X+list[0].Width
	for _, b := range list {
		from, to = min(from, b.X), max(to, b.X+b.Width)
	}
	return Bar{X: from, Width: to - from, Class: "running", Title: "none of them was lost lately"}
}

// taskRow draws the attempts of a task. The middle of a long event log is missing, and of
// attempts in it so is the end: they go on to the start of the next.
func (t *Timeline) taskRow(status *proto.JobStatus, task *proto.TaskStatus, events []*proto.JobEvent, incidents []*proto.Incident) timelineRow {
	row := timelineRow{Title: task.Task}
	var open *proto.JobEvent // that began the present attempt
	end := func(at int64, class string) {
		if open == nil {
			return
		}
		if at >= t.From && open.AtUnixMs <= t.To {
			x := t.X(open.AtUnixMs)
			row.Bars = append(row.Bars, Bar{x, max(MinBar, t.X(at)-x), class, open.Text + "\n" + text.Moment(open.AtUnixMs) + " – " + text.Moment(at)})
		}
		open = nil
	}
	for _, e := range events {
		switch e.Kind {
		case "started", "recovered":
			end(e.AtUnixMs, "lost")
			open = e
		case "lost":
			end(e.AtUnixMs-e.SinceLossMs, "lost")
		case "ended":
			end(e.AtUnixMs, "ended")
		}
	}
	end(t.End, map[bool]string{true: "ended", false: "running"}[status.State.Done()])
	for _, i := range incidents {
		if t.Has(i.AtUnixMs) {
			row.Marks = append(row.Marks, Mark{t.X(i.AtUnixMs), "lost", text.MomentTitle(i.AtUnixMs, "lost: "+i.Cause), t.address(i)})
		}
	}
	return row
}
