package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/container/proctree"
	"holdfast/container/steer"
)

// InitName is argument 0 of the init process.
const InitName = "holdfast-sandbox"

// Arguments of the init process: whether it was cloned into namespaces of its own, and
// whether it is to install steering.
const (
	argPrivate   = "private"
	argShared    = "shared"
	argSteered   = "steered"
	argUnsteered = "unsteered"
)

func init() {
	if len(os.Args) == 3 && os.Args[0] == InitName {
		runtime.LockOSThread() // the thread that forks and carries the filter
		if err := keep(os.Args[1] == argPrivate, os.Args[2] == argSteered); err != nil {
			fmt.Fprintln(os.Stderr, "the sandbox's init process:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// initProcess is the init process's side. Its main goroutine serves requests; a second one
// receives them and notices the agent's end, and a third one reaps processes.
type initProcess struct {
	conn    *net.UnixConn
	writing sync.Mutex

	mounting sync.Mutex
	mounts   []mounted
	serving  atomic.Bool // a request, which may wait for a mount

	guards map[int]*os.File // by process group; listen's own

	// Held while forking, so that no exit is reaped before its pid is known.
	forking sync.Mutex
	pids    map[int]bool // attempts' processes; others are orphans of theirs
}

// request is what the agent asks for.
type request struct {
	m     message
	files []*os.File
}

func keep(private, steered bool) error {
	debug.SetGCPercent(20) // it holds next to nothing
	file := os.NewFile(3, "agent")
	unix.CloseOnExec(3)
	c, err := net.FileConn(file)
	if err != nil {
		return fmt.Errorf("started without its agent's socket on descriptor 3: %w", err)
	}
	file.Close()
	k := &initProcess{conn: c.(*net.UnixConn), pids: map[int]bool{}, guards: map[int]*os.File{}}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming a subreaper: %w", err)
	}
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	// Signals for the whole container are handled by the agent. They are not ignored,
	// since the task would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	go k.reap(children)

	up := message{Op: opUp}
	var fds []int
	if private {
		if err := isolate(); err != nil {
			up.Namespace = err.Error()
		}
	}
	if err := tryFuse(private && up.Namespace == ""); err != nil {
		up.Fuse = err.Error()
	}
	listener, err := -1, errors.New("not asked for")
	if steered {
		listener, err = steer.Install()
	}
	if err != nil {
		up.Steer = err.Error()
	} else {
		fds, up.Sample = append(fds, listener), steer.Sample()
	}
	if err := k.send(up, fds...); err != nil {
		return fmt.Errorf("speaking to the agent: %w", err)
	}
	for _, fd := range fds {
		unix.Close(fd) // or steering would survive the agent, unanswered
	}
	debug.FreeOSMemory()
	requests := make(chan request)
	go k.listen(requests)
	go k.watchMounts()
	for r := range requests {
		k.serving.Store(true)
		answer, fds := k.serve(r.m, r.files)
		k.serving.Store(false)
		for _, f := range r.files {
			f.Close()
		}
		answer.Op = opAnswer
		_ = k.send(answer, fds...) // or the agent has ended, which listen sees
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	return proctree.KillDescendants(ctx, os.Getpid(), nil)
}

// listen receives requests until the agent has ended. The goroutine that serves them may be
// waiting for a mount that is not served any more.
func (k *initProcess) listen(requests chan<- request) {
	defer close(requests)
	for {
		m, files, err := receive(k.conn)
		if err != nil {
			break
		}
		switch m.Op {
		case opGuard, opUnguard: // which wait for no other request
			k.guard(m.Pid, files)
		default:
			requests <- request{m, files}
		}
	}
	// Calls to a mount keep waiting as long as its descriptor is open. Otherwise they
	// would fail, and a process might report that to its peers just before it is killed,
	// as a parameter server does that cannot write its part of a checkpoint: the peers
	// would fail, too.
	if proctree.SigkillDescendants(os.Getpid()) == 0 && !k.serving.Load() {
		return // the agent has ended in order, and the mounts go with the namespace
	}
	k.mounting.Lock()
	defer k.mounting.Unlock()
	for _, m := range k.mounts {
		// By force, since a fork that is under way may also have the descriptor.
		_ = unix.Unmount(m.target, unix.MNT_FORCE|unix.MNT_DETACH)
		if m.fuse != nil {
			m.fuse.Close()
		}
	}
}

// guard holds the descriptor that guards a process group, instead of an earlier one; none: no
// longer.
func (k *initProcess) guard(group int, files []*os.File) {
	if before := k.guards[group]; before != nil {
		before.Close()
	}
	delete(k.guards, group)
	for i, f := range files {
		if i == 0 {
			k.guards[group] = f
		} else {
			f.Close()
		}
	}
}

func (k *initProcess) send(m message, fds ...int) error {
	k.writing.Lock()
	defer k.writing.Unlock()
	return send(k.conn, m, fds...)
}

// isolate makes the new mount namespace a slave of the host's: the host's mounts and unmounts
// remain visible (automounted homes need that), mounts made here are not visible there.
func isolate() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("making / private in a new mount namespace: %w", err)
	}
	// The task must not inherit the init process's ambient capabilities. The thread keeps its
	// permitted ones until it execs, which it never does.
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("dropping ambient capabilities: %w", err)
	}
	return nil
}

func openFuse() (*os.File, error) {
	// Not os.OpenFile, which would make it non-blocking.
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening /dev/fuse: %w", err)
	}
	return os.NewFile(uintptr(fd), "/dev/fuse"), nil
}

