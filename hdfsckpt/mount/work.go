package mount

import (
	"context"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"holdfast/hdfsckpt/mount/errno"
	"holdfast/hdfsckpt/store"
)

// where a work's content is
type place int

const (
	inStore  place = iota // as published; nothing to do
	inStream              // on its way to a hidden temporary file
	inSpool               // in a local file
	inPlace               // being added to the visible file
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// work is the content of a node while it is written. It is shared by all
// handles of the node that are open for writing.
type work struct {
	f    *FS
	n    *node
	base string // the name when it was opened, for messages and event files

	users int  // handles open for writing; guarded by FS.mu
	ended bool // guarded by FS.mu

	// May be read at any time, without waiting for I/O.
	size  atomic.Int64
	mtime atomic.Int64  // ns
	perm  atomic.Uint32 // fs.FileMode
	local atomic.Bool   // the store does not show this content
	lost  atomic.Bool   // failed or over: who opens the file next starts a new work
	// aborted is why the work is to be dropped, which is done as soon as mu is free.
	aborted atomic.Pointer[string]

	mu       sync.Mutex // the rest, and all I/O
	at       place
	dirty    bool      // there is something to publish
	began    time.Time // when the content was first changed since it was published; zero: it was not
	replaces bool      // the store has a former version under the name
	grows    bool      // written in place: an event file, or one that was new and opened to append
	err      error
	stream   store.Writer
	sum      uint32      // CRC32C of what went into stream, or was uploaded
	summed   bool        // sum is of the whole content
	tmp      string      // the hidden temporary file, in the mount's area
	tmpPerm  fs.FileMode // what the temporary file was made with
	app      store.Appender
	unseen   bool // app has something that readers do not see yet
	unsynced bool // app has something that may not be on disk
	synced   bool // fsync(2) was called: what is published is on disk
	spool    *os.File
	times    *[2]time.Time // to set when published
}

// takeWork finds or makes the work of a node for one more handle.
func (f *FS) takeWork(n *node, exists bool, perm fs.FileMode) *work {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := n.work
	if w == nil || w.lost.Load() {
		w = &work{f: f, n: n, base: n.name, replaces: exists, grows: eventFile(n.name)}
		w.size.Store(n.info.Size)
		w.mtime.Store(n.info.ModTime.UnixNano())
		w.perm.Store(uint32(perm))
		n.work = w
		f.works[w] = struct{}{}
	}
	w.users++
	return w
}

// dropWork releases a handle's reference.
func (f *FS) dropWork(w *work) {
	f.mu.Lock()
	w.users--
	f.mu.Unlock()
	f.endWork(w)
}

// endWork ends a work that is no longer needed: no handle writes to it and, if its file was
// removed, so that only the work has the content, no handle is open.
func (f *FS) endWork(w *work) {
	f.mu.Lock()
	_, named := f.pathLocked(w.n)
	needed := w.users > 0 || !named && w.local.Load() && w.n.opens > 0
	if needed || w.ended {
		f.mu.Unlock()
		return
	}
	w.ended = true
	w.lost.Store(true)
	f.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dirty && w.err == nil {
		// No FLUSH of a writer came, as for pages of a shared mapping that
		// outlives its descriptor. An error is logged, since no process can get it.
		w.publish()
	}
	w.discard()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.works, w)
	if w.n.work == w {
		w.n.work = nil
	}
	f.dropLocked(w.n)
}

// discard releases what the work holds. w.mu is held.
func (w *work) discard() {
	if w.stream != nil {
		w.stream.Abort()
		w.stream = nil
	}
	if w.app != nil {
		if err := w.app.Close(); err != nil {
			w.f.fail("closing", w.base, err)
		}
		w.app = nil
	}
	if w.spool != nil {
		w.spool.Close()
		w.spool = nil
	}
	w.at, w.dirty, w.began = inStore, false, time.Time{}
	w.local.Store(false)
}

// fail makes the work fail from now on: its content will not be published.
// The store's former content stays. w.mu is held.
func (w *work) fail(op string, err error) error {
	if w.err == nil {
		w.f.fail(op, w.base, err)
		w.err = errno.Logged(errno.Of(err))
		w.lost.Store(true)
	}
	if w.at == inPlace && w.app != nil {
		w.app.Close() // what readers have seen stays
		w.app = nil
	}
	w.discard()
	return w.err
}

// restart makes the content empty: a new file, O_TRUNC, or truncation to 0. Where it fails, what
// has been written stays.
func (w *work) restart() error {
	if w.err != nil {
		return w.err
	}
	ctx, leave, err := w.f.gate.Enter()
	if err != nil {
		return err
	}
	defer leave()
	name, ok := w.f.path(w.n)
	if !ok {
		return w.restartUnnamed()
	}
	if w.grows {
		return w.restartInPlace(ctx, name)
	}
	s, err := w.createTemporary(ctx)
	if err != nil {
		return err
	}
	w.discard()
	w.stream, w.at = s, inStream
	w.sum, w.summed = 0, true
	w.dirty = true
	w.touched(0)
	return nil
}

