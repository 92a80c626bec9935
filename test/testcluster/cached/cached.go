// Package cached keeps directories that are expensive to make under the
// user's cache directory. A directory is made at its final place (a Python
// environment cannot be moved), under a lock that other processes wait for,
// and counts as made once the file .complete stands in it.
package cached

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const complete = ".complete"

// Dir returns the cached directory of that name. If there is none, or only
// the remains of an interrupted attempt, it calls fill with an empty one.
func Dir(ctx context.Context, name string, fill func(ctx context.Context, dir string) error) (string, error) {
	root, err := root()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", fmt.Errorf("making the cache directory: %w", err)
	}
	dir := filepath.Join(root, name)
	if made(dir) {
		return dir, nil
	}
	unlock, err := lock(ctx, filepath.Join(root, name+".lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	if made(dir) {
		return dir, nil // somebody else made it while we waited
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", fmt.Errorf("removing the remains of an interrupted attempt: %w", err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", fmt.Errorf("making a cached directory: %w", err)
	}
	if err := fill(ctx, dir); err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	if err := os.WriteFile(filepath.Join(dir, complete), nil, 0o644); err != nil {
		return "", fmt.Errorf("marking %s as complete: %w", dir, err)
	}
	return dir, nil
}

// Find returns the cached directory of that name if it has been made.
func Find(name string) (dir string, ok bool) {
	root, err := root()
	if err != nil {
		return "", false
	}
	dir = filepath.Join(root, name)
	return dir, made(dir)
}

func root() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding the cache directory: %w (set HOME or XDG_CACHE_HOME)", err)
	}
	return filepath.Join(cache, "holdfast"), nil
}

func made(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, complete))
	return err == nil
}

// lock waits for the lock file. It polls, since a blocking flock would not
// heed the context.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening a lock: %w", err)
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("waiting for another process that holds %s: %w", path, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}
