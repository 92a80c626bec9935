package sandbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/container/proctree"
	"holdfast/container/steer"
)

// Options say how to start a box.
type Options struct {
	Exe string // this binary; empty: /proc/self/exe
	// NoNamespace asks for none, UserNamespace for a user namespace where root
	// could do without one. For tests and for those who cannot have one.
	NoNamespace, UserNamespace bool
	// NoSteering leaves out the seccomp filter.
	NoSteering bool
}

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

	asking  sync.Mutex // one request at a time
	answers chan reply
	done    chan struct{} // the init process has ended
	err     error         // why, once done
	closing atomic.Bool   // Close was called

	mu        sync.Mutex
	processes map[int]*Process
	standing  map[int]bool               // of them, those that no attempt is
	early     map[int]syscall.WaitStatus // exits that overtook exec's answer
}

type reply struct {
	m     message
	files []*os.File
}

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

// Start starts an init process, in namespaces of its own if that is allowed here.
func Start(ctx context.Context, o Options) (*Box, error) {
	if o.Exe == "" {
		o.Exe = "/proc/self/exe"
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("becoming a subreaper: %w", err)
	}
	var refused error
	for _, a := range attributes(o) {
		b, err := start(ctx, o, a)
		if err != nil && a.Cloneflags != 0 {
			refused = fmt.Errorf("starting a process in a new namespace: %w", err)
			continue
		}
		if err == nil && b.listener != nil {
			if unfit := steer.Check(b.Pid(), b.sample); unfit != nil {
				// Nobody could answer the filter's notifications.
				b.listener.Close()
				b.Close()
				without := o
				without.NoSteering = true
				if b, err = start(ctx, without, a); err == nil {
					b.restrictions.Steer = unfit
				}
			}
		}
		if err != nil {
			return nil, fmt.Errorf("starting the sandbox's init process, %s: %w", o.Exe, err)
		}
		if b.restrictions.Namespace != nil {
			refused = b.restrictions.Namespace
			b.Close()
			continue
		}
		if a.Cloneflags == 0 {
			if refused == nil {
				refused = errors.New("not asked for")
			}
			b.restrictions.Namespace = adviseNamespace(refused)
		}
		return b, nil
	}
	return nil, errors.New("starting the sandbox's init process: all ways failed") // the last way has no flags
}

// attributes returns the ways to start an init process, best first. Root needs no user
// namespace, in which it could not use files of other users.
func attributes(o Options) []*syscall.SysProcAttr {
	plain := &syscall.SysProcAttr{Setsid: true}
	if o.NoNamespace {
		return []*syscall.SysProcAttr{plain}
	}
	user := &syscall.SysProcAttr{
		Setsid:      true,
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}},
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN},
	}
	if os.Geteuid() != 0 || o.UserNamespace {
		return []*syscall.SysProcAttr{user, plain}
	}
	return []*syscall.SysProcAttr{{Setsid: true, Cloneflags: syscall.CLONE_NEWNS}, user, plain}
}

func start(ctx context.Context, o Options, attr *syscall.SysProcAttr) (*Box, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("making a socket pair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "init"), os.NewFile(uintptr(pair[1]), "agent")
	c, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		theirs.Close()
		return nil, err
	}
	b := &Box{
		conn: c.(*net.UnixConn), answers: make(chan reply, 1), done: make(chan struct{}),
		processes: map[int]*Process{}, standing: map[int]bool{}, early: map[int]syscall.WaitStatus{},
	}
	args := []string{InitName, argShared, argSteered}
	if attr.Cloneflags != 0 {
		args[1] = argPrivate
	}
	if o.NoSteering {
		args[2] = argUnsteered
	}
	b.cmd = &exec.Cmd{
		Path: o.Exe, Args: args, Env: []string{},
		Stderr: os.Stderr, ExtraFiles: []*os.File{theirs}, SysProcAttr: attr,
	}
	err = b.cmd.Start()
	theirs.Close()
	if err != nil {
		b.conn.Close()
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { b.conn.SetReadDeadline(time.Unix(1, 0)) })
	up, files, err := receive(b.conn)
	stop()
	if err != nil || up.Op != opUp {
		b.conn.Close()
		_ = b.cmd.Process.Kill()
		state := b.cmd.Wait()
		return nil, fmt.Errorf("the sandbox's init process did not start: %w", errors.Join(err, state, ctx.Err()))
	}
	_ = b.conn.SetReadDeadline(time.Time{})
	if len(files) > 0 {
		b.listener, b.sample = files[0], up.Sample
	}
	b.restrictions = Restrictions{
		Namespace: said(up.Namespace),
		Fuse:      adviseFuse(said(up.Fuse)),
		Steer:     said(up.Steer),
	}
	go b.read()
	return b, nil
}

func said(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
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
		if m.Op == opExit {
			b.exited(m.Pid, syscall.WaitStatus(m.Status))
			continue
		}
		b.answers <- reply{m, files}
	}
	_ = b.cmd.Process.Kill() // it closed the socket, or spoke nonsense
	err := b.cmd.Wait()
	b.err = fmt.Errorf("the sandbox's init process ended: %w", errors.Join(err, reason))
	close(b.done)
	b.mu.Lock()
	defer b.mu.Unlock()
	for pid, p := range b.processes {
		p.lost = true
		close(p.done)
		delete(b.processes, pid)
	}
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

// ask sends a request and waits for its answer.
func (b *Box) ask(m message, fds ...int) (reply, error) {
	b.asking.Lock()
	defer b.asking.Unlock()
	if err := send(b.conn, m, fds...); err != nil {
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

// Done is closed when the init process has ended; that must not happen before Close.
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

func (b *Box) enter(pid int, standing bool) *Process {
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

// KillAttempt ends every process in the box but the init process and standing ones.
func (b *Box) KillAttempt(ctx context.Context) error { return b.kill(ctx, b.spared()...) }

// KillAll ends every process in the box but the init process.
func (b *Box) KillAll(ctx context.Context) error { return b.kill(ctx) }

func (b *Box) kill(ctx context.Context, spared ...int) error {
	select {
	case <-b.done:
		if b.closing.Load() {
			return nil // Close had it end everything
		}
		// The init process was killed, and this process has inherited what was below
		// it. A process that has a box has no other children of its own.
		return proctree.KillDescendants(ctx, os.Getpid())
	default:
		return proctree.KillDescendants(ctx, b.Pid(), spared...)
	}
}

// Processes returns the processes in the box, without the init process and standing ones.
func (b *Box) Processes() []int { return proctree.Descendants(b.Pid(), b.spared()...) }

func (b *Box) spared() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.standing))
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
}
