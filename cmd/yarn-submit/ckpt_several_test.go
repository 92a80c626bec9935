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

// TestAStepThatMeansSeveral: no command takes one of several checkpoints of a step by itself. It
// names them, and takes each by its name.
func TestAStepThatMeansSeveral(t *testing.T) {
	p := newPlace(t)
	dir := filepath.Join(p.dir, "ck")
	for from, name := range map[string]string{"train-40.pt": "gan/G-40.pt", "alone.pt": "gan/D-40.pt", "kinds.pth": "gan/D-50.pt"} {
		copyFixtures(t, dir, map[string]string{"torchfile/testdata/" + from: name})
	}
	copyFixtures(t, dir, map[string]string{"torchfile/testdata/train-40.pt": "eval/D-50.pt"})
	refused := func(which string, among []string, args ...string) {
		t.Helper()
		out, errs, code := p.call(args...)
		if code != client.ExitUsage || out != "" {
			t.Errorf("%v ended with %d: %s", args, code, out)
		}
		contains(t, errs, append(among, which+" means several checkpoints")...)
	}
	both := []string{"gan/D-40.pt", "gan/G-40.pt"}
	refused("40", both, "ckpt", "show", "./ck", "40")
	refused("40", both, "ckpt", "verify", "./ck", "40")
	refused("40", both, "ckpt", "get", "./ck", "40", "to")
	refused("40", both, "ckpt", "cat", "./ck", "40", "x")
	refused("40", both, "ckpt", "diff", "./ck", "gan/D-40.pt", "40")
	refused("D-50.pt", []string{"eval/D-50.pt", "gan/D-50.pt"}, "ckpt", "show", "./ck", "D-50.pt")
	if _, err := os.Stat(filepath.Join(p.dir, "to")); err == nil {
		t.Error("the refused get has made its directory")
	}
	for _, which := range []string{"gan/D-40.pt", "G-40.pt", "eval/D-50.pt"} {
		if out, errs, code := p.call("ckpt", "verify", "./ck", which); code != 0 || !strings.Contains(out, which) {
			t.Errorf("verify of %s ended with %d: %s%s", which, code, out, errs)
		}
	}
	// A torn one beside a whole one of its step is not meant.
	torn, err := os.ReadFile(filepath.Join(dir, "gan/G-40.pt"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "gan/G-40.pt"), torn[:len(torn)/2], 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if out, errs, code := p.call("ckpt", "verify", "./ck", "40"); code != 0 || !strings.Contains(out, "gan/D-40.pt") {
		t.Errorf("verify of the whole one ended with %d: %s%s", code, out, errs)
	}
}

// TestGetLeavesTheProgramsDirectory: a copy into the directory that it is taken from is refused,
// by whatever path that is named, and changes nothing there.
func TestGetLeavesTheProgramsDirectory(t *testing.T) {
	p := newPlace(t)
	dir := filepath.Join(p.dir, "ck")
	for _, step := range []string{"7", "24"} {
		copyFixtures(t, dir, map[string]string{
			"tfbundle/testdata/dtypes.ckpt-7.index": "run/model.ckpt-" + step + ".index", "tfbundle/testdata/dtypes.ckpt-7.data-00000-of-00001": "run/model.ckpt-" + step + ".data-00000-of-00001",
		})
	}
	write(t, filepath.Join(dir, "run/checkpoint"), "model_checkpoint_path: \"model.ckpt-24\"\nall_model_checkpoint_paths: \"model.ckpt-7\"\nall_model_checkpoint_paths: \"model.ckpt-24\"\n")
	for link, to := range map[string]string{"link": "ck", "deep": "ck/run", "up": "."} {
		if err := os.Symlink(to, filepath.Join(p.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	before := everythingIn(t, dir)
	for _, x := range [][2]string{
		{"./ck", "ck/run"}, {"./ck", "ck"}, {"./ck", "ck/new/one"}, {"./ck/run", "ck/run"}, {"./ck/run", dir + "/run/../run"},
		{"./ck", "link"}, {"./ck", "deep"}, {"./ck", "link/new"}, {"./ck", "up/ck/run"}, {"./link", "ck/run"}, {"./deep", "ck/run"}, {"file://" + dir, "ck/run"},
	} {
		_, errs, code := p.call("ckpt", "get", x[0], "7", x[1])
		if code != client.ExitUsage || !strings.Contains(errs, "name a directory outside of it") {
			t.Errorf("get from %s to %s ended with %d: %s", x[0], x[1], code, errs)
		}
	}
	after := everythingIn(t, dir)
	for name, is := range after {
		if before[name] != is {
			t.Errorf("%s is %q, and was %q", name, is, before[name])
		}
	}
	if out, errs, code := p.call("ckpt", "get", "./ck", "7", "up/out"); code != 0 {
		t.Errorf("get to a directory beside it ended with %d: %s%s", code, out, errs)
	}
}
