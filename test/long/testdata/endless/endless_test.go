// Package endless has a test that does not end, of which a slice gets tired.
package endless

import (
	"os"
	"strconv"
	"testing"
)

func TestEndless(t *testing.T) {
	name := os.Getenv("HOLDFAST_ENDLESS")
	if err := os.WriteFile(name+".new", []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		t.Fatal(err)
	}
	select {}
}
