package hdfsckpt_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

// TestAManifestBeyondABoundIsTold: a checkpoint whose manifest is too large to be read does not
// count as sealed, and says so, with the file and the bound. The others do.
func TestAManifestBeyondABoundIsTold(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s, err := store.NewLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, name := range []string{"model.ckpt-3", "model.ckpt-4"} {
		putCheckpoint(t, s, name, nil)
	}
	list, err := hdfsckpt.List(ctx, s)
	for _, c := range list {
		if err == nil {
			_, err = hdfsckpt.Seal(ctx, s, c, manifest.Meta{}, nil)
		}
	}
	if err != nil || len(list) != 2 {
		t.Fatalf("%d checkpoints, %v", len(list), err)
	}
	for _, size := range []int64{store.ReadLimit + 1, 1 << 40} { // beyond what is read of a file, and beyond all memory
		if err := os.Truncate(filepath.Join(dir, manifest.Path("model.ckpt-3")), size); err != nil { // no room is taken
			t.Fatal(err)
		}
		if list, err = hdfsckpt.List(ctx, s); err != nil {
			t.Fatal(err)
		}
		if c := list[0]; c.State != format.Complete || !strings.Contains(c.Why, manifest.Path("model.ckpt-3")) || !strings.Contains(c.Why, strconv.FormatInt(size, 10)) {
			t.Errorf("with a manifest of %d bytes %s is %s: %q", size, c.Name, c.State, c.Why)
		}
		if c := list[1]; c.State != format.Sealed || c.Why != "" {
			t.Errorf("the other one, %s, is %s: %q", c.Name, c.State, c.Why)
		}
	}
}
