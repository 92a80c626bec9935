package submit

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/client/jobs"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
	"holdfast/proto"
)

// TestADirectoryBelongsToTheJobThatWaits: from its submission on, before its application master
// runs.
func TestADirectoryBelongsToTheJobThatWaits(t *testing.T) {
	dir := t.TempDir()
	s, err := store.NewLocal(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	own := &proto.CheckpointSpec{Path: "./logs", Uri: dir}
	shared := &proto.CheckpointSpec{Path: "./logs", Uri: dir, Share: true}
	claims := func(job string, c *proto.CheckpointSpec) (*claims, error) {
		return claimAll(t.Context(), &proto.JobSpec{Checkpoints: []*proto.CheckpointSpec{c}}, job, func(string) bool { return true }, openLocal)
	}
	recorded := func(want ...string) {
		t.Helper()
		if got, err := writers.List(t.Context(), s); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("recorded are %q, %v, want %q", got, err, want)
		}
	}
	refused := func(err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "job-1") || !strings.Contains(err.Error(), "share=true") {
			t.Errorf("another job is told: %v", err)
		}
	}
	first, err := claims("job-1", own)
	if err != nil {
		t.Fatal(err)
	}
	recorded("job-1.submission")
	_, err = claims("job-2", own)
	refused(err)
	recorded("job-1.submission")
	if _, err := claims("job-3", shared); err != nil {
		t.Errorf("a job that shares it: %v", err)
	}
	recorded("job-1.submission")

	check := func(f jobs.Liveness) error {
		return checkExclusive(t.Context(), s, own, openLocal, func(context.Context, string) jobs.Liveness { return f }, func(note string) { t.Errorf("it waits: %s", note) })
	}
	refused(check(jobs.Alive))
	first.remove(t.Context())
	recorded()
	if err := check(jobs.Alive); err != nil {
		t.Error(err)
	}
	if _, err := claims("job-1", own); err != nil {
		t.Fatal(err)
	}
	if err := check(jobs.Ended); err != nil {
		t.Errorf("after a job that has ended: %v", err)
	}
	recorded()
}

// TestALocalJobThatIsStopped: one whose application master is there lives, although a debugger or a
// busy machine keeps it from sending a heartbeat. Nothing waits for one, and it is not fenced off.
func TestALocalJobThatIsStopped(t *testing.T) {
	t.Setenv(jobs.EnvHome, t.TempDir())
	const id = "local-stopped"
	home, err := jobs.LocalHome()
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(home, jobs.Directory(id))
	if err := os.MkdirAll(own, 0o700); err != nil {
		t.Fatal(err)
	}
	// A process with the command line of its application master, that does nothing.
	command := jobs.MasterCommand(id)
	if err := os.WriteFile(filepath.Join(own, command[0]), []byte("read nothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	master := exec.Command("sh", command...)
	master.Dir = own
	in, err := master.StdinPipe()
	if err == nil {
		err = master.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	end := func() { in.Close(); _ = master.Wait() }
	defer end()
	if err := jobs.RecordMaster(own, master.Process.Pid); err != nil {
		t.Fatal(err)
	}
	c := &proto.CheckpointSpec{Path: "./logs", Uri: t.TempDir()}
	s, err := store.NewLocal(c.Uri)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	writer := proto.WriterName(id, proto.MasterContainer)
	if err := store.MkdirAll(t.Context(), s, writers.Dir(writer), 0o755); err != nil {
		t.Fatal(err)
	}
	check := func() error {
		return checkLocalDirectory(t.Context(), c, func(note string) { t.Errorf("it waits: %s", note) })
	}
	if err := check(); err == nil || !strings.Contains(err.Error(), id) {
		t.Errorf("another job is told: %v", err)
	}
	if all, err := writers.List(t.Context(), s); err != nil || len(all) != 1 {
		t.Errorf("recorded are %q, %v", all, err)
	}
	end()
	if err := check(); err != nil {
		t.Errorf("after its application master has ended: %v", err)
	}
	if all, err := writers.List(t.Context(), s); err != nil || len(all) != 0 {
		t.Errorf("after that, recorded are %q, %v", all, err)
	}
}
