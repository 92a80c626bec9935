package programs

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"holdfast/proto"
)

// loss is something that a job loses.
type loss struct {
	column int
	moves  bool // the task goes on in another container
	// inject causes it, and returns the task that is lost. restore, if not nil, gives back
	// what the next loss needs.
	inject func(*job, *proto.JobStatus) (task string, restore func(context.Context) error, err error)
}

// losses are in the order in which jobs lose them; the last is one of YARN only.
var losses = []loss{
	{processKilled, false, killProcess},
	{containerKilled, true, killContainer},
	{nodeLost, true, loseNode},
}

func killProcess(j *job, s *proto.JobStatus) (string, func(context.Context) error, error) {
	return j.p.Victim, nil, kill(int(victim(s, j.p.Victim).Pid))
}

// killContainer kills the agent, with which everything in its container ends.
func killContainer(j *job, s *proto.JobStatus) (string, func(context.Context) error, error) {
	return j.p.Victim, nil, kill(int(victim(s, j.p.Victim).AgentPid))
}

// loseNode kills a NodeManager, the DataNode beside it and all containers there: of a
// node with a task, but without the application master.
func loseNode(j *job, s *proto.JobStatus) (string, func(context.Context) error, error) {
	for _, t := range s.Tasks {
		if t.Node == s.AmHost {
			continue
		}
		manager := j.cluster.NodeManager(t.Node)
		data := j.cluster.DataNode(manager)
		restore := func(ctx context.Context) error { return errors.Join(manager.Restart(ctx), data.Restart(ctx)) }
		return t.Task, restore, j.cluster.KillNode(manager)
	}
	return "", nil, errors.New("all tasks are on the application master's node")
}

// kill ends a process; that it has ended meanwhile is no error.
func kill(pid int) error {
	if pid == 0 {
		return errors.New("it has no process")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("killing process %d: %w", pid, err)
	}
	return nil
}

// struck returns what contradicts that a task was lost in this way, by its states before and
// after.
func (l loss) struck(before, after *proto.TaskStatus) error {
	switch {
	case after.Attempt <= before.Attempt:
		return fmt.Errorf("%s is at attempt %d, as before: it was not lost", after.Task, after.Attempt)
	case l.moves && after.Container == before.Container:
		return fmt.Errorf("%s is in %s, as before: its container was not lost", after.Task, after.Container)
	}
	return nil
}

func victim(s *proto.JobStatus, name string) *proto.TaskStatus {
	for _, t := range s.Tasks {
		if t.Task == name {
			return t
		}
	}
	return &proto.TaskStatus{}
}

// nodeDown is how long a lost node is away.
const nodeDown = 4 * time.Second

// lose has the job lose things in order, and then run to its end. It returns how many
// of them are done with: another job is wanted for the others.
func (j *job) lose(ctx context.Context, left []loss, result *Result) (done int) {
	for i, l := range left {
		err := j.ready(ctx)
		if err != nil && i > 0 && errors.Is(err, errEnded) && j.finish(ctx, result) == nil {
			return i // it was too short
		}
		if err == nil {
			err = j.loseOne(ctx, l, result)
		}
		if err != nil {
			result.fail(l.column, err)
			j.explain()
			return i + 1
		}
	}
	if err := j.finish(ctx, result); err != nil {
		result.fail(toTheEnd, err)
		j.explain()
	}
	return len(left)
}

// ready waits until all tasks run and a checkpoint is sealed that is newer than the one
// at the last loss.
func (j *job) ready(ctx context.Context) error {
	return j.wait(ctx, startLimit, "a newer checkpoint to be sealed", func(s *proto.JobStatus) (bool, error) {
		if !running(s) {
			return false, nil
		}
		step, err := j.sealed(ctx)
		return step > j.before, err
	})
}

