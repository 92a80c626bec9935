package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/rpc"
	"holdfast/proto"
	"holdfast/test/pty"
)

// standing makes a step, and stands in a function of its own until it is killed.
const standing = `import os, time
def stuck():
    time.sleep(1000)
print('attempt', os.environ['HOLDFAST_ATTEMPT'], 'step 7', flush=True)
stuck()
`

// regexpBar matches a bar of an upload.
var regexpBar = regexp.MustCompile(`uploading \[#*\.*\] [0-9.]+ \S+ of [0-9]+ MiB`)

// TestCommandsOnACluster: what a person does with a job on YARN: its files are uploaded with a
// bar; it is looked into, a task of it is restarted, it is listed, run again, and its directory
// and those of old jobs are removed from HDFS.
func TestCommandsOnACluster(t *testing.T) {
	plain.enter(t)
	c := hadoop(t)
	w := where{c}
	dir := t.TempDir()
	for name, text := range map[string]string{"standing.py": standing, "data.bin": strings.Repeat("0123456789abcdef", 4<<20)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.Command(submit, "run", "--detach", "--name", "steered", "--files", "standing.py,data.bin", "--framework", "tensorflow", "--no-warm",
		"--worker", "2", "--worker-memory", "256m", "--", "python3", "standing.py")
	run.Dir, run.Env = dir, w.env()
	x := pty.Start(t, run, 80, 24)
	if code := x.Code(); code != 0 {
		t.Fatalf("run ended with %d: %q", code, x.Shown())
	}
	lines := x.Lines()
	j := &job{t: t, w: w, env: w.env(), id: lines[len(lines)-1], came: map[string]int{}}
	ended := func(j *job) func() { // tidy asks for the state, which rm has removed
		return func() { _, _, _ = w.call(context.Background(), "", "kill", j.id) }
	}
	t.Cleanup(ended(j))
	// A warning, as of a slow DataNode, may stand in the line of a bar.
	_, after, _ := strings.Cut(strings.Join(lines, "\n"), "started; next:")
	if bar := regexpBar.FindString(x.Shown()); bar == "" || after == "" || strings.Contains(after, "uploading") {
		t.Errorf("the bar of the upload is %q, and what is shown in the end:\n%s", bar, strings.Join(lines, "\n"))
	}
	j.until(long, "all to stand", func(s *proto.JobStatus) bool {
		return running(s) && task(s, "worker-0").Step == 7 && task(s, "worker-1").Step == 7
	})
	// call runs a command, which must end with a code.
	call := func(code int, args ...string) (out, errs string) {
		t.Helper()
		out, errs, got := w.call(t.Context(), dir, args...)
		if got != code {
			t.Errorf("%q ended with %d, want %d: %s%s", args, got, code, out, errs)
		}
		return out, errs
	}
	has := func(what, text string, wants ...string) {
		t.Helper()
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %q:\n%s", what, want, text)
			}
		}
	}

	out, _ := call(7, "exec", j.id, "worker-0", "--", "sh", "-c", "wc -c < data.bin; echo $HOLDFAST_ATTEMPT; exit 7")
	if strings.Join(strings.Fields(out), " ") != "67108864 0" {
		t.Errorf("the command beside the task prints %q", out)
	}
	out, _ = call(0, "stacks", j.id, "worker-1")
	has("stacks", out, "==> worker-1 <==", "in stuck")
	before := task(j.status(), "worker-1").Container
	call(0, "kill", j.id, "worker-1")
	s := j.until(long, "worker-1 to be restarted", func(s *proto.JobStatus) bool {
		return running(s) && task(s, "worker-1").Attempt == 1
	})
	if k := task(s, "worker-1"); k.Container != before || k.Failures != 0 {
		t.Errorf("after kill of a task it has %d failures and is in %s, and was in %s", k.Failures, k.Container, before)
	}
	for _, i := range s.Incidents {
		if i.Cause != "restart requested" {
			t.Errorf("the kill of a task counts as %v", i)
		}
	}
	has("the event log", eventLog(s), "exit 7", rpc.CurrentUser())
	for end := time.Now().Add(long); ; time.Sleep(100 * time.Millisecond) { // what is written is copied soon afterwards
		if out, _ = call(0, "logs", j.id, "worker-1", "--previous"); strings.Contains(out, "attempt 0 step 7") && !strings.Contains(out, "attempt 1") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the log of the attempt before is %q", out)
		}
	}
	out, _ = call(0, "list", "--name", "steered")
	has("list", out, j.id+"  steered  running  7 ")

	out, _ = call(0, "rerun", j.id, "--detach", "--worker", "1", "--", "true")
	again := &job{t: t, w: w, env: w.env(), id: strings.TrimSpace(out), came: map[string]int{}}
	t.Cleanup(ended(again))
	if s := again.end(long, proto.JobState_JOB_STATE_SUCCEEDED); s.Name != "steered" || len(s.Tasks) != 1 {
		t.Errorf("the job that was run again is %v", s)
	}

	home := "/" + path.Join("user", rpc.CurrentUser(), proto.HomeDir, "jobs")
	conf, err := conf.Load(c.ConfDir())
	if err != nil {
		t.Fatal(err)
	}
	kept, err := store.Open(t.Context(), c.HDFS()+home, conf)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	there := func(id string) bool {
		t.Helper()
		_, err := kept.Stat(t.Context(), id)
		if err != nil && !store.Vanished(err) {
			t.Fatal(err)
		}
		return err == nil
	}
	_, errs := call(2, "rm", j.id)
	has("rm of a job that runs", errs, "yarn-submit kill "+j.id)
	call(0, "kill", j.id)
	// Some of a job's processes write their last a little after its end.
	late := make(chan error, 1)
	go func() {
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		var err error
		for range 10 {
			err = errors.Join(err, store.AppendFile(context.WithoutCancel(t.Context()), kept, path.Join(j.id, "late"), []byte("."), 0o600))
			<-tick.C
		}
		late <- err
	}()
	call(0, "rm", j.id, again.id)
	must(t, <-late)
	for end := time.Now().Add(long); j.left() != ""; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the job has left behind\n%s", j.left())
		}
	}
	for _, id := range []string{j.id, again.id} {
		if there(id) {
			left, err := kept.List(t.Context(), id)
			t.Errorf("after rm, there is a directory of %s on HDFS, with %+v (%v)", id, left, err)
		}
	}
	const old, young = "application_1000000000000_0001", "application_1000000000000_0002"
	for id, days := range map[string]int{old: 40, young: 20} {
		if err := store.MkdirAll(t.Context(), kept, id, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := store.WriteFile(t.Context(), kept, path.Join(id, proto.StatusFile), []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-time.Duration(days) * 24 * time.Hour)
		for _, name := range []string{path.Join(id, proto.StatusFile), id} {
			if err := kept.Chtimes(t.Context(), name, at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	out, _ = call(0, "gc", "--dry-run")
	if has("gc --dry-run", out, old+": would be removed"); !there(old) {
		t.Error("gc --dry-run has removed something")
	}
	out, _ = call(0, "gc")
	if has("gc", out, old+": removed"); there(old) || !there(young) {
		t.Errorf("after gc, what is old is there: %v; what is young: %v", there(old), there(young))
	}
}
