package format

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"syscall"

	"holdfast/hdfsckpt/store"
)

// A file by the name of a pointer may be the program's own. It is a format's in a
// directory for which the framework is known to have written one: it can be read as
// such, or a record says that it once could.
//
//	.holdfast/savers/FILE.json    FILE: the name of the pointer, an entry
const saversDir = store.OwnDir + "/savers"

// saver is such a record.
type saver struct {
	File string `json:"file"` // relative to the store's root
}

// readPointer reads the file of a pointer; what it names, its format knows.
func readPointer(ctx context.Context, s store.Store, file string) (Pointed, error) {
	info, err := s.Stat(ctx, file)
	if store.Vanished(err) {
		return Pointed{Missing: true}, nil
	}
	if err == nil && !info.Mode.IsRegular() || errors.Is(err, fs.ErrPermission) {
		return Pointed{Foreign: true}, nil
	}
	var text []byte
	if err == nil {
		text, err = store.ReadFile(ctx, s, file)
	}
	switch {
	case store.Vanished(err):
		return Pointed{Missing: true}, nil
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EFBIG): // a pointer is small
		return Pointed{Foreign: true}, nil
	case err != nil:
		return Pointed{}, err
	}
	return Pointed{Text: text, Written: info.ModTime}, nil
}

// rememberPointer records that a file is a format's pointer.
func rememberPointer(ctx context.Context, s store.Store, file string) error {
	name := path.Join(saversDir, store.EntryName(file)+".json")
	if there, err := store.Exists(ctx, s, name); err != nil || there {
		return err
	}
	return store.WriteRecord(ctx, s, name, saver{File: file})
}

// knownPointers returns the directories in which the file of that base name is recorded
// to be a format's pointer.
func knownPointers(ctx context.Context, s store.Store, base string) (map[string]bool, error) {
	entries, err := s.List(ctx, saversDir)
	if store.Vanished(err) {
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
		if store.Vanished(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var record saver
		if json.Unmarshal(text, &record) == nil && path.Base(record.File) == base &&
			store.IsEntryFor(e.Name[:len(e.Name)-len(path.Ext(e.Name))], record.File) {
			found[path.Dir(record.File)] = true
		}
	}
	return found, nil
}
