package jobs

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"holdfast/client/terminal"
	"holdfast/proto"
)

// TopOptions configure Top.
type TopOptions struct {
	Out  io.Writer // the terminal
	Size func() (width, height int)
	Keys <-chan string // keys that are pressed: a letter, or up, down, enter or escape
	// Log returns the last lines of what a task wrote.
	Log func(ctx context.Context, task string, lines int) ([]string, error)
}

// Control sequences of terminals.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // the alternate screen, without a cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	toTop       = "\x1b[H"
	restOfLine  = "\x1b[K"
	restBelow   = "\x1b[J"
)

// topPace is the interval at which the screen is drawn if nothing happens.
const topPace = time.Second

// Top shows a job on the whole terminal until its user leaves or ctx ends. The job goes on.
func Top(ctx context.Context, j *Job, o TopOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	states := make(chan *proto.JobStatus)
	end := make(chan watchResult, 1)
	go func() {
		s, err := j.Watch(ctx, func(s *proto.JobStatus) {
			select {
			case states <- s:
			case <-ctx.Done():
			}
		})
		end <- watchResult{s, err}
	}()
	ended := false
	defer func() {
		cancel()
		if !ended {
			<-end
		}
	}()
	out := terminal.Raw(o.Out)
	fmt.Fprint(out, enterScreen)
	defer fmt.Fprint(out, leaveScreen)
	v := &topView{order: "name", status: &proto.JobStatus{Id: j.ID}}
	tick := time.NewTicker(topPace)
	defer tick.Stop()
	for {
		width, height := o.Size()
		v.draw(out, width, height, time.Now())
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case s := <-states:
			v.status = s
		case w := <-end:
			ended = true
			if w.err != nil {
				return w.err
			}
			v.status, end = w.status, nil
		case key, open := <-o.Keys:
			if !open || !v.press(key) {
				return nil
			}
		case <-tick.C:
		}
		if v.showing == "log" {
			lines, err := o.Log(ctx, v.selected, height)
			if err != nil {
				lines = []string{err.Error()}
			}
			v.log = lines
		}
	}
}

// topView is what Top shows. It does no I/O but what draw writes.
type topView struct {
	status   *proto.JobStatus
	order    string // column by which tasks are sorted
	reverse  bool
	selected string // task
	showing  string // log or incidents, of the selected task, or keys; empty: the list of tasks
	log      []string
}

// topOrders are the columns by which tasks can be sorted, with their keys.
var topOrders = []struct{ key, column string }{
	{"n", "name"}, {"c", "CPU"}, {"m", "memory"}, {"s", "state"}, {"t", "step"}, {"w", "net"}, {"g", "GPU"},
}

// TopKey is what keys of Top do.
type TopKey struct{ Keys, Does string }

// TopKeys returns the keys of Top.
func TopKeys() []TopKey {
	var keys, columns []string
	for _, o := range topOrders {
		keys, columns = append(keys, o.key), append(columns, o.column)
	}
	return []TopKey{
		{"j k", "select the next task, or the one before; so do the arrow keys"},
		{"l", "show what the task wrote last; so does Enter"},
		{"i", "show the losses of the task"},
		{strings.Join(keys, " "), "sort by " + strings.Join(columns, ", ") + ", or reversed"},
		{"?", "show this list"},
		{"q", "go back to the tasks, and from them leave top; the job goes on"},
	}
}

// keyLine is the last line where the tasks are shown.
func keyLine() string {
	line := "q quit  jk move  l log  i losses  sort"
	for _, o := range topOrders {
		line += " " + o.key
	}
	return line + "  ? keys"
}

// press takes in a key, and reports whether the user stays.
func (v *topView) press(key string) bool {
	tasks := v.sorted()
	at := slices.IndexFunc(tasks, func(t *proto.TaskStatus) bool { return t.Task == v.selected })
	move := func(to int) {
		if len(tasks) > 0 {
			v.selected = tasks[min(max(to, 0), len(tasks)-1)].Task
		}
	}
	if v.showing == "" {
		for _, o := range topOrders {
			if o.key == key {
				v.reverse = v.order == o.column && !v.reverse
				v.order = o.column
				return true
			}
		}
	}
	switch key {
	case "interrupt":
		return false
	case "q", "escape":
		if v.showing == "" {
			return key != "q"
		}
		v.showing, v.log = "", nil
	case "?":
		v.showing, v.log = "keys", nil
	case "up", "k":
		move(at - 1)
	case "down", "j":
		move(at + 1)
	case "l", "enter", "i":
		if at < 0 {
			move(0)
		}
		if v.selected != "" {
			v.showing = "log"
			if key == "i" {
				v.showing = "incidents"
			}
		}
	}
	return true
}

