package container

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"holdfast/proto"
	"holdfast/runtime/tasklog"
)

// Bounds of what clients run in a container.
const (
	execsAtOnce = 4
	execPiece   = 16 << 10        // bytes of output in a message
	execRest    = time.Second     // to read what a command has printed at its end
	stacksLimit = 3 * time.Second // for processes to print where they stand
	stacksPace  = 100 * time.Millisecond
)

// execs are the commands that clients run beside the task. Their goroutines end with the
// context that exec is given.
type execs struct {
	output chan *proto.ExecOutput // for the loop to send

	mu      sync.Mutex
	running map[int64]context.CancelFunc
}

func newExecs() *execs {
	return &execs{output: make(chan *proto.ExecOutput), running: map[int64]context.CancelFunc{}}
}

// exec does what a client asks for, in the background.
func (a *agent) exec(ctx context.Context, r *proto.Exec) {
	x := a.execs
	x.mu.Lock()
	cancel, n := x.running[r.Id], len(x.running)
	x.mu.Unlock()
	switch {
	case r.Cancel:
		if cancel != nil {
			cancel()
		}
		return
	case a.attempt == nil:
		a.refuseExec(r.Id, "no attempt of the task runs now")
		return
	case n >= execsAtOnce:
		a.refuseExec(r.Id, fmt.Sprintf("%d commands run in the container already", n))
		return
	}
	ctx, cancel = context.WithCancel(ctx)
	x.mu.Lock()
	x.running[r.Id] = cancel
	x.mu.Unlock()
	at := a.attempt
	a.wg.Go(func() {
		defer func() {
			cancel()
			x.mu.Lock()
			delete(x.running, r.Id)
			x.mu.Unlock()
		}()
		if r.Stacks {
			x.stacks(ctx, r.Id, at)
		} else {
			x.run(ctx, r, at)
		}
	})
}

func (a *agent) refuseExec(id int64, why string) {
	a.send(&proto.FromAgent{Message: &proto.FromAgent_ExecOutput{ExecOutput: &proto.ExecOutput{Id: id, Done: true, Code: -1, Error: why}}})
}

// answer gives a part of an answer to the loop, and reports whether it took it.
func (x *execs) answer(ctx context.Context, o *proto.ExecOutput) bool {
	select {
	case x.output <- o:
		return true
	case <-ctx.Done():
		return false
	}
}

// run runs a command with the attempt's environment and directory, in its namespaces. The
// command is ended, with what it has started, when ctx ends.
func (x *execs) run(ctx context.Context, r *proto.Exec, at *attempt) {
	last := &proto.ExecOutput{Id: r.Id, Done: true, Code: -1}
	defer func() { x.answer(ctx, last) }()
	reader, writer, err := os.Pipe()
	if err != nil {
		last.Error = fmt.Sprintf("making a pipe for the output: %v", err)
		return
	}
	defer reader.Close()
	command := at.command
	command.Argv, command.Output, command.Standing = r.Command, writer, true
	p, err := at.box.Exec(command)
	writer.Close()
	if err != nil {
		last.Error = fmt.Sprintf("the command cannot be run: %v", err)
		return
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-ctx.Done():
		case <-p.Done():
		}
		_ = syscall.Kill(-p.Pid, syscall.SIGKILL) // with what it has left behind
		_ = reader.SetReadDeadline(time.Now().Add(execRest))
	})
	buffer := make([]byte, execPiece)
	for {
		n, err := reader.Read(buffer)
		if n > 0 && !x.answer(ctx, &proto.ExecOutput{Id: r.Id, Output: append([]byte(nil), buffer[:n]...)}) || err != nil {
			break
		}
	}
	<-p.Done() // by itself, or killed
	watching.Wait()
	if status, known := p.Status(); known && !status.Signaled() {
		last.Code = int32(status.ExitStatus())
	}
}

// stacks has the attempt's processes print where they stand, which goes to the attempt's
// output, and answers with what has come there.
func (x *execs) stacks(ctx context.Context, id int64, at *attempt) {
	last := &proto.ExecOutput{Id: id, Done: true}
	defer func() { x.answer(ctx, last) }()
	if !askForStacks(at.box.Processes()) {
		last.Code, last.Error = -1, "none of its processes prints its stacks on SIGQUIT, as Python does that was started by yarn-submit, and Java"
		return
	}
	before := len(at.stacksInOutput())
	for deadline, seen := time.Now().Add(stacksLimit), before; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(stacksPace):
		}
		found := at.stacksInOutput()
		settled := len(found) > before && len(found) == seen
		if seen = len(found); settled || time.Now().After(deadline) {
			last.Output = []byte(strings.Join(found[min(before, len(found)):], "\n\n") + "\n")
			return
		}
	}
}

// stacksInOutput returns the stacks that the attempt's processes have printed of late.
func (a *attempt) stacksInOutput() []string {
	var all []string
	for _, p := range a.processes {
		all = append(all, tasklog.Stacks(p.out.Lines())...)
	}
	return all
}
