// Package writers keeps track of who writes to a store. Each mount and each master is a
// writer. One that was given up, but may still be alive, is fenced off. A writer's heartbeat
// shows other jobs that its job is alive.
package writers

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/hdfsckpt/store"
)

// A writer's unfinished files are in a directory of its own, from which a rename publishes
// them. Without that directory it can neither begin nor complete a file, so moving the
// directory away fences the writer off in one atomic step, whatever it is about to do. Files
// that it removes are moved there first, and where files are retained instead, what that begins
// with is made there (package retain), so after that it can remove nothing either.
//
//	.holdfast/writing/WRITER/  of a writer, until it is fenced off; directories in it
//	                           hold files that inherit another group or ACL, or are
//	                           entries of package retain
//	.holdfast/fenced/WRITER/   of one that was, until it is removed
const (
	writingDir = store.OwnDir + "/writing"
	fencedDir  = store.OwnDir + "/fenced"
)

// Dir is the directory of what a writer has not completed. It is made
// once in a writer's life (MkdirAll), by itself.
func Dir(writer string) string { return path.Join(writingDir, url.PathEscape(writer)) }

// List lists those that have begun to write, have not ended in order, and
// are not fenced off.
func List(ctx context.Context, s store.Store) ([]string, error) {
	writers, err := listBelow(ctx, s, ".")
	if store.Vanished(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the writers of the checkpoint store %s: %w", s.URI(), err)
	}
	return writers, nil
}

// listBelow is List for the store in a directory of s.
func listBelow(ctx context.Context, s store.Store, dir string) ([]string, error) {
	entries, err := s.List(ctx, path.Join(dir, writingDir))
	var writers []string
	for _, e := range entries {
		if name, err := url.PathUnescape(e.Name); err == nil && e.IsDir() {
			writers = append(writers, name)
		}
	}
	return writers, err
}

// Fence makes it impossible for a writer to complete a file from now on: what
// it has not completed is lost, and it can begin nothing new, though it may
// never have written before. A file in the place of its directory sees to that;
// Forget removes it after a day.
func Fence(ctx context.Context, s store.Store, writer string) error {
	if err := fence(ctx, s, writer); err != nil {
		return fmt.Errorf("cannot fence the writer %s off from the checkpoint store %s: %w", writer, s.URI(), err)
	}
	return nil
}

func fence(ctx context.Context, s store.Store, writer string) error {
	dir, fenced := Dir(writer), path.Join(fencedDir, url.PathEscape(writer))
	for _, d := range []string{writingDir, fencedDir} {
		if err := store.MkdirAll(ctx, s, d, 0o755); err != nil {
			return err
		}
	}
	for {
		if err := s.Rename(ctx, dir, fenced); err != nil && !store.Vanished(err) {
			if !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, syscall.ENOTDIR) {
				return err
			}
			if i, statErr := s.Stat(ctx, dir); statErr == nil && !i.IsDir() {
				return nil // it was fenced off before
			}
		}
		if err := store.RemoveOwn(ctx, s, fenced); err != nil {
			return err
		}
		// Fails if the writer has made its directory, for the first time, just now.
		err := store.WriteFile(ctx, s, dir, nil, 0o644)
		if err == nil || !errors.Is(err, syscall.EISDIR) {
			return err
		}
	}
}

// atOnce bounds the calls at a time for many writers.
const atOnce = 8

// LongestWrite is how long a file may take to be written. HDFS reports of one that
// is open no more than when it was begun (FSDirWriteFileOp.addFile; the time is
// set again when it is closed), so age alone says little of whether its writer
// lives.
const LongestWrite = 24 * time.Hour

// Writing reports whether a writer that was not fenced off has begun a file and
// not completed it, nor left it lying for longer than a write may take.
func Writing(ctx context.Context, s store.Store) (bool, error) {
	writers, err := List(ctx, s)
	if err != nil {
		return false, err
	}
	var group errgroup.Group
	group.SetLimit(atOnce)
	var found atomic.Bool
	for _, w := range writers {
		group.Go(func() error {
			if found.Load() {
				return nil
			}
			open, err := unfinished(ctx, s, Dir(w))
			if err != nil && !store.Vanished(err) {
				return fmt.Errorf("cannot find out what %s writes to the checkpoint store %s: %w", w, s.URI(), err)
			}
			if slices.ContainsFunc(open, func(f store.Info) bool { return time.Since(f.ModTime) < LongestWrite }) {
				found.Store(true)
			}
			return nil
		})
	}
	err = group.Wait()
	return found.Load(), err
}

// unfinished lists the files that a writer has not completed, in its directory and in the
// directories in that, where a mount stages files for directories of other groups and
// policies.
func unfinished(ctx context.Context, s store.Store, dir string) ([]store.Info, error) {
	all, err := store.ListAll(ctx, s, dir)
	if err != nil {
		return nil, err
	}
	var files []store.Info
	for _, i := range all {
		switch {
		case !i.IsDir() && store.IsTemporary(i.Name):
			files = append(files, i)
		case i.IsDir():
			staged, err := store.ListTemporary(ctx, s, path.Join(dir, i.Name))
			if err != nil && !store.Vanished(err) {
				return nil, err
			}
			files = append(files, staged...)
		}
	}
	return files, nil
}

// forgetAfter is how long a writer that was fenced off may stay alive. Its leases
// have ended long before.
const forgetAfter = 24 * time.Hour

// Forget removes the marks of those that were fenced off long ago.
func Forget(ctx context.Context, s store.Store) error {
	entries, err := s.List(ctx, writingDir)
	if store.Vanished(err) {
		return nil
	}
	for _, e := range entries {
		if !e.IsDir() && time.Since(e.ModTime) > forgetAfter {
			if removeErr := s.Remove(ctx, path.Join(writingDir, e.Name)); removeErr != nil && !store.Vanished(removeErr) {
				err = errors.Join(err, removeErr)
			}
		}
	}
	return err
}
