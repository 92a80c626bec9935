package jobs

import (
	"fmt"
	"io"
	"strings"
	"time"

	"holdfast/client/terminal"
	"holdfast/proto"
)

// Progress shows a job that is followed: the events as they come and, in a terminal,
// one line with the current state below them, which is overwritten. It is not safe for
// concurrent use.
type Progress struct {
	out   io.Writer
	width int // of the terminal; 0: no terminal
	now   func() time.Time

	shown   *proto.JobEvent // the last that was written
	said    string          // the last state that was written without a terminal
	page    string
	live    bool // a live line stands at the cursor
	started time.Time
}

// NewProgress writes to out, a terminal of width columns; 0 means that it is no
// terminal.
func NewProgress(out io.Writer, width int) *Progress {
	return &Progress{out: out, width: width, now: time.Now, started: time.Now()}
}

// Line writes a line of its own.
func (p *Progress) Line(format string, args ...any) {
	p.Clear()
	fmt.Fprintf(p.out, format+"\n", args...)
}

// Clear erases the live line.
func (p *Progress) Clear() {
	if p.live {
		fmt.Fprint(terminal.Raw(p.out), "\r\x1b[K")
		p.live = false
	}
}

// Show shows what has changed in s.
func (p *Progress) Show(s *proto.JobStatus) {
	if s.TrackingUrl != "" && s.TrackingUrl != p.page && !s.State.Done() {
		p.page = s.TrackingUrl
		p.Line("page: %s", p.page)
	}
	for _, m := range p.newEvents(s.Events) {
		p.Line("%s", eventLine(m))
		p.shown = m
	}
	if p.width > 0 {
		p.Clear()
		if !s.State.Done() {
			fmt.Fprint(p.out, cutTo(p.summary(s), p.width-1))
			p.live = true
		}
		return
	}
	// Without a terminal, a state is written when it changes, with what the job waits
	// for.
	if s.State.Done() {
		return // Follow tells the end
	}
	said := proto.StateWord(s.State)
	if s.Why != "" && (p.shown == nil || !strings.Contains(p.shown.Text, s.Why)) {
		said += ": " + terminal.Clean(strings.ReplaceAll(s.Why, "\n", "; "))
	}
	if said != p.said {
		p.said = said
		p.Line("%s  %s", p.now().Format("15:04:05.000"), said)
	}
}

// newEvents returns the events after the last one shown. The master drops the middle of
// a long event log, so that event is found by its content.
func (p *Progress) newEvents(all []*proto.JobEvent) []*proto.JobEvent {
	if p.shown == nil {
		return all
	}
	for i := len(all) - 1; i >= 0; i-- {
		m := all[i]
		if m.AtUnixMs == p.shown.AtUnixMs && m.Task == p.shown.Task && m.Kind == p.shown.Kind && m.Text == p.shown.Text {
			return all[i+1:]
		}
		if m.AtUnixMs < p.shown.AtUnixMs {
			return all[i+1:]
		}
	}
	return all
}

// summary returns the live line.
func (p *Progress) summary(s *proto.JobStatus) string {
	start := p.started
	if s.StartedUnixMs != 0 {
		start = time.UnixMilli(s.StartedUnixMs)
	}
	parts := []string{proto.StateWord(s.State) + " " + p.now().Sub(start).Round(time.Second).String()}
	var roles []string
	running, all := map[string]int{}, map[string]int{}
	for _, t := range s.Tasks {
		if all[t.Role] == 0 {
			roles = append(roles, t.Role)
		}
		all[t.Role]++
		switch t.State {
		case proto.TaskState_TASK_STATE_RUNNING, proto.TaskState_TASK_STATE_SUCCEEDED:
			running[t.Role]++
		}
	}
	for _, r := range roles {
		parts = append(parts, fmt.Sprintf("%s %d/%d", r, running[r], all[r]))
	}
	if s.Why != "" {
		parts = append(parts, terminal.Clean(strings.ReplaceAll(s.Why, "\n", "; ")))
	}
	return strings.Join(parts, " | ")
}

func cutTo(s string, width int) string {
	r := []rune(s)
	if len(r) <= width {
		return s
	}
	if width < 4 {
		return ""
	}
	return string(r[:width-3]) + "..."
}
