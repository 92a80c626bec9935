package check

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/container/gpu"
	"holdfast/internal/proc"
)

// envProcess has the test binary print the findings about its process.
const envProcess = "CHECK_TEST_PROCESS"

func TestMain(m *testing.M) {
	if os.Getenv(envProcess) != "" {
		_ = json.NewEncoder(os.Stdout).Encode([]Finding{Rlimits(), User("alice", false), User("alice", true)})
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// process returns the findings about a process: its limits, and whose containers are like it, for
// alice, without security and with it.
func process(t *testing.T, cmd *exec.Cmd) []Finding {
	t.Helper()
	cmd.Env = append(os.Environ(), envProcess+"=1", "USER=alice", "LOGNAME=alice", "HADOOP_USER_NAME=alice")
	out, err := cmd.Output()
	var found []Finding
	if err == nil {
		err = json.Unmarshal(out, &found)
	}
	if err != nil || len(found) != 3 {
		t.Fatalf("%v: %s", err, out)
	}
	return found
}

// TestTheLimitsInForce: the soft ones are told, which a Go program raises for itself.
func TestTheLimitsInForce(t *testing.T) {
	f := process(t, exec.Command("sh", "-c", `ulimit -Sn 300 && exec "$0"`, os.Args[0]))[0]
	if f.Level != Note || !strings.Contains(f.Text, "open files (nofile) 300, which a program may raise to ") {
		t.Errorf("%+v", f)
	}
}

// TestTheUserIsTheUids: whatever the environment says, which YARN sets to the one who submitted.
func TestTheUserIsTheUids(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	const nobodys = 987654 // without a name
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: nobodys, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}},
	}
	found := process(t, cmd)
	for i, want := range []Level{1: Good, 2: Note} {
		if i > 0 && (found[i].Level != want || !strings.Contains(found[i].Text, "the user 987654, who has no name")) {
			t.Errorf("%+v", found[i])
		}
	}
}

func TestSkew(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(1000, 0).Add(time.Duration(ms) * time.Millisecond) }
	for _, c := range []struct {
		from, to, shown int // ms; shown is whole seconds
		want            time.Duration
	}{
		{100, 200, 0, 0},
		{100, 1200, 1000, 0},
		{900, 1100, 0, 0}, // it was cut to the second before the next began
		{2500, 2600, 1000, 500 * time.Millisecond},
		{100, 200, 7000, 6800 * time.Millisecond},
	} {
		if got := skew(at(c.from), at(c.to), at(c.shown)); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

// TestGPUs: what a container can open that asked for no GPU reports whether YARN isolates them.
func TestGPUs(t *testing.T) {
	for _, c := range []struct {
		files []string
		open  error
		level Level
		text  string
	}{
		{nil, nil, Good, "none of NVIDIA's"},
		{[]string{"nvidiactl", "nvidia-uvm"}, nil, Good, "none of NVIDIA's"},
		{[]string{"nvidiactl", "nvidia0", "nvidia1"}, os.ErrPermission, Good, "2, and this container, which asked for none, can open none"},
		{[]string{"nvidiactl", "nvidia0", "nvidia1"}, nil, Note, "can open 2: YARN does not isolate them"},
	} {
		n := gpu.Node{Proc: t.TempDir(), Dev: t.TempDir(), Open: func(string) error { return c.open }}
		for _, f := range c.files {
			if err := os.WriteFile(filepath.Join(n.Dev, f), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if f := GPUs(n); f.Level != c.level || !strings.Contains(f.Text, c.text) {
			t.Errorf("%q, opening: %v: %+v", c.files, c.open, f)
		}
	}
}

func TestCgroupLimit(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("a/memory.max", "300\n")
	write("a/b/memory.max", "max\n")
	write("memory/y/c/memory.limit_in_bytes", "200\n")
	write("memory/memory.limit_in_bytes", "9223372036854771712\n")
	for _, c := range []struct {
		self    string
		limit   uint64
		version int
	}{
		{"0::/a/b\n", 300, 2},
		{"0::/\n", 0, 2},
		{"5:cpu,cpuacct:/y\n4:memory:/y/c\n0::/a\n", 200, 1},
		{"4:memory:/z\n", 0, 1},
		{"", 0, 0},
	} {
		limit, version := cgroupLimit(root, proc.ParseCgroups(c.self))
		if limit != c.limit || version != c.version {
			t.Errorf("%q: %d, version %d", c.self, limit, version)
		}
	}
}

func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	if f := Directory("d", dir); f.Level == Bad {
		t.Errorf("%+v", f)
	}
	if f := Directory("d", filepath.Join(dir, "none")); f.Level != Bad {
		t.Errorf("a directory that is not there: %+v", f)
	}
	if err := os.Chmod(dir, 0o710); err != nil {
		t.Fatal(err)
	}
	if f := Closed(dir); f.Level != Good {
		t.Errorf("%+v", f)
	}
	if f := Closed("/usr/bin"); f.Level != Note {
		t.Errorf("%+v", f)
	}
}
