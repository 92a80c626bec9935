package container

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"holdfast/container/launch"
	"holdfast/proto"
	"holdfast/runtime/tasklog"
)

// Bounds of what clients run in a container. What execsAtOnce commands may have sent ahead,
// proto.ExecWindow messages each, has to fit into the stream's backlog, with room for the rest.
const (
	execsAtOnce = 4
	execPiece   = 16 << 10         // bytes of output in a message
	execRest    = time.Second      // without more output once a command has ended, after which it has printed all
	execLeft    = 1 << 20          // bytes that are read then: at least as many as a pipe holds
	stacksLimit = 10 * time.Second // for processes to print where they stand
	stacksPace  = 100 * time.Millisecond
	stacksQuiet = 4 // paces without a new one, after which they have printed all
)

// execs are the commands that clients run beside the task. Their goroutines end with the
// context that exec is given, or soon after endAll.
type execs struct {
	output chan execOutput // for the loop to send

	mu      sync.Mutex
	running map[int64]*execution
	count   int // of those whose goroutine runs, also after endAll
}

// execution is one of them, which ends with its context.
type execution struct {
	id     int64
	ctx    context.Context
	cancel context.CancelFunc
	// window has an element for each message with output that was sent and not taken yet.
	window chan struct{}
	// abandoned: its stream has ended, and the next one has ids of its own.
	abandoned atomic.Bool
}

// execOutput is a part of the answer of an execution.
type execOutput struct {
	of      *execution
	message *proto.ExecOutput
}

func newExecs() *execs {
	return &execs{output: make(chan execOutput), running: map[int64]*execution{}}
}

// begin returns an execution of an id; false if there are too many.
func (x *execs) begin(ctx context.Context, id int64) (*execution, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.count >= execsAtOnce {
		return nil, false
	}
	e := &execution{id: id, window: make(chan struct{}, proto.ExecWindow)}
	e.ctx, e.cancel = context.WithCancel(ctx)
	x.running[id] = e
	x.count++
	return e, true
}

func (x *execs) end(e *execution) {
	e.cancel()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.count--
	if x.running[e.id] == e {
		delete(x.running, e.id)
	}
}

func (x *execs) cancel(id int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.running[id]; e != nil {
		e.cancel()
	}
}

// taken takes in that the client of an id has taken a message.
func (x *execs) taken(id int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e := x.running[id]; e != nil {
		select {
		case <-e.window:
		default: // more than were sent
		}
	}
}

// endAll ends what runs: its clients' calls have ended with the stream.
func (x *execs) endAll() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, e := range x.running {
		e.abandoned.Store(true)
		e.cancel()
	}
	clear(x.running)
}

// exec does what a client asks for, in the background.
func (a *agent) exec(ctx context.Context, r *proto.Exec) {
	x := a.execs
	if r.Cancel {
		x.cancel(r.Id)
		return
	}
	if a.attempt == nil {
		a.refuseExec(r.Id, "no attempt of the task runs now")
		return
	}
	e, ok := x.begin(ctx, r.Id)
	if !ok {
		a.refuseExec(r.Id, fmt.Sprintf("%d commands run in the container already", execsAtOnce))
		return
	}
	at := a.attempt
	a.wg.Go(func() {
		defer x.end(e)
		if r.Stacks {
			x.stacks(e, at)
		} else {
			x.run(e, r.Command, at)
		}
	})
}

func (a *agent) refuseExec(id int64, why string) {
	a.send(&proto.FromAgent{Message: &proto.FromAgent_ExecOutput{ExecOutput: &proto.ExecOutput{Id: id, Done: true, Code: -1, Error: why}}})
}

// answer gives a part of an answer to the loop, and reports whether it took it.
func (x *execs) answer(e *execution, o *proto.ExecOutput) bool {
	o.Id = e.id
	select {
	case x.output <- execOutput{e, o}:
		return true
	case <-e.ctx.Done():
		return false
	}
}

// print answers with output once the client has taken what came before, but for a window, and
// reports whether it could.
func (x *execs) print(e *execution, output []byte) bool {
	select {
	case e.window <- struct{}{}:
		return x.answer(e, &proto.ExecOutput{Output: output})
	case <-e.ctx.Done():
		return false
	}
}

