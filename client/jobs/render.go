package jobs

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"holdfast/client/terminal"
	"holdfast/hdfsckpt/formats"
	"holdfast/proto"
	"holdfast/runtime"
)

// scalarsShown is how many of the scalars that a program reports are told in a line.
const scalarsShown = 4

// eventsShown is how many events status shows.
const eventsShown = 20

// WriteStatus writes a job's state for people. width is that of the terminal; 0: none,
// and nothing is cut.
func WriteStatus(w io.Writer, s *proto.JobStatus, width int) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s  %s  %s", s.Id, terminal.Clean(s.Name), proto.StateWord(s.State))
	if took := elapsed(s); took != "" {
		fmt.Fprintf(b, "  %s", took)
	}
	fmt.Fprintln(b)
	if s.Why != "" {
		fmt.Fprintf(b, "  %s\n", indent(terminal.Clean(s.Why), "  "))
	}
	if z := zone(); z != "" && len(s.Events) > 0 {
		fmt.Fprintf(b, "  times are %s\n", z)
	}
	if s.Queue != "" {
		fmt.Fprintf(b, "  queue: %s\n", terminal.Clean(s.Queue))
	}
	if s.TrackingUrl != "" && !s.State.Done() {
		fmt.Fprintf(b, "  page: %s\n", s.TrackingUrl)
	}
	for _, k := range s.Notable() {
		if k.WebUrl != "" {
			fmt.Fprintf(b, "  page of %s: %s\n", k.Task, k.WebUrl)
		}
	}
	for _, c := range s.Checkpoints {
		fmt.Fprintf(b, "  checkpoints: %s -> %s\n", c.Path, c.Uri)
		if when := formats.CompleteWhen(runtime.CheckpointRule(c)); when != "" {
			fmt.Fprintf(b, "    complete when %s\n", when)
		}
	}
	if s.Step > 0 {
		fmt.Fprintf(b, "  %s", stepOf(s))
		if s.StepsPerSecond > 0 && !s.State.Done() {
			fmt.Fprintf(b, ", %.3g a second", s.StepsPerSecond)
		}
		if left := s.Remaining(); left > 0 {
			fmt.Fprintf(b, ", %s left", duration(left))
		}
		for _, v := range s.Scalars[:min(len(s.Scalars), scalarsShown)] {
			fmt.Fprintf(b, ", %s %.4g", v.Name, v.Value)
		}
		if s.CompleteStep > 0 {
			fmt.Fprintf(b, "; the newest complete checkpoint is of step %d", s.CompleteStep)
			if s.SaveMs != nil {
				fmt.Fprintf(b, ", saved in %s", seconds(s.GetSaveMs()))
			}
		}
		fmt.Fprintln(b)
	}
	if g := group(s); g != "" {
		fmt.Fprintf(b, "  %s\n", indent(g, "  "))
	}
	if text := s.Stragglers(); text != "" {
		fmt.Fprintf(b, "  %s\n", text)
	}
	if len(s.Tasks) > 0 {
		fmt.Fprintln(b)
		shown := s.Notable()
		if len(shown) < len(s.Tasks) {
			fmt.Fprintf(b, "%s\n(%d of %d tasks are shown, first those that do not run: --output json has all)\n", s.TaskCounts(), len(shown), len(s.Tasks))
		}
		t := terminal.NewTable("TASK", "STATE", "ATTEMPT", "STEP", "EACH", "NODE", "MEMORY", "NOTE")
		t.Flexible, t.Optional = []string{"NODE", "NOTE"}, []string{"EACH", "MEMORY", "ATTEMPT"}
		for _, k := range shown {
			t.Add(k.Task, proto.StateWord(k.State), attempt(k.Attempt), number(k.Step), dash(k.StepTime()), dash(k.Node), memoryOf(k), note(s, k))
		}
		if err := t.Write(b, width); err != nil {
			return err
		}
	}
	if failing(s) != nil {
		fmt.Fprintln(b)
		writeFailing(b, s)
	}
	if err := writeSpares(b, s.Spares, width); err != nil {
		return err
	}
	if err := writeAvoided(b, s.Avoiding(time.Now()), width); err != nil {
		return err
	}
	if err := writeIncidents(b, s.Incidents, width); err != nil {
		return err
	}
	if err := writeGenerations(b, s.Generations, width); err != nil {
		return err
	}
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

// group says with how many tasks the job works, and without which since when; "" where it
// works with all of them.
func group(s *proto.JobStatus) string {
	without := s.Without(clock)
	if g := s.Group(); g != "" && without != "" {
		return g + ": " + without
	} else if g != "" {
		return g
	}
	return without
}

// zone names the zone of this machine's clock, by which times are shown; "" if it is UTC.
func zone() string {
	name, offset := time.Now().Zone()
	if offset == 0 {
		return ""
	}
	return name
}

// clock writes a time of day, by this machine's clock.
func clock(unixMs int64) string { return time.UnixMilli(unixMs).Format("15:04:05") }

