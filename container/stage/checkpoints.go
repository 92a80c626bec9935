package stage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"holdfast/container/failure"
	"holdfast/container/sandbox"
	"holdfast/hdfsckpt/mount"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
	"holdfast/internal/backoff"
	"holdfast/proto"
)

// place is one checkpoint path of the task: the store, mounted there or linked.
type place struct {
	spec  *proto.CheckpointSpec
	path  string // absolute
	whole bool   // it is the task's working directory
	lock  *os.File
	store store.Store
	fs    *mount.FS // nil: linked

	writer string // its name there
}

// linkMark is the end of a link's target. It does not change what the target names, and
// distinguishes the link it from a link of the user's to the same directory.
const linkMark = "/."

// madeMark is a file in a directory that was made only as a mount point, and is to be removed
// by its last user. The mount hides it.
const madeMark = ".holdfast-mount-point"

// CheckpointOptions are what a task's checkpoint paths are mounted with.
type CheckpointOptions struct {
	Writer   string                            // this agent's name in the stores
	Lease    func() error                      // an error once it may change nothing any longer
	OnCommit func(path string, c mount.Commit) // path is CheckpointSpec.path
	OnRead   func(began time.Time)             // mount.Options.OnRead
	OnSave   func()                            // a file is complete that was written through a mount
	// OnEvents is mount.Options.OnEvents; name is unique among the task's checkpoint paths.
	OnEvents func(name string, at int64, b []byte)
	Alone    bool // no other node can be tried
	Log      *logrus.Entry
}

// Checkpoints are the checkpoint paths of a task. The zero value has none.
type Checkpoints struct {
	places  []*place
	mounted atomic.Pointer[[]*place] // places, once all of them are in their place
}

// Place mounts each path in box, on s, or makes it a link; then unmounted is the reason.
// Close must be called, after a failure, too.
func (c *Checkpoints) Place(ctx context.Context, s *Stage, box *sandbox.Box, specs []*proto.CheckpointSpec, o CheckpointOptions) (unmounted, err error) {
	r := box.Restrictions()
	if r.Namespace != nil {
		unmounted = r.Namespace
	} else if r.Fuse != nil {
		unmounted = r.Fuse
	}
	for _, spec := range specs {
		p := &place{spec: spec, path: filepath.Clean(spec.Path)}
		if !filepath.IsAbs(p.path) {
			if !filepath.IsLocal(p.path) {
				return unmounted, failure.Permanent(fmt.Errorf("the checkpoint path %s leads out of the task's working directory", spec.Path))
			}
			p.path = filepath.Join(s.work, p.path)
		}
		if p.path == "/" {
			return unmounted, failure.Permanent(fmt.Errorf("the checkpoint path %s is not a directory of its own", spec.Path))
		}
		p.whole = p.path == s.work
		c.places = append(c.places, p)
		if unmounted == nil {
			err = p.mount(ctx, s, box, o)
		} else {
			err = p.link(ctx, unmounted, o.Alone)
		}
		if err != nil {
			return unmounted, err
		}
	}
	placed := slices.Clone(c.places)
	c.mounted.Store(&placed)
	return unmounted, nil
}

// Heartbeat writes the job's heartbeat in the stores that the task has begun to
// write to. It may be called while Place runs.
func (c *Checkpoints) Heartbeat(ctx context.Context) {
	placed := c.mounted.Load()
	if placed == nil {
		return
	}
	for _, p := range *placed {
		if p.fs != nil {
			ctx, cancel := context.WithTimeout(ctx, writers.HeartbeatEvery)
			_ = writers.Heartbeat(ctx, p.store, p.writer) // it may not have begun; or the next one succeeds
			cancel()
		}
	}
}

// mount mounts the store on the path, in the box.
func (p *place) mount(ctx context.Context, s *Stage, box *sandbox.Box, o CheckpointOptions) error {
	inputs := ""
	if p.whole {
		inputs = s.work
		if err := s.isolateInputs(box); err != nil {
			return err
		}
	}
	var err error
	if p.store, err = s.options.Stores.Open(ctx, p.spec.Uri); err != nil {
		return failure.Store(fmt.Errorf("opening the checkpoint directory %s for %s: %w", p.spec.Uri, p.spec.Path, err))
	}
	if err := p.takeDirectory(ctx); err != nil {
		return err
	}
	p.writer = o.Writer
	spool := filepath.Join(s.options.TmpDir, "spool")
	if err := os.MkdirAll(spool, 0o700); err != nil {
		return failure.Node(fmt.Errorf("making the spool directory for %s: %w", p.spec.Path, err))
	}
	p.fs, err = mount.New(p.store, mount.Options{
		UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), SpoolDir: spool,
		Writer: p.writer, Lease: o.Lease, Inputs: inputs,
		Log: o.Log.WithField("checkpoint", p.spec.Path),
		OnCommit: func(c mount.Commit) {
			if c.Writing > 0 {
				o.OnSave()
			}
			o.OnCommit(p.spec.Path, c)
		},
		OnRead:   o.OnRead,
		OnEvents: func(name string, at int64, b []byte) { o.OnEvents(p.spec.Path+"/"+name, at, b) },
	})
	if err != nil {
		return failure.Node(fmt.Errorf("mounting %s on %s: %w", p.spec.Uri, p.spec.Path, err))
	}
	if err := box.Mount(p.path, mountOptions(), p.fs.ServeFD); err != nil {
		return failure.Node(fmt.Errorf("mounting %s on %s on this node: %w", p.spec.Uri, p.path, err))
	}
	return nil
}

