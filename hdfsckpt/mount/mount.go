package mount

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/hdfsckpt/mount/area"
	"holdfast/hdfsckpt/mount/errno"
	"holdfast/hdfsckpt/mount/gate"
	"holdfast/hdfsckpt/retain"
	"holdfast/hdfsckpt/store"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"
)

// maxIO is the most that one READ or WRITE carries; Linux allows up to 1 MiB
// since 4.20 (256 pages, include/uapi/linux/fuse.h).
const maxIO = 1 << 20

// Options are the settings of a file system.
type Options struct {
	UID, GID uint32 // who owns every file
	// SpoolDir is a local directory for files that are not written
	// sequentially; os.TempDir() if empty.
	SpoolDir string
	Log      *logrus.Entry
	// Writer is this mount's name for writers.Fence, unique to each mount;
	// a random one if empty.
	Writer string
	// Lease is called before each change of the store, from many goroutines. Its first
	// error makes that change wait for Fence, for a second at most, and then fences the
	// mount. nil: the lease lasts as long as the mount.
	Lease func() error
	// OnCommit is called with each file that became visible or was replaced, and each
	// file or directory that was renamed, after the fact. It is called from
	// many goroutines and delays the close or rename it is called from: it must
	// not use the mount.
	OnCommit func(Commit)
	// OnRead is called after each read of a file of the store that is no event file, with the
	// time at which it began. It is called from many goroutines, and the read waits for it.
	OnRead func(began time.Time)
	// OnEvents is called with what was appended to a TensorBoard event file, at an offset.
	// It is called from many goroutines, of which each waits for it: it must not use the
	// mount, nor keep the bytes.
	OnEvents func(name string, at int64, b []byte)
	// Inputs is a local directory that must not change while it is mounted. Its files and
	// symbolic links are seen in the mount, read-only, and hide what the store has under
	// their names; its directories are merged with the store's. Empty: there are none.
	Inputs string
	// FlushEvery bounds how long what is written to an event file stays
	// unseen; 2 s if zero.
	FlushEvery time.Duration
}

// Commit is a file that became visible or was replaced, or a file or directory
// that was renamed. Names are relative to the store's root.
type Commit struct {
	Name string
	From string // its former name, if it was renamed
	ID   store.FileID
	Size int64 // bytes
	// Writing is the time from the first change of the content until it became visible; 0 if the
	// file was renamed, or is written in place.
	Writing time.Duration
	// CRC32C is of the whole content, as it was written. It is valid if Summed is set.
	CRC32C uint32
	Summed bool
}

// FS serves a store as a file system.
type FS struct {
	fuse.RawFileSystem // refuses what is not written here with ENOSYS

	store store.Store
	o     Options
	log   *logrus.Entry
	gate  *gate.Gate
	area  *area.Area
	pool  sync.Pool // *[]byte of maxIO

	readCtx    context.Context // ends with the mount
	stopReads  context.CancelFunc
	served     chan struct{} // closed when service has ended
	server     *fuse.Server
	mountPoint string // "" if somebody else mounted it
	closing    sync.Once
	serving    atomic.Bool

	errors    *errno.Log
	retaining retain.Changes // of visible files

	mu         sync.Mutex
	nodes      map[uint64]*node
	handles    map[uint64]*handle
	works      map[*work]struct{}
	root       *node
	rootAt     time.Time // when the store was asked what files in the root get
	lastNode   uint64
	lastHandle uint64
}

