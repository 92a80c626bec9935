package programs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"holdfast/hdfsckpt/inspect"
	"holdfast/proto"
	"holdfast/test/joblogs"
)

// job is one run of a program.
type job struct {
	*runner
	p     Program
	id    string
	store string
	logs  *joblogs.Follower

	// before is the step of the checkpoint that was newest at the last loss.
	before int64

	mu    sync.Mutex
	steps []mark
	told  map[string]int64 // the last step that each attempt told of, by its file
	again []string         // attempts that told of a step a second time, and which
}

// mark is a step that a task told of.
type mark struct {
	at   time.Time
	step int64
}

// start submits the n-th job of a program.
func (r *runner) start(ctx context.Context, p Program, python string, n int) (*job, error) {
	j := &job{runner: r, p: p, store: fmt.Sprintf("%s/%s-%d", r.stores, p.Name, n), told: map[string]int64{}}
	args := p.arguments(python, r.Examples, j.store)
	if r.Local {
		args = append([]string{"--local"}, args...)
	}
	var err error
	if j.id, err = r.user().Run(ctx, args...); err != nil {
		return nil, err
	}
	r.Log("%s is %s", p.Name, j.id)
	j.logs = joblogs.Follow(r.logs(j.id), j.take)
	return j, nil
}

// take is called with each line of output.
func (j *job) take(l joblogs.Line) {
	m := j.p.Step.FindStringSubmatch(l.Text)
	if m == nil {
		return
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.steps = append(j.steps, mark{l.At, n})
	if last, known := j.told[l.File]; known && n <= last {
		j.again = append(j.again, fmt.Sprintf("%s told of step %d after step %d", l.Task, n, last))
	}
	j.told[l.File] = n
}

// after is the first step that was told of after a moment.
func (j *job) after(moment time.Time) (mark, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	i := slices.IndexFunc(j.steps, func(m mark) bool { return m.at.After(moment) })
	if i < 0 {
		return mark{}, false
	}
	return j.steps[i], true
}

// until is the last step that was told of before a moment; -1 if none was.
func (j *job) until(moment time.Time) int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	last := int64(-1)
	for _, m := range j.steps {
		if m.at.Before(moment) {
			last = m.step
		}
	}
	return last
}

// highest is the highest step that was told of; 0 if none was.
func (j *job) highest() (step int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, m := range j.steps {
		step = max(step, m.step)
	}
	return step
}

// wentOn returns what contradicts that a task was lost and the others went on: attempts that
// told of a step twice, and those of other tasks that were started again. before and after are
// the job's states before and after.
func (j *job) wentOn(lost string, before, after *proto.JobStatus) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.again) > 0 {
		return errors.New(strings.Join(j.again, ", "))
	}
	for i, t := range before.Tasks {
		if now := after.Tasks[i]; t.Task != lost && now.Node == t.Node && now.Attempt != t.Attempt {
			return fmt.Errorf("%s was lost, and %s is at attempt %d, after %d", lost, t.Task, now.Attempt, t.Attempt)
		}
	}
	return nil
}

// close ends the job if it still runs, and waits for its end.
func (j *job) close() error {
	defer j.logs.Stop()
	ctx, cancel := context.WithTimeout(context.Background(), endLimit)
	defer cancel()
	s, err := j.user().Status(ctx, j.id)
	if err != nil || s.State.Done() {
		return err
	}
	_, err = j.user().Call(ctx, "kill", j.id)
	return err
}

// checkpoints are those of the job, as ckpt ls has them.
func (j *job) checkpoints(ctx context.Context) ([]inspect.Checkpoint, error) {
	out, err := j.user().Call(ctx, "ckpt", "ls", j.store, "--output", "json")
	if err != nil {
		return nil, err
	}
	var all inspect.Listing
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, fmt.Errorf("reading the checkpoints of %s: %w", j.store, err)
	}
	return all.Checkpoints, nil
}

// sealed is the step of the newest sealed checkpoint; -1 if there is none.
func (j *job) sealed(ctx context.Context) (int64, error) {
	all, err := j.checkpoints(ctx)
	newest := int64(-1)
	for _, c := range all {
		if c.State != "sealed" {
			continue
		}
		if c.Step != nil && !j.p.OwnNumbers {
			newest = max(newest, *c.Step)
		} else {
			newest = max(newest, j.until(c.Time.Time))
		}
	}
	return newest, err
}

// wait looks at the job until something is so, within a limit.
func (j *job) wait(ctx context.Context, limit time.Duration, what string, ok func(*proto.JobStatus) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	last := errors.New("nothing is known of the job")
	for {
		s, err := j.user().Status(ctx, j.id)
		if err == nil {
			var is bool
			if is, err = ok(s); is && err == nil {
				return nil
			}
			if s.State.Done() {
				return fmt.Errorf("waiting for %s: the job has ended as %s: %s%w", what, s.State, s.Why, errEnded)
			}
			if err == nil {
				err = errors.New(summary(s))
			}
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s, %s: %w", what, limit, last)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// errEnded marks what was waited for in vain because the job has ended.
var errEnded = errors.New("")

// summary returns a job's state in one line.
func summary(s *proto.JobStatus) string {
	var all []string
	for _, t := range s.Tasks {
		all = append(all, fmt.Sprintf("%s %s (attempt %d, step %d)", t.Task, strings.TrimPrefix(t.State.String(), "TASK_STATE_"), t.Attempt, t.Step))
	}
	return strings.Join(all, ", ")
}

// explain logs the end of what each task has printed.
func (j *job) explain() {
	ctx := context.Background()
	s, err := j.user().Status(ctx, j.id)
	if err != nil {
		j.Log("%v", err)
		return
	}
	for _, e := range s.Events[max(0, len(s.Events)-25):] {
		j.Log("  %s %s %s: %s", time.UnixMilli(e.AtUnixMs).Format("15:04:05.0"), e.Task, e.Kind, e.Text)
	}
	for _, t := range s.Tasks {
		out, err := j.user().Call(ctx, "logs", j.id, t.Task)
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		j.Log("%s printed last (%v):\n%s", t.Task, err, strings.Join(lines[max(0, len(lines)-40):], "\n"))
	}
}
