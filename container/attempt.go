package container

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	"holdfast/container/proctree"
	"holdfast/container/sandbox"
	"holdfast/container/stage"
	"holdfast/container/warm"
	"holdfast/proto"
	"holdfast/runtime/tasklog"
	"holdfast/runtime/tfevents"
)

// attempt is one run of the task's command, as one process or several.
type attempt struct {
	number    int32
	framework string
	started   time.Time
	processes []*process
	grace     time.Duration // for the others when one of them fails
	box       *sandbox.Box
	standby   *warm.Standby
	forked    bool            // its only process came from a warm interpreter
	command   sandbox.Command // of the first process
	oomBefore int
	linger    *linger // nil: its processes do not linger
	events    *tfevents.Events
	restore   *stage.Restore
	work      proctree.Work
	log       *logrus.Entry

	stacks   atomic.Bool // it was asked to write where it stands
	stopOnce sync.Once
	stopping chan struct{} // closed once it was asked to stop
	killAt   time.Time     // when it gets SIGKILL, once it was asked to stop; of the agent's loop
	why      *proto.Stop   // what the AM has said of that last; of the agent's loop
	giveUp   chan struct{} // closed once it is not waited for any longer
	done     chan struct{} // closed once all processes have ended, or are not waited for

	// killing is held while all that runs in the box is killed, and done looked at for that: when
	// nothing is left of the attempt, what runs there is another one's.
	killing sync.Mutex
}

// tailLines is how many of its last lines an attempt's end reports.
const tailLines = 30

// leftoverLimit bounds the killing of processes that an attempt left behind.
const leftoverLimit = proto.KillLimit

// suspect is the age up to which the failure of an attempt that was forked from a warm
// interpreter is attributed to the interpreter.
const suspect = 30 * time.Second

// run starts an attempt. If the command cannot be executed, the error wraps exec's errno.
func (t *task) run(cfg Config, box *sandbox.Box, dir *jobStore, s *proto.Start, log *logrus.Entry, wg *sync.WaitGroup) (*attempt, error) {
	if len(s.Command) == 0 {
		return nil, fmt.Errorf("there is no command to run: %w", syscall.ENOENT)
	}
	t.events.Begin()
	t.restore.Begin()
	a := &attempt{
		number: s.Attempt, started: time.Now(), grace: t.stopGrace(), events: &t.events, restore: &t.restore,
		box: box, standby: t.Standby, oomBefore: oomKills(), log: log, stopping: make(chan struct{}), giveUp: make(chan struct{}), done: make(chan struct{}),
	}
	t.port.Release()
	for _, p := range t.more {
		p.Release()
	}
	count := t.peers.Processes()
	for local := range count {
		p, command, err := t.newProcess(cfg, a, s, local)
		if err != nil {
			a.abandon()
			return nil, err
		}
		if local == 0 {
			a.command = command
		}
		wg.Go(func() { p.out.CopyTo(dir.open) })
		if count == 1 {
			p.Process, a.forked, err = t.Standby.Exec(command)
		} else {
			p.Process, err = box.Exec(command)
		}
		if err != nil {
			fmt.Fprintf(command.Output, "holdfast: %v\n", err) // it belongs in the attempt's log
		}
		command.Output.Close()
		if err != nil {
			<-p.out.Done()
			a.abandon()
			return nil, err
		}
		a.processes = append(a.processes, p)
	}
	if t.assign.WatchWork {
		wg.Go(func() { a.work.Watch(a.done) })
	}
	return a, nil
}

// abandon ends the processes of an attempt of which not all could be started.
func (a *attempt) abandon() {
	a.linger.close()
	if len(a.processes) == 0 {
		return
	}
	a.killLeftovers()
	for _, p := range a.processes {
		<-p.out.Done()
	}
}

// killLeftovers kills what is left of the attempt.
func (a *attempt) killLeftovers() {
	a.killing.Lock()
	defer a.killing.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), leftoverLimit)
	defer cancel()
	if err := a.box.KillAttempt(ctx); err != nil {
		a.log.WithError(err).Error("ending what the task left behind")
	}
	for _, p := range a.processes {
		select {
		case <-p.out.Done():
		case <-ctx.Done():
			p.out.GiveUp()
		}
	}
}

// stop sends SIGTERM to the attempt, and SIGKILL after grace. Without grace, its present
// processes have got SIGKILL when stop returns. Another call may shorten the grace. With
// stack, processes that print their stacks on SIGQUIT get that first, and the time for it
// also where there is no grace.
func (a *attempt) stop(grace time.Duration, stack bool) {
	a.stopOnce.Do(func() {
		close(a.stopping)
		asked := stack && askForStacks(a.box.Processes())
		a.stacks.Store(asked)
		switch {
		case asked && grace == 0:
			grace = stackTime
		case asked:
			go func() {
				select {
				case <-a.done:
				case <-time.After(stackTime):
					a.terminate()
				}
			}()
		case grace > 0:
			a.terminate()
		}
	})
	if at := time.Now().Add(grace); a.killAt.IsZero() || at.Before(a.killAt) {
		a.killAt = at
	}
	if grace == 0 { // also where it was given time before
		for _, p := range a.running() { // the numbers of others may be those of strangers by now
			_ = syscall.Kill(-p.Pid, syscall.SIGKILL)
		}
	}
	go a.killAfter(grace)
}

