package mount

import (
	"context"
	"errors"
	"path"
	"syscall"

	"holdfast/hdfsckpt/store"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// lockWorks finds the nodes of two names and locks what is being written to
// them, so that none is published meanwhile.
func (f *FS) lockWorks(d1 *node, name1 string, d2 *node, name2 string) (nodes [2]*node, works [2]*work, unlock func()) {
	f.mu.Lock()
	nodes[0] = d1.children[name1]
	if d2 != nil {
		nodes[1] = d2.children[name2]
	}
	var locks []*work
	for i, n := range nodes {
		if n != nil && n.work != nil {
			works[i] = n.work
			if len(locks) == 0 || locks[0] != n.work {
				locks = append(locks, n.work)
			}
		}
	}
	f.mu.Unlock()
	if len(locks) == 2 && locks[0].n.id > locks[1].n.id {
		locks[0], locks[1] = locks[1], locks[0]
	}
	for _, w := range locks {
		w.mu.Lock()
	}
	return nodes, works, func() {
		for _, w := range locks {
			w.mu.Unlock()
		}
	}
}

const (
	renameNoReplace = 1 // include/uapi/linux/fs.h
)

// rename moves a file or directory over what has the new name.
func (f *FS) rename(in *fuse.RenameIn, oldName, newName string) fuse.Status {
	d1, p1, st := f.dirEntry(in.NodeId, oldName)
	if st != fuse.OK {
		return st
	}
	d2, p2, st := f.dirEntry(in.Newdir, newName)
	if st != fuse.OK {
		return st
	}
	if in.Flags&^renameNoReplace != 0 {
		return fuse.EINVAL
	}
	if store.IsTemporary(newName) {
		return fuse.EPERM
	}
	if d1.input.at(oldName) != nil {
		return f.refuseInput("rename", p1)
	}
	if d2.input.at(newName) != nil {
		return f.refuseInput("rename to", p2)
	}
	ctx, leave, err := f.gate.Enter()
	if err != nil {
		return f.fail("rename", p1, err)
	}
	defer leave()
	ctx = store.Committing(ctx) // a program's own last step of a save, often
	if err := f.storeDirectory(ctx, d2); err != nil {
		return f.fail("rename to", p2, err)
	}
	f.mu.Lock()
	moving := d1.children[oldName]
	f.mu.Unlock()
	if moving != nil && moving.dir {
		f.moveToSpool(moving)
	}
	n, works, unlock := f.lockWorks(d1, oldName, d2, newName)
	defer unlock()
	replaces := in.Flags&renameNoReplace == 0
	if replaces {
		f.preserveReplaced(n[1], works[1])
	} else if n[1] != nil && n[1].hidden() {
		return fuse.Status(syscall.EEXIST)
	}
	moved, err := f.renameStored(ctx, n[0], n[1], works[0], p1, p2, replaces)
	if err != nil {
		return f.fail("rename to "+p2, p1, err)
	}
	f.mu.Lock()
	if old := d2.children[newName]; old != nil && old != n[0] {
		f.detachLocked(old)
	}
	if n[0] != nil && d1.children[oldName] == n[0] {
		f.moveLocked(n[0], d2, newName)
	}
	f.mu.Unlock()
	if moved {
		f.committed(Commit{Name: p2, From: p1})
	}
	return fuse.OK
}

// preserveReplaced saves the content of a file that is about to be replaced for those who
// have it open: for writers in the spool, for readers by a reader of the store. w.mu is
// held, if there is a work.
func (f *FS) preserveReplaced(n *node, w *work) {
	if n == nil || n.dir {
		return
	}
	f.mu.Lock()
	written := n.writers > 0
	var behind []*handle // readers of what this mount has rewritten since
	for _, h := range f.handles {
		if h.n == n && h.work == nil && !n.hidden() {
			behind = append(behind, h)
		}
	}
	f.mu.Unlock()
	if written && w != nil && w.err == nil && (w.at == inStore || w.at == inPlace) {
		if err := w.toSpool(); err != nil {
			w.fail("spooling", err)
			return
		}
		w.local.Store(true)
	}
	for _, h := range behind {
		if r, err := f.reader(h); err == nil { // else its next read fails
			r.release()
		}
	}
}

// renameStored renames in the store what is there of a file; moved tells
// whether something was. Unless it replaces, the new name must be free (EEXIST).
func (f *FS) renameStored(ctx context.Context, from, to *node, w *work, p1, p2 string, replaces bool) (moved bool, err error) {
	f.mu.Lock()
	hidden := w != nil && w.local.Load()
	busy := to != nil && to.dir && hasHidden(to)
	toHidden := to != nil && to.hidden()
	f.mu.Unlock()
	if busy {
		return false, syscall.ENOTEMPTY
	}
	if from != nil && from.dir && toHidden {
		return false, syscall.ENOTDIR
	}
	if !hidden || w.at == inPlace || w.replaces {
		change := f.retaining.Rename
		if !replaces {
			change = f.retaining.RenameNew
		}
		err := change(ctx, p1, p2)
		if err == nil {
			return true, nil
		}
		if !hidden || !errors.Is(err, syscall.ENOENT) {
			return false, err
		}
	}
	// Nothing of it is in the store yet: it will appear under the new name, which must
	// be possible.
	info, err := f.store.Stat(ctx, p2)
	switch {
	case err == nil && !replaces:
		return false, syscall.EEXIST
	case err == nil && info.IsDir():
		return false, syscall.EISDIR
	case err == nil:
		w.replaces = true
		return false, nil
	case !errors.Is(err, syscall.ENOENT):
		return false, err
	}
	_, err = f.store.Stat(ctx, path.Dir(p2))
	return false, err
}
