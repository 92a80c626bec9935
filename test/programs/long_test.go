package programs_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"holdfast/test/programs"
)

// Each of these tests runs the programs of a family on YARN and loses something of each.

func TestLongTensorFlowPrograms(t *testing.T) { runAll(t, "tensorflow") }
func TestLongTensorFlowVersions(t *testing.T) { runAll(t, "tensorflow-versions") }
func TestLongTorchPrograms(t *testing.T)      { runAll(t, "torch") }
func TestLongBoostingPrograms(t *testing.T)   { runAll(t, "boosting") }
func TestLongJAXPrograms(t *testing.T)        { runAll(t, "jax") }
func TestLongMXNetPrograms(t *testing.T)      { runAll(t, "mxnet") }
func TestLongRayPrograms(t *testing.T)        { runAll(t, "ray") }
func TestLongTorchFTPrograms(t *testing.T)    { runAll(t, "torchft") }
func TestLongHorovodPrograms(t *testing.T)    { runAll(t, "horovod") }

func runAll(t *testing.T, family string) {
	chosen, unknown := programs.Select([]string{family})
	if len(unknown) > 0 {
		t.Fatalf("there is no family %q", unknown)
	}
	submit := filepath.Join(t.TempDir(), "yarn-submit")
	if out, err := exec.Command("go", "build", "-o", submit, "holdfast/cmd/yarn-submit").CombinedOutput(); err != nil {
		t.Fatalf("building yarn-submit: %v\n%s", err, out)
	}
	results, err := programs.Run(t.Context(), programs.Options{Submit: submit, Examples: "../../examples", Log: t.Logf}, chosen)
	if err != nil {
		t.Fatal(err)
	}
	if err := programs.Print(t.Output(), results); err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		for _, f := range r.Failures() {
			t.Error(f)
		}
	}
}
