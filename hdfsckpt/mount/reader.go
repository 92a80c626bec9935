package mount

import (
	"errors"
	"io"
	"sync"
	"syscall"
	"time"

	"holdfast/hdfsckpt/store"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// sharedReader is a reader of the store that is closed after its last user, which is a
// handle or a read under way.
type sharedReader struct {
	store.Reader
	mu    sync.Mutex
	users int
}

func (r *sharedReader) take() { r.mu.Lock(); r.users++; r.mu.Unlock() }

func (r *sharedReader) release() {
	r.mu.Lock()
	r.users--
	last := r.users == 0
	r.mu.Unlock()
	if last {
		r.Reader.Close()
	}
}

// openReader opens what the store has now under the handle's name, for a read
// that must release it.
func (f *FS) openReader(h *handle) (*sharedReader, error) {
	f.mu.Lock()
	name, ok := f.contentLocked(h.n)
	version := h.n.version
	f.mu.Unlock()
	if !ok {
		return nil, syscall.ESTALE
	}
	r, err := f.store.Open(f.readCtx, name)
	if err != nil {
		return nil, err
	}
	s := &sharedReader{Reader: r, users: 2}
	h.mu.Lock()
	old := h.reader
	h.reader, h.readerVersion = s, version
	h.mu.Unlock()
	if old != nil {
		old.release()
	}
	return s, nil
}

// read reads from the work while the content is not in the store, and from the
// store otherwise.
func (f *FS) read(in *fuse.ReadIn) (*pooled, fuse.Status) {
	h := f.handle(in.Fh)
	if h == nil || !h.read {
		return nil, fuse.EBADF
	}
	p := f.pool.Get().(*[]byte)
	if int(in.Size) > len(*p) {
		b := make([]byte, in.Size)
		p = &b
	}
	n, err := f.readAt(h, (*p)[:in.Size], int64(in.Offset))
	if err != nil {
		f.pool.Put(p)
		return nil, f.fail("read", f.nameOf(h.n), err)
	}
	return &pooled{f: f, p: p, data: (*p)[:n]}, fuse.OK
}

// pooled is the answer to a READ, whose buffer is returned to the pool once it has been sent.
type pooled struct {
	f    *FS
	p    *[]byte
	data []byte
}

func (r *pooled) Bytes([]byte) ([]byte, fuse.Status) { return r.data, fuse.OK }
func (r *pooled) Size() int                          { return len(r.data) }
func (r *pooled) Done()                              { r.f.pool.Put(r.p) }

func (f *FS) readAt(h *handle, buf []byte, off int64) (int, error) {
	if h.input != nil {
		n, err := h.input.ReadAt(buf, off)
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return n, err
	}
	began := time.Now()
	f.mu.Lock()
	w := h.n.work
	if w == nil || !w.local.Load() {
		w = h.work
	}
	events := eventFile(h.n.name)
	f.mu.Unlock()
	if w != nil {
		if n, done, err := w.read(buf, off); done {
			return n, err
		}
	}
	if f.o.OnRead != nil && !events {
		defer f.o.OnRead(began)
	}
	r, err := f.reader(h)
	if err != nil {
		return 0, err
	}
	if off+int64(len(buf)) > r.Size() {
		// It may have grown since it was opened, as event files do.
		if r, err = f.reopenGrown(h, r); err != nil {
			return 0, err
		}
	}
	defer r.release()
	n, err := r.ReadAt(buf, off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// reader finds the handle's reader for one read, opening it if there is none or
// if this mount has put another content under the node.
func (f *FS) reader(h *handle) (*sharedReader, error) {
	f.mu.Lock()
	version, named := h.n.version, h.n.parent != nil || h.n.removed != ""
	f.mu.Unlock()
	h.mu.Lock()
	if r := h.reader; r != nil && (h.readerVersion == version || !named) {
		r.take()
		h.mu.Unlock()
		return r, nil
	}
	h.mu.Unlock()
	return f.openReader(h)
}

// reopenGrown returns the reader, or a newer one in its place if the same file is longer
// now.
func (f *FS) reopenGrown(h *handle, r *sharedReader) (*sharedReader, error) {
	f.mu.Lock()
	name, ok := f.pathLocked(h.n)
	before, known := h.n.info, h.n.known
	f.mu.Unlock()
	if !ok || !known {
		return r, nil
	}
	info, err := f.store.Stat(f.readCtx, name)
	if err != nil || info.Size <= r.Size() || !grown(before, info) {
		return r, nil
	}
	s, err := f.openReader(h)
	r.release()
	return s, err
}

// grown reports whether b is a later state of the same file as a.
func grown(a, b store.Info) bool {
	if a.Inode != 0 && b.Inode != 0 {
		return a.Inode == b.Inode
	}
	return false
}

// read reads content that is not in the store; done is false if it is there.
func (w *work) read(buf []byte, off int64) (n int, done bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, true, w.err
	}
	if w.at == inStore {
		return 0, false, nil
	}
	if off >= w.size.Load() {
		return 0, true, nil
	}
	if w.at == inPlace {
		err := w.flushAppend(false)
		return 0, err != nil, err // what is not flushed is not at the end of the file for the store
	}
	if err := w.toSpool(); err != nil {
		return 0, true, w.fail("reading back", err)
	}
	n, err = w.spool.ReadAt(buf, off)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, true, err
}
