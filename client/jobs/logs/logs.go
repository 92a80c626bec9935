// Package logs reads what a job's tasks and its application master wrote, from the job's
// directory: while the job runs, and after its end.
package logs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/client"
	"holdfast/client/jobs"
	"holdfast/internal/backoff"
	"holdfast/proto"
)

// Options select output.
type Options struct {
	// Of is a task; a role, of which all tasks are meant; or Master. Empty: all tasks.
	Of       string
	Attempt  int  // All: of all attempts
	Previous bool // of each task, the attempt before its last one only
	Agents   bool // what the agents of the tasks wrote, and not the tasks
	Follow   bool // go on until the job has ended
	Tail     int  // only the last so many lines of each log; All: all
	// Matches, if it is not nil, selects lines.
	Matches func(line string) bool
	// Since selects what was written from then on, to the second or, in long logs, the
	// minute; zero: all.
	Since time.Time
	Times bool // lines have the times at which they were written
	// Note tells the user what is missing; it is called before Read returns.
	Note func(text string)
}

// All stands for no limit in Options.
const All = -1

// Master names the application master in Options.Of.
const Master = "am"

// Line is a line of output.
type Line struct {
	Task    string `json:"task"`
	Attempt int    `json:"attempt"`
	// Process is which of the attempt's processes wrote it, where there are several.
	Process int `json:"process,omitempty"`
	// Time is when it was written, in RFC 3339; empty if that was not asked for, or is not
	// known.
	Time string `json:"time,omitempty"`
	Text string `json:"text"`
}

// pace is the interval at which a followed job is polled: agents flush output every
// second or two.
const pace = 500 * time.Millisecond

// Read calls emit with the selected lines, in the order of tasks and attempts; with
// Follow, also with new ones until the job ends, and while nobody answers it goes on for a while. A log
// that cannot be read does not prevent the others from being read: the error is returned at the end.
// If there is no output, silence says whose, and why.
func Read(ctx context.Context, j *jobs.Job, o Options, emit func(Line) error) (silence string, err error) {
	known := map[string]*source{}
	silent, noted := true, false
	told := func(l Line) error {
		silent = false
		return emit(l)
	}
	for c := j.NewContact(); ; {
		s, list, over, err := look(ctx, j, o)
		switch {
		case err == nil:
			c.Answered()
		case o.Follow && ctx.Err() == nil && c.Lost(err) == nil:
			over = false // as far as is known
		default:
			return "", cmp.Or(c.Lost(err), err)
		}
		if len(list) == 0 && over {
			return explainSilence(s, o)
		}
		var unread []error
		for _, found := range list {
			if known[found.path] == nil {
				known[found.path] = found
			}
			err, emitErr := known[found.path].copy(ctx, j.Store(), o, over, told)
			if emitErr != nil {
				return "", emitErr
			}
			if err != nil {
				unread = append(unread, fmt.Errorf("read the log of attempt %d of %s: %w", found.attempt, found.task, err))
			}
		}
		if !noted && err == nil {
			noted = true
			noteWithoutTimes(list, o)
		}
		if over || ctx.Err() != nil {
			if silent && !o.Since.IsZero() && o.Matches == nil && len(unread) == 0 {
				silence = "nothing was written since " + o.Since.UTC().Format(time.RFC3339)
			}
			return silence, errors.Join(unread...)
		}
		if !backoff.Sleep(ctx, pace) {
			return "", context.Cause(ctx)
		}
	}
}

// look returns the logs that there are, and reports whether there will be no more in them; the job's
// state, if that was asked for.
func look(ctx context.Context, j *jobs.Job, o Options) (s *proto.JobStatus, list []*source, over bool, err error) {
	// The state is read first, so that everything written before the end is read
	// after it.
	over = true
	if o.Follow || o.Agents {
		if s, err = j.Status(ctx); err != nil {
			return nil, nil, false, err
		}
		over = !o.Follow || s.State.Done()
	}
	if list, err = find(ctx, j, s, o); err == nil && len(list) == 0 && over && s == nil {
		s, err = j.Status(ctx)
	}
	return s, list, over, err
}

