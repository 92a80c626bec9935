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
	"holdfast/proto"
)

// place is one checkpoint path of the task: the store, mounted there or linked.
type place struct {
	spec  *proto.CheckpointSpec
	path  string // absolute, on the node
	seen  string // where the task sees it
	whole bool   // it is the task's working directory
	point *mountPoint
	lock  *os.File // of the directory that it is a link to
	store store.Store
	fs    *mount.FS // nil: linked

	writer string // its name there
}

// linkMark is the end of a link's target. It does not change what the target names, and
// distinguishes the link it from a link of the user's to the same directory.
const linkMark = "/."

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
			p.path, p.seen = filepath.Join(s.work, p.path), filepath.Join(s.seen, p.path)
		} else {
			p.seen = p.path
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
	if p.point, err = takeMountPoint(ctx, p.path, "checkpoints"); err != nil {
		return failure.Node(fmt.Errorf("%w%s", err, instead(err)))
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
	if err := box.Mount(p.seen, mountOptions(), p.fs.ServeFD); err != nil {
		return failure.Node(fmt.Errorf("mounting %s on %s on this node: %w", p.spec.Uri, p.path, err))
	}
	return nil
}

// instead says what to do about a checkpoint path that cannot be taken; "": that is not known.
func instead(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.EROFS):
		return "; choose a checkpoint path that this user can create on every node, such as one below /tmp or a relative one, or have the directory made there"
	case errors.Is(err, unix.EWOULDBLOCK):
		return "; end that program, or choose another checkpoint path"
	}
	return ""
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
		return failure.Node(fmt.Errorf("locking the checkpoint directory %s: %w%s", dir, err, instead(err)))
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
	if p.point != nil {
		p.point.leave()
	}
	if p.lock == nil {
		return
	}
	defer p.lock.Close()
	// A link is removed by its last user on this host, too.
	if unix.Flock(int(p.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return
	}
	if to, err := os.Readlink(p.path); err == nil && strings.HasSuffix(to, linkMark) && same(p.lock, p.path) {
		_ = os.Remove(p.path)
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
