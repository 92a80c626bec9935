package jobs

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"holdfast/client/terminal"
	"holdfast/proto"
)

// IncidentsOf returns the losses of a task, the oldest first.
func IncidentsOf(s *proto.JobStatus, task string) []*proto.Incident {
	return slices.DeleteFunc(slices.Clone(s.Incidents), func(i *proto.Incident) bool { return i.Task != task })
}

// EventsOf returns what happened to a task, the oldest first.
func EventsOf(s *proto.JobStatus, task string) []*proto.JobEvent {
	return slices.DeleteFunc(slices.Clone(s.Events), func(e *proto.JobEvent) bool { return e.Task != task })
}

// WriteTask writes all that is known of a task for people. width is that of the terminal;
// 0: none.
func WriteTask(w io.Writer, s *proto.JobStatus, t *proto.TaskStatus, width int) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s of %s (%s)  %s\n", t.Task, s.Id, terminal.Clean(s.Name), proto.StateWord(t.State))
	if n := note(s, t); t.Why != "" {
		fmt.Fprintf(b, "  %s\n", indent(terminal.Clean(n), "  "))
	}
	fmt.Fprintln(b)
	line := func(name, value string) {
		if value != "" && value != "-" {
			fmt.Fprintf(b, "  %-14s %s\n", name, terminal.Clean(value))
		}
	}
	line("attempt", attempt(t.Attempt))
	line("step", number(t.Step))
	line("failures", number(int64(t.Failures)))
	if t.RestoreMs != nil {
		line("restored in", seconds(t.GetRestoreMs()))
	}
	if t.ExitCode != nil {
		line("last failure", exitText(t))
	}
	line("node", t.Node)
	line("container", t.Container)
	line("process", pid(t.Pid))
	line("memory", memoryOf(t))
	line("cores", cpu(t))
	line("GPUs", number(int64(t.Gpus)))
	line("GPU use", gpus(t))
	line("resources", t.OtherResources())
	if t.Port != 0 {
		line("address", fmt.Sprintf("%s:%d for its peers, really %s", t.Task, t.Port, dash(t.RealAddress)))
	}
	if t.WebUrl != "" {
		line("its page", t.WebUrl)
	}
	if t.AgentPid != 0 {
		line("agent", fmt.Sprintf("process %d, %s", t.AgentPid, memory(t.AgentRssBytes)))
	}
	line("interpreter", warmNote(t.WarmStatus, t.WarmRssBytes))
	if len(t.Stages) > 1 {
		var parts []string
		for _, p := range t.Stages {
			parts = append(parts, fmt.Sprintf("%s +%d ms", p.Name, p.AtUnixMs-t.Stages[0].AtUnixMs))
		}
		line("last start", strings.Join(parts, ", "))
	}
	if len(t.Tail) > 0 {
		fmt.Fprintf(b, "\n  the last lines of attempt %d:\n", max(0, proto.ReasonOf(s, t)))
		for _, l := range t.Tail {
			fmt.Fprintf(b, "    | %s\n", terminal.Clean(l))
		}
	}
	if err := writeIncidents(b, IncidentsOf(s, t.Task), width); err != nil {
		return err
	}
	if events := EventsOf(s, t.Task); len(events) > 0 {
		fmt.Fprintln(b)
		for _, e := range events[max(0, len(events)-eventsShown):] {
			fmt.Fprintln(b, eventLine(e))
		}
	}
	fmt.Fprintf(b, "\nall of its output: yarn-submit logs %s %s\n", s.Id, t.Task)
	_, err := io.WriteString(w, b.String())
	return err
}

// exitText says how the last attempt that failed ended.
func exitText(t *proto.TaskStatus) string {
	if t.ExitSignal != 0 {
		return fmt.Sprintf("ended by signal %d", t.ExitSignal)
	}
	return fmt.Sprintf("exit code %d", t.GetExitCode())
}

// age returns the time since a moment in milliseconds since 1970; "" for 0.
func age(ms int64, now time.Time) string {
	if ms == 0 {
		return ""
	}
	return duration(max(0, now.Sub(time.UnixMilli(ms))))
}
