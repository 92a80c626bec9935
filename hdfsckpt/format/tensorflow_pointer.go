package format

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"syscall"

	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/tfbundle"
)

// A file called `checkpoint` may be the program's own. It is TensorFlow's in a directory
// for which a saver is known to have written one: it can be read as a CheckpointState,
// or a record says that it once could.
//
//	.holdfast/savers/FILE.json    FILE: the name of the file `checkpoint`, an entry
const saversDir = store.OwnDir + "/savers"

// saver is such a record.
type saver struct {
	File string `json:"file"` // relative to the store's root
}

func (tensorFlow) PointerFile() string { return tfbundle.StateFile }

func (tensorFlow) ReadPointer(ctx context.Context, s store.Store, dir string) (Pointed, error) {
	name := path.Join(dir, tfbundle.StateFile)
	info, err := s.Stat(ctx, name)
	if store.Vanished(err) {
		return Pointed{Missing: true}, nil
	}
	if err == nil && !info.Mode.IsRegular() || errors.Is(err, fs.ErrPermission) {
		return Pointed{Foreign: true}, nil
	}
	var text []byte
	if err == nil {
		text, err = store.ReadFile(ctx, s, name)
	}
	switch {
	case store.Vanished(err):
		return Pointed{Missing: true}, nil
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EFBIG): // TensorFlow's is small
		return Pointed{Foreign: true}, nil
	case err != nil:
		return Pointed{}, err
	}
	p := Pointed{Text: text, Written: info.ModTime}
	state, err := tfbundle.ParseState(text)
	if p.Err = err; err == nil {
		p.Target = state.Current
	}
	return p, nil
}

// stateOf is what a pointer named; nothing if it is not readable.
func stateOf(p Pointed) tfbundle.CheckpointState {
	state, err := tfbundle.ParseState(p.Text)
	if err != nil {
		return tfbundle.CheckpointState{}
	}
	return state
}

// WritePointer leaves absolute paths absolute.
func (tensorFlow) WritePointer(ctx context.Context, s store.Store, dir string, before Pointed, list []Checkpoint, to *Checkpoint) error {
	whole := map[string]bool{}
	for _, c := range list {
		if c.Whole() {
			whole[path.Base(c.Name)] = true
		}
	}
	old := stateOf(before)
	state := tfbundle.CheckpointState{Current: path.Base(to.Name)}
	if d := path.Dir(old.Current); old.Current != "" && d != "." {
		state.Current = path.Join(d, state.Current)
	}
	for _, p := range old.All {
		if whole[path.Base(p)] && path.Base(p) != path.Base(to.Name) {
			state.All = append(state.All, p)
		}
	}
	state.All = append(state.All, state.Current)
	return store.WriteFile(ctx, s, path.Join(dir, tfbundle.StateFile), state.Bytes(), 0o644)
}

func (tensorFlow) CopiedPointer(before Pointed, to *Checkpoint) []byte {
	state, name := stateOf(before), path.Base(to.Name)
	state.Current = name
	state.All = append(slices.DeleteFunc(state.All, func(s string) bool { return s == name }), name)
	return state.Bytes()
}

func saverName(dir string) string {
	return path.Join(saversDir, store.EntryName(path.Join(dir, tfbundle.StateFile))+".json")
}

func (tensorFlow) RememberPointer(ctx context.Context, s store.Store, dir string) error {
	name := saverName(dir)
	_, err := s.Stat(ctx, name)
	if !store.Vanished(err) {
		return err
	}
	return store.WriteRecord(ctx, s, name, saver{File: path.Join(dir, tfbundle.StateFile)})
}

func (tensorFlow) KnownPointers(ctx context.Context, s store.Store) (map[string]bool, error) {
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
		if json.Unmarshal(text, &record) == nil && path.Base(record.File) == tfbundle.StateFile &&
			store.IsEntryFor(e.Name[:len(e.Name)-len(path.Ext(e.Name))], record.File) {
			found[path.Dir(record.File)] = true
		}
	}
	return found, nil
}
