package stage

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestAMountPointDoesNotLookUnused: what cleans /tmp takes what nobody has changed for days for
// left behind.
func TestAMountPointDoesNotLookUnused(t *testing.T) {
	defer func(d time.Duration) { touchEvery = d }(touchEvery)
	touchEvery = 10 * time.Millisecond
	path := filepath.Join(t.TempDir(), "point")
	p, err := takeMountPoint(t.Context(), path, "checkpoints")
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-30 * 24 * time.Hour)
	for _, name := range []string{p.mark(), path} {
		if err := os.Chtimes(name, old, old); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
			if info, err := os.Stat(name); err != nil || info.ModTime().After(old.Add(24*time.Hour)) {
				break
			} else if time.Now().After(deadline) {
				t.Fatalf("%s is of %s", name, info.ModTime())
			}
		}
	}
	p.leave()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("it was left behind: %v", err)
	}
}
