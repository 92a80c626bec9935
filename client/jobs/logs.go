package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"holdfast/client"
	"holdfast/internal/backoff"
	"holdfast/proto"
)

// LogOptions select the output that Logs returns.
type LogOptions struct {
	Task    string // or a role, of which all tasks are meant; empty: of all tasks
	Attempt int    // -1: of all attempts
	Follow  bool   // go on until the job has ended
}

// LogLine is a line of a task's output.
type LogLine struct {
	Task    string `json:"task"`
	Attempt int    `json:"attempt"`
	// Process is which of the attempt's processes wrote it, where there are several.
	Process int    `json:"process,omitempty"`
	Text    string `json:"text"`
}

func (o *output) line(text string) LogLine {
	return LogLine{Task: o.task, Attempt: o.attempt, Process: o.process, Text: text}
}

// logPace is the interval at which a followed job is polled: agents flush output every
// second or two.
const logPace = 500 * time.Millisecond

// output is the log of one process of an attempt, and how far it was read.
type output struct {
	task    string
	attempt int
	process int
	name    string // of its file
	offset  int64
	rest    string // an unfinished line
}

// Logs calls emit with the lines that tasks wrote, in the order of tasks and attempts;
// with Follow, also with new ones until the job ends. A log that cannot be read does
// not prevent the others from being read: the error is returned at the end. If there is
// no output, silence says whose, and why.
func (j *Job) Logs(ctx context.Context, o LogOptions, emit func(LogLine) error) (silence string, err error) {
	known := map[string]*output{}
	for {
		// The state is read first, so that everything written before the end is read
		// after it.
		over := true
		if o.Follow {
			s, err := j.Status(ctx)
			if err != nil {
				return "", err
			}
			over = s.State.Done()
		}
		list, err := j.outputs(ctx, o)
		if err != nil {
			return "", err
		}
		if len(list) == 0 && over {
			s, err := j.Status(ctx)
			if err != nil {
				return "", err
			}
			return noLogs(s, o)
		}
		var unread []error
		for _, out := range list {
			key := out.task + "/" + out.name
			if known[key] == nil {
				known[key] = out
			}
			err, emitErr := j.copyLog(ctx, known[key], over, emit)
			if emitErr != nil {
				return "", emitErr
			}
			if err != nil {
				unread = append(unread, fmt.Errorf("read the log of attempt %d of %s: %w", out.attempt, out.task, err))
			}
		}
		if over || ctx.Err() != nil {
			return "", errors.Join(unread...)
		}
		if !backoff.Sleep(ctx, logPace) {
			return "", context.Cause(ctx)
		}
	}
}

// noLogs explains why there is no output: the tasks have written none, or there is no
// such task or attempt, which is a usage error.
func noLogs(s *proto.JobStatus, o LogOptions) (silence string, err error) {
	if len(s.Tasks) == 0 {
		return fmt.Sprintf("the tasks of %s have written nothing: the job is %s", s.Id, proto.StateWord(s.State)), nil
	}
	var names, known []string
	for _, t := range s.Tasks {
		names = append(names, t.Task)
		if !slices.Contains(known, t.Role) {
			known = append(known, t.Role)
		}
	}
	asked := names
	if o.Task != "" {
		asked = matchTasks(o.Task, names)
	}
	if len(asked) == 0 {
		some := strings.Join(names[:min(len(names), 10)], ", ")
		if len(names) > 10 {
			some += fmt.Sprintf(" and %d more", len(names)-10)
		}
		return "", client.Usagef("%s has no task and no role %q: its tasks are %s%s", s.Id, o.Task, some, client.DidYouMean(o.Task, append(known, names...)))
	}
	last, what := int32(-1), "the tasks of "+s.Id+" have"
	state := "the job is " + proto.StateWord(s.State)
	for _, t := range s.Tasks {
		if !slices.Contains(asked, t.Task) {
			continue
		}
		last = max(last, t.Attempt)
		if len(asked) == 1 {
			what, state = t.Task+" of "+s.Id+" has", "it is "+proto.StateWord(t.State)
		}
	}
	if o.Attempt > int(last) {
		switch last {
		case -1:
			return fmt.Sprintf("%s not begun an attempt yet: %s", what, state), nil
		case 0:
			return "", client.Usagef("%s no attempt %d: there is only attempt 0", what, o.Attempt)
		case 1:
			return "", client.Usagef("%s no attempt %d: there are only 0 and 1", what, o.Attempt)
		}
		return "", client.Usagef("%s no attempt %d: there are only 0 to %d", what, o.Attempt, last)
	}
	return fmt.Sprintf("%s written nothing: %s", what, state), nil
}

