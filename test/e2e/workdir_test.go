package e2e

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/proto"
	"holdfast/test/pyenv"
)

// TestTheWorkingDirectoryIsTheCheckpointDirectory: a program that saves beside itself, and
// imports what was shipped beside it, goes on from what it saved when a process and a
// container of its job are lost, and nothing but what it saved is in the directory.
func TestTheWorkingDirectoryIsTheCheckpointDirectory(t *testing.T) {
	plain.enter(t)
	places(t, trainInWorkingDirectory)
}

// trainInWorkingDirectory trains two ranks of PyTorch that save into their working
// directory, and has them lose a process and a container.
func trainInWorkingDirectory(t *testing.T, w where, store string) {
	t.Helper()
	python, err := pyenv.Torch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.Abs("testdata/workdir")
	if err != nil {
		t.Fatal(err)
	}
	j := w.start(t, dir, "--framework", "pytorch", "--worker", "2", "--worker-memory", "1g", "--files", "train.py,model.py",
		"--env", "PYTHONDONTWRITEBYTECODE=", "--checkpoint", ".="+store, "--", python, "train.py")
	j.store = store
	for _, kill := range []func(*job, string){(*job).killProcess, (*job).killContainer} {
		resumed := func() int { return strings.Count(j.logs("worker-0"), "resumed from step") }
		j.until(long, "all to run", running)
		j.untilCheckpoint(long, 0)
		j.said(long, "worker-0", `step \d+`)
		before, last := resumed(), lastNumber(t, j.logs("worker-0"), `step (\d+)`)
		kill(j, "worker-1")
		t.Logf("worker-1 lost after step %d: running again after %s", last, j.back(long, "worker-1"))
		j.until(long, "it to go on", func(*proto.JobStatus) bool { return resumed() > before })
		if from := lastNumber(t, j.logs("worker-0"), `resumed from step (\d+)`); from < last {
			t.Errorf("it went on from step %d, and step %d was saved", from, last)
		}
	}
	j.letFinish()
	j.end(long, proto.JobState_JOB_STATE_SUCCEEDED)
	want := []string{"checkpoint.pth.tar", "finished", "model_best.pth.tar"}
	if got := j.stored(); !slices.Equal(got, want) {
		t.Errorf("the directory has %q instead of %q", got, want)
	}
	for _, c := range j.checkpoints() {
		if c.State != "sealed" && !c.Retained {
			t.Errorf("a checkpoint is %s at the end", c.State)
		}
	}
}

// stored returns what lies in the job's store, without the store's own.
func (j *job) stored() (names []string) {
	j.t.Helper()
	if c := j.w.cluster; c != nil {
		text, err := c.Hadoop(j.t.Context(), "fs", "-ls", "-C", "-R", j.store)
		if err != nil {
			j.t.Fatal(err)
		}
		for _, line := range strings.Fields(text) {
			if name := strings.TrimPrefix(line, j.store+"/"); !strings.HasPrefix(name, ".holdfast") {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names
	}
	must(j.t, filepath.WalkDir(j.store, func(p string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == ".holdfast" {
			return fs.SkipDir
		}
		if name := strings.TrimPrefix(p, j.store+"/"); p != j.store {
			names = append(names, name)
		}
		return err
	}))
	return names
}
