package main

import (
	"os/exec"
	"testing"
)

// TestLongManyTasks: one application master with ten thousand tasks takes hardly more memory
// for each than is aimed at.
func TestLongManyTasks(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "run", ".").CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}
