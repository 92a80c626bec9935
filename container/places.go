package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"holdfast/container/failure"
	"holdfast/container/sandbox"
	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/mount"
	"holdfast/proto"
)

// place is one checkpoint path of the task: the store, mounted there or linked.
type place struct {
	spec  *proto.CheckpointSpec
	path  string // absolute
	lock  *os.File
	store hdfsckpt.Store
	fs    *mount.FS // nil: linked

	writer string // its name there
}

// linkMark ends what a link of ours says. It changes nothing of where that leads,
// and tells it from a link of the user's to the same directory.
const linkMark = "/."

// madeMark stands in a directory that was made only to be mounted upon, and is
// to go with its last user. The mount hides it.
const madeMark = ".holdfast-mount-point"

// placeCheckpoints puts each checkpoint path in its place.
func (t *task) placeCheckpoints(ctx context.Context, cfg Config, box *sandbox.Box, commits *commits) error {
	able := box.Abilities()
	var missing error
	if able.Namespace != nil {
		missing = able.Namespace
	} else if able.Fuse != nil {
		missing = able.Fuse
	}
	if missing == nil {
		t.prepared.Mounting = "fuse"
	}
	for _, spec := range t.assign.Checkpoints {
		p := &place{spec: spec, path: filepath.Clean(spec.Path)}
		if !filepath.IsAbs(p.path) {
			if !filepath.IsLocal(p.path) {
				return failure.Permanent(fmt.Errorf("the checkpoint path %s leads out of the task's working directory", spec.Path))
			}
			p.path = filepath.Join(t.work, p.path)
		}
		if p.path == "/" || p.path == t.work {
			return failure.Permanent(fmt.Errorf("the checkpoint path %s is not a directory of its own", spec.Path))
		}
		t.places = append(t.places, p)
		var err error
		if missing == nil {
			err = p.mount(ctx, cfg, box, commits, t)
		} else {
			err = p.link(ctx, cfg, missing)
		}
		if err != nil {
			return err
		}
	}
	placed := slices.Clone(t.places)
	t.mounted.Store(&placed)
	if missing != nil && len(t.assign.Checkpoints) > 0 {
		t.note("checkpoint paths are links to their local directory, not mounts: a file that is being written is seen by all, and a writer that was given up can still write: %v", missing)
	}
	return nil
}

// beat writes the job's heartbeat in the stores that the task has begun to
// write to.
func (t *task) beat(ctx context.Context) {
	placed := t.mounted.Load()
	if placed == nil {
		return
	}
	for _, p := range *placed {
		if p.fs != nil {
			ctx, cancel := context.WithTimeout(ctx, hdfsckpt.HeartbeatEvery)
			_ = hdfsckpt.Heartbeat(ctx, p.store, p.writer) // it may not have begun; or the next one is heard
			cancel()
		}
	}
}

// mount mounts the store on the path, in the box.
func (p *place) mount(ctx context.Context, cfg Config, box *sandbox.Box, commits *commits, t *task) error {
	var err error
	if p.store, err = hdfsckpt.Open(ctx, p.spec.Uri, cfg.Conf); err != nil {
		return failure.Store(fmt.Errorf("opening the checkpoint directory %s for %s: %w", p.spec.Uri, p.spec.Path, err))
	}
	if err := p.takeDirectory(); err != nil {
		return err
	}
	p.writer = proto.WriterName(t.assign.Job, cfg.Container)
	spool := filepath.Join(cfg.TmpDir, "spool")
	if err := os.MkdirAll(spool, 0o700); err != nil {
		return failure.Node(fmt.Errorf("making the spool directory for %s: %w", p.spec.Path, err))
	}
	p.fs, err = mount.New(p.store, mount.Options{
		UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), SpoolDir: spool,
		Writer: p.writer, Lease: t.lease.over,
		Log:      t.log.WithField("checkpoint", p.spec.Path),
		OnCommit: func(c mount.Commit) { commits.add(p.spec.Path, c) },
	})
	if err != nil {
		return failure.Node(fmt.Errorf("mounting %s on %s: %w", p.spec.Uri, p.spec.Path, err))
	}
	if err := box.Mount(p.path, mountOptions(), p.fs.ServeFD); err != nil {
		return failure.Node(fmt.Errorf("mounting %s on %s on this node: %w", p.spec.Uri, p.path, err))
	}
	return nil
}

// takeDirectory makes the directory to be mounted upon and keeps others from
// removing it.
func (p *place) takeDirectory() error {
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
		if err := unix.Flock(int(d.Fd()), unix.LOCK_SH); err != nil {
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

// same tells whether a path still names an open directory.
func same(d *os.File, path string) bool {
	a, err := d.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}

// link makes the path a link to the store's local directory.
func (p *place) link(_ context.Context, _ Config, missing error) error {
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
	if err := unix.Flock(int(d.Fd()), unix.LOCK_SH); err != nil {
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

// fence makes all writes fail from now on.
func (t *task) fence(reason error) {
	for _, p := range t.places {
		if p.fs != nil {
			p.fs.Fence(reason)
		}
	}
}

// close gives the place back; the namespace has gone.
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
	// What was made for the mount or is a link goes with its last user on this
	// host: to remove it earlier would take away others' mounts.
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

// mountOptions are what mount(2) wants; the keeper knows the descriptor. Root's
// task may change its user.
func mountOptions() string {
	o := strings.TrimPrefix(mount.MountOptions(0, uint32(os.Geteuid()), uint32(os.Getegid())), "fd=0,")
	if os.Geteuid() == 0 {
		o += ",allow_other"
	}
	return o
}
