package spec_test

import (
	"archive/tar"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"holdfast/client"
	"holdfast/client/spec"
	"holdfast/proto"
)

func collect(t *testing.T, dir string, specs ...string) ([]*proto.FileSpec, error) {
	t.Helper()
	var list []spec.Input
	for _, s := range specs {
		in, err := spec.ParseInput(s, dir, strings.Contains(s, ".tar"))
		if err != nil {
			return nil, err
		}
		list = append(list, in)
	}
	return spec.Collect(t.Context(), list, nil)
}

func TestCollect(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "src/train.py"), "print(1)\n")
	write(t, filepath.Join(dir, "data/a/b.txt"), "abc")
	write(t, filepath.Join(dir, "data/c.txt"), "")
	var venv strings.Builder
	if err := tar.NewWriter(&venv).WriteHeader(&tar.Header{Name: "bin/", Typeflag: tar.TypeDir}); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "venv.tar.gz"), venv.String())
	if err := os.Chmod(filepath.Join(dir, "data/c.txt"), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../src/train.py", filepath.Join(dir, "data/link.py")); err != nil {
		t.Fatal(err)
	}
	list, err := collect(t, dir, "src/train.py", "data/", "src/train.py#lib/t.py", "venv.tar.gz#venv")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]*proto.FileSpec{}
	for _, f := range list {
		got[f.Name] = f
	}
	for _, name := range []string{"train.py", "data/a/b.txt", "data/c.txt", "data/link.py", "lib/t.py", "venv"} {
		if got[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
	if len(list) != 6 {
		t.Errorf("there are %d files: %v", len(list), list)
	}
	// The digest of "abc" is FIPS 180-2's example.
	if f := got["data/a/b.txt"]; f.Size != 3 || f.Sha256 != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" || f.Uri != filepath.Join(dir, "data/a/b.txt") {
		t.Errorf("b.txt is %v", f)
	}
	if f := got["data/c.txt"]; f.Mode != 0o750 {
		t.Errorf("c.txt has mode %o", f.Mode)
	}
	if f := got["venv"]; !f.Archive {
		t.Errorf("venv is %v", f)
	}
	if f := got["data/link.py"]; f.Size != int64(len("print(1)\n")) {
		t.Errorf("a link to a file is that file; it is %v", f)
	}
}

func TestCollectRefuses(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.py"), "")
	write(t, filepath.Join(dir, "x/a.py"), "")
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "links"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..", filepath.Join(dir, "links/up")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		specs []string
		want  []string
	}{
		{"missing file", []string{"none.py"}, []string{filepath.Join(dir, "none.py"), "--files", "check the path"}},
		{"missing archive", []string{"none.tar"}, []string{"none.tar", "--archives"}},
		{"same name", []string{"a.py", "x/a.py"}, []string{"a.py", "PATH#NAME"}},
		{"file as directory", []string{"a.py", "x/a.py#a.py/b"}, []string{"PATH#NAME"}},
		{"pipe", []string{"pipe"}, []string{"pipe"}},
		{"link in a circle", []string{"links"}, []string{"links/up", "directory"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := collect(t, dir, c.specs...)
			if err == nil {
				t.Fatal("it was accepted")
			}
			if client.ExitCode(err) != client.ExitUsage {
				t.Errorf("the exit code is %d", client.ExitCode(err))
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q is not in: %v", w, err)
				}
			}
		})
	}
}
