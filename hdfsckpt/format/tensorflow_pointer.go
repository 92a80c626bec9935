package format

import (
	"context"
	"path"
	"slices"

	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/tfbundle"
)

// TensorFlow's pointer is a file `checkpoint` that can be read as a CheckpointState.

func (tensorFlow) PointerFile() string { return tfbundle.StateFile }

func (tensorFlow) ReadPointer(ctx context.Context, s store.Store, dir string) (Pointed, error) {
	p, err := readPointer(ctx, s, path.Join(dir, tfbundle.StateFile))
	if err != nil || !p.Named() {
		return p, err
	}
	state, err := tfbundle.ParseState(p.Text)
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

func (tensorFlow) RememberPointer(ctx context.Context, s store.Store, dir string) error {
	return rememberPointer(ctx, s, path.Join(dir, tfbundle.StateFile))
}

func (tensorFlow) KnownPointers(ctx context.Context, s store.Store) (map[string]bool, error) {
	return knownPointers(ctx, s, tfbundle.StateFile)
}
