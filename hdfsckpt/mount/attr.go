package mount

import (
	"io/fs"
	"syscall"
	"time"

	"holdfast/hdfsckpt/mount/errno"
	"holdfast/hdfsckpt/store"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// lookup finds a name in a directory.
func (f *FS) lookup(in *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	d, p, st := f.dirEntry(in.NodeId, name)
	if st != fuse.OK {
		return st
	}
	if store.IsTemporary(name) {
		return fuse.ENOENT
	}
	given := d.input.at(name)
	if given.isFile() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.entryLocked(f.inputFileLocked(d, name, given), out)
		return fuse.OK
	}
	for {
		if f.lookupHidden(d, name, out) {
			return fuse.OK
		}
		before := f.changes(d)
		info, err := given.merge(f.store.Stat(f.readCtx, p))
		f.mu.Lock()
		if d.changes != before {
			// This mount changed the directory in the meantime: the store's answer
			// may be older than that.
			f.mu.Unlock()
			continue
		}
		if err != nil {
			if c := d.children[name]; c != nil && errno.Of(err) == syscall.ENOENT && !c.hidden() {
				f.detachLocked(c)
			}
			f.mu.Unlock()
			return f.fail("lookup", p, err)
		}
		f.entryLocked(f.childLocked(d, name, info), out)
		f.mu.Unlock()
		return fuse.OK
	}
}

func (f *FS) changes(d *node) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return d.changes
}

// lookupHidden looks up a file that is being written through this mount.
func (f *FS) lookupHidden(d *node, name string, out *fuse.EntryOut) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := d.children[name]
	if c == nil || !c.hidden() {
		return false
	}
	f.entryLocked(c, out)
	return true
}

// getAttr implements stat(2) for an inode that the kernel knows, and fstat(2).
func (f *FS) getAttr(in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	n := f.node(in.NodeId)
	if n == nil {
		return fuse.Status(syscall.ESTALE)
	}
	return f.attributes(n, out)
}

