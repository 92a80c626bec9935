package hdfsckpt_test

import (
	"testing"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/retain"
)

// TestCopiesOfWorkersAreDiscarded: what a worker of MultiWorkerMirroredStrategy writes
// beside the chief's checkpoints is not listed, sealed or retained, whatever the rule.
func TestCopiesOfWorkersAreDiscarded(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	putCheckpoint(t, s, "backup/ckpt-2", nil)
	putCheckpoint(t, s, "backup/workertemp_1/ckpt-2", nil)
	put(t, s, "workertemp_12/step-7/model.pt", torchFixture(t, "alone.pt"))
	put(t, s, "workertemp_12/done", nil)
	put(t, s, "my_workertemp_1/model-3.pt", torchFixture(t, "alone.pt"))
	if got, want := states(list(t, s)), "backup/ckpt-2 complete; my_workertemp_1/model-3.pt complete"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for name, want := range map[string]bool{
		"backup/ckpt-2.index": true, "backup/workertemp_1/ckpt-2.index": false,
		"workertemp_12/step-7/model.pt": false, "my_workertemp_1/model-3.pt": true,
	} {
		if retain.Concerns(name) != want {
			t.Errorf("%s is retained: %v", name, !want)
		}
	}
	for _, rule := range []format.Rule{{Format: formats.Plain, Marker: "done"}, {Format: formats.Plain, Quiet: 60}} {
		must(t, format.SetRule(t.Context(), s, rule))
		for _, c := range list(t, s) {
			if c.Name == "workertemp_12" {
				t.Errorf("by %+v it is listed as %s", rule, c.State)
			}
		}
	}
}