// takeDirectory makes the mount point and protects it from being removed by others.
func (p *place) takeDirectory(ctx context.Context) error {
	for range 100 {
		_, err := os.Lstat(p.path)
		isNew := errors.Is(err, fs.ErrNotExist)
		if err := os.MkdirAll(p.path, 0o755); err != nil {
			advice := ""
			if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
				advice = "; choose a checkpoint path that this user can create on every node, such as one below /tmp or a relative one, or have the directory made there"
			}
			return failure.Node(fmt.Errorf("making the directory %s, to mount checkpoints on: %w%s", p.path, err, advice))
		}
		if isNew {
			_ = os.WriteFile(filepath.Join(p.path, madeMark), nil, 0o644) // at worst an empty directory is left
		}
		d, err := os.Open(p.path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // its last user has just removed it
		}
		if err != nil {
			return failure.Node(fmt.Errorf("opening the directory %s, to mount checkpoints on: %w", p.path, err))
		}
		if err := lockShared(ctx, d); err != nil {
			d.Close()
			return failure.Node(fmt.Errorf("locking the directory %s, to mount checkpoints on: %w", p.path, err))
		}
		if same(d, p.path) {
			p.lock = d
			return nil
		}
		d.Close()
	}
	return failure.Node(fmt.Errorf("making the directory %s, to mount checkpoints on: others keep removing it", p.path))
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
			return fmt.Errorf("another program holds an exclusive lock on it (flock), and has not let go of it within %s; lslocks shows which. End that, or choose another checkpoint path: %w", lockWait, err)
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

// link makes the path a link to the store's local directory.
func (p *place) link(ctx context.Context, missing error, alone bool) error {
	if p.whole {
		host, _ := os.Hostname()
		report := failure.Node
		if alone {
			report = failure.Permanent
		}
		return report(fmt.Errorf("the working directory itself can keep checkpoints (--checkpoint %s=%s) only where it can be mounted by FUSE, and node %s does not allow it: %w. Or have the program save into a directory of its own, and name that: --checkpoint ./DIRECTORY=%s", p.spec.Path, p.spec.Uri, host, missing, p.spec.Uri))
	}
	if strings.Contains(p.spec.Uri, "://") && !strings.HasPrefix(p.spec.Uri, "file://") {
		host, _ := os.Hostname()
		return failure.Node(fmt.Errorf("checkpoints at %s need a FUSE mount on %s, and node %s does not allow it: %w", p.spec.Uri, p.spec.Path, host, missing))
	}
	dir := strings.TrimPrefix(p.spec.Uri, "file://")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return failure.Store(fmt.Errorf("making the checkpoint directory %s: %w", dir, err))
	}
	if filepath.Clean(dir) == filepath.Clean(p.path) {
		return nil // it is there
	}
	if err := os.MkdirAll(filepath.Dir(p.path), 0o755); err != nil {
		return failure.Node(fmt.Errorf("making the directory above %s: %w", p.path, err))
	}
	d, err := os.Open(dir)
	if err != nil {
		return failure.Store(fmt.Errorf("opening the checkpoint directory %s: %w", dir, err))
	}
	if err := lockShared(ctx, d); err != nil {
		d.Close()
		return failure.Node(fmt.Errorf("locking the checkpoint directory %s: %w", dir, err))
	}
	p.lock = d
	if same(d, p.path) {
		return nil // by a link of the user's, or of another agent on this host
	}
	if err := link(filepath.Clean(dir)+linkMark, p.path); err != nil {
		return fmt.Errorf("making %s stand for the checkpoints: %w; is something there already? Move it away", p.spec.Path, err)
	}
	return nil
}

// Fence makes all writes fail from now on.
func (c *Checkpoints) Fence(reason error) {
	for _, p := range c.places {
		if p.fs != nil {
			p.fs.Fence(reason)
		}
	}
}

// Close releases everything; the namespace has ended.
func (c *Checkpoints) Close(ctx context.Context, log *logrus.Entry) {
	for _, p := range c.places {
		p.close(ctx, log)
	}
}

// close releases the path; the namespace has ended.
func (p *place) close(ctx context.Context, log *logrus.Entry) {
	if p.fs != nil {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		if err := p.fs.Close(ctx); err != nil {
			log.WithError(err).WithField("checkpoint", p.spec.Path).Warn("ending the mount")
		}
	}
	if p.store != nil {
		_ = p.store.Close() // the mount has closed what was open
	}
	if p.lock == nil {
		return
	}
	defer p.lock.Close()
	// A directory that was made as a mount point, or a link, is removed by its last user
	// on this host: removing it earlier would remove mounts of others.
	if unix.Flock(int(p.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return
	}
	if to, err := os.Readlink(p.path); err == nil {
		if strings.HasSuffix(to, linkMark) && same(p.lock, p.path) {
			_ = os.Remove(p.path)
		}
		return
	}
	mark := filepath.Join(p.path, madeMark)
	if _, err := os.Stat(mark); err == nil {
		_ = os.Remove(mark)
		_ = os.Remove(p.path) // fails if somebody put something there
	}
}

// mountOptions returns what mount(2) wants; the init process knows the descriptor. Root's
// task may change its user.
func mountOptions() string {
	o := strings.TrimPrefix(mount.MountOptions(0, uint32(os.Geteuid()), uint32(os.Getegid())), "fd=0,")
	if os.Geteuid() == 0 {
		o += ",allow_other"
	}
	return o
}
