package mount

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"time"

	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/mount/errno"
	"holdfast/hdfsckpt/store"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// OpenDir opens a directory; what is in it is read by the first READDIR.
func (f *FS) OpenDir(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	n := f.node(in.NodeId)
	if n == nil {
		return fuse.Status(syscall.ESTALE)
	}
	out.Fh = f.newHandle(&handle{n: n})
	return fuse.OK
}

// entries lists a directory. A read from offset 0 lists it anew, as rewinddir(3) requires.
func (f *FS) entries(in *fuse.ReadIn) ([]fuse.DirEntry, fuse.Status) {
	h := f.handle(in.Fh)
	if h == nil {
		return nil, fuse.EBADF
	}
	h.mu.Lock()
	entries := h.entries
	h.mu.Unlock()
	if in.Offset > 0 && entries != nil {
		return entries, fuse.OK
	}
	entries, err := f.list(h.n)
	if err != nil {
		return nil, f.fail("list", f.nameOf(h.n), err)
	}
	h.mu.Lock()
	h.entries = entries
	h.mu.Unlock()
	return entries, fuse.OK
}

func (f *FS) list(d *node) ([]fuse.DirEntry, error) {
	entries := []fuse.DirEntry{{Name: ".", Mode: syscall.S_IFDIR, Ino: d.id}, {Name: "..", Mode: syscall.S_IFDIR}}
	name, ok := f.path(d)
	if !ok {
		return entries, nil // removed while open: nothing is in it
	}
	infos, err := f.store.List(f.readCtx, name)
	if f.isInput(d) && (errno.Of(err) == syscall.ENOENT || errno.Of(err) == syscall.ENOTDIR) {
		err = nil
	}
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	listed := make(map[string]bool)
	if d.input != nil {
		entries = f.inputEntriesLocked(entries, d)
	}
	for _, i := range infos {
		if d == f.root && i.Name == store.OwnDir || d.input.at(i.Name) != nil {
			continue
		}
		e := fuse.DirEntry{Name: i.Name, Mode: syscall.S_IFREG}
		if i.IsDir() {
			e.Mode = syscall.S_IFDIR
		}
		if c := d.children[i.Name]; c != nil {
			e.Ino = c.id
			listed[i.Name] = c.hidden()
		}
		entries = append(entries, e)
	}
	for n, c := range d.children {
		if _, ok := listed[n]; !ok && c.hidden() {
			entries = append(entries, fuse.DirEntry{Name: n, Mode: syscall.S_IFREG, Ino: c.id})
		}
	}
	return entries, nil
}

// ReleaseDir closes a directory.
func (f *FS) ReleaseDir(in *fuse.ReleaseIn) { f.Release(nil, in) }

// FsyncDir has nothing to do: a rename of the store is durable when it returns.
func (f *FS) FsyncDir(<-chan struct{}, *fuse.FsyncIn) fuse.Status { return fuse.OK }

