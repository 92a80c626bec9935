package hdfsckpt_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/store"
)

// TestReadFileIsBounded: a file that is too large for what it is taken for is not
// read, and the others of its directory are listed as ever.
func TestReadFileIsBounded(t *testing.T) {
	dir := t.TempDir()
	s, err := store.NewLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, name := range []string{"checkpoint", "step-7/COMMITTED", "step-8/.metadata"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filepath.Join(dir, name), 1<<40); err != nil { // no room is taken
			t.Fatal(err)
		}
		if _, err := store.ReadFile(t.Context(), s, name); !errors.Is(err, syscall.EFBIG) {
			t.Errorf("reading 1 TB of %s: %v", name, err)
		}
	}
	for _, name := range []string{"step-7/shard-0", "step-8/__0_0.distcp"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	putCheckpoint(t, s, "model.ckpt-3", nil)
	list, err := hdfsckpt.List(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	states := map[string]format.State{}
	for _, c := range list {
		states[c.Name] = c.State
	}
	want := map[string]format.State{"model.ckpt-3": format.Complete, "step-7": format.Unchecked, "step-8": format.Unchecked}
	if !maps.Equal(states, want) {
		t.Errorf("listed are %v, want %v", states, want)
	}
}
