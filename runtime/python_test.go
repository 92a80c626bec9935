package runtime_test

import (
	"os/exec"
	"testing"
)

// TestPython runs the tests of the shim's own package.
func TestPython(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), python3(t), "-m", "unittest", "discover", "-s", "python/tests")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
