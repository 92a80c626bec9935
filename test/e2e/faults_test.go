package e2e

import (
	"path/filepath"
	"testing"

	"holdfast/test/faults"
)

// TestWhateverIsLostTrainingGoesOn loses one thing after another under
// TensorFlow, the most telling ones. All there are, and pairs of them:
//
//	go run ./test/faults/cmd -pairs 10
func TestWhateverIsLostTrainingGoesOn(t *testing.T) {
	training.enter(t)
	c := hadoop(t)
	script, err := filepath.Abs("../../examples/monitored-session/monitored_session.py")
	if err != nil {
		t.Fatal(err)
	}
	var rounds []faults.Round
	for _, names := range [][]string{{"kill ps"}, {"kill AM"}, {"pause chief agent"}} {
		r, err := faults.Of(names...)
		if err != nil {
			t.Fatal(err)
		}
		rounds = append(rounds, r)
	}
	report, err := faults.Run(t.Context(), faults.Options{
		Cluster: c, Submit: submit, Python: tensorflow(t), Script: script,
		Store: c.HDFS() + "/tests/faults", Home: t.TempDir(), Rounds: rounds, Log: t.Logf,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Failures() {
		t.Error(f)
	}
}