// run runs a command with the attempt's environment and directory, in its namespaces. What it
// prints is read as fast as its client takes it, and what it has started is ended with it.
func (x *execs) run(e *execution, argv []string, at *attempt) {
	last := &proto.ExecOutput{Done: true, Code: -1}
	defer func() { x.answer(e, last) }()
	reader, writer, err := os.Pipe()
	if err != nil {
		last.Error = fmt.Sprintf("making a pipe for the output: %v", err)
		return
	}
	defer reader.Close()
	failure, told, err := os.Pipe()
	if err != nil {
		writer.Close()
		last.Error = fmt.Sprintf("making a pipe for a failure: %v", err)
		return
	}
	defer failure.Close()
	// Not by the box itself, which attempts would wait for, to start and to be killed.
	command := at.command
	command.Argv, command.Dir = launch.Argv(command.Dir, argv), "/"
	command.Output, command.Standing, command.Socket = writer, true, told
	p, err := at.box.Exec(command)
	writer.Close()
	told.Close()
	if err != nil {
		last.Error = fmt.Sprintf("the command cannot be run: %v", err)
		return
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-e.ctx.Done():
		case <-p.Done():
		}
		_ = syscall.Kill(-p.Pid, syscall.SIGKILL) // with what it has left behind
		_ = reader.SetReadDeadline(time.Now().Add(execRest))
	})
	x.copy(e, reader, p.Done())
	select {
	case <-p.Done(): // by itself
	case <-e.ctx.Done():
		select {
		case <-p.Done():
		case <-time.After(leftoverLimit): // nothing kills what waits in the kernel
			return
		}
	}
	watching.Wait()
	if why := launch.Failure(failure); why != "" {
		last.Error = "the command cannot be run: " + why
		return
	}
	if status, known := p.Status(); known && !status.Signaled() {
		last.Code = int32(status.ExitStatus())
	}
}

// copy answers with what a command prints, until nothing more comes. The reader has a deadline
// of execRest from the command's end on: something that it has started may hold the pipe open.
func (x *execs) copy(e *execution, reader *os.File, ended <-chan struct{}) {
	buffer := make([]byte, execPiece)
	for left := execLeft; left > 0; {
		last := false
		select {
		case <-ended: // the client may have taken long since
			last = true
			_ = reader.SetReadDeadline(time.Now().Add(execRest))
		case <-e.ctx.Done():
			return
		default:
		}
		n, err := reader.Read(buffer)
		if n > 0 && !x.print(e, bytes.Clone(buffer[:n])) {
			return
		}
		if last {
			left -= n
		}
		if err != nil && (last || !errors.Is(err, os.ErrDeadlineExceeded)) {
			return
		}
	}
}

// stacks has the attempt's processes print where they stand, which goes to the attempt's
// output, and answers with what has come there since.
func (x *execs) stacks(e *execution, at *attempt) {
	last := &proto.ExecOutput{Done: true}
	defer func() { x.answer(e, last) }()
	printed := make([]int64, len(at.processes)) // before they are asked: they may answer at once
	for i, p := range at.processes {
		printed[i] = p.out.Count()
	}
	if !askForStacks(at.box.Processes()) {
		last.Code, last.Error = -1, "only Python started by yarn-submit, and Java, can print them"
		return
	}
	var stacks []string
	for quiet, deadline := 0, time.Now().Add(stacksLimit); (len(stacks) == 0 || quiet < stacksQuiet) && time.Now().Before(deadline); quiet++ {
		select {
		case <-e.ctx.Done():
			return
		case <-at.done:
			last.Code, last.Error = -1, "the attempt has ended"
			return
		case <-time.After(stacksPace):
		}
		var now []string
		for i, p := range at.processes {
			now = append(now, tasklog.Stacks(p.out.Since(printed[i]))...)
		}
		if !slices.Equal(now, stacks) {
			stacks, quiet = now, 0
		}
	}
	if len(stacks) == 0 {
		last.Code, last.Error = -1, fmt.Sprintf("its processes were asked for their stacks, and have printed none within %s", stacksLimit)
		return
	}
	last.Output = []byte(strings.Join(stacks, "\n\n") + "\n")
}
