package jobs

import (
	"fmt"
	"io"
	"strings"
	"time"

	"holdfast/client/terminal"
	"holdfast/proto"
)

// Progress shows a job that is followed: the events as they come and, in a terminal, a
// block of lines with the current state below them, which is overwritten. It is not safe
// for concurrent use.
type Progress struct {
	out   io.Writer
	width int // of the terminal; 0: no terminal
	now   func() time.Time

	shown   *proto.JobEvent // the last that was written
	said    string          // the last state that was written without a terminal
	page    string
	live    int // lines of the block that stands above the cursor, and in its line
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

// Clear erases the block.
func (p *Progress) Clear() {
	if p.live > 0 {
		fmt.Fprint(terminal.Raw(p.out), "\r\x1b[K"+strings.Repeat("\x1b[1A\x1b[K", p.live-1))
		p.live = 0
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
			block := p.block(s)
			fmt.Fprint(p.out, strings.Join(block, "\n"))
			p.live = len(block)
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

// blockLines is how many lines a block has at most: it must fit the lowest terminal.
const blockLines = 8

// scalarsInBlock is how many of the scalars that a program reports a block tells.
const scalarsInBlock = 2

// block returns the lines of the block: the state, with step, rate, what the program reports
// (the loss) and the newest complete checkpoint; the roles; and why.
func (p *Progress) block(s *proto.JobStatus) []string {
	head := proto.StateWord(s.State)
	if took, known := lasted(s, p.now()); known {
		head += " " + took.Round(time.Second).String()
	} else if !s.State.Done() {
		head += " " + p.now().Sub(p.started).Round(time.Second).String()
	}
	parts := []string{head}
	if s.Step > 0 {
		step := stepOf(s)
		if s.StepsPerSecond > 0 {
			step += fmt.Sprintf(", %.3g/s", s.StepsPerSecond)
		}
		if left := s.Remaining(); left > 0 {
			step += ", " + duration(left) + " left"
		}
		parts = append(parts, step)
	}
	for _, v := range s.Scalars[:min(len(s.Scalars), scalarsInBlock)] {
		parts = append(parts, fmt.Sprintf("%s %.4g", v.Name, v.Value))
	}
	if s.CompleteStep > 0 {
		text := fmt.Sprintf("checkpoint %d", s.CompleteStep)
		if a := age(s.CompleteStepAtUnixMs, p.now()); a != "" {
			text += ", " + a + " ago"
		}
		parts = append(parts, text)
	}
	lines := []string{strings.Join(parts, " | ")}
	if g := group(s); g != "" {
		lines = append(lines, g)
	}
	lines = append(lines, roleLines(s, p.width-1)...)
	if s.Why != "" {
		lines = append(lines, strings.ReplaceAll(s.Why, "\n", "; "))
	}
	lines = lines[:min(len(lines), blockLines)]
	for i := range lines {
		lines[i] = terminal.Cut(terminal.Line(lines[i]), p.width-1)
	}
	return lines
}

// roleLines says of each role how many of its tasks run or have succeeded, and how many are
// in other states, in lines of at most width characters where a role fits one.
func roleLines(s *proto.JobStatus, width int) []string {
	var lines []string
	for _, c := range s.Roles() {
		good := 0
		var others []string
		for _, in := range c.States() {
			switch in.State {
			case proto.TaskState_TASK_STATE_RUNNING, proto.TaskState_TASK_STATE_SUCCEEDED:
				good += in.N
			default:
				others = append(others, fmt.Sprintf("%d %s", in.N, in.Word()))
			}
		}
		text := fmt.Sprintf("%s %d/%d", c.Role, good, c.All)
		if len(others) > 0 {
			text += " (" + strings.Join(others, ", ") + ")"
		}
		if last := len(lines) - 1; last >= 0 && len(lines[last])+3+len(text) <= width {
			lines[last] += " | " + text
		} else {
			lines = append(lines, text)
		}
	}
	return lines
}
