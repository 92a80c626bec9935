package web

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/am/web/drawing"
	"holdfast/am/web/text"
	"holdfast/client/terminal"
	"holdfast/proto"
)

const (
	// tasksShown bounds the rows of the table of tasks, and with them the size of the page.
	tasksShown = 1000
	// eventsShown bounds the events of the page.
	eventsShown = 100
	// tailShown is how many of a failed attempt's last lines a row has, in a job of at most
	// tailTasks tasks that have any; the task's own page has all.
	tailShown, tailTasks = 20, 50
	// linesShown is how many rows have the last line of the task's output, and lineWidth how
	// many of its characters.
	linesShown, lineWidth = 100, 100
)

// jobView is what the page of the job shows.
type jobView struct {
	Counts    []*proto.RoleCount
	Open      int    // incidents that have not been recovered from
	Age       string // of the newest complete checkpoint
	Timeline  *drawing.Timeline
	Plots     *plots
	Incidents []incidentView // the newest first
	Older     int            // incidents
	Avoided   []*proto.AvoidedNode
	Formed    []*proto.Generation // the newest first; none where there was one only
	Rows      []taskRow
	Tasks     int // before the filter
	Matching  int // after it
	Query     taskQuery
	Columns   []column
	Network   bool // the table has columns of these
	GPUs      bool
	States    []string
	Roles     []string
	Events    []*proto.JobEvent // the newest first
	Omitted   int               // older events
}

// taskRow is a row of the table of tasks.
type taskRow struct {
	*proto.TaskStatus
	State string
	Full  int // the most memory that it has used, in percent of its limit
	Note  string
	Tail  []string
	Said  string // the last line of its output, while it runs
	Age   string // of that line; empty within the first second
}

// job shows the job on one page.
func (s *server) job(r *http.Request, status *proto.JobStatus) (string, any, error) {
	v := &jobView{Counts: status.Roles(), Tasks: len(status.Tasks), Query: parseTaskQuery(r.URL.Query())}
	v.Open = status.OpenIncidents()
	if at := status.CompleteStepAtUnixMs; at != 0 {
		v.Age = text.Duration(time.Since(time.UnixMilli(at)))
	}
	for _, c := range v.Counts {
		v.Roles = append(v.Roles, c.Role)
		for _, n := range c.States() {
			if !slices.Contains(v.States, n.Word()) {
				v.States = append(v.States, n.Word())
			}
		}
	}
	v.Timeline = drawing.NewTimeline(status, v.Query.Span, time.Now())
	var err error
	if v.Plots, err = s.mainPlots(r.Context(), status, v.Query.Span); err != nil {
		return "", nil, err
	}
	v.Timeline.AddCheckpoints(v.Plots.Checkpoints)
	v.Incidents, v.Older = newestIncidents(status)
	v.Formed = newestGenerations(status)
	v.Avoided = status.Avoiding(time.Now())
	v.Rows, v.Matching = taskRows(status, v.Query, time.Now())
	v.Columns = v.Query.columns(status.Tasks)
	v.Network, v.GPUs = slices.ContainsFunc(status.Tasks, (*proto.TaskStatus).HasTraffic), slices.ContainsFunc(status.Tasks, (*proto.TaskStatus).HasGPUUse)
	shown := status.Events[max(0, len(status.Events)-eventsShown):]
	v.Omitted = len(status.Events) - len(shown)
	v.Events = slices.Clone(shown)
	slices.Reverse(v.Events)
	return "job", v, nil
}

// generationsShown bounds the generations of the page.
const generationsShown = 10

// newestGenerations returns the newest generations of tasks that restart together, the newest
// first; none if there was one only.
func newestGenerations(status *proto.JobStatus) []*proto.Generation {
	list := slices.Clone(status.Generations[max(0, len(status.Generations)-generationsShown):])
	if len(list) < 2 {
		return nil
	}
	slices.Reverse(list)
	return list
}

// taskRows returns the rows that a query selects, at most tasksShown, and how many tasks
// it selects.
func taskRows(status *proto.JobStatus, q taskQuery, now time.Time) (rows []taskRow, matching int) {
	list := q.apply(status.Tasks)
	matching = len(list)
	list = list[:min(len(list), tasksShown)]
	tails := 0
	for i, t := range list {
		row := taskRow{TaskStatus: t, State: proto.StateWord(t.State), Note: t.Why}
		if t.MemoryLimitBytes > 0 {
			row.Full = int(t.MemoryPeakBytes * 100 / t.MemoryLimitBytes)
		}
		if i < linesShown && t.Line != "" && t.State == proto.TaskState_TASK_STATE_RUNNING {
			row.Said = terminal.Cut(t.Line, lineWidth)
			if age := now.Sub(time.UnixMilli(t.LineAtUnixMs)).Truncate(time.Second); age > 0 {
				row.Age = text.Duration(age) + " ago"
			}
		}
		of, earlier := proto.EarlierReason(status, t)
		switch {
		case earlier: // whose last lines its incident has
			if t.Why != "" {
				row.Note = fmt.Sprintf("attempt %d: %s", of, t.Why)
			}
		case len(t.Tail) > 0 && tails < tailTasks:
			row.Tail = t.Tail[max(0, len(t.Tail)-tailShown):]
			tails++
		}
		row.Note, _, _ = strings.Cut(row.Note, "\n")
		rows = append(rows, row)
	}
	return rows, matching
}

// Memory returns the memory that the task uses, of how much: "477 of 500 MiB".
func (t taskRow) Memory() string { return sizeOf(t.RssBytes, t.MemoryLimitBytes) }

// sizeOf returns how much is used, of how much.
func sizeOf(n, of int64) string {
	used, limit := text.Size(n), text.Size(of)
	if used == "" || limit == "" {
		return used
	}
	_, unit, _ := strings.Cut(limit, " ")
	return strings.TrimSuffix(used, " "+unit) + " of " + limit
}

// Traffic returns what the task receives and sends a second.
func (t taskRow) Traffic() string {
	if !t.HasTraffic() {
		return ""
	}
	return "↓" + text.Flow(t.ReceivedBytesPerSecond) + " ↑" + text.Flow(t.SentBytesPerSecond)
}

// GPUUse returns what the task's GPUs do: "87%, 60 of 80 GiB".
func (t taskRow) GPUUse() string {
	if !t.HasGPUUse() {
		return ""
	}
	return strconv.Itoa(int(t.GpuPercent+0.5)) + "%, " + sizeOf(t.GpuMemoryBytes, t.GpuMemoryLimitBytes)
}

// Number returns the number of the attempt; "" before the first.
func (t taskRow) Number() string {
	if t.Attempt < 0 {
		return ""
	}
	return strconv.Itoa(int(t.Attempt))
}
