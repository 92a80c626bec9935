package hdfsckpt

import (
	"context"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// localWriter writes a temporary file beside the one that it becomes.
type localWriter struct {
	store     *Local
	file      *os.File
	temporary string
	name      string
	done      bool
}

func (l *Local) Create(ctx context.Context, name string, perm fs.FileMode) (Writer, error) {
	if err := begin(ctx, "create", name, checkChange); err != nil {
		return nil, err
	}
	if st, err := l.root.Stat(name); err == nil && st.IsDir() {
		return nil, l.wrap("create", name, syscall.EISDIR)
	}
	temporary := TemporaryFor(name)
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
	err := w.file.Sync()
	if err != nil {
		_ = w.Abort()
		return w.store.wrap("close", w.name, err)
	}
	w.done = true
	err = w.file.Close()
	if err == nil {
		err = w.store.rename(w.temporary, w.name)
	}
	if err != nil {
		_ = w.store.root.Remove(w.temporary)
		return w.store.wrap("close", w.name, err)
	}
	// The file has its name; make that outlive the machine too, where the
	// file system lets a directory be synced.
	if d, err := w.store.root.Open(path.Dir(w.name)); err == nil {
		_ = d.Sync()
		d.Close()
	}
	return nil
}

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
	if err := begin(ctx, "append to", name, checkChange); err != nil {
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

// Flush has nothing to do: what is written is visible.
func (a *localAppender) Flush() error { return nil }

func (a *localAppender) Close() error {
	return a.store.wrap("close", a.name, a.file.Close())
}

type localReader struct {
	store *Local
	file  *os.File
	name  string
	size  int64
}

func (l *Local) Open(ctx context.Context, name string) (Reader, error) {
	if err := begin(ctx, "open", name, checkName); err != nil {
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
