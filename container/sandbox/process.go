package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"holdfast/container/proctree"
)

// Process is one attempt's process.
type Process struct {
	Pid    int
	done   chan struct{}
	status syscall.WaitStatus
	lost   bool
}

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Status returns how it ended; ok is false if that is not known because the init process ended
// first.
func (p *Process) Status() (status syscall.WaitStatus, ok bool) {
	<-p.done
	return p.status, !p.lost
}

// Command is what Exec runs. Its standard input is empty.
type Command struct {
	Argv   []string
	Env    []string
	Dir    string
	Output *os.File // of standard output and error
	// Standing is of a process that is no attempt and outlives them; it gets
	// Socket, if that is not nil, as its descriptor 3.
	Standing bool
	Socket   *os.File
}

// Exec starts a process in the box, the leader of a session of its own. Errors
// wrap the errno of exec.
func (b *Box) Exec(c Command) (*Process, error) {
	fds := []int{int(c.Output.Fd())}
	if c.Socket != nil {
		fds = append(fds, int(c.Socket.Fd()))
	}
	if c.Standing {
		b.sparing.Lock()
		defer b.sparing.Unlock()
	}
	r, err := b.ask(message{Op: opExec, Argv: c.Argv, Env: c.Env, Dir: c.Dir}, fds...)
	if err != nil {
		return nil, err
	}
	return b.enter(r.m.Pid, c.Standing), nil
}

// Adopt returns an orphan, which the init process has inherited, as a Process like Exec's. The
// orphan must not end before Adopt returns.
func (b *Box) Adopt(pid int) (*Process, error) {
	if _, err := b.ask(message{Op: opAdopt, Pid: pid}); err != nil {
		return nil, err
	}
	return b.enter(pid, false), nil
}

// Enlist makes a standing process that still runs one of the attempt's.
func (b *Box) Enlist(p *Process) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.standing[p.Pid] {
		return fmt.Errorf("process %d has ended", p.Pid)
	}
	delete(b.standing, p.Pid)
	return nil
}

func (b *Box) exited(pid int, status syscall.WaitStatus) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.processes[pid]
	if p == nil {
		b.early[pid] = status
		return
	}
	delete(b.processes, pid)
	delete(b.standing, pid)
	p.status = status
	close(p.done)
}

// enter returns a process of the init process's as one of the box, and guards its group.
func (b *Box) enter(pid int, standing bool) *Process {
	p := b.note(pid, standing)
	if parent, ok := proctree.Parent(pid); ok && parent == b.Pid() { // else it has ended
		_ = b.Guard([]int{pid}) // what cannot be guarded, the agent's next call tells
	}
	return p
}

// note returns a process whose end, which may have been told already, is told to it.
func (b *Box) note(pid int, standing bool) *Process {
	p := &Process{Pid: pid, done: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	if status, ok := b.early[p.Pid]; ok {
		delete(b.early, p.Pid)
		p.status = status
		close(p.done)
		return p
	}
	select {
	case <-b.done:
		p.lost = true
		close(p.done)
	default:
		b.processes[p.Pid] = p
		if standing {
			b.standing[p.Pid] = true
		}
	}
	return p
}

// KillAttempt ends every process in the box but the init process and standing ones, also those
// that are started meanwhile.
func (b *Box) KillAttempt(ctx context.Context) error {
	return b.kill(ctx, func() ([]int, func()) {
		b.sparing.Lock()
		return b.spared(), b.sparing.Unlock
	})
}

// KillAll ends every process in the box but the init process.
func (b *Box) KillAll(ctx context.Context) error { return b.kill(ctx, nil) }

func (b *Box) kill(ctx context.Context, spare proctree.Spare) error {
	select {
	case <-b.done:
		if b.closing.Load() {
			return nil // Close had it end everything
		}
		// The init process was killed, and this process has inherited what was below
		// it. A process that has a box has no other children of its own.
		return proctree.KillDescendants(ctx, os.Getpid(), nil)
	default:
		return proctree.KillDescendants(ctx, b.Pid(), spare)
	}
}

// Processes returns the processes in the box, without the init process and standing ones.
func (b *Box) Processes() []int { return proctree.Descendants(b.Pid(), b.spared()...) }

func (b *Box) spared() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.standing))
}

// DisableCoreFiles has the kernel write no core files of what runs in the box from now on,
// unless it raises its limit (RLIMIT_CORE) again.
func (b *Box) DisableCoreFiles() error {
	for _, pid := range append(proctree.Descendants(b.Pid()), b.Pid()) {
		var limit unix.Rlimit
		err := unix.Prlimit(pid, unix.RLIMIT_CORE, nil, &limit)
		if err == nil {
			limit.Cur = 0
			err = unix.Prlimit(pid, unix.RLIMIT_CORE, &limit, nil)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) { // it has ended
			return fmt.Errorf("limiting the core files of process %d: %w", pid, err)
		}
	}
	return nil
}
