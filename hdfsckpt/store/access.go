package store

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// MayWrite returns EACCES if the permissions of a directory keep this user from making and
// removing files in it, and EROFS where nobody may. It changes nothing.
func MayWrite(ctx context.Context, s Store, dir string) error {
	if a, ok := s.(Accesser); ok {
		return a.Access(ctx, dir, unix.W_OK|unix.X_OK)
	}
	if l, ok := s.(*Local); ok {
		at := filepath.Join(l.dir, dir)
		if err := unix.Faccessat(unix.AT_FDCWD, at, unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
			return &fs.PathError{Op: "write in", Path: at, Err: err}
		}
	}
	return nil
}

// Contains reports whether a local path leads to a directory of a store, or to what is in it,
// by whatever links and mounts. What of the path does not exist yet is made where the rest of it
// leads. A store that is not local contains no local path.
func Contains(s Store, dir, local string) (bool, error) {
	l, ok := s.(*Local)
	if !ok || !filepath.IsAbs(local) {
		return false, nil
	}
	own, err := os.Stat(filepath.Join(l.dir, dir))
	if err != nil {
		return false, err
	}
	at, err := filepath.EvalSymlinks(local)
	for ; errors.Is(err, fs.ErrNotExist) && local != "/"; at, err = filepath.EvalSymlinks(local) {
		local = filepath.Dir(local)
	}
	if err != nil {
		return false, err
	}
	for ; ; at = filepath.Dir(at) {
		i, err := os.Stat(at)
		if err != nil {
			return false, err
		}
		if os.SameFile(i, own) {
			return true, nil
		}
		if at == "/" {
			return false, nil
		}
	}
}
