package stage

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/container/failure"
	"holdfast/test/bound"
)

// entry is a member of an archive; a name with a slash at its end is a
// directory, a target makes a link.
type entry struct{ name, content, target string }

func tarball(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: 0o755, Size: int64(len(e.content)), Typeflag: tar.TypeReg}
		if strings.HasSuffix(e.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if e.target != "" {
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.target
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zipped(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		f, err := w.Create(e.name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestWhoseFaultAnArchiveIs: one that is no archive is none on any node, and a disk that is full is
// the node's.
func TestWhoseFaultAnArchiveIs(t *testing.T) {
	whole := tarball(t, entry{name: "a", content: strings.Repeat("content", 1000)})
	dir := t.TempDir()
	for name, c := range map[string]struct {
		content   []byte
		permanent bool
	}{
		"no zip":                   {[]byte("PK\x03\x04 and no more"), true},
		"no gzip":                  {[]byte("\x1f\x8bxxxxxxxxxxxxxxxxxxxxxx"), true},
		"cut off":                  {whole[:len(whole)-20], true},
		"no tar":                   {[]byte(strings.Repeat("no archive", 100)), true},
		"outside":                  {tarball(t, entry{name: "../a", content: "x"}), true},
		"a file that is no folder": {tarball(t, entry{name: "a", content: "x"}, entry{name: "a/b", content: "x"}), true},
		"missing":                  {nil, true},
	} {
		archive := filepath.Join(dir, name)
		if c.content != nil {
			if err := os.WriteFile(archive, c.content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		err := unpack(t.Context(), archive, filepath.Join(dir, name+".d"))
		if err == nil || failure.Message(err).Permanent != c.permanent {
			t.Errorf("%s: %v", name, err)
		}
	}
	archive := filepath.Join(dir, "whole")
	if err := os.WriteFile(archive, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, in := range map[string]func() (context.Context, string){
		"no directory": func() (context.Context, string) { return t.Context(), filepath.Join(dir, "whole", "x") },
		"stopped": func() (context.Context, string) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return ctx, filepath.Join(dir, "y")
		},
	} {
		ctx, to := in()
		if err := unpack(ctx, archive, to); err == nil || failure.Message(err).Permanent {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnpack(t *testing.T) {
	members := []entry{{name: "./bin/"}, {name: "bin/run", content: "run"}, {name: "a/b/c", content: "deep"}}
	for name, b := range map[string][]byte{
		"a.tgz": tarball(t, append(members, entry{name: "link", target: "bin/run"})...),
		"a.zip": zipped(t, members[1:]...),
	} {
		dir := t.TempDir()
		archive, to := filepath.Join(dir, name), filepath.Join(dir, "out")
		if err := os.WriteFile(archive, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := unpack(context.Background(), archive, to); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"bin/run": "run", "a/b/c": "deep"}
		if name == "a.tgz" {
			want["link"] = "run"
		}
		for file, content := range want {
			if got, err := os.ReadFile(filepath.Join(to, file)); err != nil || string(got) != content {
				t.Errorf("%s: %s: %q, %v", name, file, got, err)
			}
		}
	}
}

func TestUnpackStaysInside(t *testing.T) {
	for name, b := range map[string][]byte{
		"parent":       tarball(t, entry{name: "../evil", content: "x"}),
		"absolute":     tarball(t, entry{name: "/evil", content: "x"}),
		"through link": tarball(t, entry{name: "l", target: ".."}, entry{name: "l/evil", content: "x"}),
		"zip":          zipped(t, entry{name: "../evil", content: "x"}),
		"torn":         tarball(t, entry{name: "x", content: strings.Repeat("x", 10000)})[:40],
	} {
		dir := t.TempDir()
		archive, to := filepath.Join(dir, "archive"), filepath.Join(dir, "out")
		if err := os.WriteFile(archive, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := unpack(context.Background(), archive, to); err == nil || !strings.Contains(err.Error(), archive) {
			t.Errorf("%s: %v", name, err)
		}
		left, err := os.ReadDir(dir)
		if err != nil || len(left) != 1 {
			t.Errorf("%s: left: %v, %v", name, left, err)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(tarball(f, entry{name: "l", target: ".."}, entry{name: "l/evil", content: "x"}))
	f.Add(zipped(f, entry{name: "a/b", content: "x"}))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := t.TempDir()
		archive := filepath.Join(dir, "archive")
		if err := os.WriteFile(archive, b, 0o600); err != nil {
			t.Fatal(err)
		}
		end := bound.Memory(t, len(b), 5000)
		err := unpack(context.Background(), archive, filepath.Join(dir, "out"))
		end()
		left, e := os.ReadDir(dir)
		if e != nil || err != nil && len(left) != 1 || err == nil && len(left) != 2 {
			t.Fatalf("%v; left: %v, %v", err, left, e)
		}
	})
}