// New makes a file system of a store; ServeFD or Serve start it.
func New(store store.Store, o Options) (*FS, error) {
	if o.SpoolDir == "" {
		o.SpoolDir = os.TempDir()
	}
	if st, err := os.Stat(o.SpoolDir); err != nil || !st.IsDir() {
		if err == nil {
			err = unix.ENOTDIR
		}
		return nil, fmt.Errorf("spool directory %s for files that are not written sequentially: %w; name another", o.SpoolDir, err)
	}
	if o.Writer == "" {
		o.Writer = hex.EncodeToString(binary.BigEndian.AppendUint64(nil, rand.Uint64()))
	}
	if o.FlushEvery <= 0 {
		o.FlushEvery = 2 * time.Second
	}
	if o.Log == nil {
		l := logrus.New()
		l.SetOutput(io.Discard)
		o.Log = logrus.NewEntry(l)
	}
	f := &FS{
		RawFileSystem: fuse.NewDefaultRawFileSystem(),
		store:         store,
		o:             o,
		log:           o.Log,
		gate:          gate.New(o.Lease),
		served:        make(chan struct{}),
		nodes:         make(map[uint64]*node),
		handles:       make(map[uint64]*handle),
		works:         make(map[*work]struct{}),
	}
	f.area = area.New(store, o.Writer, o.Log)
	f.errors = errno.NewLog(o.Log, store.URI())
	f.retaining = retain.Changes{Store: store, Area: f.area.Dir, Log: func(name string, err error) { f.fail("retaining", name, err) }}
	f.pool.New = func() any { b := make([]byte, maxIO); return &b }
	f.readCtx, f.stopReads = context.WithCancel(context.Background())
	f.root = &node{id: fuse.FUSE_ROOT_ID, dir: true, lookups: 1, children: make(map[string]*node)}
	if o.Inputs != "" {
		var err error
		if f.root.input, err = inputsOf(o.Inputs); err != nil {
			return nil, err
		}
	}
	f.lastNode = fuse.FUSE_ROOT_ID
	f.nodes[f.root.id] = f.root
	return f, nil
}

// MountOptions returns the data argument of mount(2) for a file system of type
// "fuse" that is served over fd by ServeFD.
func MountOptions(fd int, uid, gid uint32) string {
	return fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d,max_read=%d", fd, uid, gid, maxIO)
}

func (f *FS) options() *fuse.MountOptions {
	w := &logWriter{f.log}
	return &fuse.MountOptions{
		Name:          "holdfast",
		MaxWrite:      maxIO,
		MaxReadAhead:  maxIO,
		MaxBackground: 32,
		DisableXAttrs: true,
		// Attributes in a directory's entries may not be cached, so READDIRPLUS would
		// fetch them for nothing.
		DisableReadDirPlus: true,
		// O_TRUNC comes with OPEN instead of as a SETATTR without a handle.
		ExtraCapabilities: fuse.CAP_ATOMIC_O_TRUNC,
		// Each request takes a buffer of maxIO while it is served; this bounds their
		// number while the store hangs.
		MaxInflightRequestBytes: 64 * maxIO,
		Logger:                  stdlog.New(w, "", 0),
	}
}

// ServeFD serves a descriptor of /dev/fuse that has been mounted with
// MountOptions, and owns it from now on. It returns after the handshake with the kernel;
// requests are served in the background until the last mount of it is gone (Wait).
//
// The process that mounted must stat the root once ServeFD has returned: until then the
// kernel considers it owned by root, who does not exist in a user namespace, and refuses to
// create anything (fs/namei.c, HAS_UNMAPPED_ID). As long as another process has the
// descriptor, by a copy or because it was inherited without close-on-exec, a mount whose
// server has died hangs instead of failing.
func (f *FS) ServeFD(fd int) error { return f.serve(fd, "") }

// Serve mounts on dir and serves in the background until Close. It needs
// CAP_SYS_ADMIN in the current user and mount namespaces.
func (f *FS) Serve(dir string) error {
	const device = "/dev/fuse"
	fd, err := unix.Open(device, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("mounting %s on %s: opening %s: %w (is it there, readable and writable?)", f.store.URI(), dir, device, err)
	}
	err = unix.Mount(f.store.URI(), dir, "fuse.holdfast", unix.MS_NOSUID|unix.MS_NODEV, MountOptions(fd, f.o.UID, f.o.GID))
	if err != nil {
		unix.Close(fd)
		return fmt.Errorf("mounting %s on %s: %w", f.store.URI(), dir, err)
	}
	if err := f.serve(fd, dir); err != nil {
		unix.Unmount(dir, unix.MNT_DETACH)
		return err
	}
	return nil
}

func (f *FS) serve(fd int, mountPoint string) error {
	if !f.serving.CompareAndSwap(false, true) {
		return errors.New("mount: served already")
	}
	s, err := fuse.NewServer(f, fmt.Sprintf("/dev/fd/%d", fd), f.options())
	if err != nil {
		close(f.served)
		return fmt.Errorf("serving the mount of %s: %w", f.store.URI(), err)
	}
	f.server, f.mountPoint = s, mountPoint
	go func() {
		defer close(f.served)
		s.Serve()
		f.stopReads()
	}()
	go f.flushLoop()
	return nil
}

// Wait returns when service has ended, because of Close or because the mount
// namespace that held the mount is gone.
func (f *FS) Wait() { <-f.served }

