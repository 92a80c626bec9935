package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"holdfast/container/proctree"
	"holdfast/internal/proc"
)

// lookPace is how often, in milliseconds, the init process checks its mounts when the kernel
// says nothing of them: it does not tell when a directory above one is renamed.
const lookPace = 1000

// mountRemoved says that the path of a mount leads elsewhere.
type mountRemoved struct{ target string }

func (m *mountRemoved) Error() string {
	return m.target + " was removed, renamed or mounted over, so that what the task saved there would have stayed on this node"
}

// MountRemoved returns an error when a mount was taken away from the box, all of whose
// processes were killed then: before the end of any of them is reported. Whoever removes the
// directory of a mount point, which looks empty outside of the namespace, takes the mount away
// (Linux, fs/namei.c, vfs_rmdir: detach_mounts); whoever renames a directory above takes it along.
// What a task would write then would be on the node's disk.
func (b *Box) MountRemoved() error {
	if m := b.removed.Load(); m != nil {
		return m
	}
	return nil
}

// mounted is a mount that the init process has made.
type mounted struct {
	target string
	id     int
	fuse   *os.File // which the agent serves, and the init process holds, too; nil for a bind
	source string
	isDir  bool // of a bind: what a task would write there
}

// mount mounts something and has that watched.
func (k *initProcess) mount(m mounted, kind string, flags uintptr, options string) (err error) {
	k.mounting.Lock() // or what is mounted over would be seen to be gone
	defer k.mounting.Unlock()
	if err := unix.Mount(m.source, m.target, kind, flags, options); err != nil {
		return err
	}
	if m.id, err = mountAt(m.target); err != nil {
		return fmt.Errorf("looking at the mount: %w", err)
	}
	// One may be bound over another.
	k.mounts = slices.DeleteFunc(k.mounts, func(o mounted) bool { return o.fuse == nil && o.target == m.target })
	k.mounts = append(k.mounts, m)
	return nil
}

// mountAt returns the number of the mount that a path leads to (proc(5), fdinfo, mnt_id). It
// asks no file system but those of the directories above.
func mountAt(path string) (int, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	fields, err := proc.ReadDescriptor(os.Getpid(), fd)
	if err != nil {
		return 0, err
	}
	id, ok := fields.Number("mnt_id", 10)
	if !ok {
		return 0, fmt.Errorf("/proc/self/fdinfo does not say on which mount %s is: %w", path, errors.ErrUnsupported)
	}
	return int(id), nil
}

// watchMounts ends all in the box when a mount was taken away. A bind of a file, over one that
// another program may replace as it likes, is made again.
func (k *initProcess) watchMounts() {
	changes, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		changes = -1 // poll(2) ignores it
	}
	for {
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(changes), Events: unix.POLLPRI}}, lookPace)
		if target := k.lookAtMounts(); target != "" {
			k.endWithout(target)
			return
		}
	}
}

// lookAtMounts returns the target of a mount of a directory that was taken away, if there is one.
func (k *initProcess) lookAtMounts() string {
	k.mounting.Lock()
	defer k.mounting.Unlock()
	for i := range k.mounts {
		m := &k.mounts[i]
		id, err := mountAt(m.target)
		gone := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || err == nil && id != m.id
		switch {
		case !gone: // or not known
		case m.fuse != nil || m.isDir:
			return m.target
		case unix.Mount(m.source, m.target, "", unix.MS_BIND, "") == nil:
			if id, err := mountAt(m.target); err == nil {
				m.id = id
			}
		}
	}
	return ""
}

// endWithout ends all in the box, and then the init process, since the mount on target is gone.
func (k *initProcess) endWithout(target string) {
	k.writing.Lock()
	// So that no end is reported before its reason.
	proctree.SigkillDescendants(os.Getpid())
	_ = send(k.conn, message{Op: opRemoved, Target: target}) // or the agent has ended
	k.writing.Unlock()
	_ = k.conn.CloseRead() // ends listen, which ends the rest
}
