package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

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
	b.guards, err = newGuards()
	if err != nil {
		return nil, errors.Join(err, abandon(b))
	}
	stop := context.AfterFunc(ctx, func() { b.conn.SetReadDeadline(time.Unix(1, 0)) })
	up, files, err := receive(b.conn)
	stop()
	if err != nil || up.Op != opUp {
		b.guards.close()
		return nil, fmt.Errorf("the sandbox's init process did not start: %w", errors.Join(err, abandon(b), ctx.Err()))
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

// abandon ends an init process that has not come up, and returns how it ended.
func abandon(b *Box) error {
	b.conn.Close()
	_ = b.cmd.Process.Kill()
	return b.cmd.Wait()
}

func said(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}
