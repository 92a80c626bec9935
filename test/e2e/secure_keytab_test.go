package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/keytab"

	"holdfast/proto"
	"holdfast/test/testcluster"
	"holdfast/test/testcluster/kdc"
)

// withKeytab starts a job of two tasks that leaves alice's keytab with its
// application master.
func withKeytab(t *testing.T, c *testcluster.Cluster, script string) *job {
	t.Helper()
	return where{c}.start(t, "", "--principal", kdc.Alice, "--keytab", c.KDC().Keytab(kdc.Alice),
		"--worker", "2", "--worker-memory", "256m", "--restarts", "0", "--", "sh", "-c", script)
}

// keytabs looks for the keytab wherever a job leaves something, while it runs:
// it is the application master's alone.
func keytabs(t *testing.T, c *testcluster.Cluster) {
	keys, err := keytab.Load(c.KDC().Keytab(kdc.Alice))
	if err != nil || len(keys.Entries) == 0 {
		t.Fatalf("alice's keytab: %v", err)
	}
	key := keys.Entries[0].Key.KeyValue
	j := withKeytab(t, c, "sleep 600")
	j.until(long, "all to run", running)

	if got := onHDFS(t, c); len(got) != 1 || !strings.HasPrefix(got[0], "-rw-------") || !strings.HasSuffix(got[0], "/"+j.id) {
		t.Errorf("keytabs on HDFS: %q", got)
	}
	copies := holding(t, c, key)
	if len(copies) != 1 || !strings.Contains(copies[0], "/appcache/"+j.id+"/filecache/") {
		t.Errorf("the key is in these files of the nodes: %q", copies)
	}
	for _, f := range copies {
		if info, err := os.Stat(f); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", f, info.Mode(), err)
		}
	}
	links, err := filepath.Glob(filepath.Join(c.Dir(), "yarn/*/local/usercache/*/appcache", j.id, "container_*", proto.KeytabFile))
	if err != nil || len(links) != 1 || !strings.HasSuffix(filepath.Dir(links[0]), "_000001") {
		t.Errorf("containers that have it: %q, %v", links, err)
	}
	tasks := 0
	for _, pid := range j.processes("") {
		for _, file := range []string{"environ", "cmdline"} {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
			if err != nil {
				continue // it has ended
			}
			if bytes.Contains(text, key) {
				t.Errorf("process %d has the key in its %s", pid, file)
			}
			if file == "environ" && !bytes.Contains(text, []byte("_000001\x00")) { // not of the master's container
				tasks++
				if bytes.Contains(text, []byte("KEYTAB")) || bytes.Contains(text, []byte("PRINCIPAL")) {
					t.Errorf("process %d of a task knows of it: %q", pid, text)
				}
			}
		}
	}
	if tasks < 2 {
		t.Errorf("%d processes of tasks were looked at", tasks)
	}
	if _, stderr, code := j.w.call(t.Context(), "", "kill", j.id); code != 0 {
		t.Fatalf("kill ended with %d: %s", code, stderr)
	}
	j.untilGone(key)
}

// keytabsGo ends jobs in every way; what is then left of the keytab on HDFS?
func keytabsGo(t *testing.T, c *testcluster.Cluster) {
	kill := func(t *testing.T, j *job) {
		t.Helper()
		if _, stderr, code := j.w.call(t.Context(), "", "kill", j.id); code != 0 {
			t.Fatalf("kill ended with %d: %s", code, stderr)
		}
	}
	t.Run("success", func(t *testing.T) {
		j := withKeytab(t, c, "true")
		j.end(long, proto.JobState_JOB_STATE_SUCCEEDED)
		j.untilGone(nil)
	})
	t.Run("failure", func(t *testing.T) {
		j := withKeytab(t, c, "false")
		j.end(long, proto.JobState_JOB_STATE_FAILED)
		j.untilGone(nil)
	})
	t.Run("killed while its master does not answer", func(t *testing.T) {
		j := withKeytab(t, c, "sleep 600")
		j.until(long, "all to run", running)
		for _, pid := range j.masters() {
			if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
		}
		kill(t, j)
		if got := onHDFS(t, c); len(got) > 0 {
			t.Errorf("there is still %q", got)
		}
	})
	t.Run("killed by YARN", func(t *testing.T) {
		j := withKeytab(t, c, "sleep 600")
		j.until(long, "all to run", running)
		if out, err := c.Hadoop(t.Context(), "application", "-kill", j.id); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		j.end(long, proto.JobState_JOB_STATE_KILLED)
		if got := onHDFS(t, c); len(got) != 1 {
			t.Errorf("then nothing is to be removed: %q", got)
		}
		where{c}.start(t, "", "--worker", "1", "--worker-memory", "256m", "--", "true")
		if got := onHDFS(t, c); len(got) > 0 {
			t.Errorf("the next job's submission left %q", got)
		}
	})
}

// onHDFS are the keytabs on HDFS, as fs -ls shows them.
func onHDFS(t *testing.T, c *testcluster.Cluster) (found []string) {
	t.Helper()
	out, err := c.Hadoop(t.Context(), "fs", "-ls", "-R", "/user/alice/.holdfast")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out) {
		if dir := strings.HasPrefix(line, "d"); !dir && strings.Contains(line, "eytab") {
			found = append(found, strings.TrimSpace(line))
		} else if dir && strings.Contains(line, "eytab") && !strings.HasPrefix(line, "drwx------") {
			t.Errorf("others may look into %s", line)
		}
	}
	return found
}

// holding are the files on the nodes that contain the key.
func holding(t *testing.T, c *testcluster.Cluster, key []byte) (found []string) {
	t.Helper()
	_ = filepath.WalkDir(filepath.Join(c.Dir(), "yarn"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil // what is removed meanwhile
		}
		if info, err := e.Info(); err == nil && info.Size() < 1<<20 {
			if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, key) {
				found = append(found, path)
			}
		}
		return nil
	})
	return found
}

// untilGone waits until the job's keytab is gone, from the nodes too.
func (j *job) untilGone(key []byte) {
	j.t.Helper()
	ctx, cancel := context.WithTimeout(j.t.Context(), time.Minute)
	defer cancel()
	for {
		left := onHDFS(j.t, j.w.cluster)
		if key != nil {
			left = append(left, holding(j.t, j.w.cluster, key)...)
		}
		if len(left) == 0 {
			return
		}
		if ctx.Err() != nil {
			j.t.Fatalf("the job has ended, and this is left: %q", left)
		}
		time.Sleep(100 * time.Millisecond)
	}
}