func (j *job) loseOne(ctx context.Context, l loss, result *Result) (err error) {
	s, err := j.user().Status(ctx, j.id)
	if err != nil {
		return err
	}
	if j.before, err = j.sealed(ctx); err != nil {
		return err
	}
	at := time.Now()
	task, restore, err := l.inject(j, s)
	if restore != nil {
		restored := make(chan error, 1)
		go func() {
			time.Sleep(nodeDown)
			restored <- restore(context.WithoutCancel(ctx))
		}()
		defer func() { err = errors.Join(err, <-restored) }()
	}
	if err != nil {
		return err
	}
	var back time.Time
	var next mark
	var after *proto.JobStatus
	err = j.wait(ctx, backLimit, "a step after "+task+" was lost", func(s *proto.JobStatus) (bool, error) {
		after = s
		for _, i := range s.Incidents {
			if i.Task == task && i.RecoveredUnixMs > at.UnixMilli() {
				back = time.UnixMilli(i.RecoveredUnixMs)
			}
		}
		var is bool
		next, is = j.after(back)
		return is && !back.IsZero(), nil
	})
	if err != nil {
		return err
	}
	if err := l.struck(victim(s, task), victim(after, task)); err != nil {
		return err
	}
	result.pass(l.column, fmt.Sprintf("%.1f s", next.at.Sub(at).Seconds()))
	j.Log("%s: %s lost after the checkpoint of step %d, step %d after %s", j.p.Name, task, j.before, next.step, next.at.Sub(at).Round(100*time.Millisecond))
	if next.step < j.before {
		result.fail(continues, fmt.Errorf("%s: after the checkpoint of step %d it told of step %d next", columns[l.column], j.before, next.step))
		return nil
	}
	result.pass(continues, "yes")
	if !j.p.GoOn {
		return nil
	}
	if err := j.wentOn(task, s, after); err != nil {
		result.fail(continues, fmt.Errorf("%s: the others have not gone on: %w", columns[l.column], err))
	}
	return nil
}

// finish waits for the job's end and looks at what it leaves.
func (j *job) finish(ctx context.Context, result *Result) error {
	var end *proto.JobStatus
	err := j.wait(ctx, endLimit, "the job's end", func(s *proto.JobStatus) (bool, error) {
		end = s
		return s.State == proto.JobState_JOB_STATE_SUCCEEDED, nil
	})
	if err != nil {
		return err
	}
	j.judgeSteps(end, result)
	all, err := j.checkpoints(ctx)
	if err != nil {
		return err
	}
	known, torn := 0, 0
	for _, c := range all {
		switch {
		case (c.State == "torn" || c.State == "in progress") && torn < len(losses): // a loss struck its save; it stays until a job starts
			torn++
		case c.Aside != "" || c.Retained && c.Complete: // one may be saved over before it is sealed
		case c.Kind != j.p.Format:
			result.fail(checkpointsKnown, fmt.Errorf("%s is taken for one of %s", c.Name, c.Kind))
		case c.State != "sealed":
			result.fail(checkpointsKnown, fmt.Errorf("%s is %s (%s)", c.Name, c.State, c.Why))
		default:
			known++
		}
	}
	if known == 0 {
		result.fail(checkpointsKnown, errors.New("no checkpoint is known"))
	}
	result.pass(checkpointsKnown, fmt.Sprintf("%d of %s", known, j.p.Format))
	return nil
}

// judgeSteps looks at how far a job has come that has succeeded, and how far status says.
func (j *job) judgeSteps(end *proto.JobStatus, result *Result) {
	result.pass(toTheEnd, "yes")
	if told := j.highest(); !j.p.nearly(told) {
		result.fail(toTheEnd, fmt.Errorf("the job has succeeded, and told of step %d of %d at most", told, j.p.last()))
	}
	result.pass(stepsKnown, "yes")
	if !j.p.nearly(end.Step) {
		result.fail(stepsKnown, fmt.Errorf("status knows step %d of %d", end.Step, j.p.last()))
	}
}
