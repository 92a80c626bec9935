package web

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/proto"
)

const (
	// rowsShown bounds the rows of the timeline. Of a larger job, it shows the tasks that
	// were lost, the last ones first, and one row for all others of each role.
	rowsShown = 40
	// ticksShown is the most distances between ticks of the axis, which fit a phone.
	ticksShown = 4
	// minBar is the least width of a bar, in percent of the timeline.
	minBar = 0.15
)

// spans are the parts of a job's life that the timeline can show; 0: all of it.
var spans = []struct {
	Key string
	d   time.Duration
}{{"", 0}, {"24h", 24 * time.Hour}, {"3h", 3 * time.Hour}, {"30m", 30 * time.Minute}, {"5m", 5 * time.Minute}}

// timeline is the job's life, drawn from its event log and incidents.
type timeline struct {
	Span  string // key of spans
	Spans []spanLink
	Ticks []tick
	Rows  []timelineRow

	from, to int64
}

type spanLink struct {
	Key, Title string
}

type tick struct {
	X     float64 // percent
	Label string
}

// timelineRow is a row of the timeline: the job, a task, or the tasks of a role of which
// nothing stands out.
type timelineRow struct {
	Title string
	Bars  []bar
	Marks []mark
}

// bar is an attempt.
type bar struct {
	X, Width float64 // percent
	Class    string  // lost, ended or running
	Title    string
}

// mark is a moment.
type mark struct {
	X       float64 // percent
	Class   string  // lost, recovered, stalled, resumed or note
	Title   string
	Address string // of the incident; "" if there is none
}

// newTimeline draws the last part of a job's life.
func newTimeline(status *proto.JobStatus, span string, now time.Time) *timeline {
	t := &timeline{from: status.StartedUnixMs, to: now.UnixMilli()}
	if status.EndedUnixMs != 0 {
		t.to = status.EndedUnixMs
	}
	if t.from == 0 {
		return nil
	}
	t.to = max(t.to, t.from+time.Second.Milliseconds())
	life := time.Duration(t.to-t.from) * time.Millisecond
	for _, s := range spans {
		if s.d >= life {
			continue
		}
		title := "all " + duration(life)
		if s.d != 0 {
			title = "last " + s.Key
		}
		t.Spans = append(t.Spans, spanLink{s.Key, title})
		if s.Key == span && s.d != 0 {
			t.Span, t.from = s.Key, t.to-s.d.Milliseconds()
		}
	}
	t.addTicks()
	t.addRows(status)
	return t
}

// x returns where a moment is, in percent of the timeline's width.
func (t *timeline) x(ms int64) float64 {
	x := float64(ms-t.from) * 100 / float64(t.to-t.from)
	return float64(int64(min(max(0, x), 100)*100+.5)) / 100
}

func (t *timeline) addTicks() {
	span := time.Duration(t.to-t.from) * time.Millisecond
	step, layout := 7*24*time.Hour, "01-02"
	for _, s := range []time.Duration{
		time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour, 48 * time.Hour,
	} {
		if span/s <= ticksShown {
			step = s
			break
		}
	}
	switch {
	case step < time.Minute:
		layout = "15:04:05"
	case step < 24*time.Hour:
		layout = "15:04"
	}
	at := time.UnixMilli(t.from).UTC().Truncate(step)
	for ; at.UnixMilli() <= t.to; at = at.Add(step) {
		// A label at the very edge would be cut off.
		if x := t.x(at.UnixMilli()); at.UnixMilli() >= t.from && x >= 1 && x <= 95 {
			t.Ticks = append(t.Ticks, tick{x, at.Format(layout)})
		}
	}
}

// addRows adds the row of the job, and those of the tasks.
func (t *timeline) addRows(status *proto.JobStatus) {
	of := map[string][]*proto.JobEvent{}
	for _, e := range status.Events {
		of[e.Task] = append(of[e.Task], e)
	}
	job := timelineRow{Title: "job"}
	for _, e := range of[""] {
		if e.AtUnixMs >= t.from {
			job.Marks = append(job.Marks, mark{X: t.x(e.AtUnixMs), Class: e.Kind, Title: momentTitle(e.AtUnixMs, e.Text)})
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
			t.Rows = append(t.Rows, timelineRow{Title: fmt.Sprintf("%s: %d others", role, n), Bars: []bar{union(row.Bars)}})
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
func union(list []bar) bar {
	from, to := list[0].X, list[0].X+list[0].Width
	for _, b := range list {
		from, to = min(from, b.X), max(to, b.X+b.Width)
	}
	return bar{X: from, Width: to - from, Class: "running", Title: "none of them was lost lately"}
}

// taskRow draws the attempts of a task. The middle of a long event log is missing, and of
// attempts in it so is the end: they go on to the start of the next.
func (t *timeline) taskRow(status *proto.JobStatus, task *proto.TaskStatus, events []*proto.JobEvent, incidents []*proto.Incident) timelineRow {
	row := timelineRow{Title: task.Task}
	var open *proto.JobEvent // that began the present attempt
	end := func(at int64, class string) {
		if open == nil {
			return
		}
		if at >= t.from {
			x := t.x(open.AtUnixMs)
			row.Bars = append(row.Bars, bar{x, max(minBar, t.x(at)-x), class, open.Text + "\n" + moment(open.AtUnixMs) + " – " + moment(at)})
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
	end(t.to, map[bool]string{true: "ended", false: "running"}[status.State.Done()])
	for _, i := range incidents {
		if i.AtUnixMs >= t.from {
			row.Marks = append(row.Marks, mark{t.x(i.AtUnixMs), "lost", momentTitle(i.AtUnixMs, "lost: "+i.Cause), "#" + incidentID(i)})
		}
	}
	return row
}

func moment(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05") }

func momentTitle(ms int64, text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return moment(ms) + " " + text
}