// sorted returns the tasks as they are shown.
func (v *topView) sorted() []*proto.TaskStatus {
	list := slices.Clone(v.status.Tasks)
	slices.SortStableFunc(list, func(a, b *proto.TaskStatus) int {
		switch v.order {
		case "state":
			return cmp.Compare(a.State, b.State)
		case "CPU":
			return cmp.Compare(b.CpuCores, a.CpuCores)
		case "memory":
			return cmp.Compare(b.RssBytes, a.RssBytes)
		case "step":
			return cmp.Compare(a.Step, b.Step)
		case "net":
			return cmp.Compare(b.ReceivedBytesPerSecond+b.SentBytesPerSecond, a.ReceivedBytesPerSecond+a.SentBytesPerSecond)
		case "GPU":
			return cmp.Compare(b.GpuPercent, a.GpuPercent)
		}
		return 0 // as the job has them
	})
	if v.reverse {
		slices.Reverse(list)
	}
	return list
}

// draw writes the screen.
func (v *topView) draw(w io.Writer, width, height int, now time.Time) {
	var b bytes.Buffer
	b.WriteString(toTop)
	for i, line := range v.screen(width, height, now) {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(terminal.Cut(terminal.Line(line), width) + restOfLine)
	}
	b.WriteString(restBelow)
	_, _ = w.Write(b.Bytes()) // the terminal has gone; its keys tell
}

// screen returns at most height lines.
func (v *topView) screen(width, height int, now time.Time) []string {
	p := &Progress{width: width + 1, now: func() time.Time { return now }, started: now}
	s := v.status
	lines := append([]string{s.Id + "  " + s.Name}, p.block(s)...)
	lines = append(lines, "")
	help := keyLine()
	room := max(height-len(lines)-1, 0)
	switch v.showing {
	case "log":
		lines = append(lines, fmt.Sprintf("What %s wrote last:", v.selected))
		shown := v.log[max(0, len(v.log)-max(room-1, 0)):]
		for _, l := range shown {
			lines = append(lines, terminal.Shown(l, false))
		}
		help = "q back"
	case "incidents":
		lines = append(lines, v.incidents(width, room)...)
		help = "q back"
	case "keys":
		for _, k := range TopKeys() {
			lines = append(lines, fmt.Sprintf("%-13s  %s", k.Keys, k.Does))
		}
		help = "q back"
	default:
		lines = append(lines, v.tasks(width, room, now)...)
	}
	for len(lines) < height-1 {
		lines = append(lines, "")
	}
	return append(lines[:max(min(len(lines), height-1), 0)], help)
}

// widthWithNetwork is how many columns a terminal has at least in which top says what tasks send
// and receive.
const widthWithNetwork = 100

// tasks returns the table of tasks, scrolled to the selected one.
func (v *topView) tasks(width, room int, now time.Time) []string {
	list := v.sorted()
	at := max(0, slices.IndexFunc(list, func(t *proto.TaskStatus) bool { return t.Task == v.selected }))
	rows := max(room-1, 1)
	first := min(max(0, at-rows+1), max(0, len(list)-rows))
	titles := []string{" ", "TASK", "STATE", "ATTEMPT", "STEP", "CPU", "MEMORY"}
	network := width >= widthWithNetwork && slices.ContainsFunc(list, (*proto.TaskStatus).HasTraffic)
	if network {
		titles = append(titles, "NET IN/OUT")
	}
	withGPUs := slices.ContainsFunc(list, (*proto.TaskStatus).HasGPUUse)
	if withGPUs {
		titles = append(titles, "GPU")
	}
	t := terminal.NewTable(append(titles, "NODE", "NOTE")...)
	t.Flexible, t.Optional = []string{"NODE", "NOTE"}, []string{"ATTEMPT", "NODE", "CPU", "NOTE"}
	t.Least = map[string]int{"NODE": 16, "NOTE": 24}
	for _, k := range list[first:min(len(list), first+rows)] {
		mark := " "
		if k.Task == v.selected {
			mark = ">"
		}
		row := []string{mark, k.Task, proto.StateWord(k.State), attempt(k.Attempt), number(k.Step), cpu(k), memoryOf(k)}
		if network {
			row = append(row, traffic(k))
		}
		if withGPUs {
			row = append(row, gpus(k))
		}
		t.Add(append(row, dash(k.Node), noteOrLine(v.status, k, now))...)
	}
	var b strings.Builder
	_ = t.Write(&b, width) // a Builder takes all
	return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
}

// noteOrLine returns the note of a task, or else what it wrote last and how long ago.
func noteOrLine(s *proto.JobStatus, k *proto.TaskStatus, now time.Time) string {
	if k.Why == "" && k.Line != "" && k.State == proto.TaskState_TASK_STATE_RUNNING {
		return age(k.LineAtUnixMs, now) + ": " + k.Line
	}
	return note(s, k)
}

// incidents returns the losses of the selected task, the last ones.
func (v *topView) incidents(width, room int) []string {
	of := IncidentsOf(v.status, v.selected)
	if len(of) == 0 {
		return []string{v.selected + " was never lost."}
	}
	var b strings.Builder
	_ = writeIncidents(&b, of[max(0, len(of)-max(room-2, 1)):], width) // a Builder takes all
	return append([]string{"Losses of " + v.selected + ":"}, strings.Split(strings.Trim(b.String(), "\n"), "\n")...)
}