// tryFuse finds out whether FUSE can be mounted: security modules and old
// kernels (before 4.18, in a user namespace) refuse it. The trial hides /dev for an instant,
// in a namespace in which no other process is yet.
func tryFuse(private bool) error {
	f, err := openFuse()
	if err != nil {
		return err
	}
	defer f.Close()
	if !private {
		return nil
	}
	const over = "/dev"
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d", f.Fd(), os.Geteuid(), os.Getegid())
	if err := unix.Mount("holdfast", over, "fuse.holdfast", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return fmt.Errorf("mounting FUSE: %w", err)
	}
	if err := unix.Unmount(over, unix.MNT_DETACH); err != nil {
		return fmt.Errorf("unmounting FUSE: %w", err)
	}
	return nil
}

func (k *initProcess) serve(m message, files []*os.File) (answer message, fds []int) {
	switch m.Op {
	case opFuse:
		f, err := openFuse()
		if err != nil {
			return answer.withError(err), nil
		}
		options := fmt.Sprintf("fd=%d,%s", f.Fd(), m.Options)
		if err := k.mount(mounted{target: m.Target, source: "holdfast", fuse: f}, "fuse.holdfast", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
			f.Close()
			return answer.withError(fmt.Errorf("mounting FUSE on %s: %w", m.Target, err)), nil
		}
		return answer, []int{int(f.Fd())}
	case opStat:
		var st unix.Stat_t
		if err := unix.Stat(m.Target, &st); err != nil {
			return answer.withError(fmt.Errorf("looking at the mount on %s: %w", m.Target, err)), nil
		}
	case opBind:
		info, err := os.Stat(m.Source)
		if err == nil {
			err = k.mount(mounted{target: m.Target, source: m.Source, isDir: info.IsDir()}, "", unix.MS_BIND, "")
		}
		if err != nil {
			return answer.withError(fmt.Errorf("binding %s over %s: %w", m.Source, m.Target, err)), nil
		}
		return answer, nil
	case opExec:
		pid, err := k.exec(m, files)
		answer.Pid = pid
		return answer.withError(err), nil
	case opAdopt:
		return answer.withError(k.adopt(m.Pid)), nil
	default:
		answer.Error = fmt.Sprintf("no such request: %q", m.Op)
	}
	return answer, nil
}

