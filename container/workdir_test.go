package container_test

import (
	"archive/zip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/container"
	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// jobFiles writes files and returns them as a job's.
func jobFiles(t *testing.T, dir string, files map[string]string) (list []*proto.FileSpec) {
	t.Helper()
	for name, content := range files {
		at := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(at, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
		list = append(list, &proto.FileSpec{Name: name, Uri: at, Size: int64(len(content)), Mode: 0o755})
	}
	return list
}

// jobArchive writes a zip file with one file in it.
func jobArchive(t *testing.T, dir, name, member, content string) *proto.FileSpec {
	t.Helper()
	at := filepath.Join(dir, name+".zip")
	f, err := os.Create(at)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	w, err := z.Create(member)
	if err == nil {
		_, err = w.Write([]byte(content))
	}
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return &proto.FileSpec{Name: name, Uri: at, Archive: true}
}

// TestTheWorkingDirectoryKeepsCheckpoints: with --checkpoint .=URI the task's working
// directory is the store's, and has the job's files besides, of which nothing gets into the
// store: neither they nor what Python compiles of them, nor output or core files.
func TestTheWorkingDirectoryKeepsCheckpoints(t *testing.T) {
	needRoot(t)
	for _, name := range []string{"root", "root, user namespace", "a user"} {
		t.Run(name, func(t *testing.T) {
			m := newMaster(t)
			uid := ways[name].uid
			shared := sharedDir(t, uid)
			dir := filepath.Join(shared, "store")
			files := jobFiles(t, shared, map[string]string{
				"train.py":        "import os, sys\nimport helper\nfrom lib import part\nassert sys.path[0] == os.getcwd()\nhelper.save(part.x)\nos.chdir('/')\nopen(os.path.join(sys.path[0], 'absolute'), 'w').write('1')\nprint('trained')\n",
				"helper.py":       "import os\ndef save(x):\n    with open('checkpoint.pth.tar.tmp', 'w') as f: f.write(x)\n    os.replace('checkpoint.pth.tar.tmp', 'checkpoint.pth.tar')\n    os.makedirs(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'lib', 'out'), exist_ok=True)\n    open('lib/out/best', 'w').write(x)\n",
				"lib/__init__.py": "", "lib/part.py": "x = 'state'\n",
				"run.sh": "#!/bin/sh\nexec python3 train.py\n",
			})
			files = append(files, jobArchive(t, shared, "env", "bin/hello", "hello"))
			for _, f := range files {
				if err := os.Chmod(f.Uri, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			begin := func(container string) *connected {
				m.startAgentProcess(container, uid, ways[name].change)
				c := m.agent()
				c.send(assignment(func(a *proto.Assign) {
					a.Files = files
					a.Checkpoints = []*proto.CheckpointSpec{{Path: ".", Uri: dir}}
				}))
				if p := c.prepared(); p.Mounting != "fuse" {
					t.Fatalf("not mounted: %v (/dev/fuse and mount namespaces are needed)", p)
				}
				return c
			}
			run := func(c *connected, attempt int32, script string, want ...string) {
				t.Helper()
				c.send(&proto.Start{Attempt: attempt, Command: shell("export PYTHONDONTWRITEBYTECODE=; " + script)})
				if e := c.exited(); e.Code != 0 || !slices.Equal(e.Tail, want) {
					t.Fatalf("%s: %v, want %q", script, e, want)
				}
			}
			a, b := begin("c1"), begin("c2")
			run(a, 0, "./run.sh; cat env/bin/hello; echo; ls __pycache__ lib/__pycache__ | grep -c pyc$", "trained", "hello", "3")
			run(b, 0, "cat checkpoint.pth.tar lib/out/best absolute helper.py | head -c 12; echo; ls -A", "statestate1i", "__pycache__", "absolute", "checkpoint.pth.tar", "env", "helper.py", "lib", "run.sh", "train.py")
			run(b, 1, "cd lib && pwd | grep -o /lib$ && stat -f -c %T . && ulimit -c; ls -A out", "/lib", "fuseblk", "0", "best")
			run(a, 1, "python3 train.py", "trained")
			for _, c := range []*connected{a, b} {
				c.send(&proto.Release{})
			}
			eventually(t, "the store has only what was saved", func() bool {
				var left []string
				_ = filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
					if e.Name() == store.OwnDir {
						return filepath.SkipDir
					}
					left = append(left, strings.TrimPrefix(p, dir))
					return err
				})
				return slices.Equal(left, []string{"", "/absolute", "/checkpoint.pth.tar", "/lib", "/lib/out", "/lib/out/best"})
			})
		})
	}
}

// TestTheWorkingDirectoryKeepsNoCheckpointsWithoutFuse: where the working directory cannot be
// a mount, the task is refused, and told what to do.
func TestTheWorkingDirectoryKeepsNoCheckpointsWithoutFuse(t *testing.T) {
	for _, local := range []bool{false, true} {
		m := newMaster(t)
		m.startAgent("c1", func(c *container.Config) { c.NoNamespace = true })
		c := m.agent()
		dir := filepath.Join(t.TempDir(), "store")
		c.send(assignment(func(a *proto.Assign) {
			a.Spec.Local, a.Checkpoints = local, []*proto.CheckpointSpec{{Path: "./", Uri: dir}}
		}))
		tr := c.trouble()
		if tr.Permanent != local { // another node may allow it, and this machine is the only one
			t.Errorf("trouble: %v", tr)
		}
		for _, want := range []string{"working directory", "FUSE", "sysctl", "--checkpoint ./DIRECTORY=" + dir} {
			if !strings.Contains(tr.Detail, want) {
				t.Errorf("trouble: %v, without %q", tr, want)
			}
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s was made", dir)
		}
	}
}

// TestAFileWithTheStoresOwnName: a job's file cannot take the place of the store's own.
func TestAFileWithTheStoresOwnName(t *testing.T) {
	needRoot(t)
	m := newMaster(t)
	m.startAgentProcess("c1", 0, nil)
	c := m.agent()
	dir := t.TempDir()
	c.send(assignment(func(a *proto.Assign) {
		a.Files = jobFiles(t, dir, map[string]string{store.OwnDir + "/x": ""})
		a.Checkpoints = []*proto.CheckpointSpec{{Path: ".", Uri: filepath.Join(dir, "store")}}
	}))
	if tr := c.trouble(); !strings.Contains(tr.Detail, store.OwnDir) || !strings.Contains(tr.Detail, "another") {
		t.Errorf("trouble: %v", tr)
	}
}
