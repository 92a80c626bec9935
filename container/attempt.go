package container

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"holdfast/container/output"
	"holdfast/container/sandbox"
	"holdfast/container/warm"
	"holdfast/proto"
	"holdfast/runtime"
	"holdfast/runtime/tasklog"
)

// attempt is one run of the task's command.
type attempt struct {
	number    int32
	framework string
	started   time.Time
	process   *sandbox.Process
	box       *sandbox.Box
	standby   *warm.Standby
	forked    bool // it came from a warm interpreter
	command   sandbox.Command
	out       *output.Output
	oomBefore int
	log       *logrus.Entry

	errorFormat *runtime.ErrorFile // of the framework; nil if it writes no error file
	errorFile   string

	stacks   atomic.Bool // it was asked to write where it stands
	stopOnce sync.Once
	stopping chan struct{} // closed once it was asked to stop
}

// tailLines is how many of its last lines an attempt's end reports.
const tailLines = 30

// leftoverLimit bounds the killing of processes that an attempt left behind.
const leftoverLimit = 10 * time.Second

// suspect is the age up to which the failure of an attempt that was forked from a warm
// interpreter is attributed to the interpreter.
const suspect = 30 * time.Second

// run starts an attempt. If the command cannot be executed, the error wraps exec's errno.
func (t *task) run(cfg Config, box *sandbox.Box, dir *jobStore, s *proto.Start, log *logrus.Entry, wg *sync.WaitGroup) (*attempt, error) {
	if len(s.Command) == 0 {
		return nil, fmt.Errorf("there is no command to run: %w", syscall.ENOENT)
	}
	argv, given, err := t.peers.Command(s.Command, s.Env, t.port.Number, runtime.Attempt{
		Number: int(s.Attempt), Generation: int(s.Generation), Host: cfg.Host,
		Addresses: t.names.Addresses(), Forwarded: t.forwarder != nil, Interface: t.names.Interface(), TensorBoardPort: t.tensorBoard.Chosen(),
	})
	if err != nil {
		return nil, errors.Join(err, errCannotRun)
	}
	if _, own := given[runtime.EnvKept]; s.ConsistentServerState && !own {
		given[runtime.EnvKept] = "1"
	}
	format, errorFile := runtime.FrameworkErrorFile(given)
	if format != nil && errorFile == "" {
		errorFile = filepath.Join(cfg.WorkDir, fmt.Sprintf("error-%d.json", s.Attempt))
		given[format.Variable] = errorFile
	}
	argv, given = t.names.Substitute(argv, given)
	command, err := t.Command(argv, given, s.PythonPath)
	if err != nil {
		return nil, err
	}
	out, w, err := output.New(
		filepath.Join(cfg.LogDir, fmt.Sprintf("%s.%d.log", t.assign.Task, s.Attempt)),
		path.Join(proto.LogsDir, t.assign.Task, fmt.Sprintf("%d.log", s.Attempt)),
		tasklog.NewStepFinder(t.assign.Progress), log)
	if err != nil {
		return nil, err
	}
	wg.Go(func() { out.CopyTo(dir.open) })
	a := &attempt{
		number: s.Attempt, framework: given["HOLDFAST_FRAMEWORK"], started: time.Now(),
		box: box, standby: t.Standby, out: out, oomBefore: oomKills(), log: log, stopping: make(chan struct{}), errorFormat: format, errorFile: errorFile,
	}
	t.port.Release()
	t.tensorBoard.Release()
	a.command = command
	command.Output = w
	a.process, a.forked, err = t.Standby.Exec(command)
	if err != nil {
		fmt.Fprintf(w, "holdfast: %v\n", err) // it belongs in the attempt's log
	}
	w.Close()
	if err != nil {
		<-out.Done()
		return nil, err
	}
	return a, nil
}

// stop sends SIGTERM to the attempt, and SIGKILL after grace. Without grace, its present
// processes have got SIGKILL when stop returns. Another call may shorten the grace. With
// stack, processes that print their stacks on SIGQUIT get that first.
func (a *attempt) stop(grace time.Duration, stack bool) {
	a.stopOnce.Do(func() {
		close(a.stopping)
		switch {
		case grace > 0 && stack && askForStacks(a.box.Processes()):
			a.stacks.Store(true)
			go func() {
				select {
				case <-a.process.Done():
				case <-time.After(stackTime):
					a.terminate()
				}
			}()
		case grace > 0:
			a.terminate()
		}
	})
	select {
	case <-a.process.Done(): // the number may be another's by now
	default:
		if grace == 0 { // also where it was given time before
			_ = syscall.Kill(-a.process.Pid, syscall.SIGKILL)
		}
	}
	go func() {
		select {
		case <-a.process.Done():
		case <-time.After(grace):
			ctx, cancel := context.WithTimeout(context.Background(), leftoverLimit)
			defer cancel()
			if err := a.box.KillAttempt(ctx); err != nil {
				a.log.WithError(err).Error("stopping the task")
			}
		}
	}()
}

// terminate sends SIGTERM to the attempt; it may have ended just now.
func (a *attempt) terminate() {
	_ = syscall.Kill(-a.process.Pid, syscall.SIGTERM)
	_ = syscall.Kill(-a.process.Pid, syscall.SIGCONT)
}

// wait waits for the attempt's end, kills what it left behind, and returns how it ended.
func (a *attempt) wait() *proto.Exited {
	status, known := a.process.Status()
	at := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), leftoverLimit)
	defer cancel()
	if err := a.box.KillAttempt(ctx); err != nil {
		a.log.WithError(err).Error("ending what the task left behind")
	}
	select {
	case <-a.out.Done():
	case <-ctx.Done():
		a.out.GiveUp()
		<-a.out.Done()
	}
	heard := a.out.Lines()
	e := &proto.Exited{Attempt: a.number, Tail: heard[max(0, len(heard)-tailLines):], AtUnixMs: at.UnixMilli()}
	select {
	case <-a.stopping:
		e.Stopped = true
	default:
	}
	switch {
	case !known:
		e.Code, e.Signal, e.Detail = -1, int32(syscall.SIGKILL), "it was killed together with the agent's helper process"
	case status.Signaled():
		e.Code, e.Signal = -1, int32(status.Signal())
		e.Detail = fmt.Sprintf("killed by %s", unix.SignalName(status.Signal()))
		if status.Signal() == syscall.SIGKILL && oomKills() > a.oomBefore {
			e.OutOfMemory = true
			e.Detail = "killed by the kernel: the container's memory was used up"
		}
	default:
		e.Code = int32(status.ExitStatus())
		e.Detail = fmt.Sprintf("exited with %d", e.Code)
	}
	e.Step = a.out.LastStep()
	if a.stacks.Load() {
		e.Stack = tasklog.Stack(heard)
	}
	a.explain(e, heard)
	if a.forked && at.Sub(a.started) < suspect && !e.Stopped && !e.PeerLost && (e.Code > 0 || e.Signal != 0 && syscall.Signal(e.Signal) != syscall.SIGKILL) {
		a.standby.Refuse(fmt.Sprintf("attempt %d, which came from it, %s after %.1f s", a.number, e.Detail, at.Sub(a.started).Seconds()))
	}
	a.log.WithFields(logrus.Fields{"pid": a.process.Pid, "stopped": e.Stopped}).Info(e.Detail)
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
