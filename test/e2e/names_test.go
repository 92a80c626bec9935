package e2e

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestNamesOfInputs: files and archives reach the tasks whatever characters their names have, also
// such as mean something in a URI, in a shell and to HDFS.
func TestNamesOfInputs(t *testing.T) {
	plain.enter(t)
	w := where{hadoop(t)}
	dir := t.TempDir()
	script := "set -e\n"
	for _, name := range []string{"50%", "50%25/x", "a#b", "a?b", "10:30/log", "a$HOME b"} {
		file := filepath.Join(dir, "data", name)
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, []byte(name), 0o644))
		script += "test \"$(cat 'data/" + name + "')\" = '" + name + "'\n"
	}
	var packed bytes.Buffer
	tw := tar.NewWriter(&packed)
	must(t, tw.WriteHeader(&tar.Header{Name: "in", Mode: 0o644, Size: 2}))
	_, err := tw.Write([]byte("ok"))
	must(t, err)
	must(t, tw.Close())
	archive := filepath.Join(dir, "env%20:1?.tar")
	must(t, os.WriteFile(archive, packed.Bytes(), 0o644))
	script += "test \"$(cat 'my:env%/in')\" = ok\n"
	out, errs, code := w.call(t.Context(), dir, "run", "--logs", "--worker", "1", "--worker-memory", "256m", "--restarts", "0",
		"--files", "data", "--archives", archive+"#my:env%", "--", "sh", "-xc", script)
	if code != 0 {
		t.Errorf("run ended with %d:\n%s%s", code, out, errs)
	}
}
