package main

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/client"
)

// TestTheOtherFlagF: -f follows, except where a job is started; what happens to be called like the
// job is not read as a job file.
func TestTheOtherFlagF(t *testing.T) {
	p := newPlace(t)
	if err := unix.Mkfifo(filepath.Join(p.dir, "train"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, errs, code := p.call("logs", "-f", "train"); code != client.ExitUsage { // there is no such job
		t.Errorf("logs -f ended with %d: %s", code, errs)
	}
}

// TestTheFileOfAJobHasItsRoles: each of them has flags, however the file is named.
func TestTheFileOfAJobHasItsRoles(t *testing.T) {
	p := newPlace(t)
	write(t, filepath.Join(p.dir, "job.yaml"), "local: true\nroles: {helper: 2}\ncommand: \"true\"\n")
	for _, file := range [][]string{{"-f", "job.yaml"}, {"-f=job.yaml"}, {"-fjob.yaml"}, {"--file", "job.yaml"}, {"--file=job.yaml"}} {
		out, errs, code := p.call(append(append([]string{"run"}, file...), "--helper-memory", "256m", "--dry-run")...)
		if code != 0 {
			t.Errorf("%v ended with %d: %s", file, code, errs)
			continue
		}
		contains(t, out, "256m")
	}
}