// restartInPlace is restart for a file that is written in place.
func (w *work) restartInPlace(ctx context.Context, name string) error {
	// The empty file is another one: the former is completed first, so that it has all that was
	// added if a later step fails.
	if err := w.closeAppend(); err != nil {
		return err
	}
	perm := fs.FileMode(w.perm.Load()).Perm()
	if w.replaces {
		w.f.mu.Lock()
		d := w.n.parent
		w.f.mu.Unlock()
		if d == nil {
			return syscall.ESTALE
		}
		if err := w.f.makeEmpty(ctx, d, name, perm); err != nil {
			return err
		}
		if w.at == inStore {
			w.size.Store(0)
		}
		w.f.forgetInfo(w.n)
	}
	app, err := w.f.store.Append(ctx, name, perm)
	if err != nil {
		return err
	}
	w.discard()
	w.app, w.at, w.replaces = app, inPlace, true
	w.touched(0)
	w.f.forgetInfo(w.n)
	return nil
}

// restartUnnamed is restart for a file that was removed: it needs no store.
func (w *work) restartUnnamed() error {
	spool, err := w.f.newSpool()
	if err != nil {
		return err
	}
	w.discard()
	w.spool, w.at = spool, inSpool
	w.dirty = true
	w.touched(0)
	return nil
}

// touched records a change of the content. w.mu is held.
func (w *work) touched(size int64) {
	now := time.Now()
	if w.began.IsZero() {
		w.began = now
	}
	w.size.Store(size)
	w.mtime.Store(now.UnixNano())
	w.local.Store(true)
}

// write puts data at an offset, or at the end.
func (w *work) write(data []byte, off int64, atEnd bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	size := w.size.Load()
	if atEnd {
		off = size
	}
	sequential := off == size
	if w.at == inStore && sequential && (atEnd || w.grows) && w.named() {
		if err := w.openAppend(); err != nil {
			return w.fail("appending to", err)
		}
		size = w.size.Load()
		off = size
	}
	switch {
	case w.at == inStream && sequential:
		if err := w.writeTo(w.stream.Write, data); err != nil {
			return err
		}
		w.sum = crc32.Update(w.sum, castagnoli, data)
		return nil
	case w.at == inPlace && sequential:
		w.unseen, w.unsynced = true, true
		if err := w.writeTo(w.app.Write, data); err != nil {
			return err
		}
		w.tellEvents(off, data)
		return nil
	}
	if err := w.toSpool(); err != nil {
		return w.fail("spooling", err)
	}
	if _, err := w.spool.WriteAt(data, off); err != nil {
		return w.fail("spooling", w.spoolError(err))
	}
	w.dirty = true
	w.touched(max(w.size.Load(), off+int64(len(data))))
	return nil
}

// take is write for data that can be copied directly to where it is kept until the store
// has it, rather than to a buffer that outlives the request. It returns what is left to do,
// which may wait for the store; nil if write has to do everything.
func (w *work) take(data []byte, off int64, atEnd bool) (wait func() error) {
	if !w.mu.TryLock() {
		return nil
	}
	to, ok := w.stream.(store.Taker)
	if !ok || w.err != nil || w.at != inStream || !atEnd && off != w.size.Load() {
		w.mu.Unlock()
		return nil
	}
	_, leave, err := w.f.gate.Enter()
	if err != nil {
		w.mu.Unlock()
		return nil
	}
	if err = to.Take(data); err == nil {
		w.sum = crc32.Update(w.sum, castagnoli, data)
		w.touched(w.size.Load() + int64(len(data)))
	}
	return func() error {
		defer w.mu.Unlock()
		defer leave()
		if err == nil {
			err = to.Wait()
		}
		if err != nil {
			return w.fail("writing", err)
		}
		return nil
	}
}

func (w *work) writeTo(write func([]byte) (int, error), data []byte) error {
	_, leave, err := w.f.gate.Enter()
	if err != nil {
		return w.fail("writing", err)
	}
	defer leave()
	if _, err := write(data); err != nil {
		return w.fail("writing", err)
	}
	w.touched(w.size.Load() + int64(len(data)))
	return nil
}

func (w *work) named() bool {
	_, ok := w.f.path(w.n)
	return ok
}

// truncate sets the size.
func (w *work) truncate(size int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	switch {
	case size == w.size.Load() && w.at != inStore:
		return nil
	case size == 0:
		return w.restart()
	}
	if err := w.toSpool(); err != nil {
		return w.fail("spooling", err)
	}
	if err := w.spool.Truncate(size); err != nil {
		return w.fail("spooling", w.spoolError(err))
	}
	w.dirty = true
	w.touched(size)
	return nil
}

// worksNow returns the works that there are.
func (f *FS) worksNow() []*work {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Keys(f.works))
}

// dropWorks drops all that is not published, at the end.
func (f *FS) dropWorks() {
	for _, w := range f.worksNow() {
		w.mu.Lock()
		if w.err == nil {
			w.err = errno.Logged(syscall.EIO)
			w.lost.Store(true)
		}
		w.discard()
		w.mu.Unlock()
	}
}