// killAfter kills what runs of the attempt after a time, unless all its processes have ended
// by then.
func (a *attempt) killAfter(grace time.Duration) {
	select {
	case <-a.done:
	case <-time.After(grace):
		a.killing.Lock()
		defer a.killing.Unlock()
		if closed(a.done) { // killLeftovers has done it, or will
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), leftoverLimit)
		defer cancel()
		go func() {
			select {
			case <-a.done:
				cancel()
			case <-ctx.Done():
			}
		}()
		if err := a.box.KillAttempt(ctx); errors.Is(err, context.DeadlineExceeded) {
			a.log.WithError(err).Error("stopping the task")
		}
	}
}

// reportStop returns what another AM has to know of an attempt that was told to end; nil: it was
// not.
func (a *attempt) reportStop() *proto.Stopping {
	if a.why == nil {
		return nil
	}
	return &proto.Stopping{Reason: a.why.Reason, Cause: a.why.Cause, KillInMs: time.Until(a.killAt).Milliseconds()}
}

// stopped reports whether the attempt was asked to stop.
func (a *attempt) stopped() bool { return closed(a.stopping) }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// terminate sends SIGTERM to the attempt's processes; some may have ended just now.
func (a *attempt) terminate() {
	for _, p := range a.running() {
		_ = syscall.Kill(-p.Pid, syscall.SIGTERM)
		_ = syscall.Kill(-p.Pid, syscall.SIGCONT)
	}
}

// awaitProcesses waits for the end of all processes; false: it was given up before. When one of
// several fails, the others are asked to end, and are killed after the grace.
func (a *attempt) awaitProcesses() bool {
	defer close(a.done)
	ends := make(chan *process, len(a.processes))
	for _, p := range a.processes {
		go func() {
			<-p.Done()
			p.at = time.Now()
			ends <- p
		}()
	}
	ending := false
	for range a.processes {
		var p *process
		select {
		case p = <-ends:
		case <-a.giveUp:
			return false
		}
		if status, known := p.Status(); ending || a.stopped() || known && status == 0 {
			continue
		}
		ending = true
		if others := a.running(); len(others) > 0 {
			a.log.WithFields(logrus.Fields{"process": p.local, "pid": p.Pid}).Info("one of the task's processes has failed; the others are ended")
			for _, o := range others {
				o.ended = true
			}
			a.terminate()
			go a.killAfter(a.grace)
		}
	}
	return true
}

// wait waits for the attempt's end, kills what it left behind, and returns how it ended; nil:
// it was given up before.
func (a *attempt) wait() *proto.Exited {
	if !a.awaitProcesses() {
		for _, p := range a.processes {
			p.out.GiveUp()
			<-p.out.Done()
		}
		return nil
	}
	a.killLeftovers()
	exits, lines := make([]*proto.Exited, len(a.processes)), make([][]string, len(a.processes))
	var stack []string
	for i, p := range a.processes {
		<-p.out.Done()
		lines[i] = p.out.Lines()
		exits[i] = p.exit(a, lines[i])
		if a.stacks.Load() {
			stack = append(stack, tasklog.Stack(lines[i])...)
		}
	}
	n := decisive(exits)
	e, p := exits[n], a.processes[n]
	a.lookForProgress()
	e.Stopped, e.Scalars, e.Stack = a.stopped(), a.takeScalars(), stack
	made := a.made()
	e.Step, e.StepAgeMs = made.Step, made.Age()
	a.restore.End()
	e.Restore = a.restore.Report()
	if len(exits) > 1 && failed(e) {
		e.Detail = fmt.Sprintf("process %d of 0 to %d: %s", n, len(exits)-1, e.Detail)
	}
	if age := p.at.Sub(a.started); a.forked && age < suspect && !e.Stopped && !e.PeerLost && (e.Code > 0 || e.Signal != 0 && syscall.Signal(e.Signal) != syscall.SIGKILL) {
		a.standby.Refuse(fmt.Sprintf("attempt %d, which came from it, %s after %.1f s", a.number, e.Detail, age.Seconds()))
	}
	a.log.WithFields(logrus.Fields{"pid": p.Pid, "stopped": e.Stopped}).Info(e.Detail)
	return e
}

// errCannotRun: the command of an attempt cannot be made.
var errCannotRun = errors.New("nothing was run")

// notRun returns the exit of an attempt that could not be started.
func notRun(number int32, err error) *proto.Exited {
	e := &proto.Exited{Attempt: number, Code: 126, Detail: err.Error(), Tail: []string{err.Error()}, AtUnixMs: time.Now().UnixMilli()}
	for _, missing := range []error{errCannotRun, syscall.ENOENT, syscall.EACCES, syscall.ENOEXEC, syscall.EISDIR, syscall.ENOTDIR, syscall.ELOOP} {
		if errors.Is(err, missing) {
			e.Code, e.CommandMissing = 127, true
		}
	}
	return e
}
