package mount

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"syscall"
	"time"

	"holdfast/hdfsckpt/mount/area"
	"holdfast/hdfsckpt/mount/errno"
	"holdfast/hdfsckpt/store"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// temporaryFor chooses a hidden name in the area of this mount for a file that is to be
// called base in d. release is to be called once the file is there, or will not be made.
func (f *FS) temporaryFor(ctx context.Context, d *node, base string) (name string, release func(), err error) {
	dir, release, err := f.stageFor(ctx, d)
	return path.Join(dir, store.TemporaryFor(base)), release, err
}

// stageFor finds or makes the directory of the area for new files of d, which stays at least
// until release is called.
func (f *FS) stageFor(ctx context.Context, d *node) (dir string, release func(), err error) {
	dir, err = f.area.Dir(ctx)
	if err != nil {
		return "", nil, err
	}
	birth, err := f.birth(ctx, d)
	if errors.Is(err, syscall.ENOENT) { // removed meanwhile: what is written to will not be published there
		return dir, func() {}, nil
	}
	if err != nil {
		return "", nil, err
	}
	target, ok := f.path(d)
	if !ok {
		target = ""
	}
	return f.area.For(ctx, target, birth)
}

// birth returns what new files inherit from a directory. The kernel looks up each directory
// on the way to a file, except the root.
func (f *FS) birth(ctx context.Context, d *node) (string, error) {
	f.mu.Lock()
	birth := d.info.Birth
	if d == f.root && time.Since(f.rootAt) > area.StageLife {
		birth = ""
	}
	name, ok := f.pathLocked(d)
	f.mu.Unlock()
	if birth != "" || !ok {
		return birth, nil
	}
	info, err := f.store.Stat(ctx, name)
	if err != nil {
		return "", err
	}
	f.mu.Lock()
	d.info.Birth = info.Birth
	if d == f.root {
		f.rootAt = time.Now()
	}
	f.mu.Unlock()
	return info.Birth, nil
}

// makeEmpty puts an empty file under a name, in one step.
func (f *FS) makeEmpty(ctx context.Context, d *node, name string, perm fs.FileMode) error {
	hidden, release, err := f.temporaryFor(ctx, d, path.Base(name))
	if err != nil {
		return err
	}
	defer release()
	w, err := f.store.Stage(ctx, hidden, perm)
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := f.retaining.Rename(ctx, hidden, name); err != nil {
		_ = f.store.Remove(store.Tidying(ctx), hidden)
		return err
	}
	return nil
}

// publish makes the content visible under the name, atomically. On failure the content is
// lost and the name keeps its former content. w.mu is held.
func (w *work) publish() error {
	if w.err != nil {
		return w.err
	}
	if w.at == inPlace {
		return w.closeAppend()
	}
	if w.dropAborted(); !w.dirty {
		return w.err
	}
	ctx, leave, err := w.f.gate.Enter()
	if err != nil {
		return w.fail("closing", err)
	}
	defer leave()
	ctx = store.Committing(ctx)
	if !w.named() {
		return nil // removed while open: it lives until its last close
	}
	if w.at == inSpool {
		w.stream, err = w.createTemporary(ctx)
		if err != nil {
			return w.fail("closing", err)
		}
		err = w.upload(w.stream)
	} else {
		err = w.stream.Close()
		if err != nil {
			w.stream.Abort()
		}
	}
	id := w.stream.ID()
	w.stream = nil
	if err != nil {
		return w.fail("closing", err)
	}
	name, err := w.rename(ctx)
	if err != nil {
		w.f.store.Remove(store.Tidying(ctx), w.tmp)
		return w.fail("closing", err)
	}
	if name != "" {
		w.published(ctx, name, id)
	}
	return nil
}

// createTemporary opens the hidden file that becomes the node's. Its owner may read and
// write it, whatever its mode is to be, until it gets its name, since it may have to be read
// back (readBack).
func (w *work) createTemporary(ctx context.Context) (store.Writer, error) {
	w.f.mu.Lock()
	d, base := w.n.parent, w.n.name
	w.f.mu.Unlock()
	if d == nil {
		return nil, syscall.ESTALE
	}
	name, release, err := w.f.temporaryFor(ctx, d, base)
	if err != nil {
		return nil, err
	}
	defer release()
	if visible, ok := w.f.path(w.n); ok {
		if err := store.Movable(ctx, w.f.store, path.Dir(name), visible); err != nil {
			return nil, err
		}
	}
	perm := fs.FileMode(w.perm.Load()).Perm() | 0o600
	s, err := w.f.store.Stage(ctx, name, perm)
	if err != nil {
		return nil, err
	}
	if w.synced {
		s.SyncAtClose()
	}
	w.tmp, w.tmpPerm = name, perm
	return s, nil
}

