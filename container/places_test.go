package container_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/container"
	"holdfast/container/proctree"
	"holdfast/hdfsckpt/writers"
	"holdfast/proto"
)

func TestWhereFuseIsNotAllowed(t *testing.T) {
	for uri, says := range map[string]string{"hdfs://nn/x": "FUSE", "": ""} {
		m := newMaster(t)
		m.startAgent("c1", func(c *container.Config) { c.NoNamespace = true })
		c := m.agent()
		dir := filepath.Join(t.TempDir(), "store")
		absolute := filepath.Join(t.TempDir(), "logs")
		a := assignment(func(a *proto.Assign) {
			a.Checkpoints = []*proto.CheckpointSpec{{Path: "./train_logs", Uri: dir}, {Path: absolute, Uri: dir + "2"}}
			if uri != "" {
				a.Checkpoints[0].Uri = uri
			}
		})
		c.send(a)
		if says != "" {
			host, _ := os.Hostname()
			if tr := c.trouble(); !tr.NodeSpecific || tr.Permanent || !strings.Contains(tr.Detail, says) || !strings.Contains(tr.Detail, host) || !strings.Contains(tr.Detail, "sysctl") {
				t.Fatalf("trouble: %v", tr)
			}
			continue
		}
		p := c.prepared()
		if p.Mounting != "symlink" || !strings.Contains(strings.Join(p.Notes, "\n"), "links") {
			t.Fatalf("prepared: %v", p)
		}
		c.send(&proto.Start{Command: shell("echo 1 >train_logs/a && echo 2 >" + absolute + "/b")})
		if e := c.exited(); e.Code != 0 {
			t.Fatalf("exited: %v", e)
		}
		for file, want := range map[string]string{dir + "/a": "1\n", dir + "2/b": "2\n"} {
			if b, err := os.ReadFile(file); err != nil || string(b) != want {
				t.Errorf("%s: %q, %v", file, b, err)
			}
		}
		c.send(&proto.Release{})
		if err := m.last.end(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(absolute); err == nil {
			t.Errorf("%s was left behind", absolute)
		}
	}
}

func TestCheckpointsAreMounted(t *testing.T) {
	needRoot(t)
	for _, name := range []string{"root", "root, user namespace", "a user"} {
		t.Run(name, func(t *testing.T) {
			m := newMaster(t)
			uid := ways[name].uid
			dir := sharedDir(t, uid)
			store, absolute := filepath.Join(dir, "store"), filepath.Join(dir, "made", "logs")
			begin := func(container string) *connected {
				m.startAgentProcess(container, uid, ways[name].change)
				c := m.agent()
				c.send(assignment(func(a *proto.Assign) {
					a.Checkpoints = []*proto.CheckpointSpec{{Path: "./train_logs", Uri: store}, {Path: absolute, Uri: store}}
				}))
				if p := c.prepared(); p.Mounting != "fuse" {
					t.Fatalf("not mounted: %v (/dev/fuse and mount namespaces are needed)", p)
				}
				return c
			}
			run := func(c *connected, attempt int32, script string, want ...string) {
				t.Helper()
				c.send(&proto.Start{Attempt: attempt, Command: shell(script)})
				if e := c.exited(); e.Code != 0 || !slices.Equal(e.Tail, want) {
					t.Fatalf("%s: %v, want %q", script, e, want)
				}
			}
			a, b := begin("c1"), begin("c2")
			run(a, 0, `mkdir train_logs/sub && echo one >train_logs/sub/x && mv train_logs/sub/x train_logs/y && cat `+absolute+`/y`, "one")
			for named := []string{}; !slices.Contains(named, "y"); {
				select {
				case m := <-a.commits:
					if m.Path != "./train_logs" {
						t.Errorf("committed: %v", m)
					}
					for _, f := range m.Files {
						named = append(named, string(f.Name))
						if len(f.From) == 0 && (!f.HasCrc32C || f.Size != 4) {
							t.Errorf("%s was committed with %d bytes, summed: %v", f.Name, f.Size, f.HasCrc32C)
						}
						// Its checksum is known by that, whatever its name is by then.
						var stat unix.Stat_t
						if err := unix.Stat(filepath.Join(store, "y"), &stat); len(f.From) == 0 && (err != nil || f.Inode != stat.Ino) {
							t.Errorf("%s was committed as the file %d, and is %d (%v)", f.Name, f.Inode, stat.Ino, err)
						}
					}
				case <-time.After(patience):
					t.Fatalf("only %q were said to be committed", named)
				}
			}
			if got, err := os.ReadFile(filepath.Join(store, "y")); err != nil || string(got) != "one\n" {
				t.Fatalf("in the store: %q, %v", got, err)
			}
			run(b, 0, `cat train_logs/y; echo two >>train_logs/y`, "one")
			// The same mount serves the next attempt.
			run(a, 1, `cat train_logs/y; stat -f -c %T train_logs`, "one", "two", "fuseblk")
			if b, _ := os.ReadFile("/proc/self/mountinfo"); strings.Contains(string(b), absolute) {
				t.Fatal("the mount is seen outside of the task")
			}
			// A killed writer publishes nothing.
			ready := filepath.Join(dir, "ready")
			a.send(&proto.Start{Attempt: 2, Command: []string{"python3", "-c", `
import sys, time
f = open("train_logs/half", "w")
f.write("half")
f.flush()
open(sys.argv[1], "w").close()
time.sleep(1000)`, ready}})
			a.started()
			eventually(t, ready, func() bool {
				_, err := os.Stat(ready)
				return err == nil
			})
			a.send(&proto.Stop{GraceMs: 0})
			if e := a.exited(); e.Signal != 9 {
				t.Fatalf("exited: %v", e)
			}
			run(b, 1, `ls -A train_logs`, "sub", "y")
			for _, c := range []*connected{a, b} {
				c.send(&proto.Release{})
			}
			eventually(t, "the end of "+absolute, func() bool {
				_, err := os.Lstat(absolute)
				return err != nil
			})
			left, err := os.ReadDir(store)
			if err != nil || len(left) != 3 { // and the store's own directory
				t.Errorf("in the store at the end: %v, %v", left, err)
			}
			if left, err := os.ReadDir(filepath.Join(store, writers.Dir(""))); err != nil || len(left) > 0 {
				t.Errorf("what the mounts had not completed: %v, %v", left, err)
			}
			for beats := a.beats; len(beats) > 0; {
				t.Logf("memory: %v", <-beats)
			}
		})
	}
}

func TestAUserWithoutFuse(t *testing.T) {
	needRoot(t)
	if st, err := os.Stat("/dev/fuse"); err != nil || st.Mode().Perm()&0o006 != 0 {
		t.Fatalf("this test wants a /dev/fuse that is root's alone (chmod 0600 /dev/fuse): %v, %v", st, err)
	}
	m := newMaster(t)
	m.startAgentProcess("c1", stranger, nil)
	c := m.agent()
	dir := sharedDir(t, stranger)
	c.send(assignment(func(a *proto.Assign) {
		a.Checkpoints = []*proto.CheckpointSpec{{Path: "train_logs", Uri: dir + "/store"}}
	}))
	p := c.prepared()
	if p.Mounting != "symlink" || p.Steering != "seccomp" || !strings.Contains(strings.Join(p.Notes, "\n"), "chmod 0666 /dev/fuse") {
		t.Fatalf("prepared: %v", p)
	}
	c.send(&proto.Start{Command: shell("getent hosts ps-0; echo 1 >train_logs/x; cat " + dir + "/store/x")})
	if e := c.exited(); e.Code != 0 || len(e.Tail) != 2 || e.Tail[1] != "1" || !strings.HasPrefix(e.Tail[0], "127.77.0.1") {
		t.Fatalf("exited: %v", e)
	}
}

func TestACheckpointPathThatCannotBeMade(t *testing.T) {
	needRoot(t)
	m := newMaster(t)
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m.startAgentProcess("c1", 0, nil)
	c := m.agent()
	c.send(assignment(func(a *proto.Assign) {
		a.Checkpoints = []*proto.CheckpointSpec{{Path: filepath.Join(file, "logs"), Uri: filepath.Join(t.TempDir(), "store")}}
	}))
	if tr := c.trouble(); !strings.Contains(tr.Detail, file) {
		t.Fatalf("trouble: %v", tr)
	}
}

func TestAKilledAgentTakesItsMountsAlong(t *testing.T) {
	needRoot(t)
	m := newMaster(t)
	agent := m.startAgentProcess("c1", 0, nil)
	c := m.agent()
	store := filepath.Join(t.TempDir(), "store")
	c.send(assignment(func(a *proto.Assign) {
		a.Checkpoints = []*proto.CheckpointSpec{{Path: "./train_logs", Uri: store}}
	}))
	c.prepared()
	// Processes in the middle of reads and writes, over and over.
	c.send(&proto.Start{Command: shell(`for i in 1 2 3 4; do
		while :; do dd if=/dev/zero of=train_logs/x$i bs=100k count=20; cat train_logs/x$i; done >/dev/null 2>&1 &
	done; wait`)})
	c.started()
	for i := range 4 {
		eventually(t, "a file in the store", func() bool {
			_, err := os.Stat(filepath.Join(store, fmt.Sprintf("x%d", i+1)))
			return err == nil
		})
	}
	below := proctree.Descendants(agent.Process.Pid)
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = agent.Wait()
	for _, p := range below {
		eventually(t, "the end of process "+strconv.Itoa(p), func() bool { return !alive(p) })
	}
}

// TestTheUsersLinkStays: a symbolic link of the user's at a checkpoint path is
// still there when the task has gone, whether the store is mounted over what it
// leads to or is that very directory; and one that leads elsewhere is not replaced.
func TestTheUsersLinkStays(t *testing.T) {
	needRoot(t)
	for _, way := range []string{"mounted", "linked", "linked, elsewhere", "linked, a file"} {
		t.Run(way, func(t *testing.T) {
			m := newMaster(t)
			dir := t.TempDir()
			store, target, at := filepath.Join(dir, "store"), filepath.Join(dir, "target"), filepath.Join(dir, "logs")
			if way == "linked" {
				target = store
			}
			if err := os.MkdirAll(target, 0o755); err != nil {
				t.Fatal(err)
			}
			if way == "linked, a file" {
				target = ""
				if err := os.WriteFile(at, []byte("mine"), 0o600); err != nil {
					t.Fatal(err)
				}
			} else if err := os.Symlink(target, at); err != nil {
				t.Fatal(err)
			}
			var ended func()
			if way == "mounted" {
				agent := m.startAgentProcess("c1", 0, nil)
				ended = func() { _ = agent.Wait() }
			} else {
				m.startAgent("c1", func(c *container.Config) { c.NoNamespace = true })
				ended = func() { _ = m.last.end() }
			}
			c := m.agent()
			c.send(assignment(func(a *proto.Assign) {
				a.Checkpoints = []*proto.CheckpointSpec{{Path: at, Uri: store}}
			}))
			if target != store && way != "mounted" {
				if tr := c.trouble(); !strings.Contains(tr.Detail, "Move it away") {
					t.Errorf("trouble: %v", tr)
				}
			} else {
				c.prepared()
				c.send(&proto.Start{Command: shell("echo 1 >" + at + "/a")})
				if e := c.exited(); e.Code != 0 {
					t.Fatalf("exited: %v", e)
				}
				if b, err := os.ReadFile(store + "/a"); err != nil || string(b) != "1\n" {
					t.Errorf("in the store: %q, %v", b, err)
				}
				c.send(&proto.Release{})
				ended()
			}
			if got, err := os.Readlink(at); target != "" && (err != nil || got != target) {
				t.Errorf("the link is %q, %v", got, err)
			}
			if b, err := os.ReadFile(at); target == "" && (err != nil || string(b) != "mine") {
				t.Errorf("the file is %q, %v", b, err)
			}
		})
	}
}

// TestHeartbeatsInStoresWithoutAMaster: while no master answers, a task's agent gives its
// job's heartbeat where the task writes, so that no other job takes it for lost.
func TestHeartbeatsInStoresWithoutAMaster(t *testing.T) {
	needRoot(t)
	m := newMaster(t)
	m.startAgentProcess("c1", 0, nil)
	c := m.agent()
	store := filepath.Join(t.TempDir(), "store")
	c.send(assignment(func(a *proto.Assign) {
		a.Checkpoints = []*proto.CheckpointSpec{{Path: "./train_logs", Uri: store}}
		a.LeaseMs = 20_000 // the agent begins to look for another master after 6 s
	}))
	c.prepared()
	ready := filepath.Join(t.TempDir(), "ready")
	c.send(&proto.Start{Command: shell("echo 1 >train_logs/a; echo >" + ready + "; sleep 1000")})
	c.started()
	eventually(t, ready, func() bool {
		_, err := os.Stat(ready)
		return err == nil
	})
	dirs, err := filepath.Glob(filepath.Join(store, writers.Dir(""), "*"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("writers are %v, %v", dirs, err)
	}
	before, err := os.Stat(dirs[0])
	if err != nil {
		t.Fatal(err)
	}
	m.deaf.Store(true)
	c.deaf.Store(true)
	eventually(t, "a heartbeat", func() bool {
		now, err := os.Stat(dirs[0])
		return err == nil && now.ModTime().After(before.ModTime())
	})
}

// TestADirectoryThatAnotherProgramHasLocked: an agent does not wait forever for the lock of a
// checkpoint directory, and says who may have it.
func TestADirectoryThatAnotherProgramHasLocked(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	d, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := unix.Flock(int(d.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	for way, spec := range map[string]*proto.CheckpointSpec{
		"mounted": {Path: dir, Uri: filepath.Join(t.TempDir(), "store")},
		"linked":  {Path: "./train_logs", Uri: dir},
	} {
		m := newMaster(t)
		if way == "mounted" {
			m.startAgentProcess("c1", 0, nil)
		} else {
			m.startAgent("c1", func(c *container.Config) { c.NoNamespace = true })
		}
		c := m.agent()
		c.send(assignment(func(a *proto.Assign) { a.Checkpoints = []*proto.CheckpointSpec{spec} }))
		if tr := c.trouble(); !tr.NodeSpecific || !strings.Contains(tr.Detail, dir) || !strings.Contains(tr.Detail, "flock") {
			t.Errorf("%s: trouble: %v", way, tr)
		}
	}
}

// TestAPathMeansTheSameInEveryContainer: programs save absolute paths in checkpoints, and send
// them to their peers.
func TestAPathMeansTheSameInEveryContainer(t *testing.T) {
	needRoot(t)
	for _, name := range []string{"root", "root, user namespace", "a user"} {
		t.Run(name, func(t *testing.T) {
			m := newMaster(t)
			uid := ways[name].uid
			store := filepath.Join(sharedDir(t, uid), "store")
			run := func(container, script string) string {
				m.startAgentProcess(container, uid, ways[name].change)
				c := m.agent()
				c.send(assignment(func(a *proto.Assign) {
					a.Checkpoints = []*proto.CheckpointSpec{{Path: "./train_logs", Uri: store}}
				}))
				c.prepared()
				c.send(&proto.Start{Command: shell(script)})
				e := c.exited()
				if e.Code != 0 || len(e.Tail) != 1 {
					t.Fatalf("exited: %v", e)
				}
				t.Cleanup(func() { c.send(&proto.Release{}) })
				return e.Tail[0]
			}
			path := run("c1", `mkdir train_logs/step_10 && cd train_logs/step_10 && echo 0 >shard-0 && pwd -P`)
			if shards := run("c2", `mkdir -p `+path+` && echo 1 >`+path+`/shard-1 && echo $(ls train_logs/step_10)`); shards != "shard-0 shard-1" {
				t.Errorf("at %s of another container is %q", path, shards)
			}
		})
	}
}

// workPathOf gives an agent a user of its own, by whose name its task sees the working directory.
func workPathOf(t *testing.T) (path string, change func(*container.Config)) {
	t.Helper()
	user := "of-test-" + strconv.Itoa(os.Getpid()) + "-" + strconv.Itoa(int(time.Now().UnixNano()))
	path = "/tmp/holdfast-" + user
	t.Cleanup(func() { os.RemoveAll(path) })
	return path, func(c *container.Config) { c.Env = append(os.Environ(), "USER="+user) }
}

// TestTheWorkPathIsLeftAsItWas: an agent takes no directory of another user's, nor what a link of
// theirs leads to, and leaves none behind.
func TestTheWorkPathIsLeftAsItWas(t *testing.T) {
	needRoot(t)
	for name, prepare := range map[string]func(path string) error{
		"nobody's": func(string) error { return nil },
		"another's": func(path string) error {
			if err := os.Mkdir(path, 0o755); err != nil {
				return err
			}
			return os.Chown(path, 12345, 12345)
		},
		"a link": func(path string) error { return os.Symlink(t.TempDir(), path) },
	} {
		t.Run(name, func(t *testing.T) {
			path, change := workPathOf(t)
			if err := prepare(path); err != nil {
				t.Fatal(err)
			}
			before, was := os.Lstat(path)
			m := newMaster(t)
			m.startAgent("c1", change)
			c := m.agent()
			store := filepath.Join(t.TempDir(), "store")
			c.send(assignment(func(a *proto.Assign) {
				a.Checkpoints = []*proto.CheckpointSpec{{Path: "./train_logs", Uri: store}}
			}))
			p := c.prepared()
			c.send(&proto.Start{Command: shell(`cd train_logs && echo saved >file && pwd -P`)})
			want := path
			if was == nil {
				want = lastWorkDir(m)
			}
			if told := strings.Contains(strings.Join(p.Notes, "\n"), path); told != (was == nil) {
				t.Errorf("the master is told %q", p.Notes)
			}
			if e := c.exited(); e.Code != 0 || !slices.Equal(e.Tail, []string{want + "/train_logs"}) {
				t.Errorf("it saves in %v, want %s", e, want)
			}
			if b, err := os.ReadFile(filepath.Join(store, "file")); string(b) != "saved\n" {
				t.Errorf("saved is %q, %v", b, err)
			}
			c.send(&proto.Release{})
			if err := m.last.end(); err != nil {
				t.Fatal(err)
			}
			after, is := os.Lstat(path)
			if (was == nil) != (is == nil) || is == nil && !os.SameFile(before, after) {
				t.Errorf("%s was %v and is %v", path, was, is)
			}
		})
	}
}
