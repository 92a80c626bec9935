package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/client"
)

// TestDirectoriesOfAJobChangeTogether: where one of the directories of a job cannot be rolled
// back or pruned as was asked for, none is changed; and where all can, all are.
func TestDirectoriesOfAJobChangeTogether(t *testing.T) {
	p := newPlace(t)
	if out, errs, code := p.call("run", "--local", "--name", "pair", "--worker", "1", "--framework", "none", "--checkpoint", "./a=a", "--checkpoint", "./b=b", "--", "true"); code != 0 {
		t.Fatalf("run ended with %d: %s%s", code, out, errs)
	}
	put := func(dir string, names ...string) {
		t.Helper()
		for _, name := range names {
			copyFixtures(t, filepath.Join(p.dir, dir), map[string]string{"torchfile/testdata/alone.pt": name})
		}
	}
	names := func(dir string) string {
		t.Helper()
		var all []string
		for _, c := range listJSON(t, p, dir) {
			all = append(all, c.Name)
		}
		return strings.Join(all, " ")
	}
	put("a", "step-10.ckpt", "step-20.ckpt")
	put("b", "step-20.ckpt")
	_, errs, code := p.call("ckpt", "rollback", "pair", "10", "--yes")
	if code != client.ExitUsage || !strings.Contains(errs, filepath.Join(p.dir, "b")) {
		t.Errorf("rollback to a step that one directory lacks ended with %d: %s", code, errs)
	}
	if got := names("./a"); got != "step-10.ckpt step-20.ckpt" {
		t.Errorf("after that there are %s", got)
	}
	// What is in the way of a pointer is found before anything is moved, too.
	if err := os.RemoveAll(filepath.Join(p.dir, "b/step-20.ckpt")); err != nil {
		t.Fatal(err)
	}
	copyFixtures(t, filepath.Join(p.dir, "b"), map[string]string{
		"tfbundle/testdata/dtypes.ckpt-7.index": "model.ckpt-10.index", "tfbundle/testdata/dtypes.ckpt-7.data-00000-of-00001": "model.ckpt-10.data-00000-of-00001",
	})
	if err := os.Mkdir(filepath.Join(p.dir, "b/checkpoint"), 0o755); err != nil {
		t.Fatal(err)
	}
	out, errs, code := p.call("ckpt", "rollback", "pair", "10", "--yes")
	if code != client.ExitFailed {
		t.Errorf("rollback with a directory for a pointer ended with %d: %s%s", code, out, errs)
	}
	contains(t, errs, "checkpoint", "move it away", "nothing was changed")
	if got := names("./a"); got != "step-10.ckpt step-20.ckpt" {
		t.Errorf("after that there are %s", got)
	}
	if err := os.Remove(filepath.Join(p.dir, "b/checkpoint")); err != nil {
		t.Fatal(err)
	}
	put("b", "step-10.ckpt", "step-20.ckpt")
	for _, name := range []string{"b/model.ckpt-10.index", "b/model.ckpt-10.data-00000-of-00001"} {
		if err := os.Remove(filepath.Join(p.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if out, errs, code := p.call("ckpt", "rollback", "pair", "10", "--yes"); code != 0 {
		t.Errorf("rollback ended with %d: %s%s", code, out, errs)
	}
	for _, dir := range []string{"./a", "./b"} {
		if got := names(dir); got != "step-10.ckpt" {
			t.Errorf("rolled back, in %s are %s", dir, got)
		}
	}
}
