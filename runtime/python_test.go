package runtime_test

import (
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// TestPython runs the tests of the shim's own package, as containers get it.
func TestPython(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), python3(t), "-m", "unittest", "discover", "-s", "python/tests")
	cmd.Env = append(os.Environ(), "SHIM="+shimDir(t))
	// Without any test to run, unittest is content before Python 3.12.
	if out, err := cmd.CombinedOutput(); err != nil || !regexp.MustCompile(`(?m)^Ran [1-9]`).Match(out) {
		t.Fatalf("%v\n%s", err, out)
	}
}
