package faults_test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/test/faults"
)

// Each of these tests loses one thing after another under TensorFlow, and all of
// them together everything that there is.

func TestLongTasksAreLost(t *testing.T)   { lose(t, "tasks") }
func TestLongMastersAreLost(t *testing.T) { lose(t, "masters") }
func TestLongDaemonsAreLost(t *testing.T) { lose(t, "daemons") }
func TestLongNodesAreLost(t *testing.T)   { lose(t, "nodes") }

// TestLongPairsAreLost loses pairs of things, others each day.
func TestLongPairsAreLost(t *testing.T) {
	seed := uint64(time.Now().Unix() / (24 * 60 * 60))
	t.Logf("the plan is that of seed %d", seed)
	rounds, err := faults.Plan(seed, 0, 8, faults.Names())
	if err != nil {
		t.Fatal(err)
	}
	run(t, faults.Options{Rounds: rounds, Seed: seed})
}

// TestLongScenarios plays what takes jobs of their own shape, after the faults that
// have to strike together.
func TestLongScenarios(t *testing.T) {
	_, all := faults.Scenarios(faults.ScenarioNames())
	run(t, faults.Options{Rounds: roundsOf(t, "scenarios"), Scenarios: all, Seed: 1})
}

// groupOf is the test that loses it.
func groupOf(fault string) string {
	_, what, _ := strings.Cut(fault, " ")
	switch {
	case strings.Contains(fault, " + "):
		return "scenarios"
	case strings.HasPrefix(what, "AM"):
		return "masters"
	case what == "node" || what == "everything":
		return "nodes"
	case slices.Contains([]string{"NM", "RM", "DN", "NN"}, what):
		return "daemons"
	}
	return "tasks"
}

func lose(t *testing.T, group string) {
	run(t, faults.Options{Rounds: roundsOf(t, group), Seed: 1})
}

// roundsOf is one round of each fault of the group.
func roundsOf(t *testing.T, group string) []faults.Round {
	names := slices.DeleteFunc(faults.Rounds(), func(name string) bool { return groupOf(name) != group })
	t.Logf("what is lost: %s", strings.Join(names, ", "))
	rounds, err := faults.Plan(1, 1, 0, names)
	if err != nil {
		t.Fatal(err)
	}
	return rounds
}

func run(t *testing.T, o faults.Options) {
	o.Submit = filepath.Join(t.TempDir(), "yarn-submit")
	if out, err := exec.Command("go", "build", "-o", o.Submit, "holdfast/cmd/yarn-submit").CombinedOutput(); err != nil {
		t.Fatalf("building yarn-submit: %v\n%s", err, out)
	}
	o.PerJob, o.Log = 8, t.Logf
	report, err := faults.RunAlone(t.Context(), o)
	if report != nil {
		var table strings.Builder
		err = errors.Join(err, report.Print(&table))
		t.Logf("\n%s", &table)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Failures() {
		t.Error(f)
	}
}
