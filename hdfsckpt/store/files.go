package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"syscall"

	"holdfast/hdfsckpt/limit"
)

// readLimit is the largest file, in bytes, that ReadFile reads.
const ReadLimit = 64 << 20

// ReadFile reads a whole file, of at most 64 MiB (EFBIG).
func ReadFile(ctx context.Context, s Store, name string) ([]byte, error) {
	r, err := s.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return ReadOpened(r, name)
}

// ReadOpened is ReadFile for a file that is open.
func ReadOpened(r Reader, name string) ([]byte, error) {
	if r.Size() > ReadLimit {
		return nil, &fs.PathError{Op: "read", Path: name, Err: limit.Exceeded("it has %d bytes, and files that say something of others are read up to %d", r.Size(), ReadLimit)}
	}
	b := make([]byte, r.Size())
	n, err := r.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	return b[:n], nil
}

// Latest caches the content of a file that is read often and changes rarely. The zero value is
// ready; it is for one goroutine.
type Latest struct {
	Info Info // of the file before it was read
	Text []byte
}

// Read reads the file if it has changed since the last call.
func (l *Latest) Read(ctx context.Context, s Store, name string) error {
	now, err := s.Stat(ctx, name)
	if err != nil || now == l.Info {
		return err
	}
	text, err := ReadFile(ctx, s, name)
	if err != nil {
		return err
	}
	l.Info, l.Text = now, text
	return nil
}

// WriteFile writes a file atomically: readers see the old content or the new.
func WriteFile(ctx context.Context, s Store, name string, content []byte, perm fs.FileMode) error {
	w, err := s.Create(ctx, name, perm)
	if err != nil {
		return err
	}
	if _, err = w.Write(content); err != nil {
		_ = w.Abort()
		return err
	}
	return w.Close()
}

// AppendFile appends to a file, which is created if it is missing, with its directory.
func AppendFile(ctx context.Context, s Store, name string, content []byte, perm fs.FileMode) error {
	w, err := s.Append(ctx, name, perm)
	if errors.Is(err, fs.ErrNotExist) {
		if err = MkdirAll(ctx, s, path.Dir(name), 0o700); err == nil {
			w, err = s.Append(ctx, name, perm)
		}
	}
	if err != nil {
		return err
	}
	if _, err = w.Write(content); err != nil {
		_ = w.Close()
		return err
	}
	return w.Close()
}

// MkdirAll makes a directory and its missing parents.
func MkdirAll(ctx context.Context, s Store, dir string, perm fs.FileMode) error {
	if dir == "." {
		return nil
	}
	err := s.Mkdir(ctx, dir, perm)
	if errors.Is(err, syscall.ENOENT) && path.Dir(dir) != dir {
		if err = MkdirAll(ctx, s, path.Dir(dir), perm); err == nil {
			err = s.Mkdir(ctx, dir, perm)
		}
	}
	if errors.Is(err, syscall.EEXIST) { // maybe made by somebody else just now
		i, statErr := s.Stat(ctx, dir)
		if statErr != nil {
			return statErr
		}
		if !i.IsDir() {
			return fmt.Errorf("cannot make the directory %s in %s, a file has that name: %w", dir, s.URI(), syscall.ENOTDIR)
		}
		return nil
	}
	return err
}

// readError returns io.EOF unwrapped, since callers compare it.
func readError(wrap func(op, name string, err error) error, name string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return wrap("read", name, err)
}
