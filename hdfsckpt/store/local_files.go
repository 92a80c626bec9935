package store

import (
	"context"
	"io/fs"
	"os"
	"syscall"
)

// localWriter writes a temporary file in the directory of the one that it becomes, or, for Stage,
// the file itself.
type localWriter struct {
	store     *Local
	file      *os.File
	temporary string // what it is called until Close
	name      string
	id        FileID
	done      bool
}

func (l *Local) Create(ctx context.Context, name string, perm fs.FileMode) (Writer, error) {
	if err := begin(ctx, "create", name, CheckChange); err != nil {
		return nil, err
	}
	if st, err := l.root.Stat(name); err == nil && st.IsDir() {
		return nil, l.wrap("create", name, syscall.EISDIR)
	}
	return l.create(TemporaryFor(name), name, perm)
}

func (l *Local) Stage(ctx context.Context, name string, perm fs.FileMode) (Writer, error) {
	if err := begin(ctx, "create", name, CheckChange); err != nil {
		return nil, err
	}
	return l.create(name, name, perm)
}

func (l *Local) create(temporary, name string, perm fs.FileMode) (Writer, error) {
	f, err := l.root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm.Perm())
	if err == nil {
		if err = f.Chmod(perm.Perm()); err != nil { // as asked, whatever the umask
			f.Close()
			_ = l.root.Remove(temporary)
		}
	}
	if err != nil {
		return nil, l.wrap("create", name, err)
	}
	return &localWriter{store: l, file: f, temporary: temporary, name: name}, nil
}

func (w *localWriter) Write(b []byte) (int, error) {
	n, err := w.file.Write(b)
	return n, w.store.wrap("write", w.name, err)
}

func (w *localWriter) Close() error {
	if w.done {
		return w.store.wrap("close", w.name, os.ErrClosed)
	}
	st, err := w.sync()
	if err != nil {
		_ = w.Abort()
		return w.store.wrap("close", w.name, err)
	}
	w.done = true
	err = w.file.Close()
	if err == nil && w.temporary != w.name {
		err = w.store.rename(w.temporary, w.name, 0)
	}
	if err != nil {
		_ = w.store.root.Remove(w.temporary)
		return w.store.wrap("close", w.name, err)
	}
	w.id = FileID{Inode: localInfo("", st).Inode, Modified: st.ModTime().UnixNano()}
	return nil
}

// sync makes the content durable.
func (w *localWriter) sync() (fs.FileInfo, error) {
	if w.store.onSync != nil {
		w.store.onSync(w.name)
	}
	if err := w.file.Sync(); err != nil {
		return nil, err
	}
	return w.file.Stat()
}

func (w *localWriter) SyncAtClose() {} // Close does it

func (w *localWriter) ID() FileID { return w.id }

func (w *localWriter) Abort() error {
	if w.done {
		return nil
	}
	w.done = true
	w.file.Close()
	return w.store.wrap("abandon", w.name, w.store.root.Remove(w.temporary))
}

type localAppender struct {
	store *Local
	file  *os.File
	name  string
}

func (l *Local) Append(ctx context.Context, name string, perm fs.FileMode) (Appender, error) {
	if err := begin(ctx, "append to", name, CheckChange); err != nil {
		return nil, err
	}
	f, err := l.root.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, perm.Perm())
	if os.IsExist(err) {
		f, err = l.root.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	} else if err == nil {
		_ = f.Chmod(perm.Perm()) // as asked, whatever the umask
	}
	if err != nil {
		return nil, l.wrap("append to", name, err)
	}
	return &localAppender{store: l, file: f, name: name}, nil
}

func (a *localAppender) Write(b []byte) (int, error) {
	n, err := a.file.Write(b)
	return n, a.store.wrap("append to", a.name, err)
}

// Flush does nothing: what was written is visible already.
func (a *localAppender) Flush() error { return nil }

func (a *localAppender) Sync() error {
	if a.store.onSync != nil {
		a.store.onSync(a.name)
	}
	return a.store.wrap("flush", a.name, a.file.Sync())
}

func (a *localAppender) Close() error {
	err := a.Sync()
	if closeErr := a.file.Close(); err == nil {
		err = a.store.wrap("close", a.name, closeErr)
	}
	return err
}

type localReader struct {
	store *Local
	file  *os.File
	name  string
	size  int64
}

func (l *Local) Open(ctx context.Context, name string) (Reader, error) {
	if err := begin(ctx, "open", name, CheckName); err != nil {
		return nil, err
	}
	f, err := l.root.Open(name)
	if err != nil {
		return nil, l.wrap("open", name, err)
	}
	st, err := f.Stat()
	if err == nil && st.IsDir() {
		err = syscall.EISDIR
	}
	if err != nil {
		f.Close()
		return nil, l.wrap("open", name, err)
	}
	return &localReader{store: l, file: f, name: name, size: st.Size()}, nil
}

func (r *localReader) ReadAt(b []byte, off int64) (int, error) {
	n, err := r.file.ReadAt(b, off)
	return n, readError(r.store.wrap, r.name, err)
}

func (r *localReader) Size() int64  { return r.size }
func (r *localReader) Close() error { return r.file.Close() }
