package hdfsckpt

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"syscall"
	"time"

	"holdfast/hdfsckpt/store"
)

// A file called `checkpoint` may be the program's own. It is TensorFlow's in a
// directory for which a saver is known to have written one: it can be read as a
// CheckpointState, or a record says that it once could.
//
//	.holdfast/savers/FILE.json    FILE: the name of the file `checkpoint`, an entry
const saversDir = store.OwnDir + "/savers"

// saver is such a record.
type saver struct {
	File string `json:"file"` // relative to the store's root
}

// saved is the file `checkpoint` of a directory.
type saved struct {
	text    []byte
	written time.Time
	missing bool
	foreign bool // a directory or the like, or a file that may not be read: not TensorFlow's
}

// readSaved reads it.
func readSaved(ctx context.Context, s store.Store, dir string) (saved, error) {
	name := path.Join(dir, StateFile)
	info, err := s.Stat(ctx, name)
	if vanished(err) {
		return saved{missing: true}, nil
	}
	if err == nil && !info.Mode.IsRegular() || errors.Is(err, fs.ErrPermission) {
		return saved{foreign: true}, nil
	}
	var text []byte
	if err == nil {
		text, err = store.ReadFile(ctx, s, name)
	}
	switch {
	case vanished(err):
		return saved{missing: true}, nil
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EFBIG): // TensorFlow's is small
		return saved{foreign: true}, nil
	}
	return saved{text: text, written: info.ModTime}, err
}

// RememberSavers records in which directories the file `checkpoint` names one of
// the listed checkpoints, so that it is known to be TensorFlow's even when it is
// lost or cut.
func RememberSavers(ctx context.Context, s store.Store, list []Checkpoint) error {
	done := map[string]bool{}
	for _, c := range list {
		if dir := path.Dir(c.Name); c.Current && !done[dir] {
			done[dir] = true
			if err := rememberSaver(ctx, s, dir); err != nil {
				return err
			}
		}
	}
	return nil
}

func saverName(dir string) string {
	return path.Join(saversDir, entryName(path.Join(dir, StateFile))+".json")
}

func rememberSaver(ctx context.Context, s store.Store, dir string) error {
	name := saverName(dir)
	_, err := s.Stat(ctx, name)
	if !vanished(err) {
		return err
	}
	return writeRecord(ctx, s, name, saver{File: path.Join(dir, StateFile)})
}

// writeRecord writes a record as JSON, and makes its directory.
func writeRecord(ctx context.Context, s store.Store, name string, record any) error {
	text, err := json.Marshal(record)
	if err == nil {
		err = store.MkdirAll(ctx, s, path.Dir(name), 0o755)
	}
	if err == nil {
		err = store.WriteFile(ctx, s, name, append(text, '\n'), 0o644)
	}
	return err
}

// savers are the directories in which a saver is recorded to have written
// `checkpoint`.
func savers(ctx context.Context, s store.Store) (map[string]bool, error) {
	entries, err := s.List(ctx, saversDir)
	if vanished(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, e := range entries {
		if !e.Mode.IsRegular() {
			continue
		}
		text, err := store.ReadFile(ctx, s, path.Join(saversDir, e.Name))
		if vanished(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var record saver
		if json.Unmarshal(text, &record) == nil && path.Base(record.File) == StateFile && isEntryFor(e.Name[:len(e.Name)-len(path.Ext(e.Name))], record.File) {
			found[path.Dir(record.File)] = true
		}
	}
	return found, nil
}