// matchTasks returns the task called ref, or else all tasks of the role ref.
func matchTasks(ref string, tasks []string) []string {
	if slices.Contains(tasks, ref) {
		return []string{ref}
	}
	return slices.DeleteFunc(slices.Clone(tasks), func(task string) bool {
		number, of := strings.CutPrefix(task, ref+"-")
		_, err := strconv.Atoi(number)
		return !of || err != nil
	})
}

// outputs lists the logs of attempts.
func (j *Job) outputs(ctx context.Context, o LogOptions) ([]*output, error) {
	root := path.Join(j.dir, proto.LogsDir)
	directories, err := j.home.List(ctx, root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the logs of %s: %w", j.ID, err)
	}
	var tasks []string
	for _, e := range directories {
		tasks = append(tasks, e.Name)
	}
	if o.Task != "" {
		tasks = matchTasks(o.Task, tasks)
	}
	sort.Slice(tasks, func(a, b int) bool { return taskLess(tasks[a], tasks[b]) })
	var found []*output
	for _, t := range tasks {
		list, err := j.home.List(ctx, path.Join(root, t))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list the logs of %s: %w", t, err)
		}
		var of []*output
		for _, e := range list {
			if out := parseLogName(e.Name); out != nil && (o.Attempt < 0 || o.Attempt == out.attempt) {
				out.task = t
				of = append(of, out)
			}
		}
		slices.SortFunc(of, func(a, b *output) int {
			return cmp.Or(cmp.Compare(a.attempt, b.attempt), cmp.Compare(a.process, b.process))
		})
		found = append(found, of...)
	}
	return found, nil
}

// parseLogName returns the output whose file has a name: ATTEMPT.log is that of the first
// process of an attempt, and ATTEMPT.PROCESS.log of another one. It is nil for other files.
func parseLogName(name string) *output {
	number, isLog := strings.CutSuffix(name, ".log")
	attempt, process, several := strings.Cut(number, ".")
	o := &output{name: name}
	var err1, err2 error
	o.attempt, err1 = strconv.Atoi(attempt)
	if several {
		o.process, err2 = strconv.Atoi(process)
	}
	if !isLog || err1 != nil || err2 != nil {
		return nil
	}
	return o
}

// taskLess orders worker-2 before worker-10.
func taskLess(a, b string) bool {
	i, k := strings.LastIndexByte(a, '-'), strings.LastIndexByte(b, '-')
	if i > 0 && k > 0 && a[:i] == b[:k] {
		n, err1 := strconv.Atoi(a[i+1:])
		m, err2 := strconv.Atoi(b[k+1:])
		if err1 == nil && err2 == nil {
			return n < m
		}
	}
	return a < b
}

// copyLog emits the new lines of a log; an unfinished line only if last.
func (j *Job) copyLog(ctx context.Context, o *output, last bool, emit func(LogLine) error) (err, emitErr error) {
	name := path.Join(j.dir, proto.LogsDir, o.task, o.name)
	r, err := j.home.Open(ctx, name)
	if err != nil {
		return err, nil
	}
	defer r.Close()
	buffer := make([]byte, 256<<10)
	for o.offset < r.Size() {
		n, err := r.ReadAt(buffer[:min(int64(len(buffer)), r.Size()-o.offset)], o.offset)
		if err != nil && err != io.EOF {
			return err, nil
		}
		if n == 0 {
			break
		}
		o.offset += int64(n)
		lines := strings.Split(o.rest+string(buffer[:n]), "\n")
		o.rest = lines[len(lines)-1]
		for _, l := range lines[:len(lines)-1] {
			if err := emit(o.line(strings.TrimSuffix(l, "\r"))); err != nil {
				return nil, err
			}
		}
	}
	if last && o.rest != "" {
		text := o.rest
		o.rest = ""
		return nil, emit(o.line(text))
	}
	return nil, nil
}
