package pyenv_test

import (
	"os/exec"
	"strings"
	"testing"

	"holdfast/internal/pyenv"
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
