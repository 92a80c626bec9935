package hdfsckpt_test

import (
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// savedBy has a script of testdata save checkpoints into a directory, which it returns, and decodes
// what the script prints. How long python takes to find an interpreter, which may have to be
// downloaded, does not count in the script's time.
func savedBy(t *testing.T, python func(context.Context) (string, error), script string, said any) (dir string) {
	t.Helper()
	path, err := python(t.Context())
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dir = t.TempDir()
	cmd := exec.CommandContext(ctx, path, "testdata/"+script, dir)
	var log strings.Builder
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v:\n%s", script, err, log.String())
	}
	must(t, json.Unmarshal(out, said))
	return dir
}
