package hdfsckpt_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/manifest"
	"holdfast/hdfsckpt/store"
)

// TestManifestsAreReadOnce: who keeps a store open reads each manifest once, however
// often it looks.
func TestManifestsAreReadOnce(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	open := func() *store.Local {
		t.Helper()
		s, err := store.NewLocal(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	state := func(s store.Store) format.State {
		t.Helper()
		found, err := hdfsckpt.List(ctx, s)
		if err != nil || len(found) != 1 {
			t.Fatalf("%+v, %v", found, err)
		}
		return found[0].State
	}
	s := open()
	err := store.MkdirAll(ctx, s, "step-10", 0o755)
	if err == nil {
		err = store.WriteFile(ctx, s, "step-10/"+formats.Committed, nil, 0o644)
	}
	var list []format.Checkpoint
	if err == nil {
		list, err = hdfsckpt.List(ctx, s)
	}
	if err == nil {
		_, err = hdfsckpt.Seal(ctx, s, list[0], manifest.Meta{}, nil)
	}
	if err != nil || state(s) != format.Sealed {
		t.Fatal(err)
	}
	// The same file by all that a list says of it, and not what it was.
	name := filepath.Join(dir, manifest.Path("step-10"))
	i, err := os.Stat(name)
	if err == nil {
		err = os.WriteFile(name, bytes.Repeat([]byte("x"), int(i.Size())), 0o644)
	}
	if err == nil {
		err = os.Chtimes(name, i.ModTime(), i.ModTime())
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := state(s); got != format.Sealed {
		t.Errorf("its manifest was read again: it is %s", got)
	}
	if got := state(open()); got != format.Complete {
		t.Errorf("the test tests nothing: it is %s", got)
	}
}
