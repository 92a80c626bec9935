package mutation

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// inModule is the absolute path of what the module has at that path.
func inModule(t *testing.T, path string) string {
	t.Helper()
	abs, err := filepath.Abs(filepath.Join("..", "..", path))
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// replaceOnce returns the file's text with new in the place of old, which must be
// there exactly once.
func replaceOnce(file, old, new string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), old); n != 1 {
		return "", fmt.Errorf("%s has what is to be replaced %d times, and not once: the mutation is out of date", file, n)
	}
	if old == new {
		return "", fmt.Errorf("the mutation of %s changes nothing", file)
	}
	return strings.Replace(string(text), old, new, 1), nil
}

// overlayFor writes a file for the compiler's -overlay: with it, the file's text is
// what replaceOnce returns.
func overlayFor(t *testing.T, file, old, new string) (string, error) {
	mutant, err := replaceOnce(file, old, new)
	if err != nil {
		return "", err
	}
	dir := t.TempDir()
	source := filepath.Join(dir, filepath.Base(file))
	if err := os.WriteFile(source, []byte(mutant), 0o644); err != nil {
		return "", err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: source}})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, "overlay.json")
	return list, os.WriteFile(list, overlay, 0o644)
}
