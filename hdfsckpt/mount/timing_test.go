package mount_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestTimesOfSavesAndRestores: how long a file was being written is told with it, and when files
// of the store are read; not of what is read back while it is written, nor of event files.
func TestTimesOfSavesAndRestores(t *testing.T) {
	m, dir := mountLocal(t)
	reads := func() []time.Time {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.reads
	}
	const writing = 300 * time.Millisecond
	f, err := os.Create(m.path("weights"))
	if err == nil {
		_, err = f.WriteString("first")
	}
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(writing) // what is measured
	if _, err := f.WriteString(" second"); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(m.path("weights")); err != nil || string(b) != "first second" {
		t.Errorf("it is read back as %q, %v", b, err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(reads()); n != 0 {
		t.Errorf("reading back what is being written counts as %d reads of the store", n)
	}
	m.mu.Lock()
	c := m.commits[len(m.commits)-1]
	m.mu.Unlock()
	if c.Name != "weights" || c.Writing < writing || c.Writing > time.Minute {
		t.Errorf("%+v was being written for %v, want %v and a little", c, c.Writing, writing)
	}
	// Written again through a new handle, it counts from there.
	if err := os.WriteFile(m.path("weights"), []byte("third"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(m.path("weights"), m.path("renamed")); err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	again, renamed := m.commits[len(m.commits)-2], m.commits[len(m.commits)-1]
	m.mu.Unlock()
	if again.Writing <= 0 || again.Writing >= writing || renamed.From != "weights" || renamed.Writing != 0 {
		t.Errorf("written again for %v; %+v", again.Writing, renamed)
	}

	for _, name := range []string{"restored", "events.out.tfevents.1"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("of an earlier job"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.ReadFile(m.path("events.out.tfevents.1")); err != nil || len(reads()) != 0 {
		t.Errorf("an event file counts as %d reads (%v)", len(reads()), err)
	}
	before := time.Now()
	if _, err := os.ReadFile(m.path("restored")); err != nil || len(reads()) == 0 {
		t.Fatalf("reading a file of the store counts as %d reads (%v)", len(reads()), err)
	}
	if at := reads()[0]; at.Before(before) || at.After(time.Now()) {
		t.Errorf("the read began at %v, and not after %v", at, before)
	}
}
