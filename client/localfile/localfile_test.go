package localfile

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestDigest(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	// The digest of "abc" is FIPS 180-2's example.
	if sum, err := Digest(t.Context(), name); err != nil || sum != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("the digest is %s, %v", sum, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Digest(ended, name); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context has ended: %v", err)
	}
	if _, err := Digest(t.Context(), name+"x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that does not exist: %v", err)
	}
}
