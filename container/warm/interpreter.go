package warm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/container/proctree"
	"holdfast/container/sandbox"
)

// envSocket is the variable by which the start-up file recognizes a warm interpreter; its
// value is the descriptor to listen on.
const envSocket = "HOLDFAST_WARM_SOCKET"

const (
	forkLimit   = 5 * time.Second // for an answer, on a machine that is busy
	importLimit = 10 * time.Minute

	// A slow import runs for slice and is stopped for pause, in turn. A lower priority
	// would not do: forked attempts would inherit it, and only root may raise it again.
	slice = 100 * time.Millisecond
	pause = 200 * time.Millisecond
)

// errRefused: the script or module can never be prewarmed.
var errRefused = errors.New("it cannot be kept")

// interpreter is one warm process.
type interpreter struct {
	box     *sandbox.Box
	command sandbox.Command // of the attempt that it was made for
	common  int             // the number of its words that are the same in every attempt; 0: not known yet
	profile ImportProfile   // with which it imports
	process *sandbox.Process
	conn    *net.UnixConn
	printed io.ReadCloser // its output until an attempt is forked
	once    sync.Once
	soon    chan struct{} // closed once an attempt waits for it
	// imported is closed when the import of a process that becomes an attempt has ended.
	imported chan struct{}
}

// start starts the process; it has imported nothing yet.
func start(box *sandbox.Box, command sandbox.Command, profile ImportProfile) (*interpreter, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("making a socket pair: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "interpreter"), os.NewFile(uintptr(pair[1]), "agent")
	defer theirs.Close()
	c, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		return nil, err
	}
	// A pipe, as an attempt's output is: Python chooses its buffering by that.
	r, w, err := os.Pipe()
	if err != nil {
		c.Close()
		return nil, err
	}
	defer w.Close()
	i := &interpreter{box: box, command: command, profile: profile, conn: c.(*net.UnixConn), printed: r, soon: make(chan struct{}), imported: make(chan struct{})}
	own := command
	own.Env = append(append([]string{}, command.Env...), envSocket+"=3")
	own.Output, own.Socket, own.Standing = w, theirs, true
	if i.process, err = box.Exec(own); err != nil {
		c.Close()
		r.Close()
		return nil, err
	}
	return i, nil
}

// prepare waits until the process has imported the module and is ready to fork. Until hurry
// is called, the import runs slowly. The error wraps errRefused if no process of the script
// can become ready.
func (i *interpreter) prepare(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, importLimit)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { i.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := send(i.conn, i.profile); err != nil {
		return i.failure(ctx, err)
	}
	answered := make(chan struct{})
	throttled := make(chan struct{})
	go func() {
		defer close(throttled)
		i.throttle(answered)
	}()
	a, err := receive(i.conn)
	close(answered)
	<-throttled
	switch {
	case err != nil:
		return i.failure(ctx, err)
	case !a.Ready:
		return fmt.Errorf("%w: %s", errRefused, a.Refused)
	}
	i.common = a.Common
	return nil
}

// hurry has the import run at full speed. It may be called again.
func (i *interpreter) hurry() { i.once.Do(func() { close(i.soon) }) }

// throttle runs the process for slice and stops it for pause, in turn, until then or until
// hurry is called.
func (i *interpreter) throttle(until <-chan struct{}) {
	defer i.signal(syscall.SIGCONT)
	for stopped := false; ; stopped = !stopped {
		wait, next := slice, syscall.SIGSTOP
		if stopped {
			wait, next = pause, syscall.SIGCONT
		}
		select {
		case <-until:
			return
		case <-i.soon:
			return
		case <-time.After(wait):
		}
		i.signal(next)
	}
}

// signal sends a signal to the process, unless it has ended: then its number may have been
// reused.
func (i *interpreter) signal(s syscall.Signal) {
	select {
	case <-i.process.Done():
	default:
		_ = syscall.Kill(i.process.Pid, s)
	}
}

// failure returns why a process does not answer.
func (i *interpreter) failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	i.signal(syscall.SIGKILL)
	<-i.process.Done()
	text, _ := io.ReadAll(io.LimitReader(i.printed, 4<<10))
	return fmt.Errorf("%w: its process does not answer: %w: %s", errRefused, err, strings.TrimSpace(string(text)))
}

// fork starts an attempt.
func (i *interpreter) fork(c sandbox.Command) (*sandbox.Process, error) {
	gate, open, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer gate.Close()
	defer open.Close() // without having been opened, it ends the child
	if err := i.ask(c, false, int(c.Output.Fd()), int(gate.Fd())); err != nil {
		return nil, fmt.Errorf("asking for a fork: %w", err)
	}
	a, err := receive(i.conn)
	if err != nil {
		return nil, fmt.Errorf("waiting for a fork: %w", err)
	}
	p, err := i.box.Adopt(a.Pid)
	if err != nil {
		return nil, err
	}
	if _, err := open.Write([]byte{1}); err != nil {
		return nil, fmt.Errorf("letting the fork go on: %w", err)
	}
	return p, nil
}

// become makes the process itself the attempt, as soon as its import has finished; if the
// import fails, the process runs the script from the beginning. The interpreter cannot be
// used any more.
func (i *interpreter) become(c sandbox.Command) (*sandbox.Process, error) {
	if err := i.ask(c, true, int(c.Output.Fd())); err != nil {
		return nil, fmt.Errorf("asking it to become an attempt: %w", err)
	}
	if err := errors.Join(i.box.Enlist(i.process), i.conn.SetDeadline(time.Time{})); err != nil {
		return nil, err
	}
	go func() {
		_, _ = receive(i.conn) // whatever it says, it has imported
		close(i.imported)
		<-i.process.Done() // at the latest when the box is closed
		i.conn.Close()
		i.printed.Close()
	}()
	return i.process, nil
}

func (i *interpreter) ask(c sandbox.Command, stay bool, fds ...int) error {
	request := forking{Argv: c.Argv, Dir: c.Dir, Stay: stay}
	for _, kv := range c.Env {
		name, value, _ := strings.Cut(kv, "=")
		request.Environ = append(request.Environ, [2]string{name, value})
	}
	if err := i.conn.SetDeadline(time.Now().Add(forkLimit)); err != nil {
		return err
	}
	return send(i.conn, request, fds...)
}

func (i *interpreter) rss() int64 { return proctree.RSS(i.process.Pid) }

// end ends the process. It may be called again.
func (i *interpreter) end() {
	i.signal(syscall.SIGKILL)
	<-i.process.Done()
	i.conn.Close()
	i.printed.Close()
}
