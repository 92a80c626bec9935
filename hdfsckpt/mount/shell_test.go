package mount_test

import (
	"os/exec"
	"testing"
)

// shell runs a script in a directory of a mount. The directory is entered by the
// shell, not by us.
func shell(t *testing.T, dir, script string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", "cd \"$1\" && "+script, "sh", dir).CombinedOutput()
	return string(out), err
}
