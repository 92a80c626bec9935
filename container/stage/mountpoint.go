package stage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/backoff"
)

// madeMark is a file in a directory that was made only as a mount point, and is to be removed
// by its last user. The mount hides it.
const madeMark = ".holdfast-mount-point"

// touchEvery is how often a mount point is touched. What cleans /tmp removes what nobody has
// touched for days, empty directories first, and takes the mount away with it.
var touchEvery = time.Hour

// mountPoint is a directory on which something is mounted in a task's namespace. A goroutine touches
// it until leave is called.
type mountPoint struct {
	path string
	lock *os.File
	left chan struct{}
}

// takeMountPoint makes a directory, to mount something on that is named by what, and keeps others
// from removing it until leave is called.
func takeMountPoint(ctx context.Context, path, what string) (*mountPoint, error) {
	for range 100 {
		_, err := os.Lstat(path)
		isNew := errors.Is(err, fs.ErrNotExist)
		if err := os.MkdirAll(path, 0o755); err != nil {
			return nil, fmt.Errorf("making the directory %s, to mount %s on: %w", path, what, err)
		}
		if isNew {
			_ = os.WriteFile(filepath.Join(path, madeMark), nil, 0o644) // at worst an empty directory is left
		}
		d, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // its last user has just removed it
		}
		if err != nil {
			return nil, fmt.Errorf("opening the directory %s, to mount %s on: %w", path, what, err)
		}
		if err := lockShared(ctx, d); err != nil {
			d.Close()
			return nil, fmt.Errorf("locking the directory %s, to mount %s on: %w", path, what, err)
		}
		if same(d, path) {
			p := &mountPoint{path: path, lock: d, left: make(chan struct{})}
			go p.touch(touchEvery) // nobody waits for it: the file system may hang
			return p, nil
		}
		d.Close()
	}
	return nil, fmt.Errorf("making the directory %s, to mount %s on: others keep removing it", path, what)
}

func (p *mountPoint) mark() string { return filepath.Join(p.path, madeMark) }

// touch touches it again and again. That of another user is theirs to keep.
func (p *mountPoint) touch(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			for _, name := range []string{p.mark(), p.path} {
				_ = os.Chtimes(name, now, now)
			}
		case <-p.left:
			return
		}
	}
}

// leave gives it up. One that takeMountPoint has made is removed by its last user on this host:
// removing it earlier would remove mounts of others.
func (p *mountPoint) leave() {
	close(p.left)
	defer p.lock.Close()
	if unix.Flock(int(p.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return
	}
	if _, err := os.Stat(p.mark()); err == nil {
		_ = os.Remove(p.mark())
		_ = os.Remove(p.path) // fails if somebody put something there
	}
}

// lockWait bounds the wait for the lock of a directory. An agent that removes the directory
// holds it for an instant; any other program may hold it forever.
const lockWait = 10 * time.Second

// lockShared locks a directory as one of its users. flock(2) itself waits without a limit, and
// an agent that waits in it cannot end.
func lockShared(ctx context.Context, d *os.File) error {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	for wait := backoff.New(10*time.Millisecond, 250*time.Millisecond); ; {
		err := unix.Flock(int(d.Fd()), unix.LOCK_SH|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		if !wait.Wait(ctx) {
			return fmt.Errorf("another program holds an exclusive lock on it (flock), and has not let go of it within %s; lslocks shows which: %w", lockWait, err)
		}
	}
}

// same reports whether a path still names an open directory.
func same(d *os.File, path string) bool {
	a, err := d.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}
