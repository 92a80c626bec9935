package formats

import (
	"os"
	"path/filepath"
	"testing"
)

// seed begins a fuzz target with the recorded files that match a pattern, which are as many.
func seed(f *testing.F, pattern string, recorded int) {
	f.Helper()
	files, err := filepath.Glob(filepath.Join("..", "testdata", pattern))
	if err != nil || len(files) != recorded {
		f.Fatalf("recorded are %v, %v", files, err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
}