// stepOf returns the job's step, with the number of all where the program says that.
func stepOf(s *proto.JobStatus) string {
	if s.TotalSteps < s.Step || s.TotalSteps == 0 {
		return fmt.Sprintf("step %d", s.Step)
	}
	return fmt.Sprintf("step %d/%d", s.Step, s.TotalSteps)
}

// note returns why a task is in its state, or what else there is to say about it, first of
// all that it is a straggler. The
// cause of an earlier attempt's loss is given with the number of that attempt.
func note(s *proto.JobStatus, k *proto.TaskStatus) string {
	if slow := k.Slow(); slow != "" {
		return slow
	}
	if k.ParkedSinceUnixMs != 0 {
		return fmt.Sprintf("since %s %s", clock(k.ParkedSinceUnixMs), k.Why)
	}
	if k.Why == "" {
		return warmNote(k.WarmStatus, k.WarmRssBytes)
	}
	if of, is := proto.EarlierReason(s, k); is {
		return fmt.Sprintf("attempt %d: %s", of, k.Why)
	}
	return k.Why
}

// warmNote describes a warm interpreter.
func warmNote(says string, rss int64) string {
	if rss == 0 {
		return says
	}
	return fmt.Sprintf("%s, %s", says, memory(rss))
}

// writeSpares writes a table of the spare containers.
func writeSpares(b *strings.Builder, list []*proto.SpareStatus, width int) error {
	if len(list) == 0 {
		return nil
	}
	fmt.Fprintln(b)
	t := terminal.NewTable("SPARE", "NODE", "MEMORY", "PID", "NOTE")
	t.Flexible, t.Optional = []string{"SPARE", "NODE", "NOTE"}, []string{"PID"}
	for _, k := range list {
		t.Add(k.Container, dash(k.Node), memory(k.AgentRssBytes), pid(k.AgentPid), warmNote(k.WarmStatus, k.WarmRssBytes))
	}
	return t.Write(b, width)
}

// writeAvoided writes a table of the nodes that are avoided.
func writeAvoided(b *strings.Builder, list []*proto.AvoidedNode, width int) error {
	if len(list) == 0 {
		return nil
	}
	fmt.Fprintln(b)
	t := terminal.NewTable("AVOIDED NODE", "UNTIL", "WHY")
	t.Flexible = []string{"AVOIDED NODE", "WHY"}
	for _, n := range list {
		until := "in service again"
		if n.UntilUnixMs != 0 {
			until = clock(n.UntilUnixMs)
		}
		t.Add(n.Node, until, n.Why)
	}
	return t.Write(b, width)
}

// generationsShown is how many generations status shows.
const generationsShown = 5

// writeGenerations lists the generations of tasks that restart together, if there was more
// than one.
func writeGenerations(b *strings.Builder, list []*proto.Generation, width int) error {
	if len(list) < 2 {
		return nil
	}
	fmt.Fprintln(b)
	if n := len(list) - generationsShown; n > 0 {
		fmt.Fprintf(b, "(%d earlier generations: --output json has all)\n", n)
		list = list[n:]
	}
	t := terminal.NewTable("GENERATION", "BEGAN AT", "TASKS", "STEPS", "A SECOND", "WITHOUT")
	t.Flexible, t.Optional = []string{"WITHOUT"}, []string{"BEGAN AT"}
	for _, g := range list {
		steps, rate := "-", "-"
		if g.FirstStep != 0 {
			steps = fmt.Sprintf("%d to %d", g.FirstStep, g.LastStep)
		}
		if g.StepsPerSecond != 0 {
			rate = fmt.Sprintf("%.3g", g.StepsPerSecond)
		}
		t.Add(fmt.Sprint(g.Number), clock(g.StartedUnixMs), fmt.Sprintf("%d of %d", g.Tasks, g.Of), steps, rate, dash(strings.Join(g.Parked, ", ")))
	}
	return t.Write(b, width)
}

// incidentsShown is how many losses status shows.
const incidentsShown = 10

