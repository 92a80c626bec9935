package mount

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync"
	"syscall"

	"holdfast/hdfsckpt/mount/caller"
	"holdfast/hdfsckpt/mount/errno"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// handle is an open file description of the kernel: it is shared by all descriptors that
// were duplicated or inherited from one open(2).
type handle struct {
	id    uint64
	n     *node
	read  bool
	atEnd bool     // O_APPEND
	work  *work    // nil: not open for writing
	input *os.File // of an input file; nil otherwise

	mu            sync.Mutex
	reader        *sharedReader
	readerVersion uint64
	users         map[int]*user // processes that opened or wrote it
	lastPid       uint32        // a thread known to be of a user that wrote
	dirty         bool          // changed through this handle since the last publication
	entries       []fuse.DirEntry
}

func (f *FS) newHandle(h *handle) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lastHandle++
	h.id = f.lastHandle
	f.handles[h.id] = h
	h.n.opens++
	if h.work != nil {
		h.n.writers++
	}
	return h.id
}

func (f *FS) handle(id uint64) *handle {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.handles[id]
}

// user is a process that opened a handle or wrote through it.
type user struct {
	wrote  bool
	stream bool // as one of its standard streams
}

// usedBy records that a thread's process opened or wrote.
func (h *handle) usedBy(pid uint32, wrote bool) {
	h.mu.Lock()
	known := h.lastPid == pid && pid != 0
	h.mu.Unlock()
	if known {
		return
	}
	group := caller.GroupOf(pid)
	h.mu.Lock()
	u := h.users[group]
	if u == nil {
		u = &user{}
		if h.users == nil {
			h.users = make(map[int]*user)
		}
		h.users[group] = u
	}
	look := wrote && !u.wrote && group != 0
	u.wrote = u.wrote || wrote
	if u.wrote {
		h.lastPid = pid
	}
	h.mu.Unlock()
	// Not at open: a shell opens the file before it makes it the output.
	if look && caller.IsOutput(group, h.n.id, h.work.base) {
		h.mu.Lock()
		u.stream = true
		h.mu.Unlock()
	}
}

// create opens a new file.
func (f *FS) create(in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	d, p, st := f.newEntry(in.NodeId, name)
	if st != fuse.OK {
		return st
	}
	ctx, leave, err := f.enterToMake(d)
	if err != nil {
		return f.fail("create", p, err)
	}
	defer leave()
	// The kernel has just looked up the name and found nothing; another mount may have
	// created it since.
	exists := false
	if in.Flags&syscall.O_EXCL != 0 || in.Flags&syscall.O_TRUNC == 0 {
		info, err := f.store.Stat(ctx, p)
		switch {
		case err == nil && in.Flags&syscall.O_EXCL != 0:
			return fuse.Status(syscall.EEXIST)
		case err == nil && info.IsDir():
			return fuse.Status(syscall.EISDIR)
		case err == nil:
			exists = true
		case errno.Of(err) != syscall.ENOENT:
			return f.fail("create", p, err)
		}
		if exists {
			f.mu.Lock()
			n := f.childLocked(d, name, info)
			f.entryLocked(n, &out.EntryOut)
			f.mu.Unlock()
			st := f.openNode(n, in.Flags, in.Pid, &out.OpenOut)
			if st != fuse.OK {
				f.Forget(n.id, 1)
			}
			return st
		}
	}
	f.mu.Lock()
	n := d.children[name]
	if n != nil && n.hidden() && in.Flags&syscall.O_EXCL != 0 {
		f.mu.Unlock()
		return fuse.Status(syscall.EEXIST)
	}
	if n == nil || n.dir {
		if n != nil {
			f.detachLocked(n)
		}
		n = f.newNodeLocked(d, name, false)
	}
	n.lookups++ // holds the node until the answer is made
	exists = n.known
	f.mu.Unlock()

	w := f.takeWork(n, exists, fs.FileMode(in.Mode).Perm())
	w.perm.Store(uint32(fs.FileMode(in.Mode).Perm()))
	w.mu.Lock()
	// What is appended is kept, even if the process is killed.
	w.grows = w.grows || in.Flags&(syscall.O_APPEND|syscall.O_TRUNC) == syscall.O_APPEND
	err = w.restart()
	w.mu.Unlock()
	if err != nil {
		f.dropWork(w)
		f.mu.Lock()
		if !n.known && n.opens == 0 && n.work == nil {
			n.lookups--
			f.detachLocked(n)
			f.mu.Unlock()
		} else {
			f.mu.Unlock()
			f.Forget(n.id, 1)
		}
		return f.fail("create", p, err)
	}
	h := &handle{n: n, read: readable(in.Flags), atEnd: in.Flags&syscall.O_APPEND != 0, work: w, dirty: true}
	h.usedBy(in.Pid, false)
	out.Fh, out.OpenFlags = f.newHandle(h), openFlags(in.Flags)
	f.mu.Lock()
	n.lookups--
	f.entryLocked(n, &out.EntryOut)
	f.mu.Unlock()
	return fuse.OK
}

func readable(flags uint32) bool { return flags&syscall.O_ACCMODE != syscall.O_WRONLY }
func writable(flags uint32) bool { return flags&syscall.O_ACCMODE != syscall.O_RDONLY }

// open opens an existing file.
func (f *FS) open(in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	n := f.node(in.NodeId)
	if n == nil {
		return fuse.Status(syscall.ESTALE)
	}
	return f.openNode(n, in.Flags, in.Pid, out)
}

