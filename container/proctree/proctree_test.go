package proctree_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/container/proctree"
)

func TestKillDescendantsFindsOrphans(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// A parent whose name has what /proc/PID/stat does not escape, and whose
	// child is an orphan in a session of its own.
	script := filepath.Join(dir, "a) R 1 (b")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nsetsid sh -c 'sleep 1000 & echo $! >"+dir+"/orphan'\nsleep 1000\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(script)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waited := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(waited)
	}()
	orphan := 0
	for deadline := time.Now().Add(90 * time.Second); orphan == 0; time.Sleep(10 * time.Millisecond) {
		b, _ := os.ReadFile(dir + "/orphan")
		orphan, _ = strconv.Atoi(strings.TrimSpace(string(b)))
		if time.Now().After(deadline) {
			t.Fatal("no orphan came")
		}
	}
	below := proctree.Descendants(os.Getpid())
	if !slices.Contains(below, cmd.Process.Pid) || !slices.Contains(below, orphan) {
		t.Fatalf("%d and %d are not among %v", cmd.Process.Pid, orphan, below)
	}
	if proctree.RSS(cmd.Process.Pid) <= 0 || proctree.Anonymous(os.Getpid()) <= 0 {
		t.Error("a living process without memory")
	}
	bytes := int64(0)
	for cpu := time.Duration(0); cpu == 0; { // which this loop uses
		cpu, bytes = proctree.Usage(os.Getpid(), cmd.Process.Pid, 1<<30)
	}
	if bytes <= 0 {
		t.Errorf("this process has read and written %d bytes", bytes)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	if err := proctree.KillDescendants(ctx, os.Getpid(), nil); err != nil {
		t.Fatal(err)
	}
	<-waited
	if left := proctree.Descendants(os.Getpid()); len(left) != 0 {
		t.Fatalf("left: %v", left)
	}
}
