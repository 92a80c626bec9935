package store

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
)

// TestLocalPublishIsDurable: a file is on the disk before it gets its name, and the
// directories that a rename changes are when it returns.
func TestLocalPublishIsDurable(t *testing.T) {
	dir := t.TempDir()
	s, err := NewLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx := context.Background()
	for _, d := range []string{"stage", "to"} {
		if err := s.Mkdir(ctx, d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var synced []string
	s.onSync = func(name string) { synced = append(synced, name) }
	at := func(name string) string { return filepath.Join(dir, name) }
	w, err := s.Stage(ctx, "stage/x", 0o644)
	if err == nil {
		_, err = w.Write([]byte("content"))
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = s.Rename(ctx, "stage/x", "to/x")
	}
	if err == nil {
		err = s.RenameNew(ctx, "to/x", "to/y")
	}
	if err == nil {
		err = WriteFile(ctx, s, "to/z", nil, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.Append(ctx, "log", 0o644)
	if err == nil {
		_, err = a.Write([]byte("line"))
	}
	if err == nil {
		err = a.Sync()
	}
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"stage/x", at("to"), at("stage"), at("to"), "to/z", at("to"), "log"}
	if !slices.Equal(synced, want) {
		t.Errorf("synced were %q, want %q", synced, want)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
}
