package main

import (
	"os"
	"path/filepath"
	"strings"
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

// TestAJobFileOnStandardInput: relative paths in it are relative to the working directory, whether a
// shell gives it as a pipe or as a file, as some do with what stands after <<.
func TestAJobFileOnStandardInput(t *testing.T) {
	p := newPlace(t)
	write(t, filepath.Join(p.dir, "data.txt"), "data\n")
	const job = "local: true\nroles: {worker: 1}\nfiles: [data.txt]\ncommand: \"true\"\n"
	file := filepath.Join(t.TempDir(), "job.yaml")
	write(t, file, job)
	for _, name := range []string{"/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"} {
		for _, piped := range []bool{false, true} {
			cmd := p.command("run", "-f", name, "--dry-run")
			if piped {
				cmd.Stdin = strings.NewReader(job)
			} else {
				f, err := os.Open(file)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				cmd.Stdin = f
			}
			out, err := cmd.CombinedOutput()
			if err != nil || !strings.Contains(string(out), filepath.Join(p.dir, "data.txt")) {
				t.Errorf("%s, piped: %v: %v: %s", name, piped, err, out)
			}
		}
	}
	// A link of the user's is a place of its own.
	if err := os.Symlink(file, filepath.Join(p.dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := p.call("run", "-f", "link.yaml", "--dry-run"); code != 0 || !strings.Contains(out, filepath.Join(p.dir, "data.txt")) {
		t.Errorf("by a link it ended with %d: %s%s", code, out, errs)
	}
}
