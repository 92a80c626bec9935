package jobs

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"

	"holdfast/client/terminal"
	"holdfast/proto"
	"holdfast/runtime"
)

// eventsShown is how many events status shows.
const eventsShown = 20

// WriteStatus writes a job's state for people.
func WriteStatus(w io.Writer, s *proto.JobStatus) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s  %s  %s", s.Id, terminal.Clean(s.Name), proto.StateWord(s.State))
	if s.StartedUnixMs != 0 {
		fmt.Fprintf(b, "  %s", elapsed(s))
	}
	fmt.Fprintln(b)
	if s.Why != "" {
		fmt.Fprintf(b, "  %s\n", indent(terminal.Clean(s.Why), "  "))
	}
	if s.TrackingUrl != "" && !s.State.Done() {
		fmt.Fprintf(b, "  page: %s\n", s.TrackingUrl)
	}
	for _, c := range s.Checkpoints {
		fmt.Fprintf(b, "  checkpoints: %s -> %s\n", c.Path, c.Uri)
		if when := runtime.CheckpointRule(c).CompleteWhen(); when != "" {
			fmt.Fprintf(b, "    complete when %s\n", when)
		}
	}
	if s.Step > 0 {
		fmt.Fprintf(b, "  step %d", s.Step)
		if s.StepsPerSecond > 0 && !s.State.Done() {
			fmt.Fprintf(b, ", %.3g a second", s.StepsPerSecond)
		}
		if s.CompleteStep > 0 {
			fmt.Fprintf(b, "; the newest complete checkpoint is of step %d", s.CompleteStep)
		}
		fmt.Fprintln(b)
	}
	if len(s.Tasks) > 0 {
		fmt.Fprintln(b)
		shown := s.Notable()
		if len(shown) < len(s.Tasks) {
			fmt.Fprintf(b, "%s\n(%d of %d tasks are shown, first those that do not run: --output json has all)\n", s.TaskCounts(), len(shown), len(s.Tasks))
		}
		t := tabwriter.NewWriter(b, 2, 8, 2, ' ', 0)
		fmt.Fprintln(t, "TASK\tSTATE\tATTEMPT\tFAILURES\tNODE\tMEMORY\tPID\tNOTE")
		for _, k := range shown {
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", k.Task, proto.StateWord(k.State), attempt(k.Attempt),
				k.Failures, dash(k.Node), memory(k.RssBytes), pid(k.Pid), terminal.Clean(strings.ReplaceAll(note(s, k), "\n", " ")))
		}
		t.Flush()
	}
	if failing(s) != nil {
		fmt.Fprintln(b)
		writeFailing(b, s)
	}
	writeSpares(b, s.Spares)
	writeIncidents(b, s.Incidents)
	if n := len(s.Events); n > 0 {
		fmt.Fprintln(b)
		first := max(0, n-eventsShown)
		if first > 0 {
			fmt.Fprintf(b, "(%d earlier lines: --output json has all)\n", first)
		}
		for _, m := range s.Events[first:] {
			fmt.Fprintln(b, eventLine(m))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// note returns why a task is in its state, or what else there is to say about it. The
// cause of an earlier attempt's loss is given with the number of that attempt.
func note(s *proto.JobStatus, k *proto.TaskStatus) string {
	if k.Why == "" {
		return warmNote(k.WarmStatus, k.WarmRssBytes)
	}
	why := k.Why
	if strings.HasPrefix(why, "exited with ") { // the tail is of an earlier end otherwise
		if e := exception(k.Tail); e != "" && !strings.Contains(why, e) {
			why += ": " + e
		}
	}
	if of, is := proto.EarlierReason(s, k); is {
		return fmt.Sprintf("attempt %d: %s", of, why)
	}
	return why
}

// exceptionLine matches the last line of a Python traceback.
var exceptionLine = regexp.MustCompile(`^[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit|Warning)(: .*)?$`)

// exception returns the error at the end of the last traceback in a program's output;
// empty if there is none.
func exception(tail []string) string {
	found := ""
	in := false
	for _, line := range tail {
		switch {
		case strings.HasPrefix(line, "Traceback (most recent call last):"):
			in = true
		case in && line != "" && !strings.HasPrefix(line, " "), exceptionLine.MatchString(line):
			in, found = false, line
		}
	}
	return cutTo(found, 200)
}

// warmNote describes a warm interpreter.
func warmNote(says string, rss int64) string {
	if rss == 0 {
		return says
	}
	return fmt.Sprintf("%s, %s", says, memory(rss))
}

// writeSpares writes a table of the spare containers.
func writeSpares(b *strings.Builder, list []*proto.SpareStatus) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(b)
	t := tabwriter.NewWriter(b, 2, 8, 2, ' ', 0)
	fmt.Fprintln(t, "SPARE\tNODE\tMEMORY\tPID\tNOTE")
	for _, k := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", k.Container, dash(k.Node), memory(k.AgentRssBytes), pid(k.AgentPid), terminal.Clean(warmNote(k.WarmStatus, k.WarmRssBytes)))
	}
	t.Flush()
}

