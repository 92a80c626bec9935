package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Usage is what processes took, in seconds: from their start to the end of the
// last, and of processors, with their children.
type Usage struct{ Wall, CPU float64 }

// Usages are what one contestant took, run by run.
type Usages []Usage

// Wall are the seconds from start to end.
func (u Usages) Wall() Series {
	var s Series
	for _, x := range u {
		s = append(s, x.Wall)
	}
	return s
}

// CPU are the seconds of processors.
func (u Usages) CPU() Series {
	var s Series
	for _, x := range u {
		s = append(s, x.CPU)
	}
	return s
}

// Measure runs processes at the same time.
func Measure(all ...*exec.Cmd) (Usage, error) {
	outputs := make([]bytes.Buffer, len(all))
	errs := make([]error, len(all))
	began := time.Now()
	for i, cmd := range all {
		if cmd.Stdout == nil {
			cmd.Stdout = &outputs[i]
		}
		cmd.Stderr = &outputs[i]
		errs[i] = cmd.Start()
	}
	var u Usage
	for i, cmd := range all {
		if errs[i] == nil {
			errs[i] = cmd.Wait()
		}
		if errs[i] != nil {
			errs[i] = fmt.Errorf("%s: %w\n%s", commandLine(cmd), errs[i], bytes.TrimSpace(outputs[i].Bytes()))
			continue
		}
		u.CPU += (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	}
	u.Wall = time.Since(began).Seconds()
	return u, errors.Join(errs...)
}

// commandLine is what was run, without Java's class path, which is long.
func commandLine(cmd *exec.Cmd) string {
	args := slices.Clone(cmd.Args)
	if i := slices.Index(args, "-cp"); i >= 0 && i+1 < len(args) {
		args = slices.Delete(args, i, i+2)
	}
	return strings.Join(args, " ")
}

// build makes the programs that are compared: the commands ours and bare, and
// peer, which is a module of its own.
func (b *Bench) build(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return fmt.Errorf("finding the module to build what is compared: %w", err)
	}
	for _, name := range []string{"bench/files/ours", "bench/jobs/bare", "bench/files/peer", "scale"} {
		dir := filepath.Join(strings.TrimSpace(string(out)), "test", name)
		cmd := exec.CommandContext(ctx, "go", "build", "-C", dir, "-o", filepath.Join(b.Dir, filepath.Base(name)), ".")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s: %w\n%s", dir, err, out)
		}
	}
	return nil
}
