package mount

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"syscall"
	"time"

	"holdfast/hdfsckpt/store"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// temporaryFor chooses a hidden name in the area of this mount for a file that is to be
// called base in d.
func (f *FS) temporaryFor(ctx context.Context, d *node, base string) (temporary, string, error) {
	dir, err := f.area.stageFor(ctx, f, d)
	if err != nil {
		return temporary{}, "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	t := temporary{dir: dir, base: store.TemporaryFor(base)}
	p, _ := f.pathLocked(dir)
	return t, path.Join(p, t.base), nil
}

func (t temporary) path(f *FS) (string, bool) {
	p, ok := f.path(t.dir)
	return path.Join(p, t.base), ok
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
		if tmp, ok := w.tmp.path(w.f); ok {
			w.f.store.Remove(ctx, tmp)
		}
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
	tmp, name, err := w.f.temporaryFor(ctx, d, base)
	if err != nil {
		return nil, err
	}
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
	w.tmp, w.tmpPerm = tmp, perm
	return s, nil
}

// rename moves the completed hidden file to the node's name. It returns "" if the node has
// lost its name.
func (w *work) rename(ctx context.Context) (string, error) {
	for {
		tmp, ok := w.tmp.path(w.f)
		if !ok {
			return "", syscall.ENOENT
		}
		name, ok := w.f.path(w.n)
		if !ok {
			return "", w.f.store.Remove(ctx, tmp)
		}
		err := w.setAttributes(ctx, tmp)
		if err == nil {
			err = w.f.replace(ctx, tmp, name)
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
func (w *work) setAttributes(ctx context.Context, tmp string) error {
	if perm := fs.FileMode(w.perm.Load()).Perm(); perm != w.tmpPerm {
		if err := w.f.store.Chmod(ctx, tmp, perm); err != nil {
			return err
		}
		w.tmpPerm = perm
	}
	if w.times != nil {
		return w.f.store.Chtimes(ctx, tmp, w.times[0], w.times[1])
	}
	return nil
}

func (w *work) published(ctx context.Context, name string, id store.FileID) {
	w.dirty, w.replaces = false, true
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
	f.committed(Commit{Name: name, ID: id, Size: w.size.Load(), CRC32C: w.sum, Summed: w.summed})
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
	w.app, w.unseen = nil, false
	if err := app.Close(); err != nil {
		return w.fail("closing", err)
	}
	w.at = inStore
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
	w.err = &loggedError{syscall.EIO}
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
