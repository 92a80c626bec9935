package pyenv_test

import (
	"os/exec"
	"strings"
	"testing"

	"holdfast/test/pyenv"
)

func TestTensorFlow(t *testing.T) {
	python, err := pyenv.TensorFlow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Importing takes seconds; that it is found in the environment suffices.
	out, err := exec.CommandContext(t.Context(), python, "-c",
		"import importlib.metadata as m; print(m.version('tensorflow-cpu'))").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "2.21.0" {
		t.Errorf("TensorFlow's version: %v, %s", err, out)
	}
}

func TestTorch(t *testing.T) {
	python, err := pyenv.Torch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), python, "-c", "import torch; print(torch.ones(2).sum().item())").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "2.0" {
		t.Errorf("PyTorch adds: %v, %s", err, out)
	}
	t.Setenv("TORCH_PYTHON", "/nonexistent/python")
	if _, err := pyenv.Torch(t.Context()); err == nil || !strings.Contains(err.Error(), "apt-get install python3-torch") {
		t.Errorf("without PyTorch: %v", err)
	}
}