// incidentsShown is how many losses status shows.
const incidentsShown = 10

// writeIncidents writes a table of the last losses.
func writeIncidents(b *strings.Builder, list []*proto.Incident) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(b)
	if n := len(list) - incidentsShown; n > 0 {
		fmt.Fprintf(b, "(%d earlier losses: --output json has all)\n", n)
		list = list[n:]
	}
	t := tabwriter.NewWriter(b, 2, 8, 2, ' ', 0)
	fmt.Fprintln(t, "LOST AT\tTASK\tCAUSE\tBACK AFTER\tSTEPS AFTER\tHOW\tSTEPS LOST")
	for _, i := range list {
		back, steps, lost := "-", "-", "-"
		if i.RecoveredUnixMs != 0 {
			back = fmt.Sprintf("%.1f s", float64(i.RecoveredAfterMs)/1000)
		}
		if i.ResumedStep != 0 {
			lost = fmt.Sprint(i.LostSteps)
			steps = fmt.Sprintf("%.1f s", float64(i.ProgressAfterMs)/1000)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", time.UnixMilli(i.AtUnixMs).Format("15:04:05"), i.Task, i.Cause, back, steps, dash(i.Recovery), lost)
	}
	t.Flush()
}

// eventLine formats an event.
func eventLine(m *proto.JobEvent) string {
	line := time.UnixMilli(m.AtUnixMs).Format("15:04:05.000")
	if m.Task != "" {
		line += "  " + m.Task
	}
	line += "  " + terminal.Clean(strings.ReplaceAll(m.Text, "\n", "; "))
	if m.SinceLossMs > 0 {
		line += fmt.Sprintf("  (%.1f s after the loss)", float64(m.SinceLossMs)/1000)
	}
	return line
}

// WriteFailure writes why a job did not succeed: the failing task, its last output, and
// where the rest is.
func WriteFailure(w io.Writer, s *proto.JobStatus) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s %s", s.Id, proto.StateWord(s.State))
	if s.Why != "" {
		fmt.Fprintf(b, ": %s", indent(terminal.Clean(s.Why), "  "))
	}
	fmt.Fprintln(b)
	writeFailing(b, s)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeFailing writes the last output of the task that made the job fail, and where the
// rest is.
func writeFailing(b *strings.Builder, s *proto.JobStatus) {
	t := failing(s)
	if t == nil {
		return
	}
	of := t.Attempt
	if n := proto.ReasonOf(s, t); n >= 0 {
		of = n
	}
	fmt.Fprintf(b, "  %s", t.Task)
	if of >= 0 {
		fmt.Fprintf(b, ", attempt %d", of)
	}
	if t.Node != "" && of == t.Attempt {
		fmt.Fprintf(b, " on %s", t.Node)
	}
	if t.Why != "" && !strings.Contains(s.Why, t.Why) {
		fmt.Fprintf(b, ": %s", indent(terminal.Clean(t.Why), "  "))
	}
	fmt.Fprintln(b)
	if len(t.Tail) > 1 || len(t.Tail) == 1 && !strings.Contains(s.Why, t.Tail[0]) {
		fmt.Fprintln(b, "  the last lines that it wrote:")
		for _, l := range t.Tail {
			fmt.Fprintf(b, "    | %s\n", terminal.Clean(l))
		}
	}
	if t.Attempt >= 0 {
		fmt.Fprintf(b, "  all of its output: yarn-submit logs %s %s\n", s.Id, t.Task)
	}
}

// failing returns the task that made the job fail, or nil.
func failing(s *proto.JobStatus) *proto.TaskStatus {
	if s.State != proto.JobState_JOB_STATE_FAILED {
		return nil
	}
	for _, t := range s.Tasks {
		if t.State == proto.TaskState_TASK_STATE_FAILED {
			return t
		}
	}
	var found *proto.TaskStatus
	for _, t := range s.Tasks {
		if len(t.Tail) > 0 && (found == nil || t.Failures > found.Failures) {
			found = t
		}
	}
	return found
}

// WriteList writes a list of jobs for people.
func WriteList(w io.Writer, list []Entry) error {
	t := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	fmt.Fprintln(t, "JOB\tNAME\tUSER\tWHERE\tSTATE\tSTARTED\tTOOK")
	for _, e := range list {
		end := e.Ended
		if end.IsZero() {
			end = time.Now()
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.ID, terminal.Clean(e.Name), e.User, e.Where, e.State,
			e.Started.Format("2006-01-02 15:04:05"), end.Sub(e.Started).Round(time.Second))
	}
	return t.Flush()
}

func elapsed(s *proto.JobStatus) string {
	end := time.Now()
	if s.EndedUnixMs != 0 {
		end = time.UnixMilli(s.EndedUnixMs)
	}
	return end.Sub(time.UnixMilli(s.StartedUnixMs)).Round(100 * time.Millisecond).String()
}

func indent(s, by string) string {
	return strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n"+by+"  ")
}

func attempt(n int32) string {
	if n < 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func pid(n int32) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func memory(n int64) string {
	if n == 0 {
		return "-"
	}
	return humanize.IBytes(uint64(n))
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