// Done is closed when service has ended.
func (f *FS) Done() <-chan struct{} { return f.served }

// Fence makes every operation that would change the store fail with EIO from
// now on, and cancels those under way where the store can. It does not wait for them:
// Quiesce does. Only what a process has already written to an event file may still reach it
// when the file is closed.
func (f *FS) Fence(reason error) {
	if f.gate.Close(reason) {
		f.log.WithField("store", f.store.URI()).Warnf("nothing is committed any more through this mount: %v", reason)
	}
}

// Quiesce waits until no operation that changes the store is under way. After
// Fence and Quiesce nothing that was written through this mount can become visible.
func (f *FS) Quiesce(ctx context.Context) error { return f.gate.Wait(ctx) }

// Close unmounts, if Serve mounted, waits for the end of service until ctx
// ends, and drops what was not published. It never waits longer than ctx: a mount that is
// still in use is then disconnected by force. A mount that Serve did not make ends with its
// mount namespace, so its processes must be ended first.
func (f *FS) Close(ctx context.Context) error {
	var err error
	f.closing.Do(func() { err = f.shut(ctx) })
	return err
}

func (f *FS) shut(ctx context.Context) error {
	var err error
	if f.serving.Load() {
		if f.mountPoint != "" {
			err = f.unmount(ctx)
		}
		if serr := f.awaitEnd(ctx); serr != nil {
			err = errors.Join(err, serr)
		}
	}
	f.gate.Close(errors.New("unmounted"))
	f.stopReads()
	dropped := make(chan struct{})
	go func() { // may wait for a store that does not answer
		defer close(dropped)
		f.dropWorks()
		f.area.Remove()
	}()
	select {
	case <-dropped:
	case <-ctx.Done():
	}
	return err
}

func (f *FS) awaitEnd(ctx context.Context) error {
	select {
	case <-f.served:
		return nil
	case <-ctx.Done():
	}
	if f.mountPoint == "" {
		return fmt.Errorf("the mount of %s is still in use: end the processes that use it: %w", f.store.URI(), ctx.Err())
	}
	// It is disconnected: only requests that wait for the store are left.
	f.gate.Close(errors.New("unmounted"))
	f.stopReads()
	const grace = time.Second
	select {
	case <-f.served:
		return nil
	case <-time.After(grace):
		return fmt.Errorf("%s is no longer mounted, but requests to the store have not ended: %w", f.store.URI(), ctx.Err())
	}
}

// unmount waits until the mount is no longer in use and removes it. It also ends the
// connection (MNT_FORCE: fs/fuse/inode.c, fuse_umount_begin): a mount namespace that was
// created in the meantime may have a copy of the mount, for which the kernel would keep the
// connection.
func (f *FS) unmount(ctx context.Context) error {
	for f.inUse() && ctx.Err() == nil {
		select {
		case <-f.served:
			return nil
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	err := unix.Unmount(f.mountPoint, unix.MNT_FORCE|unix.MNT_DETACH)
	if err != nil && !errors.Is(err, unix.EINVAL) { // EINVAL: not mounted any more
		return fmt.Errorf("unmounting %s: %w", f.mountPoint, err)
	}
	return nil
}

// inUse reports whether a process uses the mount, or the close of one has not been served
// yet. MNT_EXPIRE answers EAGAIN, and only marks the mount, if it is
// not busy (umount(2)).
func (f *FS) inUse() bool {
	f.mu.Lock()
	open := len(f.handles)
	f.mu.Unlock()
	return open > 0 || errors.Is(unix.Unmount(f.mountPoint, unix.MNT_EXPIRE), unix.EBUSY)
}

// fail turns an error of an operation on a file into a status, and logs it.
func (f *FS) fail(op, name string, err error) fuse.Status { return f.errors.Fail(op, name, err) }

// String names the file system for go-fuse.
func (f *FS) String() string { return "holdfast" }

// Init and OnUnmount are go-fuse's.
func (f *FS) Init(*fuse.Server) {}
func (f *FS) OnUnmount()        {}

// logWriter logs go-fuse's messages.
type logWriter struct{ log *logrus.Entry }

func (w *logWriter) Write(p []byte) (int, error) {
	w.log.Debug("fuse: " + strings.TrimSpace(string(p)))
	return len(p), nil
}

var _ fuse.RawFileSystem = (*FS)(nil)
