package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"sort"
	"strconv"
	"strings"
	"time"

	"holdfast/proto"
)

// LogOptions say which output Logs returns.
type LogOptions struct {
	Task    string // empty: of all tasks
	Attempt int    // -1: of all attempts
	Follow  bool   // go on until the job has ended
}

// LogLine is a line of a task's output.
type LogLine struct {
	Task    string `json:"task"`
	Attempt int    `json:"attempt"`
	Text    string `json:"text"`
}

// logPace is how often a followed job is looked at: agents flush their output
// every second or two.
const logPace = 500 * time.Millisecond

// output is one attempt's log while it is read.
type output struct {
	task    string
	attempt int
	offset  int64
	rest    string // an unfinished line
}

// Logs calls emit with the lines that the tasks wrote, in the order of tasks and
// attempts, and while following as they come. A log that cannot be read does not
// keep the others back: the error tells of it in the end.
func (j *Job) Logs(ctx context.Context, o LogOptions, emit func(LogLine) error) error {
	known := map[string]*output{}
	for {
		// The state is asked first: what is written before the end is then read.
		over := true
		if o.Follow {
			s, err := j.Status(ctx)
			if err != nil {
				return err
			}
			over = s.State.Done()
		}
		list, err := j.outputs(ctx, o)
		if err != nil {
			return err
		}
		if len(list) == 0 && over {
			return j.noLogs(ctx, o)
		}
		var unread []error
		for _, out := range list {
			key := fmt.Sprintf("%s/%d", out.task, out.attempt)
			if known[key] == nil {
				known[key] = out
			}
			err, emitErr := j.copyLog(ctx, known[key], over, emit)
			if emitErr != nil {
				return emitErr
			}
			if err != nil {
				unread = append(unread, fmt.Errorf("read the log of attempt %d of %s: %w", out.attempt, out.task, err))
			}
		}
		if over || ctx.Err() != nil {
			return errors.Join(unread...)
		}
		if err := pause(ctx, logPace); err != nil {
			return err
		}
	}
}

// noLogs says why there is nothing.
func (j *Job) noLogs(ctx context.Context, o LogOptions) error {
	s, err := j.Status(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, t := range s.Tasks {
		if t.Task == o.Task {
			return fmt.Errorf("%s of %s has written nothing yet: it is %s", o.Task, j.ID, proto.StateWord(t.State))
		}
		names = append(names, t.Task)
	}
	if o.Task != "" && len(names) > 0 {
		return Usagef("%s has no task %q: its tasks are %s", j.ID, o.Task, strings.Join(names, ", "))
	}
	if o.Attempt >= 0 {
		return fmt.Errorf("there is no output of attempt %d in %s", o.Attempt, j.ID)
	}
	return fmt.Errorf("the tasks of %s have written nothing: the job is %s", j.ID, proto.StateWord(s.State))
}

// outputs lists the attempts' logs.
func (j *Job) outputs(ctx context.Context, o LogOptions) ([]*output, error) {
	root := path.Join(j.dir, proto.LogsDir)
	tasks := []string{o.Task}
	if o.Task == "" {
		tasks = nil
		list, err := j.home.List(ctx, root)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("list the logs of %s: %w", j.ID, err)
		}
		for _, e := range list {
			tasks = append(tasks, e.Name)
		}
		sort.Slice(tasks, func(a, b int) bool { return taskLess(tasks[a], tasks[b]) })
	} else if !fs.ValidPath(o.Task) || strings.Contains(o.Task, "/") {
		return nil, Usagef("%q is not a task's name: that would look like worker-0", o.Task)
	}
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
			number, isLog := strings.CutSuffix(e.Name, ".log")
			n, err := strconv.Atoi(number)
			if isLog && err == nil && (o.Attempt < 0 || o.Attempt == n) {
				of = append(of, &output{task: t, attempt: n})
			}
		}
		sort.Slice(of, func(a, b int) bool { return of[a].attempt < of[b].attempt })
		found = append(found, of...)
	}
	return found, nil
}

// taskLess sorts worker-2 before worker-10.
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

// copyLog emits what is new in a log; an unfinished line only when no more comes.
func (j *Job) copyLog(ctx context.Context, o *output, last bool, emit func(LogLine) error) (err, emitErr error) {
	name := path.Join(j.dir, proto.LogsDir, o.task, fmt.Sprintf("%d.log", o.attempt))
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
			if err := emit(LogLine{o.task, o.attempt, strings.TrimSuffix(l, "\r")}); err != nil {
				return nil, err
			}
		}
	}
	if last && o.rest != "" {
		text := o.rest
		o.rest = ""
		return nil, emit(LogLine{o.task, o.attempt, text})
	}
	return nil, nil
}
