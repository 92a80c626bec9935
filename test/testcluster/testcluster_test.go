package testcluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/test/testcluster"
	"holdfast/test/testcluster/processes"
)

func start(t *testing.T, opts testcluster.Options) *testcluster.Cluster {
	t.Helper()
	c := testcluster.ForTest(t, opts)
	return c
}

func hadoop(t *testing.T, c *testcluster.Cluster, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	out, err := c.Hadoop(ctx, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// eventually polls: the machine may be slow.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not after two minutes", what)
		}
	}
}

// leftovers are processes with the cluster's directory in their command line.
func leftovers(t *testing.T, dir string) []string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range paths {
		if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte(dir)) {
			found = append(found, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return found
}

func gone(t *testing.T, dir string) {
	t.Helper()
	if left := leftovers(t, dir); len(left) > 0 {
		t.Errorf("left running: %s", strings.Join(left, "\n"))
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is still there (%v)", dir, err)
	}
}

func TestAFileOutlivesADataNode(t *testing.T) {
	c := start(t, testcluster.Options{HDFSOnly: true})
	local := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(local, []byte("hold fast\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	hadoop(t, c, "fs", "-D", "dfs.replication=3", "-put", local, "/tmp/file")

	dn := c.Daemon("dn1")
	if err := dn.Kill(); err != nil {
		t.Fatal(err)
	}
	if dn.Running() {
		t.Error("a killed DataNode runs")
	}
	if got := hadoop(t, c, "fs", "-cat", "/tmp/file"); got != "hold fast\n" {
		t.Errorf("read %q without a DataNode", got)
	}
	if err := dn.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := hadoop(t, c, "fs", "-cat", "/tmp/file"); got != "hold fast\n" {
		t.Errorf("read %q after the DataNode was restarted", got)
	}
	if err := c.Daemon("nn").Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := hadoop(t, c, "fs", "-cat", "/tmp/file"); got != "hold fast\n" {
		t.Errorf("read %q after the NameNode was restarted", got)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	gone(t, c.Dir())
}

// TestContainers runs Hadoop's own example of an application, on every node,
// and leaves its containers without their NodeManagers.
func TestContainers(t *testing.T) {
	c := start(t, testcluster.Options{})
	script := filepath.Join(t.TempDir(), "forever.sh")
	if err := os.WriteFile(script, []byte("env -i sleep 1000000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	shell := c.HadoopCommand(t.Context(), "distributedshell", "-jar", c.Jar("hadoop-yarn-applications-distributedshell"),
		"-shell_command", "bash "+script, "-num_containers", "3", "-container_memory", "64", "-master_memory", "256")
	var output bytes.Buffer
	shell.Stdout, shell.Stderr = &output, &output
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = shell.Process.Kill()
		_ = shell.Wait()
		if t.Failed() {
			t.Logf("DistributedShell printed:\n%s", output.String())
		}
	}()
	// A container's sleep has an empty environment; it counts by its parent.
	sleeping := func() (containers []processes.Container) {
		all, err := c.Containers()
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range all {
			for _, pid := range k.PIDs {
				if comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)); string(comm) == "sleep\n" {
					containers = append(containers, k)
				}
			}
		}
		return containers
	}
	eventually(t, "three containers run", func() bool { return len(sleeping()) == 3 })
	for _, k := range sleeping() {
		if !strings.HasPrefix(k.ID, "container_") || !strings.HasPrefix(k.Node, "nm") || k.PID == 0 {
			t.Errorf("container %+v", k)
		}
	}

	// Not that of the application master, with which all containers would end.
	nm := c.Daemon("nm0")
	all, err := c.Containers()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range all {
		if k.Node == nm.Name() && strings.HasSuffix(k.ID, "_000001") {
			nm = c.Daemon("nm1")
		}
	}
	if err := nm.Pause(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the paused NodeManager is lost", func() bool {
		return strings.Contains(hadoop(t, c, "node", "-list", "-all"), "LOST")
	})
	if err := nm.Resume(); err != nil {
		t.Fatal(err)
	}
	for _, d := range c.Daemons() {
		if strings.HasPrefix(d.Name(), "nm") {
			if err := d.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(sleeping()) == 0 {
		t.Fatal("no container outlived its NodeManager: this test tests nothing")
	}
	if err := nm.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	pids := []int{}
	for _, k := range sleeping() {
		pids = append(pids, k.PIDs...)
	}
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	gone(t, c.Dir())
	for _, pid := range pids {
		// What init has not waited for yet is a zombie, without a command line.
		if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); err == nil && len(text) > 0 {
			t.Errorf("process %d of a container is left: %q", pid, text)
		}
	}
}

// TestTheTestIsKilled starts a cluster beside another one, in a process that
// then ends without a chance to clear up.
func TestTheTestIsKilled(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "cluster")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "holdfast/test/testcluster/cmd").CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	other := start(t, testcluster.Options{HDFSOnly: true, DataNodes: 1})

	cmd := exec.CommandContext(t.Context(), binary, "-hdfs-only", "-datanodes", "1")
	cmd.Stderr = t.Output()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	defer kill()
	line := make([]byte, 4096)
	n, err := stdout.Read(line)
	if err != nil {
		t.Fatalf("it printed no configuration directory: %v", err)
	}
	conf, ok := strings.CutPrefix(strings.TrimSpace(string(line[:n])), "export HADOOP_CONF_DIR=")
	if !ok {
		t.Fatalf("it printed %q", line[:n])
	}
	dir := filepath.Dir(conf)
	if _, err := os.Stat(dir); err != nil || len(leftovers(t, dir)) < 2 {
		t.Fatalf("of a NameNode and a DataNode with the directory %s (%v) there are the processes %q", dir, err, leftovers(t, dir))
	}
	kill()
	eventually(t, "the killed process's cluster is gone", func() bool {
		_, err := os.Stat(dir)
		return errors.Is(err, os.ErrNotExist) && len(leftovers(t, dir)) == 0
	})
	if got := hadoop(t, other, "fs", "-ls", "/"); !strings.Contains(got, "/user") {
		t.Errorf("the other cluster's root is %q", got)
	}
}

