package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Restrictions are what this node does not allow: each error says why, and what
// to do about it; nil: it is allowed.
type Restrictions struct {
	Namespace error // private mounts and hosts file
	Fuse      error // the store as a directory
	Steer     error // connections steered by seccomp
}

// Box is the agent's side of a sandbox.
type Box struct {
	cmd          *exec.Cmd
	conn         *net.UnixConn
	restrictions Restrictions
	listener     *os.File
	sample       uint64 // for steer.Check

	guards *guards

	writing sync.Mutex // of a message
	asking  sync.Mutex // one request at a time
	answers chan reply
	done    chan struct{} // the init process has ended
	err     error         // why, once done
	closing atomic.Bool   // Close was called
	removed atomic.Pointer[mountRemoved]

	// sparing is held while a standing process is started, until it is known to be one, and
	// while a round of KillAttempt looks for what it kills.
	sparing sync.Mutex

	mu        sync.Mutex
	processes map[int]*Process
	standing  map[int]bool               // of them, those that no attempt is
	early     map[int]syscall.WaitStatus // exits that overtook exec's answer
}

type reply struct {
	m     message
	files []*os.File
}

// read receives the init process's messages until it ends.
func (b *Box) read() {
	var reason error
	for {
		m, files, err := receive(b.conn)
		if err != nil {
			reason = err
			break
		}
		switch m.Op {
		case opExit:
			b.exited(m.Pid, syscall.WaitStatus(m.Status))
		case opRemoved:
			b.removed.Store(&mountRemoved{m.Target})
		default:
			b.answers <- reply{m, files}
		}
	}
	_ = b.cmd.Process.Kill() // it closed the socket, or spoke nonsense
	err := b.cmd.Wait()
	b.err = fmt.Errorf("the sandbox's init process ended: %w", errors.Join(err, reason))
	if removed := b.MountRemoved(); removed != nil {
		b.err = removed
	}
	close(b.done)
	b.mu.Lock()
	defer b.mu.Unlock()
	for pid, p := range b.processes {
		p.lost = true
		close(p.done)
		delete(b.processes, pid)
	}
}

func (b *Box) send(m message, fds ...int) error {
	b.writing.Lock()
	defer b.writing.Unlock()
	return send(b.conn, m, fds...)
}

// ask sends a request and waits for its answer.
func (b *Box) ask(m message, fds ...int) (reply, error) {
	b.asking.Lock()
	defer b.asking.Unlock()
	if err := b.send(m, fds...); err != nil {
		return reply{}, fmt.Errorf("communicating with the sandbox's init process: %w", err)
	}
	select {
	case r := <-b.answers:
		return r, r.m.failure()
	case <-b.done:
		return reply{}, b.err
	}
}

// Restrictions returns what this node does not allow.
func (b *Box) Restrictions() Restrictions { return b.restrictions }

// Listener returns the descriptor for package steer, nil without steering. The caller must
// close it.
func (b *Box) Listener() *os.File { return b.listener }

// Pid returns the init process's process id.
func (b *Box) Pid() int { return b.cmd.Process.Pid }

// Done is closed when the init process has ended. Before Close, that happens only when it fails,
// or when a mount was removed.
func (b *Box) Done() <-chan struct{} { return b.done }

// Err says why the init process ended, once Done is closed.
func (b *Box) Err() error { return b.err }

// Mount mounts a FUSE file system in the box. options are those of mount(2)
// without fd; serve is called with the descriptor, which it owns from then on, and must
// answer requests.
func (b *Box) Mount(target, options string, serve func(fd int) error) error {
	if err := b.restrictions.Namespace; err != nil {
		return err
	}
	r, err := b.ask(message{Op: opFuse, Target: target, Options: options})
	if err != nil {
		return err
	}
	if len(r.files) != 1 {
		return errors.New("the sandbox's init process sent no descriptor of its FUSE mount")
	}
	fd, err := unix.FcntlInt(r.files[0].Fd(), unix.F_DUPFD_CLOEXEC, 3)
	r.files[0].Close()
	if err != nil {
		return fmt.Errorf("keeping the descriptor of the mount on %s: %w", target, err)
	}
	if err := serve(fd); err != nil {
		return fmt.Errorf("serving the mount on %s: %w", target, err)
	}
	// The first create after a mount fails with EACCES until the root was
	// looked at once (Linux, fs/fuse: its attributes are not yet known).
	_, err = b.ask(message{Op: opStat, Target: target})
	return err
}

// Bind binds a file or directory over another, in the box.
func (b *Box) Bind(source, target string) error {
	if err := b.restrictions.Namespace; err != nil {
		return err
	}
	_, err := b.ask(message{Op: opBind, Source: source, Target: target})
	return err
}

// Close ends the init process and all that runs in the box, and with them the
// namespace and its mounts. It waits for the init process's end.
func (b *Box) Close() {
	b.closing.Store(true)
	_ = b.conn.CloseWrite()
	select {
	case <-b.done:
	case <-time.After(10 * time.Second):
		_ = b.cmd.Process.Kill()
		<-b.done
	}
	b.conn.Close()
	b.guards.close()
}
