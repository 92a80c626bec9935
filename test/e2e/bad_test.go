package e2e

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"holdfast/proto"
)

var portOf = regexp.MustCompile(`127\.0\.0\.\d+:\d+<`)

// TestRefusedAtOnce: what cannot work is refused before anything is asked for,
// with the thing and the remedy in the message.
func TestRefusedAtOnce(t *testing.T) {
	plain.enter(t)
	c := hadoop(t)
	deadConf := t.TempDir()
	for _, f := range []string{"core-site.xml", "hdfs-site.xml", "yarn-site.xml"} {
		text, err := os.ReadFile(filepath.Join(c.ConfDir(), f))
		if err != nil {
			t.Fatal(err)
		}
		// Nothing listens on the ports below 10.
		dead := portOf.ReplaceAllString(string(text), "127.0.0.1:9<")
		if err := os.WriteFile(filepath.Join(deadConf, f), []byte(dead), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Hadoop(t.Context(), "fs", "-touchz", c.HDFS()+"/a-file"); err != nil {
		t.Fatal(err)
	}
	one := []string{"--worker", "1", "--worker-memory", "256m"}
	for _, b := range []struct {
		name string
		conf string
		args []string
		code int
		says []string
	}{
		{"a configuration directory that is not there", "/nonexistent", one, 2, []string{"/nonexistent", "HADOOP_CONF_DIR"}},
		{"a configuration directory without a configuration", t.TempDir(), one, 2, []string{"core-site.xml"}},
		{"a ResourceManager that is down", deadConf, one, 3, []string{"127.0.0.1:9"}},
		{"an unknown queue", c.ConfDir(), append([]string{"--queue", "nowhere"}, one...), 2, []string{"nowhere", "default"}},
		{"a role larger than any node", c.ConfDir(), []string{"--worker", "1", "--worker-memory", "64g"}, 2, []string{"worker", "64 GB", "8 GB"}},
		{"more cores than any node has", c.ConfDir(), []string{"--worker", "1", "--worker-memory", "256m", "--worker-vcores", "64"}, 2, []string{"worker", "64", "4"}},
		{"memory that may grow beyond any node", c.ConfDir(), append([]string{"--worker-memory-max", "64g"}, one...), 2, []string{"worker", "64 GB", "memory-max"}},
		{"a file that is not there", c.ConfDir(), append([]string{"--files", "nothere.py"}, one...), 2, []string{"nothere.py"}},
		{"an archive that is not there", c.ConfDir(), append([]string{"--archives", "venv.tar.gz#venv"}, one...), 2, []string{"venv.tar.gz"}},
		{"a checkpoint directory below a file", c.ConfDir(), append([]string{"--checkpoint", "./logs=" + c.HDFS() + "/a-file/logs"}, one...), 2, []string{"/a-file"}},
	} {
		t.Run(b.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			env := append(os.Environ(), "HADOOP_CONF_DIR="+b.conf)
			for _, run := range [][]string{{"run"}, {"run", "--dry-run"}} { // which asks the cluster the same
				stdout, stderr, code := call(ctx, env, t.TempDir(), append(append(append(run, "--name", "refused"), b.args...), "--", "true")...)
				if code != b.code {
					t.Errorf("%v: exit code %d, want %d", run, code, b.code)
				}
				for _, s := range b.says {
					if !strings.Contains(stderr, s) {
						t.Errorf("%v does not name %q:\n%s%s", run, s, stdout, stderr)
					}
				}
			}
		})
	}
	w := where{c}
	logs := c.HDFS() + "/tests/dry-run"
	if stdout, stderr, code := w.call(t.Context(), "", append([]string{"run", "--dry-run", "--name", "refused", "--checkpoint", "./logs=" + logs}, append(one, "--", "true")...)...); code != 0 || !strings.Contains(stdout, logs) {
		t.Errorf("a dry run of what can be run ended with %d:\n%s%s", code, stdout, stderr)
	}
	if _, stderr, code := w.call(t.Context(), "", "ckpt", "ls", logs); code != 2 {
		t.Errorf("a dry run made its checkpoint directory: %s", stderr)
	}
	if stdout, stderr, code := w.call(t.Context(), "", "__complete", "run", "--queue", ""); code != 0 || !strings.HasPrefix(stdout, "default\n") {
		t.Errorf("the completion of queues ended with %d:\n%s%s", code, stdout, stderr)
	}
	if stdout, stderr, code := w.call(t.Context(), "", "list", "--output", "json"); code != 0 || strings.Contains(stdout, `"refused"`) {
		t.Errorf("applications were left behind:\n%s%s", stdout, stderr)
	}
}

// TestQuotaExceeded: a write that HDFS refuses is an error of the writer.
func TestQuotaExceeded(t *testing.T) {
	plain.enter(t)
	c := hadoop(t)
	w := where{c}
	dir := "/tests/quota"
	for _, args := range [][]string{{"fs", "-mkdir", "-p", dir}, {"dfsadmin", "-setSpaceQuota", "300m", dir}} {
		if out, err := c.Hadoop(t.Context(), args...); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	j := w.start(t, "", "--worker", "1", "--worker-memory", "256m", "--restarts", "0", "--checkpoint", "./logs="+c.HDFS()+dir,
		"--", "sh", "-c", "dd if=/dev/zero of=logs/fits bs=1M count=1 && dd if=/dev/zero of=logs/big bs=1M count=400")
	s := j.end(long, proto.JobState_JOB_STATE_FAILED)
	if said := strings.Join(task(s, "worker-0").Tail, "\n"); !strings.Contains(said, "quota") {
		t.Errorf("the writer was told:\n%s", said)
	}
	if out, err := c.Hadoop(t.Context(), "fs", "-ls", "-R", dir); err != nil || !strings.Contains(out, "fits") || strings.Contains(out, "big") {
		t.Errorf("what is there afterwards: %v\n%s", err, out)
	}
}

// TestNoRoomYet: a job that must wait says for what.
func TestNoRoomYet(t *testing.T) {
	plain.enter(t)
	w := where{hadoop(t)}
	// The queue is small, so that others have room.
	j := w.start(t, "", "--queue", "small", "--worker", "8", "--worker-memory", "1g", "--", "true")
	s := j.until(long, "the reason why it waits", func(s *proto.JobStatus) bool {
		return s.State == proto.JobState_JOB_STATE_WAITING && strings.Contains(s.Why, "worker") && strings.Contains(s.Why, "1 GB")
	})
	t.Logf("it says: %s", s.Why)
	if _, stderr, code := w.call(t.Context(), "", "kill", j.id); code != 0 {
		t.Fatalf("kill ended with %d: %s", code, stderr)
	}
	j.end(long, proto.JobState_JOB_STATE_KILLED)
}
