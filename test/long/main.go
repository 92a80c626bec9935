// Command long runs the tests that take too long for each change, in slices: CI
// runs one of them each day, in turn.
//
//	go run ./test/long              # all slices
//	go run ./test/long -slice NAME  # one
//	go run ./test/long -today       # the one whose turn it is
//	go run ./test/long -list        # what there is
//
// A test is long if its name begins with TestLong; `make test` runs all others. A
// test here holds that each long test is in exactly one slice, and that nothing else
// is left out of `make test`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"holdfast/container/proctree"
	"holdfast/test/programs"
	"holdfast/test/testcluster/dist"
)

// slice is what one turn runs.
type slice struct {
	name   string
	hadoop string // the version of Hadoop; empty: the default
	// families are those of test/programs whose Python environments the tests need. They are
	// made before the slice's time counts, as they stay for the next turn.
	families []string
	tests    []tests
}

// tests are some of one package.
type tests struct {
	in    string // the package, relative to the module
	names []string
}

func main() {
	list := flag.Bool("list", false, "only print the slices")
	today := flag.Bool("today", false, "run the slice whose turn it is today")
	name := flag.String("slice", "", "run the slice of this `name`")
	var l limits
	flag.DurationVar(&l.budget, "budget", 30*time.Minute, "how long a slice may take, once its environments are there")
	flag.DurationVar(&l.environments, "environments", 25*time.Minute, "how long making a slice's environments may take")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "long: %q is no option; -slice %[1]s runs one slice\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *list, *today, *name, l)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "long:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, list, today bool, name string, l limits) error {
	chosen := allSlices
	switch {
	case today:
		chosen = []slice{turn(time.Now())}
	case name != "":
		chosen = nil
		for _, s := range allSlices {
			if s.name == name {
				chosen = []slice{s}
			}
		}
		if chosen == nil {
			return fmt.Errorf("there is no slice %q: -list prints those that there are", name)
		}
	}
	var failed []error
	for _, s := range chosen {
		fmt.Printf("slice %s\n", s)
		if list {
			continue
		}
		begun := time.Now()
		if err := s.run(ctx, l); err != nil {
			failed = append(failed, fmt.Errorf("slice %s: %w", s.name, err))
		}
		fmt.Printf("slice %s took %s\n", s.name, time.Since(begun).Round(time.Second))
	}
	return errors.Join(failed...)
}

// limits are those of a slice's time.
type limits struct{ budget, environments time.Duration }

// turn is the slice of a day: all of them have run within as many days as there are
// slices.
func turn(day time.Time) slice {
	return allSlices[int(day.Unix()/(24*60*60))%len(allSlices)]
}

func (s slice) String() string {
	var b strings.Builder
	b.WriteString(s.name)
	if s.hadoop != "" {
		b.WriteString(" (Hadoop " + s.hadoop + ")")
	}
	for _, t := range s.tests {
		fmt.Fprintf(&b, "\n  %s: %s", t.in, strings.Join(t.names, ", "))
	}
	return b.String()
}

// run makes the slice's environments, and runs its tests, one package at a time.
func (s slice) run(ctx context.Context, l limits) error {
	if len(s.families) > 0 {
		begun := time.Now()
		if err := makeEnvironments(ctx, s.families, l.environments); err != nil {
			return err
		}
		fmt.Printf("slice %s: its environments were there after %s\n", s.name, time.Since(begun).Round(time.Second))
	}
	ctx, cancel := context.WithTimeout(ctx, l.budget)
	defer cancel()
	var failed []error
	for _, t := range s.tests {
		cmd := exec.CommandContext(ctx, "go", "test", "-v", "-count=1", "-timeout", l.budget.String(),
			"-run", "^("+strings.Join(t.names, "|")+")$", "./"+t.in)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if s.hadoop != "" {
			cmd.Env = append(os.Environ(), dist.VersionEnv+"="+s.hadoop)
		}
		cmd.Cancel = func() error { return interrupt(cmd.Process.Pid) }
		cmd.WaitDelay = time.Minute
		if err := cmd.Run(); err != nil {
			if ctx.Err() != nil {
				err = fmt.Errorf("not done within %s", l.budget)
			}
			failed = append(failed, fmt.Errorf("%s: %w", t.in, err))
		}
	}
	return errors.Join(failed...)
}

// interrupt ends a process and what it has started as Ctrl-C does, which goes to a whole
// process group: go does not pass a signal on to the test that it runs. What a test has
// put in a group of its own clears up after it.
func interrupt(pid int) error {
	var errs []error
	for _, p := range append(proctree.Descendants(pid), pid) {
		if group, err := syscall.Getpgid(p); err != nil || group != syscall.Getpgrp() {
			continue
		}
		if err := syscall.Kill(p, syscall.SIGINT); err != nil && !errors.Is(err, syscall.ESRCH) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// makeEnvironments makes what families of programs run on, within a limit.
func makeEnvironments(ctx context.Context, families []string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := programs.MakeEnvironments(ctx, families)
	if err != nil && ctx.Err() == context.DeadlineExceeded {
		return fmt.Errorf("the environments of %s are not there within %s, and the next turn begins anew: %w", strings.Join(families, ", "), limit, err)
	}
	return err
}
