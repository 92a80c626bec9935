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
	Open      int       // incidents that have not been recovered from
	Age       string    // of the newest complete checkpoint
	Next      string    // when the next one is expected; "" if that is not known
	Late      bool      // it was expected some time ago
	Restarts  []restart // what tasks that start now continue from, by directory
	Timeline  *drawing.Timeline
	Parts     *parts // of the timeline
	Plots     *plots
	NoPlots   string         // why they are not known
	Incidents []incidentView // the newest first
	Older     int            // incidents
	All       int            // incidents, in whatever part of the job's life
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
	now := time.Now()
	if at := status.CompleteStepAtUnixMs; at != 0 {
		v.Age = text.Duration(now.Sub(time.UnixMilli(at)))
	}
	v.expect(status, now)
	v.Restarts = s.restarts(status, now)
	for _, c := range v.Counts {
		v.Roles = append(v.Roles, c.Role)
		for _, n := range c.States() {
			if !slices.Contains(v.States, n.Word()) {
				v.States = append(v.States, n.Word())
			}
		}
	}
	part := drawing.NewAxis(status, v.Query.Part, now)
	v.Incidents, v.Older = newestIncidents(status, part, "")
	v.Timeline = drawing.NewTimeline(status, part, addressesOf(status, v.Incidents, ""))
	if part != nil {
		v.Parts = newParts(part, v.Query.PartAddress)
	}
	var err error
	if v.Plots, err = s.mainPlots(r.Context(), status, v.Query.Part); err != nil {
		v.Plots, v.NoPlots = &plots{}, err.Error()
	}
	v.Timeline.AddCheckpoints(v.Plots.Checkpoints)
	v.All = len(status.Incidents)
	v.Formed = newestGenerations(status)
	v.Avoided = status.Avoiding(now)
	v.Rows, v.Matching = taskRows(status, v.Query, now)
	v.Columns = v.Query.columns(status.Tasks)
	v.Network, v.GPUs = slices.ContainsFunc(status.Tasks, (*proto.TaskStatus).HasTraffic), slices.ContainsFunc(status.Tasks, (*proto.TaskStatus).HasGPUUse)
	v.Events, v.Omitted = newestEvents(status, part)
	return "job", v, nil
}

// Zoomed reports whether the page shows a part of the job's life.
func (v *jobView) Zoomed() bool { return v.Timeline != nil && !v.Timeline.Whole() }

// frame implements framed: what the page does not know yet comes soon.
func (v *jobView) frame(f *frame) {
	if f.Updates == "" && slices.ContainsFunc(v.Restarts, func(r restart) bool { return r.Looking }) {
		f.Updates = "poll"
	}
}

// expect says when the next checkpoint is expected to be complete, while the job makes steps.
func (v *jobView) expect(status *proto.JobStatus, now time.Time) {
	at := status.NextCheckpointUnixMs
	if at == 0 || status.State != proto.JobState_JOB_STATE_RUNNING {
		return
	}
	left := time.UnixMilli(at).Sub(now)
	// It is noticed a little after it is complete.
	late := max(5*time.Second, time.UnixMilli(at).Sub(time.UnixMilli(status.CompleteStepAtUnixMs))/4)
	switch {
	case left >= time.Second:
		v.Next = "next in about " + text.Duration(left.Truncate(time.Second))
	case -left <= late:
		v.Next = "next about now"
	default:
		v.Next, v.Late = "next was expected "+text.Duration(-left.Truncate(time.Second))+" ago", true
	}
}

// newestEvents returns the newest events of a part of the job's life, the newest first, and how
// many older ones there are in it. nil is all of it.
func newestEvents(status *proto.JobStatus, part *drawing.Axis) (list []*proto.JobEvent, omitted int) {
	for _, e := range slices.Backward(status.Events) {
		switch {
		case !part.Whole() && !part.Has(e.AtUnixMs):
		case len(list) == eventsShown:
			omitted++
		default:
			list = append(list, e)
		}
	}
	return list, omitted
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

// directoriesAnswered bounds the checkpoint directories of which the page of the job says what a
// restart takes.
const directoriesAnswered = 3

// sealingTime is after how long a checkpoint that was found complete is sealed, if it is small.
const sealingTime = 5 * time.Second

// restart is what tasks that start now continue from in a checkpoint directory.
type restart struct {
	Path    string // of the directory; "" if the job has only one
	Address string // of the checkpoint's page, or of the list
	Title   string // of the checkpoint; "": they begin anew
	State   string
	Age     string // since it was saved
	Total   int    // checkpoints in the directory
	Looking bool   // it is not known yet
	Error   string // why it is not known
}

// Class is that of the state's word.
func (r restart) Class() string { return strings.ReplaceAll(r.State, " ", "-") }

// restarts returns what tasks that start now continue from, as of a short while ago.
func (s *server) restarts(status *proto.JobStatus, now time.Time) (list []restart) {
	if s.Checkpoints == nil {
		return nil
	}
	changed := time.UnixMilli(status.CompleteStepAtUnixMs)
	if sealed := changed.Add(sealingTime); now.After(sealed) {
		changed = sealed
	}
	all := s.Checkpoints.Directories()
	for i, d := range all[:min(len(all), directoriesAnswered)] {
		r := restart{Address: fmt.Sprintf("checkpoints?dir=%d", i)}
		if len(all) > 1 {
			r.Path = d.Path
		}
		safe := s.Checkpoints.Safe(i, changed)
		switch {
		case safe == nil:
			r.Looking = true
		case safe.Err != nil:
			r.Error = safe.Err.Error()
		default:
			r.Total = safe.Total
			if c := safe.From; c != nil {
				row := checkpointRow{Checkpoint: c, Now: now}
				r.Address, r.Title, r.State, r.Age = checkpointAddress(i, c.Location), stepTitle(c), row.StateOf(), row.Age()
			}
		}
		list = append(list, r)
	}
	return list
}
