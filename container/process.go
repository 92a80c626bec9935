package container

import (
	"fmt"
	"math"
	"path"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/container/output"
	"holdfast/container/sandbox"
	"holdfast/proto"
	"holdfast/runtime"
	"holdfast/runtime/framework"
	"holdfast/runtime/tasklog"
)

// process is one of the processes of an attempt.
type process struct {
	*sandbox.Process
	local int // which of the attempt's it is
	out   *output.Output
	told  *output.ProgressFile

	errorFormat *framework.ErrorFile // of the framework; nil if it writes no error file
	errorFile   string

	at    time.Time // of its end, once Done
	ended bool      // it was asked to end because another one had failed
}

// newProcess makes what one of the processes of an attempt needs before it can start: its
// command, which it returns, and its output.
func (t *task) newProcess(cfg Config, a *attempt, s *proto.Start, local int) (*process, sandbox.Command, error) {
	none := sandbox.Command{}
	argv, given, err := t.peers.Command(s.Command, s.Env, t.port.Number, framework.Attempt{
		Local: local, Number: int(s.Attempt), Generation: int(s.Generation), Absent: s.Absent, WorldChanged: s.WorldChanged, Host: cfg.Host,
		Addresses: t.names.Addresses(), Forwarded: t.forwarder != nil, Interface: t.names.Interface(),
		MorePorts: t.morePorts(), GPUs: t.gpus.Names(),
	})
	if err != nil {
		return nil, none, fmt.Errorf("%w: %w", errCannotRun, err)
	}
	if _, own := given[proto.EnvKept]; s.ConsistentServerState && !own {
		given[proto.EnvKept] = "1"
	}
	p := &process{local: local}
	p.errorFormat, p.errorFile = runtime.FrameworkErrorFile(given)
	if p.errorFormat != nil && p.errorFile == "" {
		p.errorFile = filepath.Join(cfg.WorkDir, fmt.Sprintf("error-%d-%d.json", s.Attempt, local))
		given[p.errorFormat.Variable] = p.errorFile
	}
	progress := filepath.Join(cfg.WorkDir, fmt.Sprintf("progress-%d-%d", s.Attempt, local))
	p.told = output.NewProgressFile(progress, tasklog.NewStepFinder(t.assign.Progress))
	given[output.EnvProgress] = progress
	if err := a.lingerEnv(given, filepath.Join(cfg.WorkDir, fmt.Sprintf("lingers-%d", s.Attempt))); err != nil {
		return nil, none, err
	}
	a.framework = given["HOLDFAST_FRAMEWORK"]
	argv, given = t.names.Substitute(argv, given)
	command, err := t.Command(argv, given, s.PythonPath)
	if err != nil {
		return nil, none, err
	}
	name := proto.LogName(int(s.Attempt), local)
	p.out, command.Output, err = output.New(
		filepath.Join(cfg.LogDir, t.assign.Task+"."+name), path.Join(proto.LogsDir, t.assign.Task, name),
		tasklog.NewStepFinder(t.assign.Progress), a.log)
	return p, command, err
}

// exit returns how the process ended. lines are the last of its output.
func (p *process) exit(a *attempt, lines []string) *proto.Exited {
	var tail []string
	for _, line := range lines[max(0, len(lines)-tailLines):] {
		tail = append(tail, tasklog.WithoutEscapes(line))
	}
	e := &proto.Exited{Attempt: a.number, Tail: tail, AtUnixMs: p.at.UnixMilli(), Stopped: a.stopped() || p.ended}
	status, known := p.Status()
	switch {
	case !known:
		e.Code, e.Signal, e.Detail = -1, int32(syscall.SIGKILL), "it was killed together with the agent's helper process"
	case status.Signaled():
		e.Code, e.Signal = -1, int32(status.Signal())
		e.Detail = fmt.Sprintf("killed by %s", unix.SignalName(status.Signal()))
	default:
		e.Code = int32(status.ExitStatus())
		e.Detail = fmt.Sprintf("exited with %d", e.Code)
		if s := endedBy(e); s != 0 { // it may also have chosen that code itself
			e.Detail += fmt.Sprintf(" (a shell's code for %s)", unix.SignalName(s))
		}
	}
	if known && endedBy(e) == syscall.SIGKILL && oomKills() > a.oomBefore {
		e.OutOfMemory = true
		e.Detail = "killed by the kernel: the container's memory was used up"
	}
	p.explain(e, a.framework, lines)
	return e
}

