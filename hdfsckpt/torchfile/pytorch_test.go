//go:build torch

package torchfile_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestInstalledPyTorch lets the PyTorch that is installed here write the
// fixtures, and reads them: go test -tags torch, with TORCH_PYTHON for another
// Python than python3.
func TestInstalledPyTorch(t *testing.T) {
	python := os.Getenv("TORCH_PYTHON")
	if python == "" {
		python = "python3"
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "make.py"), read(t, "make.py"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, python, filepath.Join(dir, "make.py")).CombinedOutput(); err != nil {
		t.Fatalf("PyTorch did not write its files: %v (TORCH_PYTHON names a Python that has it)\n%s", err, out)
	}
	t.Chdir(dir)
	if err := os.Symlink(".", "testdata"); err != nil {
		t.Fatal(err)
	}
	t.Run("tensors", TestTensorsAgreeWithPyTorch)
	t.Run("forms", TestOtherForms)
	t.Run("distributed", TestDistributed)
}