func (f *FS) openNode(n *node, flags, pid uint32, out *fuse.OpenOut) fuse.Status {
	h := &handle{n: n, read: readable(flags), atEnd: flags&syscall.O_APPEND != 0}
	if n.input.isFile() {
		return f.openInput(h, flags, out)
	}
	if writable(flags) || flags&syscall.O_TRUNC != 0 {
		if err := f.openForWriting(h, flags); err != nil {
			return f.fail("open", f.nameOf(n), err)
		}
		h.usedBy(pid, false)
	} else if st := f.openForReading(h); st != fuse.OK {
		return st
	}
	out.Fh, out.OpenFlags = f.newHandle(h), openFlags(flags)
	return fuse.OK
}

// openFlags tell the kernel how to treat an open file. Without FOPEN_KEEP_CACHE it drops
// the cached pages. A descriptor that is for writing only bypasses the cache: no pages can
// be read or mapped through it, and filling the cache costs more than all the rest of a
// write. Pages that others have cached are dropped by the write, or when they notice
// another modification time (CAP_AUTO_INVAL_DATA).
func openFlags(flags uint32) uint32 {
	if readable(flags) {
		return 0
	}
	return fuse.FOPEN_DIRECT_IO
}

func (f *FS) openForWriting(h *handle, flags uint32) error {
	_, leave, err := f.gate.Enter()
	if err != nil {
		return err
	}
	defer leave()
	f.mu.Lock()
	perm := h.n.info.Mode
	if h.n.hidden() {
		perm = fs.FileMode(h.n.work.perm.Load())
	}
	f.mu.Unlock()
	// The new content is another file to the store, which therefore does not check
	// that the former one may be written.
	if perm&0o200 == 0 && f.o.UID != 0 {
		return fmt.Errorf("its mode is %v: %w", perm, syscall.EACCES)
	}
	h.work = f.takeWork(h.n, true, perm.Perm())
	if flags&syscall.O_TRUNC == 0 {
		return nil
	}
	h.dirty = true
	h.work.mu.Lock()
	err = h.work.restart()
	h.work.mu.Unlock()
	if err != nil {
		f.dropWork(h.work)
	}
	return err
}

func (f *FS) openForReading(h *handle) fuse.Status {
	f.mu.Lock()
	hidden := h.n.hidden()
	f.mu.Unlock()
	if hidden {
		return fuse.OK
	}
	r, err := f.openReader(h)
	if err != nil {
		return f.fail("open", f.nameOf(h.n), err)
	}
	r.release()
	return fuse.OK
}

// willWrite records who writes, before anything may wait: if the process is killed, a FLUSH
// can come while the write is under way.
func (f *FS) willWrite(h *handle, in *fuse.WriteIn) {
	if in.Pid == 0 || in.WriteFlags&fuse.WRITE_CACHE != 0 {
		f.markDirty(h.n) // pages of a shared mapping come through any handle
		return
	}
	h.usedBy(in.Pid, true)
	h.mu.Lock()
	h.dirty = true
	h.mu.Unlock()
}

// willTruncate is willWrite for ftruncate(2).
func (f *FS) willTruncate(fh uint64) {
	if h := f.handle(fh); h != nil && h.work != nil {
		h.mu.Lock()
		h.dirty = true
		h.mu.Unlock()
	}
}

func (f *FS) wrote(h *handle, n int, err error) (uint32, fuse.Status) {
	if err != nil {
		return 0, f.fail("write", f.nameOf(h.n), err)
	}
	return uint32(n), fuse.OK
}

// markDirty makes the next FLUSH of any of the node's handles publish.
func (f *FS) markDirty(n *node) {
	f.mu.Lock()
	var all []*handle
	for _, h := range f.handles {
		if h.n == n && h.work != nil {
			all = append(all, h)
		}
	}
	f.mu.Unlock()
	for _, h := range all {
		h.mu.Lock()
		h.dirty = true
		h.mu.Unlock()
	}
}

// fsync returns the errors so far.
func (f *FS) fsync(in *fuse.FsyncIn) fuse.Status {
	h := f.handle(in.Fh)
	if h == nil || h.work == nil {
		return fuse.OK
	}
	if err := h.work.sync(); err != nil {
		return f.fail("fsync", f.nameOf(h.n), err)
	}
	return fuse.OK
}

// Release follows the last close of a handle. Its errors are not returned to any process.
func (f *FS) Release(_ <-chan struct{}, in *fuse.ReleaseIn) {
	f.mu.Lock()
	h := f.handles[in.Fh]
	delete(f.handles, in.Fh)
	f.mu.Unlock()
	if h == nil {
		return
	}
	h.mu.Lock()
	r := h.reader
	h.reader = nil
	h.mu.Unlock()
	if r != nil {
		r.release()
	}
	if h.input != nil {
		h.input.Close()
	}
	n := h.n
	f.mu.Lock()
	n.opens--
	if h.work != nil {
		n.writers--
	}
	w := n.work
	f.dropLocked(n)
	last := n.opens == 0 && n.removed != ""
	f.mu.Unlock()
	switch {
	case h.work != nil:
		f.dropWork(h.work)
	case w != nil:
		f.endWork(w)
	}
	if last {
		f.removeFromArea(n)
	}
}

// nameOf returns a node's name for messages.
func (f *FS) nameOf(n *node) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, ok := f.pathLocked(n)
	if !ok {
		return path.Join("(removed)", n.name)
	}
	return p
}
