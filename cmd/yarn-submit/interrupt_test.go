package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"holdfast/client"
	"holdfast/hdfsckpt/writers"
	"holdfast/proto"
)

// TestAnInterruptIsTold: a command that a signal has ended says so, in JSON where that was asked
// for, and has its own exit code; it has changed nothing.
func TestAnInterruptIsTold(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(s.String(), func(t *testing.T) {
			p := newPlace(t)
			dir := filepath.Join(p.dir, "ck")
			for _, name := range []string{"step-10.ckpt", "step-20.ckpt"} {
				copyFixtures(t, dir, map[string]string{"torchfile/testdata/alone.pt": name})
			}
			if err := os.MkdirAll(filepath.Join(dir, writers.Dir("local-20260101-000000-lost")), 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := p.command("ckpt", "rollback", "./ck", "10", "--yes", "-o", "json")
			var out bytes.Buffer
			cmd.Stdout = &out
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			timer := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
			defer timer.Stop()
			errs := bufio.NewReader(stderr)
			line, err := errs.ReadString('\n')
			if err != nil {
				t.Error(err)
			}
			contains(t, line, "has not ended its writing") // it waits for that
			if err := cmd.Process.Signal(s); err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(errs)
			_ = cmd.Wait()
			var answer struct{ Error proto.Failure }
			if err := json.Unmarshal(text, &answer); err != nil {
				t.Errorf("%v: %s", err, text)
			}
			if code := cmd.ProcessState.ExitCode(); code != client.ExitInterrupted || answer.Error.Code != code || answer.Error.Kind != "interrupted" || out.Len() > 0 {
				t.Errorf("it ended with %d: %s%s", code, &out, text)
			}
			if list := listJSON(t, p, "./ck"); len(list) != 2 {
				t.Errorf("there are %+v", list)
			}
		})
	}
}

// TestCtrlCAtAQuestion: it is no answer.
func TestCtrlCAtAQuestion(t *testing.T) {
	p := newPlace(t)
	for _, name := range []string{"step-10.ckpt", "step-20.ckpt"} {
		copyFixtures(t, filepath.Join(p.dir, "ck"), map[string]string{"torchfile/testdata/alone.pt": name})
	}
	x := inTerminal(t, p.command("ckpt", "prune", "./ck", "--keep", "1"))
	x.See("[y/N]", 1)
	x.Press("\x03")
	if code := x.Code(); code != client.ExitInterrupted {
		t.Fatalf("it ended with %d: %s", code, x.Shown())
	}
	x.See("yarn-submit: interrupted: nothing was changed", 1)
	if list := listJSON(t, p, "./ck"); len(list) != 2 {
		t.Errorf("there are %+v", list)
	}
}
