package hdfsckpt

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/hdfsckpt/store"
)

// What a writer has not completed lies in a directory of its own, from where a
// rename puts it under its name. Without that directory nothing can be begun,
// and nothing that was begun can be completed: so a writer that was given up,
// but may live, is shut out by one atomic step, whatever it is about to do. What it
// removes goes there first, so that it cannot remove anything either.
//
//	.holdfast/writing/WRITER/  of a writer, until it is shut out; directories in it
//	                           are for files of other groups and the like
//	.holdfast/shut/WRITER/     of one that was, until it is removed
const (
	writingDir = store.OwnDir + "/writing"
	shutDir    = store.OwnDir + "/shut"
)

// WriterDir is the directory of what a writer has not completed. It is made
// once in a writer's life (MkdirAll), by itself.
func WriterDir(writer string) string { return path.Join(writingDir, url.PathEscape(writer)) }

// Writers lists those that have begun to write, have not ended in order, and
// are not shut out.
func Writers(ctx context.Context, s store.Store) ([]string, error) {
	entries, err := s.List(ctx, writingDir)
	if vanished(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the writers of the checkpoint store %s: %w", s.URI(), err)
	}
	var writers []string
	for _, e := range entries {
		if name, err := url.PathUnescape(e.Name); err == nil && e.IsDir() {
			writers = append(writers, name)
		}
	}
	return writers, nil
}

// ShutOut makes it impossible for a writer to complete a file from now on: what
// it has not completed is lost, and it can begin nothing new, though it may
// never have written before. A file in the place of its directory sees to that;
// MakeSafe removes it after a day.
func ShutOut(ctx context.Context, s store.Store, writer string) error {
	if err := shutOut(ctx, s, writer); err != nil {
		return fmt.Errorf("cannot shut the writer %s out of the checkpoint store %s: %w", writer, s.URI(), err)
	}
	return nil
}

func shutOut(ctx context.Context, s store.Store, writer string) error {
	dir, shut := WriterDir(writer), path.Join(shutDir, url.PathEscape(writer))
	for _, d := range []string{writingDir, shutDir} {
		if err := store.MkdirAll(ctx, s, d, 0o755); err != nil {
			return err
		}
	}
	for {
		if err := s.Rename(ctx, dir, shut); err != nil && !vanished(err) {
			if !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, syscall.ENOTDIR) {
				return err
			}
			if i, statErr := s.Stat(ctx, dir); statErr == nil && !i.IsDir() {
				return nil // it was shut out before
			}
		}
		if err := removeShut(ctx, s, shut); err != nil {
			return err
		}
		// Fails if the writer has made its directory, for the first time, just now.
		err := store.WriteFile(ctx, s, dir, nil, 0o644)
		if err == nil || !errors.Is(err, syscall.EISDIR) {
			return err
		}
	}
}

// removeShut removes what a writer that was shut out has left: files, and
// directories of files.
func removeShut(ctx context.Context, s store.Store, shut string) error {
	shown, err := s.List(ctx, shut)
	if err != nil && !vanished(err) && !errors.Is(err, syscall.ENOTDIR) { // what shut it out before
		return err
	}
	for _, i := range shown {
		if err := store.RemoveDir(ctx, s, path.Join(shut, i.Name)); err != nil && !vanished(err) {
			return err
		}
	}
	if err := store.RemoveDir(ctx, s, shut); !vanished(err) {
		return err
	}
	return nil
}

// longestWrite is how long a file may take to be written. HDFS tells of one that
// is open no more than when it was begun (FSDirWriteFileOp.addFile; the time is
// set again when it is closed), so age alone says little of whether its writer
// lives.
const longestWrite = 24 * time.Hour

// anyWriting tells whether a writer that was not shut out has begun a file and
// not completed it, nor left it lying for longer than a write may take.
func anyWriting(ctx context.Context, s store.Store) (bool, error) {
	writers, err := Writers(ctx, s)
	if err != nil {
		return false, err
	}
	var group errgroup.Group
	group.SetLimit(askedAtOnce)
	var found atomic.Bool
	for _, w := range writers {
		group.Go(func() error {
			if found.Load() {
				return nil
			}
			open, err := begun(ctx, s, WriterDir(w))
			if err != nil && !vanished(err) {
				return fmt.Errorf("cannot tell what %s writes to the checkpoint store %s: %w", w, s.URI(), err)
			}
			if slices.ContainsFunc(open, func(f store.Info) bool { return time.Since(f.ModTime) < longestWrite }) {
				found.Store(true)
			}
			return nil
		})
	}
	err = group.Wait()
	return found.Load(), err
}

// Unfinished describes what may still be added to a checkpoint that is complete, but
// has no marker that says so: the files of checkpoints in its directory, with lengths
// and times, so that who asks again sees a change; and whether any file is being written.
func Unfinished(ctx context.Context, s store.Store, c Checkpoint) (files string, writing bool, err error) {
	var b strings.Builder
	dir := path.Dir(c.Name)
	if c.isDir() {
		for _, f := range c.Files {
			fmt.Fprintf(&b, "%s %d %d\n", f.Name, f.Size, f.ModTime.UnixNano())
		}
	} else {
		entries, err := s.List(ctx, dir)
		if err != nil {
			return "", false, err
		}
		for _, e := range entries {
			if name := path.Join(dir, e.Name); !e.IsDir() && Keeps(name) {
				fmt.Fprintf(&b, "%s %d %d\n", name, e.Size, e.ModTime.UnixNano())
			}
		}
	}
	writing, err = anyWriting(ctx, s)
	return b.String(), writing, err
}

// begun lists what a writer has begun, in its directory and in those in that,
// where a mount stages what belongs into directories of other groups and policies.
func begun(ctx context.Context, s store.Store, dir string) ([]store.Info, error) {
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
			if err != nil && !vanished(err) {
				return nil, err
			}
			files = append(files, staged...)
		}
	}
	return files, nil
}

// forgetAfter is how long a writer that was shut out may live on. Its leases
// have ended long before.
const forgetAfter = 24 * time.Hour

// forgetWriters removes the marks of those that were shut out long ago.
func forgetWriters(ctx context.Context, s store.Store) error {
	entries, err := s.List(ctx, writingDir)
	if vanished(err) {
		return nil
	}
	for _, e := range entries {
		if !e.IsDir() && time.Since(e.ModTime) > forgetAfter {
			if removeErr := s.Remove(ctx, path.Join(writingDir, e.Name)); removeErr != nil && !vanished(removeErr) {
				err = errors.Join(err, removeErr)
			}
		}
	}
	return err
}
