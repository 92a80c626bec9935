package store

import (
	"context"
	"io/fs"
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