// exec forks and execs an attempt's process.
func (k *initProcess) exec(m message, files []*os.File) (int, error) {
	if len(files) == 0 || len(m.Argv) == 0 {
		return 0, fmt.Errorf("a command and a descriptor for its output are needed: %w", syscall.EINVAL)
	}
	path, err := findCommand(m.Argv[0], m.Dir, m.Env)
	if err != nil {
		return 0, err
	}
	null, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("opening %s: %w", os.DevNull, err)
	}
	defer unix.Close(null)
	out := files[0].Fd()
	attr := &syscall.ProcAttr{
		Dir: m.Dir, Env: m.Env, Files: []uintptr{uintptr(null), out, out},
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	}
	for _, f := range files[1:] {
		attr.Files = append(attr.Files, f.Fd())
	}
	for try := 0; ; try++ {
		k.forking.Lock()
		pid, err := syscall.ForkExec(path, m.Argv, attr)
		if err == nil {
			k.pids[pid] = true
		}
		k.forking.Unlock()
		switch {
		case err == nil:
			return pid, nil
		case err == syscall.ETXTBSY && try < 20:
			// The file was just written, and a fork of another process still
			// has its descriptor for an instant.
			time.Sleep(10 * time.Millisecond)
		case err == syscall.ENOENT:
			if _, gone := os.Stat(m.Dir); gone != nil {
				return 0, fmt.Errorf("entering the working directory %s: %w", m.Dir, gone)
			}
			return 0, fmt.Errorf("running %s: the interpreter that its first line names is not on this node: %w", path, err)
		case err == syscall.ENOEXEC:
			return 0, fmt.Errorf("running %s: neither a program for this machine nor a script with a first line #!INTERPRETER: %w", path, err)
		default:
			return 0, fmt.Errorf("running %s: %w", path, err)
		}
	}
}

// adopt reports the end of an orphan, too, from now on.
func (k *initProcess) adopt(pid int) error {
	k.forking.Lock()
	defer k.forking.Unlock()
	// Not waited for yet, or it would not be a child.
	if parent, ok := proctree.Parent(pid); !ok || parent != os.Getpid() {
		return fmt.Errorf("adopting process %d: it is no child of the sandbox's init process: %w", pid, syscall.ECHILD)
	}
	k.pids[pid] = true
	return nil
}

// makeExecutable says what to do about a file that may not be executed.
func makeExecutable(name string) string {
	interpreter := "its interpreter"
	if strings.HasSuffix(name, ".py") {
		interpreter = "python"
	}
	return fmt.Sprintf("chmod +x %s, or run it with %s", name, interpreter)
}

// findCommand finds a command by its name as a shell does.
func findCommand(name, dir string, env []string) (string, error) {
	at := func(p string) string {
		if filepath.IsAbs(p) {
			return p
		}
		return filepath.Join(dir, p)
	}
	executable := func(p string) error {
		st, err := os.Stat(p)
		if err != nil {
			return err
		}
		if st.IsDir() {
			return syscall.EISDIR
		}
		return unix.Faccessat(unix.AT_FDCWD, p, unix.X_OK, unix.AT_EACCESS)
	}
	if strings.Contains(name, "/") {
		p := at(name)
		if err := executable(p); err != nil {
			remedy := ""
			if errors.Is(err, syscall.EACCES) {
				remedy = "; " + makeExecutable(filepath.Base(p))
			}
			return "", fmt.Errorf("the command %s cannot be run on this node: %w%s", p, err, remedy)
		}
		return p, nil
	}
	path := ""
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			path = v
		}
	}
	var denied error
	for _, d := range filepath.SplitList(path) {
		p := filepath.Join(at(d), name)
		err := executable(p)
		if err == nil {
			return p, nil
		}
		if os.IsPermission(err) {
			denied = fmt.Errorf("the command %s cannot be run on this node: %w", p, err)
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", fmt.Errorf("the command %q is not on this node's PATH (%s): give its full path, or ship it with --files or --archives: %w", name, path, syscall.ENOENT)
}

// reap waits for all children: processes of attempts, and orphans, which a subreaper
// inherits.
func (k *initProcess) reap(children <-chan os.Signal) {
	for range children {
		for {
			var status syscall.WaitStatus
			k.forking.Lock()
			pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
			mine := err == nil && k.pids[pid]
			delete(k.pids, pid)
			k.forking.Unlock()
			if err == syscall.EINTR {
				continue
			}
			if err != nil || pid <= 0 {
				break
			}
			if mine {
				_ = k.send(message{Op: opExit, Pid: pid, Status: uint32(status)}) // or the agent has ended
			}
		}
	}
}