// rename moves the completed hidden file to the node's name. It returns "" if the node has
// lost its name.
func (w *work) rename(ctx context.Context) (string, error) {
	for {
		name, ok := w.f.path(w.n)
		if !ok {
			return "", w.f.store.Remove(ctx, w.tmp)
		}
		err := w.setAttributes(ctx)
		if err == nil {
			err = w.f.retaining.Rename(ctx, w.tmp, name)
		}
		if err == nil {
			return name, nil
		}
		// A directory above may have been renamed in between.
		again, _ := w.f.path(w.n)
		if !errors.Is(err, syscall.ENOENT) || again == name {
			return "", err
		}
	}
}

// setAttributes gives the hidden file the attributes that were set while it was open.
func (w *work) setAttributes(ctx context.Context) error {
	if perm := fs.FileMode(w.perm.Load()).Perm(); perm != w.tmpPerm {
		if err := w.f.store.Chmod(ctx, w.tmp, perm); err != nil {
			return err
		}
		w.tmpPerm = perm
	}
	if w.times != nil {
		return w.f.store.Chtimes(ctx, w.tmp, w.times[0], w.times[1])
	}
	return nil
}

func (w *work) published(ctx context.Context, name string, id store.FileID) {
	writing := time.Since(w.began)
	w.dirty, w.replaces, w.began = false, true, time.Time{}
	if w.at == inStream {
		w.at = inStore
	}
	f, n := w.f, w.n
	f.mu.Lock()
	n.version++
	if n.parent != nil {
		n.parent.changes++
	}
	n.known = false
	n.info = store.Info{
		Name: path.Base(name), Size: w.size.Load(),
		Mode: fs.FileMode(w.perm.Load()), ModTime: time.Unix(0, w.mtime.Load()),
	}
	if w.times != nil {
		n.info.ModTime = w.times[1]
		if id.Modified != 0 {
			id.Modified = w.times[1].UnixNano()
		}
	}
	others := n.opens > 1
	w.local.Store(false)
	f.mu.Unlock()
	w.times = nil
	if others {
		// The inode stays in use: make sure that it is identified by the file of this
		// mount, not by one that another mount puts there later.
		if info, err := f.store.Stat(ctx, name); err == nil && info.Size == w.size.Load() {
			f.mu.Lock()
			if !n.known {
				n.info, n.known = info, true
			}
			f.mu.Unlock()
		}
	}
	f.committed(Commit{Name: name, ID: id, Size: w.size.Load(), Writing: writing, CRC32C: w.sum, Summed: w.summed})
}

// closeAppend completes what was appended to a visible file; a later write opens it again.
func (w *work) closeAppend() error {
	if w.app == nil {
		return nil
	}
	ctx, leave, err := w.f.gate.Enter()
	if err != nil {
		return w.fail("closing", err)
	}
	defer leave()
	app := w.app
	w.app, w.unseen, w.unsynced = nil, false, false
	if err := app.Close(); err != nil {
		return w.fail("closing", err)
	}
	w.at, w.began = inStore, time.Time{}
	w.f.mu.Lock()
	w.n.version++
	w.n.info.Size = w.size.Load()
	w.n.info.ModTime = time.Unix(0, w.mtime.Load())
	w.n.info.Mode = fs.FileMode(w.perm.Load())
	w.n.known = w.n.known && w.n.info.Inode != 0
	w.local.Store(false)
	w.f.mu.Unlock()
	name, ok := w.f.path(w.n)
	if !ok {
		return nil
	}
	if w.times != nil {
		times := w.times
		w.times = nil
		if err := w.f.store.Chtimes(ctx, name, times[0], times[1]); err != nil {
			return err
		}
	}
	w.f.committed(Commit{Name: name, Size: w.size.Load()})
	return nil
}

// abort marks what a killed process left incomplete, so that it is never published. The
// function that it returns drops it, which may wait for the store.
func (w *work) abort(why string) (do func() fuse.Status) {
	w.aborted.Store(&why)
	return func() fuse.Status {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.at == inPlace { // what was added stays, as in any log
			w.aborted.Store(nil)
			w.closeAppend()
		}
		w.dropAborted()
		return fuse.OK
	}
}

// dropAborted drops what abort has marked. w.mu is held.
func (w *work) dropAborted() {
	why := w.aborted.Swap(nil)
	if why == nil || !w.dirty || w.err != nil {
		return
	}
	w.f.log.WithField("store", w.f.store.URI()).Infof("%s: %s while it was being written: nothing of it is kept", w.base, *why)
	w.err = errno.Logged(syscall.EIO)
	w.lost.Store(true)
	w.discard()
}

func (f *FS) committed(c Commit) {
	if f.o.OnCommit != nil {
		f.o.OnCommit(c)
	}
}

func (f *FS) forgetInfo(n *node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n.known = false
	n.version++
}
