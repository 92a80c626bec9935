package runtime_test

import (
	"os"
	"os/exec"
	"testing"
)

// TestPython runs the tests of the shim's own package, as containers get it.
func TestPython(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), python3(t), "-m", "unittest", "discover", "-s", "python/tests")
	cmd.Env = append(os.Environ(), "SHIM="+shimDir(t))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
