package e2e

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/proto"
)

// evaluates has a worker save a model, and an evaluator export it once the test lets it.
const evaluates = `if [ {role} = worker ]; then
while [ ! -e train_logs/watches ]; do sleep 0.05; done
echo trained > train_logs/model; exit 0
fi
trap 'echo told to end > train_logs/stopped; exit 0' TERM
echo > train_logs/watches
while [ ! -e train_logs/go ]; do sleep 0.05; done
cp train_logs/model train_logs/exported`

// TestTheEvaluatorFinishes: an evaluator has time for the last checkpoint after the workers
// have ended, and is stopped once that is over. The job has succeeded in either case.
func TestTheEvaluatorFinishes(t *testing.T) {
	plain.enter(t)
	run := func(t *testing.T, finish string) *job {
		store := filepath.Join(t.TempDir(), "store")
		j := where{}.start(t, "", "--framework", "tensorflow", "--worker", "1", "--evaluator", "1", "--evaluator-finish", finish,
			"--checkpoint", "./train_logs="+store, "--", "sh", "-c", evaluates)
		j.store = store
		j.until(long, "the others' end", func(s *proto.JobStatus) bool {
			return strings.Contains(eventLog(s), "the others are done; it may go on for "+finish)
		})
		return j
	}
	content := func(t *testing.T, j *job, name string) string {
		b, err := os.ReadFile(filepath.Join(j.store, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return string(b)
	}
	t.Run("in time", func(t *testing.T) {
		j := run(t, "10m0s")
		if s := j.status(); s.State != proto.JobState_JOB_STATE_STOPPING || task(s, "evaluator-0").State != proto.TaskState_TASK_STATE_RUNNING {
			t.Errorf("the job is %s, the evaluator %s", s.State, task(s, "evaluator-0").State)
		}
		must(t, os.WriteFile(filepath.Join(j.store, "go"), nil, 0o666))
		s := j.end(long, proto.JobState_JOB_STATE_SUCCEEDED)
		if text := content(t, j, "exported"); text != "trained\n" || content(t, j, "stopped") != "" {
			t.Errorf("it exported %q", text)
		}
		if e := task(s, "evaluator-0"); e.State != proto.TaskState_TASK_STATE_SUCCEEDED {
			t.Errorf("the evaluator is %s\n%s", e.State, eventLog(s))
		}
	})
	t.Run("not in time", func(t *testing.T) {
		j := run(t, "2s")
		s := j.end(long, proto.JobState_JOB_STATE_SUCCEEDED)
		if content(t, j, "stopped") != "told to end\n" || content(t, j, "exported") != "" {
			t.Errorf("it was not told to end, or has exported %q", content(t, j, "exported"))
		}
		if log := eventLog(s); !strings.Contains(log, "it has not ended within 2s of the others; it is stopped (--evaluator-finish)") {
			t.Errorf("what happened:\n%s", log)
		}
		if e := task(s, "evaluator-0"); e.State != proto.TaskState_TASK_STATE_STOPPED {
			t.Errorf("the evaluator is %s", e.State)
		}
	})
}