// failed reports whether an exit is no success.
func failed(e *proto.Exited) bool { return e.Code != 0 || e.Signal != 0 }

// decisive returns the index of the exit that the end of an attempt is reported as: the
// first failure, or the first exit if all have succeeded. Processes that lost a peer, or
// were asked to end, come after one that failed by itself: that may end later than those
// which its failure takes down.
func decisive(exits []*proto.Exited) int {
	class := func(e *proto.Exited) int {
		switch {
		case !failed(e):
			return 3
		case e.PeerLost:
			return 1
		case e.Stopped && e.Error == "":
			return 2
		}
		return 0
	}
	first := 0
	for i, e := range exits {
		if c, best := class(e), class(exits[first]); c < best || c == best && e.AtUnixMs < exits[first].AtUnixMs {
			first = i
		}
	}
	return first
}

// made returns the steps that the first process has written to its progress file, or the
// first of the others that writes any there; or else those that one prints; or else those of
// the scalars in its event files.
func (a *attempt) made() tasklog.Made {
	for _, p := range a.processes {
		if m := p.told.Made(); m.Reports > 0 {
			return m
		}
	}
	for _, p := range a.processes {
		if m := p.out.Made(); m.Step != 0 {
			return m
		}
	}
	return a.events.Made()
}

// totalSteps returns how many steps the first process that says so makes; 0 if none says.
func (a *attempt) totalSteps() int64 {
	for _, p := range a.processes {
		if n := p.told.TotalSteps(); n != 0 {
			return n
		}
		if n := p.out.TotalSteps(); n != 0 {
			return n
		}
	}
	return 0
}

// lastLine returns what the processes have written last, and when; an empty text if nothing.
func (a *attempt) lastLine() (text string, at time.Time) {
	for _, p := range a.processes {
		if t, when := p.out.LastLine(); t != "" && (text == "" || when.After(at)) {
			text, at = t, when
		}
	}
	return text, at
}

// takeScalars returns the scalars that the processes have written to their progress files,
// printed, or written to event files, since its last call.
func (a *attempt) takeScalars() []*proto.Scalar {
	var all []tasklog.Scalar
	add := func(list []tasklog.Scalar) {
		for _, found := range list {
			i := slices.IndexFunc(all, func(s tasklog.Scalar) bool { return s.Name == found.Name })
			switch {
			case i >= 0:
				all[i] = all[i].Merge(found)
			case len(all) < tasklog.MaxScalars:
				all = append(all, found)
			}
		}
	}
	for _, p := range a.processes {
		add(p.told.TakeScalars())
		add(p.out.TakeScalars())
	}
	add(a.events.TakeScalars())
	var list []*proto.Scalar
	for _, s := range all {
		reported := &proto.Scalar{Name: s.Name, Value: s.Last, Min: s.Min, Mean: s.Mean(), Max: s.Max}
		if s.Count == 0 {
			reported.Min, reported.Max = math.NaN(), math.NaN()
		}
		list = append(list, reported)
	}
	return list
}

// otherProgress changes while the output of a process shows progress that is no step.
func (a *attempt) otherProgress() int64 {
	var sum int64
	for _, p := range a.processes {
		sum += p.out.OtherProgress()
	}
	return sum
}

// pid returns the ID of the first process.
func (a *attempt) pid() int { return a.processes[0].Pid }

// running returns the processes that have not ended.
func (a *attempt) running() []*process {
	return slices.DeleteFunc(slices.Clone(a.processes), func(p *process) bool {
		select {
		case <-p.Done():
			return true
		default:
			return false
		}
	})
}