// mkdir makes a directory.
func (f *FS) mkdir(in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	d, p, st := f.newEntry(in.NodeId, name)
	if st != fuse.OK {
		return st
	}
	ctx, leave, err := f.enterToMake(d)
	if err != nil {
		return f.fail("mkdir", p, err)
	}
	defer leave()
	perm := modeOf(in.Mode) & (fs.ModePerm | fs.ModeSticky)
	if err := formats.BeginSave(ctx, f.store, p, true); err != nil { // the directory is made all the same
		f.fail("record that a save begins in", p, err)
	}
	if err := f.store.Mkdir(ctx, p, perm); err != nil {
		return f.fail("mkdir", p, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	info := store.Info{Name: name, Mode: fs.ModeDir | perm, ModTime: time.Now()}
	f.entryLocked(f.childLocked(d, name, info), out)
	return fuse.OK
}

// mknod makes an empty file, at once; devices and the like are refused.
func (f *FS) mknod(in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	if in.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return fuse.EPERM
	}
	d, p, st := f.newEntry(in.NodeId, name)
	if st != fuse.OK {
		return st
	}
	ctx, leave, err := f.enterToMake(d)
	if err != nil {
		return f.fail("mknod", p, err)
	}
	defer leave()
	err = f.makeEmpty(ctx, d, p, fs.FileMode(in.Mode).Perm())
	var info store.Info
	if err == nil {
		info, err = f.store.Stat(ctx, p)
	}
	if err != nil {
		return f.fail("mknod", p, err)
	}
	f.mu.Lock()
	f.entryLocked(f.childLocked(d, name, info), out)
	f.mu.Unlock()
	f.committed(Commit{Name: p, ID: store.FileID{Inode: info.Inode}, Summed: true})
	return fuse.OK
}

// rmdir removes an empty directory.
func (f *FS) rmdir(in *fuse.InHeader, name string) fuse.Status {
	d, p, st := f.dirEntry(in.NodeId, name)
	if st != fuse.OK {
		return st
	}
	if d.input.at(name) != nil {
		return f.refuseInput("rmdir", p)
	}
	ctx, leave, err := f.gate.Enter()
	if err != nil {
		return f.fail("rmdir", p, err)
	}
	defer leave()
	f.mu.Lock()
	c := d.children[name]
	busy := c != nil && hasHidden(c)
	f.mu.Unlock()
	if busy {
		return fuse.Status(syscall.ENOTEMPTY)
	}
	if c != nil {
		f.moveToSpool(c) // a temporary file of one that was moved away
	}
	if err := store.RemoveDir(ctx, f.store, p); err != nil {
		return f.fail("rmdir", p, err)
	}
	f.unname(d, name, c)
	return fuse.OK
}

func hasHidden(d *node) bool {
	for _, c := range d.children {
		if c.hidden() {
			return true
		}
	}
	return false
}

func (f *FS) unname(d *node, name string, c *node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c != nil && d.children[name] == c {
		f.detachLocked(c)
	}
}

// unlink removes a file. It remains readable to those who have it open.
func (f *FS) unlink(in *fuse.InHeader, name string) fuse.Status {
	d, p, st := f.dirEntry(in.NodeId, name)
	if st != fuse.OK {
		return st
	}
	if d.input.at(name) != nil {
		return f.refuseInput("unlink", p)
	}
	ctx, leave, err := f.gate.Enter()
	if err != nil {
		return f.fail("unlink", p, err)
	}
	defer leave()
	c, w, unlock := f.lockWorks(d, name, nil, "")
	defer unlock()
	hidden := w[0] != nil && w[0].local.Load()
	retained, err := f.retaining.Retain(ctx, p)
	if err != nil {
		return f.fail("unlink", p, err)
	}
	if !retained {
		err = f.moveToArea(ctx, d, name, p, c[0])
	}
	if err != nil && !(hidden && errors.Is(err, syscall.ENOENT)) {
		return f.fail("unlink", p, err)
	}
	f.unname(d, name, c[0])
	return fuse.OK
}

// moveToArea moves a file into the area, and removes it there: at once, or at the last
// Release if it is open through this mount, since HDFS deletes the blocks of a removed file
// soon, although it has readers. A mount that was fenced off has no area any more, so that
// its requests remove nothing, whenever they arrive. So where there is no room for the area,
// which is made once, the file stays.
func (f *FS) moveToArea(ctx context.Context, d *node, name, p string, n *node) error {
	dir, err := f.area.Dir(ctx)
	if errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("a file is moved into %s of the checkpoint directory before it is removed, and there is no room for it to be made; remove some files by another way, such as hdfs dfs -rm, or raise the quota: %w", store.OwnDir, err)
	}
	if err != nil {
		return err
	}
	// Not a temporary file's name: it is not being written.
	movedTo := path.Join(dir, strings.TrimPrefix(store.TemporaryFor("removed"), "."))
	if err := f.store.Rename(ctx, p, movedTo); err != nil {
		return err
	}
	open := false
	if n != nil {
		f.mu.Lock()
		stored := !n.hidden() || n.work.at == inPlace // its lock is held
		open = n.opens > 0 && stored && !n.dir
		if open {
			n.removed = movedTo
		}
		f.mu.Unlock()
	}
	if open {
		return nil
	}
	if err := f.store.Remove(ctx, movedTo); err != nil {
		f.fail("removing the removed file", movedTo, err) // it is removed with other leftovers
	}
	return nil
}

// removeFromArea removes a file that was removed while it was open, after its last
// close.
func (f *FS) removeFromArea(n *node) {
	f.mu.Lock()
	if n.removed == "" || n.opens > 0 {
		f.mu.Unlock()
		return
	}
	name, ok := f.contentLocked(n)
	n.removed = ""
	f.mu.Unlock()
	ctx, leave, err := f.gate.Enter()
	if err != nil || !ok {
		return // it is removed with other leftovers
	}
	defer leave()
	if err := f.store.Remove(ctx, name); err != nil {
		f.fail("removing the removed file", name, err)
	}
}

// Link and Symlink are refused: HDFS has none.
func (f *FS) Link(<-chan struct{}, *fuse.LinkIn, string, *fuse.EntryOut) fuse.Status {
	return fuse.EPERM
}

func (f *FS) Symlink(<-chan struct{}, *fuse.InHeader, string, string, *fuse.EntryOut) fuse.Status {
	return fuse.EPERM
}
