package store_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/store/storetest"
)

func openLocal(t testing.TB, dir string) store.Store {
	t.Helper()
	s, err := store.Open(context.Background(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestLocal(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store { return openLocal(t, filepath.Join(t.TempDir(), "a", "store")) })
}

// TestLocalLinks follows symbolic links inside the root and none that leave it.
func TestLocalLinks(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := openLocal(t, dir)
	defer s.Close()
	if err := store.WriteFile(ctx, s, "real", []byte("inside"), 0o644); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"in": "real", "out": outside, "up": "../..", "nowhere": "missing"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := store.ReadFile(ctx, s, "in"); err != nil || string(b) != "inside" {
		t.Errorf("%q, %v", b, err)
	}
	for _, name := range []string{"out", "up/etc/passwd"} {
		if _, err := s.Open(ctx, name); !errors.Is(err, syscall.EACCES) {
			t.Errorf("%s: %v", name, err)
		}
	}
	infos, err := s.List(ctx, ".")
	if err != nil || len(infos) != 2 || infos[0].Name != "in" || !infos[0].Mode.IsRegular() {
		t.Errorf("%+v, %v", infos, err)
	}
}

// TestLinksAreRemovedAndNotWhatTheyLeadTo: a directory goes with the links in it, also with those
// that lead nowhere, and what the others lead to stays.
func TestLinksAreRemovedAndNotWhatTheyLeadTo(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s := openLocal(t, dir)
	defer s.Close()
	for _, name := range []string{"old/deep", "shared"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.WriteFile(ctx, s, "shared/vocabulary", []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"old/shared": "../shared", "old/file": "../shared/vocabulary", "old/deep/nowhere": "../missing", "old/out": "/tmp", "whole": "shared"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if there, err := store.Exists(ctx, s, "old/deep/nowhere"); err != nil || !there {
		t.Errorf("a link that leads nowhere has its name: %v, %v", there, err)
	}
	all, err := store.ListAll(ctx, s, "old")
	if err != nil || len(all) != 4 || all[0].Link || !all[1].Link || all[1].Mode.IsDir() || !all[2].Link || !all[3].Link || !all[3].IsDir() {
		t.Errorf("%+v, %v", all, err)
	}
	for _, name := range []string{"old", "whole"} {
		if err := store.RemoveAll(ctx, s, name); err != nil {
			t.Error(err)
		}
		if there, err := store.Exists(ctx, s, name); err != nil || there {
			t.Errorf("%s is there: %v, %v", name, there, err)
		}
	}
	if b, err := store.ReadFile(ctx, s, "shared/vocabulary"); err != nil || string(b) != "x" {
		t.Errorf("what they led to: %q, %v", b, err)
	}
}

// TestADeepDirectoryIsRemoved as deep as a program may make one.
func TestADeepDirectoryIsRemoved(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "old", strings.Repeat("d/", 900)), 0o755); err != nil {
		t.Fatal(err)
	}
	s := openLocal(t, dir)
	defer s.Close()
	if err := store.RemoveAll(t.Context(), s, "old"); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("there are %v, %v", left, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	ctx, file := context.Background(), filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, uri := range []string{"", "train_logs", "./x", "s3a://bucket/x", "hdfs://nn:1", "hdfs://nn:1/x?y", "file://host/x", "hdfs:///x", file, "file://" + file} {
		s, err := store.Open(ctx, uri, nil)
		if err == nil {
			s.Close()
			t.Errorf("%q was taken", uri)
		} else if !strings.Contains(err.Error(), "checkpoint store") {
			t.Errorf("%q: %v", uri, err)
		}
	}
	missing := filepath.Join(t.TempDir(), "missing")
	if _, err := store.OpenExisting(ctx, missing, nil); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("a directory that is missing: %v", err)
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("it was made")
	}
}

func TestTemporaryNames(t *testing.T) {
	for _, name := range []string{"a", ".a", "d/a", strings.Repeat("n", 255), strings.Repeat("é", 127), "a.hf-tmp"} {
		tmp := store.TemporaryFor(name)
		if !store.IsTemporary(tmp) || len(filepath.Base(tmp)) > 255 || filepath.Dir(tmp) != filepath.Dir(name) || tmp == store.TemporaryFor(name) || strings.ToValidUTF8(tmp, "") != tmp {
			t.Errorf("%q becomes %q", name, tmp)
		}
	}
	for _, name := range []string{"a", "a.hf-tmp", ".hf-tmp", ".a", "", "."} {
		if store.IsTemporary(name) {
			t.Errorf("%q is no temporary name", name)
		}
	}
}
