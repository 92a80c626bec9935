package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"time"

	"holdfast/internal/hadoop/hdfs"
	"holdfast/internal/hadoop/hdfs/write"
)

// flushLimit bounds a flush of a file that others read, in which pipelines may have to be
// rebuilt.
const flushLimit = 3 * time.Minute

type hdfsWriter struct {
	store     *hdfsStore
	file      *write.File
	temporary string // what it is called until Close; "": its name
	name      string
	done      bool
}

func (s *hdfsStore) Stage(ctx context.Context, name string, perm fs.FileMode) (Writer, error) {
	if err := CheckChange("create", name); err != nil {
		return nil, err
	}
	f, err := s.c.Create(ctx, s.at(name), perm)
	if err != nil {
		return nil, err
	}
	return &hdfsWriter{store: s, file: f, name: name}, nil
}

func (w *hdfsWriter) ID() FileID { return FileID{Inode: w.file.ID()} }

func (s *hdfsStore) Create(ctx context.Context, name string, perm fs.FileMode) (Writer, error) {
	if err := CheckChange("create", name); err != nil {
		return nil, err
	}
	temporary := TemporaryFor(name)
	f, err := s.c.Create(ctx, s.at(temporary), perm)
	if err != nil {
		return nil, renamed(err, "create", s.at(name))
	}
	return &hdfsWriter{store: s, file: f, temporary: temporary, name: name}, nil
}

// renamed replaces a temporary name in an error by the name that the caller knows.
func renamed(err error, op, path string) error {
	if e := new(fs.PathError); errors.As(err, &e) {
		err = e.Err
	}
	return hdfs.Wrap(op, path, err)
}

func (w *hdfsWriter) Write(b []byte) (int, error) {
	n, err := w.file.Write(b)
	return n, hdfs.Wrap("write", w.store.at(w.name), err)
}

func (w *hdfsWriter) Take(b []byte) error {
	return hdfs.Wrap("write", w.store.at(w.name), w.file.Take(b))
}

func (w *hdfsWriter) Wait() error { return hdfs.Wrap("write", w.store.at(w.name), w.file.Wait()) }

var _ Taker = (*hdfsWriter)(nil)

func (w *hdfsWriter) SyncAtClose() { w.file.SyncEnds() }

func (w *hdfsWriter) Close() error {
	name := w.store.at(w.name)
	if w.done {
		return hdfs.Wrap("close", name, syscall.EBADF)
	}
	w.done = true
	if err := w.file.Close(); err != nil { // it has aborted the file
		return hdfs.Wrap("close", name, err)
	}
	if w.temporary == "" {
		return nil
	}
	ctx := context.Background()
	if err := w.store.c.Rename(Committing(ctx), w.store.at(w.temporary), name); err != nil {
		if removeErr := w.store.c.Remove(Tidying(ctx), w.store.at(w.temporary)); removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) {
			err = fmt.Errorf("%w; its temporary file stays: %w", err, removeErr)
		}
		return renamed(err, "close", name)
	}
	return nil
}

func (w *hdfsWriter) Abort() error {
	if w.done {
		return nil
	}
	w.done = true
	return hdfs.Wrap("abandon", w.store.at(w.name), w.file.Abort())
}

type hdfsAppender struct {
	store *hdfsStore
	file  *write.File
	name  string
	taken bool // DataNodes have what was written first
}

func (s *hdfsStore) Append(ctx context.Context, name string, perm fs.FileMode) (Appender, error) {
	if err := CheckChange("append to", name); err != nil {
		return nil, err
	}
	f, err := s.c.Append(ctx, s.at(name))
	if errors.Is(err, fs.ErrNotExist) {
		// A file that was created is closed and opened again, so that a later failure
		// loses only its end.
		if f, err = s.c.Create(ctx, s.at(name), perm); err == nil {
			err = f.Close()
		}
		if err == nil || errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.EBUSY) {
			f, err = s.c.Append(ctx, s.at(name))
		}
	}
	if err != nil {
		return nil, renamed(err, "append to", s.at(name))
	}
	return &hdfsAppender{store: s, file: f, name: name}, nil
}

// Write waits for the DataNodes if it is the first one or begins a block: there the NameNode may
// refuse, because of a quota or its limit of blocks per file, and programs that append, such as
// shells, check errors of write but not of close.
func (a *hdfsAppender) Write(b []byte) (int, error) {
	blocks := a.file.Blocks()
	n, err := a.file.Write(b)
	if err == nil && (!a.taken || a.file.Blocks() > blocks) {
		ctx, cancel := context.WithTimeout(context.Background(), flushLimit)
		defer cancel()
		if err = a.file.Drain(ctx); err != nil {
			n = 0
		}
		a.taken = err == nil
	}
	return n, hdfs.Wrap("append to", a.store.at(a.name), err)
}

func (a *hdfsAppender) Flush() error { return a.flush(a.file.Flush) }

func (a *hdfsAppender) Sync() error { return a.flush(a.file.Sync) }

func (a *hdfsAppender) flush(to func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), flushLimit)
	defer cancel()
	return hdfs.Wrap("flush", a.store.at(a.name), to(ctx))
}

func (a *hdfsAppender) Close() error {
	err := a.file.Flush(context.Background()) // Close gives up what it cannot complete: keep it visible
	if closeErr := a.file.Close(); err == nil {
		err = closeErr
	}
	return hdfs.Wrap("close", a.store.at(a.name), err)
}

func (s *hdfsStore) Open(ctx context.Context, name string) (Reader, error) {
	if err := CheckName("open", name); err != nil {
		return nil, err
	}
	r, err := s.c.Open(ctx, s.at(name))
	if err != nil {
		return nil, err
	}
	return r, nil
}
