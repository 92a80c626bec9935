package stage

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestHome: programs find a HOME that they can write to.
func TestHome(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	const own = "/container/home"
	for inherited, want := range map[string]string{dir: dir, file: own, "": own, filepath.Join(dir, "none"): own} {
		env := environment([]string{"HOME=" + inherited}, nil, "", own, "", nil)
		if !slices.Contains(env, "HOME="+want) {
			t.Errorf("with HOME=%s: %q", inherited, env)
		}
	}
	if env := environment(nil, map[string]string{"HOME": "/elsewhere"}, "", own, "", nil); !slices.Contains(env, "HOME=/elsewhere") {
		t.Errorf("the user's own HOME is gone: %q", env)
	}
}