// noteWithoutTimes tells of which logs it is not known when they were written.
func noteWithoutTimes(list []*source, o Options) {
	var without []*source
	for _, s := range list {
		if s.timeless {
			without = append(without, s)
		}
	}
	if len(without) == 0 {
		return
	}
	whose := fmt.Sprintf("attempt %d of %s", without[0].attempt, without[0].task)
	if more := len(without) - 1; more > 0 {
		whose += fmt.Sprintf(" and %d other logs", more)
	}
	how := "without times"
	if !o.Since.IsZero() {
		how = "whole"
	}
	o.Note(fmt.Sprintf("when the lines of %s were written is not known, as another version of yarn-submit wrote them: they are shown %s", whose, how))
}

// explainSilence explains why there is no output: the tasks have written none, or there is
// no such task or attempt, which is a usage error.
func explainSilence(s *proto.JobStatus, o Options) (silence string, err error) {
	if o.Of == Master {
		return fmt.Sprintf("the application master of %s has not copied its log into the job's directory%s; the job is %s", s.Id, withYARN(s.Id, " -am ALL"), proto.StateWord(s.State)), nil
	}
	if len(s.Tasks) == 0 {
		return fmt.Sprintf("the tasks of %s have written nothing: the job is %s", s.Id, proto.StateWord(s.State)), nil
	}
	asked, err := Tasks(s, o.Of)
	if err != nil {
		return "", err
	}
	last, what := int32(-1), "the tasks of "+s.Id+" have"
	state := "the job is " + proto.StateWord(s.State)
	for _, t := range asked {
		last = max(last, t.Attempt)
		if len(asked) == 1 {
			what, state = t.Task+" of "+s.Id+" has", "it is "+proto.StateWord(t.State)
		}
	}
	switch {
	case o.Agents:
		return fmt.Sprintf("their agents have not copied their logs into the job's directory, as they do within a quarter of a minute%s; %s", withYARN(s.Id, ""), state), nil
	case o.Previous && last < 1:
		return "", client.Usagef("%s no attempt before the present one", what)
	case o.Attempt > int(last):
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

// withYARN says how YARN is asked for the logs of a job's containers; "" of a local job.
func withYARN(id, flags string) string {
	if strings.HasPrefix(id, jobs.LocalPrefix) {
		return ""
	}
	return " (YARN may have more: yarn logs -applicationId " + id + flags + ")"
}

// Tasks returns the tasks of a job that a user means: one by its name, or those of a role;
// all if of is empty. It is a usage error if there is none.
func Tasks(s *proto.JobStatus, of string) ([]*proto.TaskStatus, error) {
	if of == "" {
		return s.Tasks, nil
	}
	var names, known []string
	for _, t := range s.Tasks {
		names = append(names, t.Task)
		if !slices.Contains(known, t.Role) {
			known = append(known, t.Role)
		}
	}
	asked := match(of, names)
	if len(asked) == 0 {
		some := strings.Join(names[:min(len(names), 10)], ", ")
		if len(names) > 10 {
			some += fmt.Sprintf(" and %d more", len(names)-10)
		}
		return nil, client.Usagef("%s has no task and no role %q: its tasks are %s%s", s.Id, of, some, client.DidYouMean(of, append(known, names...)))
	}
	var list []*proto.TaskStatus
	for _, t := range s.Tasks {
		if slices.Contains(asked, t.Task) {
			list = append(list, t)
		}
	}
	return list, nil
}

// match returns the task called ref, or else all tasks of the role ref.
func match(ref string, tasks []string) []string {
	if slices.Contains(tasks, ref) {
		return []string{ref}
	}
	return slices.DeleteFunc(slices.Clone(tasks), func(task string) bool {
		number, of := strings.CutPrefix(task, ref+"-")
		_, err := strconv.Atoi(number)
		return !of || err != nil
	})
}