func (f *FS) attributes(n *node, out *fuse.AttrOut) fuse.Status {
	f.mu.Lock()
	name, named := f.pathLocked(n)
	if n.hidden() || !named || n.input.isFile() {
		defer f.mu.Unlock()
		return f.attrOfOpenLocked(n, named, out)
	}
	parent := n.parent
	var before uint64
	if parent != nil {
		before = parent.changes
	}
	f.mu.Unlock()
	info, err := f.store.Stat(f.readCtx, name)
	if f.isInput(n) {
		info, err = n.input.merge(info, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case n.hidden():
	case n.parent != parent || parent != nil && parent.changes != before:
		// Changed through this mount in the meantime: the node's state is newer.
	case err == nil && n.dir == info.IsDir() && (!n.known || same(n.info, info)):
		n.info, n.known = info, true
	case err == nil || errno.Of(err) == syscall.ENOENT:
		// Another mount removed or replaced it. It stays for those who have it open;
		// else ESTALE makes the kernel look up the name again.
		return f.attrOfOpenLocked(n, false, out)
	default:
		f.mu.Unlock()
		defer f.mu.Lock()
		return f.fail("stat", name, err)
	}
	f.attrLocked(n, &out.Attr)
	out.SetTimeout(n.attrLifetime())
	return fuse.OK
}

// attrOfOpenLocked answers from memory.
func (f *FS) attrOfOpenLocked(n *node, named bool, out *fuse.AttrOut) fuse.Status {
	if !named && n.opens == 0 && n != f.root && !n.hidden() {
		return fuse.Status(syscall.ESTALE)
	}
	f.attrLocked(n, &out.Attr)
	if !named && !n.dir {
		out.Attr.Nlink = 0
	}
	return fuse.OK
}

// setAttr is truncate, chmod, utimens and chown.
func (f *FS) setAttr(in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	n := f.node(in.NodeId)
	if n == nil {
		return fuse.Status(syscall.ESTALE)
	}
	if f.isInput(n) {
		return f.refuseInput("change of attributes of", f.nameOf(n))
	}
	if uid, ok := in.GetUID(); ok && uid != f.o.UID {
		return fuse.EPERM
	}
	if gid, ok := in.GetGID(); ok && gid != f.o.GID {
		return fuse.EPERM
	}
	if size, ok := in.GetSize(); ok {
		if n.dir {
			return fuse.Status(syscall.EISDIR)
		}
		if err := f.truncate(n, in, int64(size)); err != nil {
			return f.fail("truncate", f.nameOf(n), err)
		}
	}
	if mode, ok := in.GetMode(); ok {
		if err := f.chmod(n, modeOf(mode)); err != nil {
			return f.fail("chmod", f.nameOf(n), err)
		}
	}
	atime, aok := in.GetATime()
	mtime, mok := in.GetMTime()
	if aok || mok {
		if !mok {
			f.mu.Lock()
			mtime = n.info.ModTime
			if n.hidden() {
				mtime = time.Unix(0, n.work.mtime.Load())
			}
			f.mu.Unlock()
		}
		if !aok {
			atime = mtime
		}
		if err := f.chtimes(n, atime, mtime); err != nil {
			return f.fail("utimens", f.nameOf(n), err)
		}
	}
	return f.attributes(n, out)
}

// truncate sets a file's size: of the copy that is being written if the file is open for
// writing, and at once otherwise.
func (f *FS) truncate(n *node, in *fuse.SetAttrIn, size int64) error {
	if fh, ok := in.GetFh(); ok {
		if h := f.handle(fh); h != nil && h.work != nil {
			return h.work.truncate(size)
		}
	}
	f.mu.Lock()
	writers := n.writers
	f.mu.Unlock()
	h := &handle{n: n}
	if err := f.openForWriting(h, 0); err != nil {
		return err
	}
	defer f.dropWork(h.work)
	if err := h.work.truncate(size); err != nil {
		return err
	}
	if writers > 0 {
		f.markDirty(n)
		return nil
	}
	h.work.mu.Lock()
	defer h.work.mu.Unlock()
	return h.work.publish()
}

func (f *FS) chmod(n *node, mode fs.FileMode) error {
	return f.change(n, func(w *work) error {
		w.perm.Store(uint32(mode.Perm()))
		name, ok := f.path(n)
		if w.at != inPlace || !ok {
			return nil
		}
		return f.store.Chmod(f.gate.Context(), name, mode)
	}, func(name string) error {
		return f.store.Chmod(f.gate.Context(), name, mode)
	}, func() { n.info.Mode = n.info.Mode.Type() | mode })
}

func (f *FS) chtimes(n *node, atime, mtime time.Time) error {
	return f.change(n, func(w *work) error {
		w.times = &[2]time.Time{atime, mtime}
		w.mtime.Store(mtime.UnixNano())
		return nil
	}, func(name string) error {
		return f.store.Chtimes(f.gate.Context(), name, atime, mtime)
	}, func() { n.info.ModTime = mtime })
}

// change applies a change of attributes to a file that is being written, or else to the
// store, and to the node. For a file that was replaced while open, and has no name in the
// store, only the node changes.
func (f *FS) change(n *node, writing func(*work) error, stored func(string) error, remember func()) error {
	_, leave, err := f.gate.Enter()
	if err != nil {
		return err
	}
	defer leave()
	f.mu.Lock()
	w := n.work
	f.mu.Unlock()
	if w != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.local.Load() {
			return writing(w)
		}
	}
	f.mu.Lock()
	name, ok := f.contentLocked(n)
	f.mu.Unlock()
	if ok {
		if err := stored(name); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	remember()
	if w != nil {
		w.perm.Store(uint32(n.info.Mode.Perm()))
	}
	return nil
}

// access implements access(2): by the store if it is an Accesser, and otherwise by the
// owner's mode bits. Opening may still fail.
func (f *FS) access(in *fuse.AccessIn) fuse.Status {
	var out fuse.AttrOut
	n := f.node(in.NodeId)
	if n == nil {
		return fuse.Status(syscall.ESTALE)
	}
	if st := f.attributes(n, &out); st != fuse.OK {
		return st
	}
	mode := out.Mode
	if f.isInput(n) && !n.dir {
		if in.Mask&2 != 0 {
			return fuse.EROFS
		}
	} else if a, ok := f.store.(store.Accesser); ok && in.Mask&7 != 0 {
		f.mu.Lock()
		name, named := f.pathLocked(n)
		stored := named && !n.hidden() && !f.isInput(n)
		f.mu.Unlock()
		if stored {
			if in.Mask&1 != 0 && !n.dir && mode&0o111 == 0 {
				return fuse.EACCES // which a superuser of HDFS cannot execute either
			}
			if err := a.Access(f.readCtx, name, in.Mask&7); err != nil {
				return f.fail("access", name, err)
			}
			return fuse.OK
		}
	}
	if in.Uid == 0 {
		mode |= 0o600
		if mode&0o111 != 0 || n.dir {
			mode |= 0o100
		}
	}
	if in.Mask&^(mode>>6)&7 != 0 {
		return fuse.EACCES
	}
	return fuse.OK
}

// statFs returns the store's space, with quotas taken into account.
func (f *FS) statFs(out *fuse.StatfsOut) fuse.Status {
	s, err := f.store.Space(f.readCtx)
	if err != nil {
		return f.fail("statfs", ".", err)
	}
	const block = 4096
	out.Bsize, out.Frsize = block, block
	out.Blocks = uint64(s.Total) / block
	out.Bfree = uint64(max(s.Free, 0)) / block
	out.Bavail = out.Bfree
	out.Files = uint64(max(s.FilesTotal, 0))
	out.Ffree = uint64(max(s.FilesFree, 0))
	out.NameLen = 255
	return fuse.OK
}
