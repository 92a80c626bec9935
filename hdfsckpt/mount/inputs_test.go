package mount_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/hdfsckpt/store"
)

// mountWithInputs mounts a store that has some files, with inputs in front of it.
func mountWithInputs(t *testing.T, inputs, stored map[string]string) (m *mounted, given, dir string) {
	t.Helper()
	given, dir = t.TempDir(), t.TempDir()
	for in, files := range map[string]map[string]string{given: inputs, dir: stored} {
		for name, content := range files {
			at := filepath.Join(in, name)
			if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
				t.Fatal(err)
			}
			var err error
			if to, ok := strings.CutPrefix(content, "-> "); ok {
				err = os.Symlink(to, at)
			} else {
				err = os.WriteFile(at, []byte(content), 0o755)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return mountInputs(t, localStore(t, dir), t.TempDir(), given), given, dir
}

// sh runs a shell in the mount and returns what it printed.
func (m *mounted) sh(script string) string {
	m.t.Helper()
	c := exec.CommandContext(m.t.Context(), "sh", "-c", `cd "$0" && exec 2>&1 && `+script, m.dir)
	out, err := c.CombinedOutput()
	if err != nil {
		m.t.Errorf("%s: %v\n%s", script, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// below returns what lies below a directory, sorted, without the store's own.
func below(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		if e.Name() == store.OwnDir {
			return fs.SkipDir
		}
		name, err := filepath.Rel(dir, p)
		names = append(names, name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestInputsAreInFrontOfTheStore: files that are given to the task are read in the mount, by
// links too, and the store's under other names; a name of both is the input's.
func TestInputsAreInFrontOfTheStore(t *testing.T) {
	m, _, dir := mountWithInputs(t,
		map[string]string{"train.sh": "#!/bin/sh\necho trained", "lib/a": "given a", "lib/deep/b": "given b", "venv": "-> /usr/lib", "cfg": "given"},
		map[string]string{"cfg": "stored", "model.pt": "stored", "lib/c": "stored c", "venv": "stored"})
	for script, want := range map[string]string{
		"ls -A":                            "cfg\nlib\nmodel.pt\ntrain.sh\nvenv",
		"ls -A lib":                        "a\nc\ndeep",
		"ls -A lib/deep":                   "b",
		"cat cfg model.pt lib/a lib/c":     "givenstoredgiven astored c",
		"cat lib/deep/b; cat ./lib/../cfg": "given bgiven",
		"./train.sh":                       "trained",
		"readlink venv; cd -P venv; pwd":   "/usr/lib\n/usr/lib",
		"test -L venv && test -f cfg && test -d lib/deep && stat -c %s cfg": "5",
		"find . -type f | sort | tr '\\n' ' '":                              "./cfg ./lib/a ./lib/c ./lib/deep/b ./model.pt ./train.sh ",
	} {
		if got := m.sh(script); got != want {
			t.Errorf("%s prints %q instead of %q", script, got, want)
		}
	}
	if got, want := below(t, dir), []string{"cfg", "lib", "lib/c", "model.pt", "venv"}; !slices.Equal(got, want) {
		t.Errorf("the store has %q instead of %q", got, want)
	}
}

// TestInputsAreNotChanged: every change of an input, or of what would take its place, is
// refused, and both the input and the store's file of its name stay what they are.
func TestInputsAreNotChanged(t *testing.T) {
	inputs := map[string]string{"cfg": "given", "lib/a": "given a", "venv": "-> /usr/lib"}
	stored := map[string]string{"cfg": "stored", "model.pt": "stored"}
	m, given, dir := mountWithInputs(t, inputs, stored)
	for script, errno := range map[string]string{
		"echo x >cfg":                        "Read-only file system",
		"echo x >>lib/a":                     "Read-only file system",
		"rm cfg":                             "Read-only file system",
		"rm -r lib":                          "Read-only file system",
		"mv cfg other":                       "Read-only file system",
		"mv lib lib2":                        "Read-only file system",
		"mv model.pt cfg":                    "Read-only file system",
		"mv model.pt lib/a":                  "Read-only file system",
		"rm venv":                            "Read-only file system",
		"chmod 600 cfg":                      "Read-only file system",
		"chmod 700 lib":                      "Read-only file system",
		"touch -d 2001-01-01 cfg":            "Read-only file system",
		"truncate -s 0 cfg":                  "Read-only file system",
		"mkdir cfg":                          "File exists",
		"mkdir lib":                          "File exists",
		"ln -s x cfg":                        "File exists",
		"rmdir cfg":                          "Not a directory",
		"python3 -c 'open(\"cfg\", \"r+\")'": "Read-only file system",
		"python3 -c 'open(\"cfg\", \"x\")'":  "File exists",
	} {
		if got := m.sh("{ " + script + "; } || true"); !strings.Contains(got, errno) {
			t.Errorf("%s says %q, and not %q", script, got, errno)
		}
	}
	if got := m.sh("python3 -c 'import os; print(os.access(\"cfg\", os.W_OK), os.access(\"cfg\", os.R_OK), os.access(\"lib\", os.W_OK))'"); got != "False True True" {
		t.Errorf("access says %s", got)
	}
	for in, files := range map[string]map[string]string{given: inputs, dir: stored} {
		for name, content := range files {
			if strings.HasPrefix(content, "-> ") {
				continue
			}
			if b, err := os.ReadFile(filepath.Join(in, name)); err != nil || string(b) != content {
				t.Errorf("%s is now %q, %v", name, b, err)
			}
		}
	}
	if got, want := below(t, dir), []string{"cfg", "model.pt"}; !slices.Equal(got, want) {
		t.Errorf("the store has %q instead of %q", got, want)
	}
	if !strings.Contains(m.logged(), "cfg") || !strings.Contains(m.logged(), "files given to the task") {
		t.Errorf("why is not logged: %s", m.logged())
	}
}

// TestWritingBesideInputs: what is written in a directory that has inputs goes to the store,
// which gets that directory then, and no input.
func TestWritingBesideInputs(t *testing.T) {
	for way, script := range map[string]string{
		"create": "echo x >lib/deep/out",
		"mkdir":  "mkdir lib/deep/out",
		"rename": "echo x >tmp && mv tmp lib/deep/out",
		"mknod":  "mknod lib/deep/out p || python3 -c 'import os, stat; os.mknod(\"lib/deep/out\", 0o600 | stat.S_IFREG)'",
		"python": "python3 -c 'open(\"lib/deep/out.tmp\", \"w\").write(\"x\"); import os; os.replace(\"lib/deep/out.tmp\", \"lib/deep/out\")'",
		"chdir":  "cd lib && cd deep && python3 -c 'import os; open(os.getcwd() + \"/out\", \"w\").write(\"x\")'",
	} {
		t.Run(way, func(t *testing.T) {
			m, given, dir := mountWithInputs(t, map[string]string{"lib/deep/b": "given b", "train.py": ""}, nil)
			m.sh(script)
			if got, want := below(t, dir), []string{"lib", "lib/deep", "lib/deep/out"}; !slices.Equal(got, want) {
				t.Errorf("the store has %q instead of %q", got, want)
			}
			if got := m.sh("ls lib/deep"); got != "b\nout" {
				t.Errorf("lib/deep has %q", got)
			}
			if got, want := below(t, given), []string{"lib", "lib/deep", "lib/deep/b", "train.py"}; !slices.Equal(got, want) {
				t.Errorf("the inputs are %q instead of %q", got, want)
			}
			m.sh("rm -r lib/deep/out")
			if got := m.sh("ls lib/deep"); got != "b" {
				t.Errorf("lib/deep has %q", got)
			}
		})
	}
}

// TestInputsInTheWayOfTheStore: a directory of inputs hides a file of the store, and a file a
// directory.
func TestInputsInTheWayOfTheStore(t *testing.T) {
	m, _, dir := mountWithInputs(t,
		map[string]string{"a/x": "given x", "b": "given b"},
		map[string]string{"a": "stored a", "b/y": "stored y"})
	if got := m.sh("ls a; cat a/x b; ls | tr '\\n' ' '; cat b/y || true"); got != "x\ngiven xgiven ba b cat: b/y: Not a directory" {
		t.Errorf("it prints %q", got)
	}
	if got := m.sh("touch a/z || true"); !strings.Contains(got, "Not a directory") {
		t.Errorf("writing in a directory that a file of the store is in the way of says %q", got)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(b) != "stored a" {
		t.Errorf("the store's a is %q, %v", b, err)
	}
}

// TestModulesAmongInputs: Python imports what lies beside the script, and what the program
// writes there, and its compiled files stay where a link among the inputs leads.
func TestModulesAmongInputs(t *testing.T) {
	cache := t.TempDir()
	m, _, dir := mountWithInputs(t, map[string]string{
		"train.py":    "import helper, os, sys\nhelper.save()\nimport made\nassert sys.path[0] == os.getcwd() == os.path.dirname(os.path.abspath(helper.__file__)), sys.path\nprint(made.x)",
		"helper.py":   "import os\ndef save():\n    open('made.py', 'w').write('x = 1')\n    open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'out'), 'w').write('y')",
		"__pycache__": "-> " + cache,
	}, nil)
	if got := m.sh("PYTHONDONTWRITEBYTECODE= python3 train.py"); got != "1" {
		t.Errorf("it prints %q", got)
	}
	if got, want := below(t, dir), []string{"made.py", "out"}; !slices.Equal(got, want) {
		t.Errorf("the store has %q instead of %q", got, want)
	}
	if got := below(t, cache); len(got) != 2 {
		t.Errorf("compiled were %q", got)
	}
}