// TestTheWatchdogIsKilled: a cluster is stopped without its watchdog, which is told.
func TestTheWatchdogIsKilled(t *testing.T) {
	c, err := testcluster.Start(t.Context(), testcluster.Options{KDCOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	dir := c.Dir()
	environments, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, path := range environments {
		text, _ := os.ReadFile(path)
		if bytes.Contains(text, []byte("HOLDFAST_TESTCLUSTER_WATCHDOG="+dir+"\x00")) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			must(t, syscall.Kill(pid, syscall.SIGKILL))
			killed++
		}
	}
	if killed != 1 {
		t.Errorf("%d watchdogs of %s were killed", killed, dir)
	}
	stopped := make(chan error, 1)
	go func() { stopped <- c.Stop() }()
	select {
	case err := <-stopped:
		if err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("its watchdog was killed, and it stops with %v", err)
		}
	case <-time.After(2 * time.Minute):
		must(t, c.Daemon("kdc").Kill())
		t.Error("the cluster does not stop")
	}
	gone(t, dir)
}

// TestAPauseOfWhatHasEnded: it is no pause.
func TestAPauseOfWhatHasEnded(t *testing.T) {
	c := start(t, testcluster.Options{KDCOnly: true})
	kdc := c.Daemon("kdc")
	must(t, kdc.Kill())
	if err := kdc.Pause(); err == nil || !strings.Contains(err.Error(), "kdc does not run") {
		t.Errorf("paused: %v", err)
	}
	must(t, kdc.Restart(t.Context()))
	must(t, kdc.Pause())
	must(t, kdc.Resume())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
