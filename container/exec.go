package container

import (
	"context"
	"fmt"
	"os"
	"slices"
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
	execPiece   = 16 << 10         // bytes of output in a message
	execRest    = time.Second      // to read what a command has printed at its end
	stacksLimit = 10 * time.Second // for processes to print where they stand
	stacksPace  = 100 * time.Millisecond
	stacksQuiet = 4 // paces without a new one, after which they have printed all
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
// output, and answers with what has come there since.
func (x *execs) stacks(ctx context.Context, id int64, at *attempt) {
	last := &proto.ExecOutput{Id: id, Done: true}
	defer func() { x.answer(ctx, last) }()
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
		case <-ctx.Done():
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
