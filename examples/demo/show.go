package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"holdfast/proto"
	"holdfast/test/asuser"
)

// show runs a job, kills a task in the middle of it and prints what happens.
type show struct {
	asuser.Caller
	yarn  bool
	steps int
	store string

	job   string
	told  int       // moments of the job's timeline that were told
	begun time.Time // the job, by its own account
	ended bool      // the job

	killed    time.Time
	step      int // the last one that worker-0 told
	before    int // the step at the kill
	continued int // the step from which training went on; -1: not yet
	wentOn    time.Time
}

const victim = "ps-1"

// patience is how long the demo waits for anything. Four imports of TensorFlow
// take long on a small machine.
const patience = 10 * time.Minute

func (s *show) run(ctx context.Context, args []string) (err error) {
	s.continued = -1
	fmt.Printf("\nTraining %d steps with 2 parameter servers and 2 workers; checkpoints go to %s\n\n", s.steps, s.store)
	if s.job, err = s.Run(ctx, args...); err != nil {
		return err
	}
	defer func() {
		if err == nil || s.ended {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, e := s.Call(ctx, "kill", s.job); e != nil {
			err = errors.Join(err, e)
		}
		s.untilEnded(ctx)
	}()

	following, stop := context.WithCancel(ctx)
	defer stop()
	lines, err := s.Follow(following, s.job, "worker-0")
	if err != nil {
		return err
	}
	final, err := s.watch(ctx, lines)
	if err != nil {
		return err
	}
	return s.sumUp(ctx, final)
}

// untilEnded lets a job that was killed come to its end, so that nothing of it
// is left when its directory goes.
func (s *show) untilEnded(ctx context.Context) {
	for {
		st, err := s.Status(ctx, s.job)
		if err != nil || st.State.Done() {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// watch goes with the job to its end, and kills the victim on the way.
func (s *show) watch(ctx context.Context, lines <-chan string) (*proto.JobStatus, error) {
	limit := time.Now().Add(patience)
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, errors.New("interrupted; the job is killed")
		case line, ok := <-lines:
			if !ok {
				lines = nil
				continue
			}
			s.hear(line)
		case <-tick.C:
		}
		if time.Now().After(limit) {
			return nil, fmt.Errorf("the job did not end in %s", patience)
		}
		st, err := s.Status(ctx, s.job)
		if err != nil {
			return nil, err
		}
		s.tell(st)
		if st.State.Done() {
			s.ended = true
			for line := range orEmpty(lines) { // its last words
				s.hear(line)
			}
			return st, nil
		}
		if s.killed.IsZero() && s.step > s.steps/3 {
			if err := s.strike(st); err != nil {
				return nil, err
			}
		}
	}
}

func orEmpty(c <-chan string) <-chan string {
	if c == nil {
		empty := make(chan string)
		close(empty)
		return empty
	}
	return c
}

var (
	stepLine  = regexp.MustCompile(`^step (\d+) loss`)
	beginLine = regexp.MustCompile(`^worker 0 begins at step (\d+)`)
)

// hear takes a line of worker-0's output.
func (s *show) hear(line string) {
	if m := stepLine.FindStringSubmatch(line); m != nil {
		s.step, _ = strconv.Atoi(m[1])
		if s.step%100 == 0 {
			s.say(time.Now(), "worker-0", line)
		}
	}
	if m := beginLine.FindStringSubmatch(line); m != nil {
		s.say(time.Now(), "worker-0", line)
		if !s.killed.IsZero() {
			s.continued, _ = strconv.Atoi(m[1])
			s.wentOn = time.Now()
		}
	}
}

// tell prints what is new in the job's event log.
func (s *show) tell(st *proto.JobStatus) {
	if st.StartedUnixMs != 0 {
		s.begun = time.UnixMilli(st.StartedUnixMs)
	}
	for _, m := range st.Events[min(s.told, len(st.Events)):] {
		s.say(time.UnixMilli(m.AtUnixMs), m.Task, m.Text)
	}
	s.told = max(s.told, len(st.Events))
}

func (s *show) say(at time.Time, task, text string) {
	if s.begun.IsZero() {
		s.begun = at
	}
	text = strings.Join(strings.Fields(text), " ") // YARN's diagnostics have lines
	fmt.Printf("%7.1f s  %-9s %s\n", max(0, at.Sub(s.begun).Seconds()), task, text)
}

// strike kills the victim: its process, or on YARN its container.
func (s *show) strike(st *proto.JobStatus) error {
	for _, t := range st.Tasks {
		if t.Task != victim {
			continue
		}
		pid, what := t.Pid, "process"
		if s.yarn {
			pid, what = t.AgentPid, "container, by its agent,"
		}
		s.killed, s.before = time.Now(), s.step
		s.say(s.killed, victim, fmt.Sprintf(">>> the demo kills its %s (kill -9 %d) <<<", what, pid))
		if pid <= 1 {
			return fmt.Errorf("%s has no process", victim)
		}
		if err := syscall.Kill(int(pid), syscall.SIGKILL); err != nil {
			return fmt.Errorf("killing %s: %w", victim, err)
		}
		return nil
	}
	return fmt.Errorf("the job has no task %s", victim)
}

// sumUp says what it came to, and fails if that is not what it should be.
func (s *show) sumUp(ctx context.Context, final *proto.JobStatus) error {
	if final.State != proto.JobState_JOB_STATE_SUCCEEDED {
		logs, _ := s.Call(ctx, "logs", s.job)
		return fmt.Errorf("the job did not succeed: %s\n%s", final.Why, logs)
	}
	for _, t := range final.Tasks {
		if t.Task != victim && t.Attempt > 0 {
			fmt.Printf("\n%s failed on the way and was started again; its reason was:\n  %s\n", t.Task, s.reason(ctx, t))
		}
	}
	list, err := s.Call(ctx, "ckpt", "ls", s.store)
	if err != nil {
		return err
	}
	fmt.Printf("\nThe checkpoints now (yarn-submit ckpt ls %s):\n\n%s\n", s.store, list)
	if s.killed.IsZero() {
		return fmt.Errorf("the job ended before %s could be killed; take more --steps", victim)
	}
	var lost, back *proto.JobEvent
	for _, m := range final.Events {
		switch {
		case m.Task != victim:
		case m.Kind == "lost" && lost == nil:
			lost = m
		case m.Kind == "recovered" && back == nil:
			back = m
		}
	}
	if lost == nil || back == nil || s.continued < 0 {
		return errors.New("the job succeeded, but its event log lacks the loss, the return or the step from which it went on")
	}
	since := func(at time.Time) float64 { return at.Sub(s.begun).Seconds() }
	fmt.Printf("%s lost             %7.1f s  %.2f s after the kill; training was past step %d\n", victim, since(time.UnixMilli(lost.AtUnixMs)), time.UnixMilli(lost.AtUnixMs).Sub(s.killed).Seconds(), s.before)
	fmt.Printf("%s running again    %7.1f s  %.2f s after its loss\n", victim, since(time.UnixMilli(back.AtUnixMs)), time.Duration(back.SinceLossMs*int64(time.Millisecond)).Seconds())
	fmt.Printf("training went on      %7.1f s  from step %d, %.1f s after the kill (importing TensorFlow is most of it)\n", since(s.wentOn), s.continued, s.wentOn.Sub(s.killed).Seconds())
	ended := final.Events[len(final.Events)-1].AtUnixMs // the job's event log ends with it
	fmt.Printf("the job ended         %7.1f s  at step %d: succeeded\n", since(time.UnixMilli(ended)), s.steps)
	return nil
}

// exception is the line of a traceback that names it.
var exception = regexp.MustCompile(`^[A-Za-z_][\w.]*Error\b`)

// reason finds what a task's first attempt died of in its output.
func (s *show) reason(ctx context.Context, t *proto.TaskStatus) string {
	text, err := s.Call(ctx, "logs", s.job, t.Task, "--attempt", "0")
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	first := max(0, len(lines)-10)
	for i, line := range lines {
		if exception.MatchString(line) {
			first = i
		}
	}
	return strings.Join(lines[first:min(first+10, len(lines))], "\n  ")
}
