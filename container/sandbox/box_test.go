package sandbox_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/container/sandbox"
)

func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func TestProbe(t *testing.T) {
	// This machine allows everything, or the tests of mounts could not run.
	for name, o := range map[string]sandbox.Options{"as it comes": {}, "user namespace": {UserNamespace: true}} {
		a, err := sandbox.Probe(limited(t), o)
		if err != nil || a.Namespace != nil || a.Fuse != nil || a.Steer != nil {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
	a, err := sandbox.Probe(limited(t), sandbox.Options{NoNamespace: true})
	if err != nil || a.Namespace == nil || a.Steer != nil {
		t.Errorf("without a namespace: %+v, %v", a, err)
	}
	if a.Namespace != nil && !strings.Contains(a.Namespace.Error(), "sysctl") {
		t.Errorf("no remedy is named: %v", a.Namespace)
	}
}

func TestBindsAreSeenOnlyInTheBox(t *testing.T) {
	for name, o := range map[string]sandbox.Options{"as it comes": {}, "user namespace": {UserNamespace: true}} {
		t.Run(name, func(t *testing.T) {
			b, err := sandbox.Start(limited(t), o)
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			defer b.Listener().Close()
			dir := t.TempDir()
			mine, over := filepath.Join(dir, "mine"), filepath.Join(dir, "over")
			for file, text := range map[string]string{mine: "mine", over: "over"} {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.Bind(mine, over); err != nil {
				t.Fatal(err)
			}
			if err := b.Bind(mine, filepath.Join(dir, "none")); !errors.Is(err, syscall.ENOENT) {
				t.Errorf("binding over nothing: %v", err)
			}
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			p, err := b.Exec(sandbox.Command{Argv: []string{"cat", over}, Env: []string{"PATH=/bin:/usr/bin"}, Dir: dir, Output: w})
			w.Close()
			if err != nil {
				t.Fatal(err)
			}
			text := make([]byte, 100)
			n, _ := r.Read(text)
			if status, ok := p.Status(); !ok || status.ExitStatus() != 0 || string(text[:n]) != "mine" {
				t.Errorf("in the box: %q, %v, %v", text[:n], status, ok)
			}
			if got, _ := os.ReadFile(over); string(got) != "over" {
				t.Errorf("outside: %q", got)
			}
		})
	}
}

// boxWithoutOutput starts a box, and opens what takes its processes' output.
func boxWithoutOutput(t *testing.T) (*sandbox.Box, *os.File) {
	t.Helper()
	b, err := sandbox.Start(limited(t), sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.Listener().Close()
		b.Close()
	})
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { null.Close() })
	return b, null
}

func TestManyShortProcesses(t *testing.T) {
	b, null := boxWithoutOutput(t)
	for i := range 200 {
		p, err := b.Exec(sandbox.Command{Argv: []string{"/bin/sh", "-c", "exit $0", string(rune('0' + i%10))}, Dir: "/", Output: null})
		if err != nil {
			t.Fatal(err)
		}
		if status, ok := p.Status(); !ok || status.ExitStatus() != i%10 {
			t.Fatalf("process %d: %v, %v", i, status, ok)
		}
	}
}

// TestAStandingProcessOutlivesAnAttempt: also one that is started while the attempt's processes
// are ended.
func TestAStandingProcessOutlivesAnAttempt(t *testing.T) {
	ctx := limited(t)
	b, null := boxWithoutOutput(t)
	sleep := sandbox.Command{Argv: []string{"/bin/sleep", "1000"}, Dir: "/", Output: null}
	ending, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		for ending.Err() == nil {
			if err := b.KillAttempt(ctx); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	var standing []*sandbox.Process
	for range 100 {
		sleep.Standing = true
		p, err := b.Exec(sleep)
		if err != nil {
			t.Fatal(err)
		}
		standing = append(standing, p)
	}
	sleep.Standing = false
	p, err := b.Exec(sleep)
	if err != nil {
		t.Fatal(err)
	}
	p.Status() // it is ended with the attempt
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for i, p := range standing {
		select {
		case <-p.Done():
			t.Errorf("standing process %d has ended with the attempt", i)
		default:
		}
	}
}