// writeIncidents writes a table of the last losses.
func writeIncidents(b *strings.Builder, list []*proto.Incident, width int) error {
	if len(list) == 0 {
		return nil
	}
	fmt.Fprintln(b)
	if n := len(list) - incidentsShown; n > 0 {
		fmt.Fprintf(b, "(%d earlier losses: --output json has all)\n", n)
		list = list[n:]
	}
	t := terminal.NewTable("LOST AT", "TASK", "CAUSE", "BACK IN", "STEPS LOST", "STEPS IN", "HOW")
	t.Flexible, t.Optional = []string{"CAUSE", "HOW"}, []string{"STEPS IN", "STEPS LOST"}
	for _, i := range list {
		back, steps, lost := "-", "-", "-"
		if i.RecoveredUnixMs != 0 {
			back = fmt.Sprintf("%.1f s", float64(i.RecoveredAfterMs)/1000)
		}
		if i.ResumedStep != 0 {
			lost = fmt.Sprint(i.LostSteps)
			steps = fmt.Sprintf("%.1f s", float64(i.ProgressAfterMs)/1000)
		}
		t.Add(clock(i.AtUnixMs), i.Task, i.Cause, back, lost, steps, dash(i.Recovery))
	}
	return t.Write(b, width)
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

// ListStyle is how WriteList writes a list.
type ListStyle struct {
	Width int  // of the terminal; 0: none
	Users bool // whose jobs they are
	Wide  bool // all columns, nothing cut
}

// WriteList writes a list of jobs for people. Why a job failed or was killed stands below it in
// a terminal, and elsewhere in a column of its own.
func WriteList(w io.Writer, list []*proto.JobSummary, o ListStyle) error {
	if o.Wide {
		o.Width = 0
	}
	since := "STARTED"
	if z := zone(); z != "" {
		since += " (" + z + ")"
	}
	titles := []string{"JOB", "NAME", "STATE", "STEP", since, "TOOK"}
	users, where, why := o.Users || o.Wide, o.Wide, o.Width == 0
	if users {
		titles = append(titles, "USER")
	}
	if where {
		titles = append(titles, "WHERE")
	}
	if why {
		titles = append(titles, "WHY")
	}
	t := terminal.NewTable(titles...)
	t.Flexible, t.Optional = []string{"NAME", "USER"}, []string{since, "STEP", "TOOK"}
	for _, e := range list {
		started, took := time.UnixMilli(e.StartedUnixMs), "-"
		if d, known := lasted(e, time.Now()); known {
			took = duration(d)
		}
		row := []string{e.Id, e.Name, proto.StateWord(e.State), number(e.Step), started.Format("01-02 15:04"), took}
		if o.Wide {
			row[4] = started.Format(time.DateTime)
		}
		if users {
			row = append(row, e.User)
		}
		if where {
			row = append(row, e.Where)
		}
		if why {
			row = append(row, reason(e))
		}
		t.Add(row...)
		if text := reason(e); text != "" && !why {
			t.AddBelow(text, 2) // the error stands at its end
		}
	}
	return t.Write(w, o.Width)
}

// reason returns why a job failed or was killed, in a line; empty for others.
func reason(e *proto.JobSummary) string {
	if e.State != proto.JobState_JOB_STATE_FAILED && e.State != proto.JobState_JOB_STATE_KILLED {
		return ""
	}
	return strings.Join(strings.Fields(e.Why), " ")
}

// seconds returns a time in milliseconds as text: 2.1 s.
func seconds(ms int64) string { return fmt.Sprintf("%.1f s", float64(ms)/1000) }

// number returns a count as text; "-" for 0.
func number(n int64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// duration returns a time as text of at most six characters: 850ms, 12s, 3m20s, 2h05m, 4d03h.
func duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

// elapsed returns how long a job has gone on, or did; "" if that is not known.
func elapsed(s *proto.JobStatus) string {
	d, known := lasted(s, time.Now())
	if !known {
		return ""
	}
	return d.Round(100 * time.Millisecond).String()
}

// lasted returns how long a job has gone on, or did, and whether that is known: of one that is over, it
// may not be known when it ended.
func lasted(j interface {
	GetState() proto.JobState
	GetStartedUnixMs() int64
	GetEndedUnixMs() int64
}, now time.Time) (d time.Duration, known bool) {
	started, ended := j.GetStartedUnixMs(), j.GetEndedUnixMs()
	switch {
	case started == 0, ended == 0 && j.GetState().Done():
		return 0, false
	case ended != 0:
		now = time.UnixMilli(ended)
	}
	return now.Sub(time.UnixMilli(started)), true
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

// cpu returns the cores that a task uses, and how many its container has.
func cpu(k *proto.TaskStatus) string {
	if k.RssBytes == 0 {
		return "-"
	}
	text := fmt.Sprintf("%.1f", k.CpuCores)
	if k.Vcores > 0 {
		text += fmt.Sprintf("/%d", k.Vcores)
	}
	return text
}

// traffic returns what a task receives and sends a second: 12 MiB/3 KiB.
func traffic(k *proto.TaskStatus) string {
	if !k.HasTraffic() {
		return "-"
	}
	return humanize.IBytes(uint64(k.ReceivedBytesPerSecond)) + "/" + humanize.IBytes(uint64(k.SentBytesPerSecond))
}

// gpus returns what the GPUs of a task do, and how much of their memory is in use.
func gpus(k *proto.TaskStatus) string {
	if !k.HasGPUUse() {
		return "-"
	}
	return fmt.Sprintf("%.0f%% %s", k.GpuPercent, part(k.GpuMemoryBytes, k.GpuMemoryLimitBytes))
}

// memoryOf returns the memory that a task uses, and how much its container has.
func memoryOf(k *proto.TaskStatus) string {
	return part(k.RssBytes, k.MemoryLimitBytes)
}

// part returns how much is used of how much, in bytes.
func part(n, of int64) string {
	if n == 0 || of == 0 {
		return memory(n)
	}
	used, limit := memory(n), memory(of)
	unit := limit[strings.LastIndexByte(limit, ' '):]
	return strings.TrimSuffix(used, unit) + "/" + limit
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
