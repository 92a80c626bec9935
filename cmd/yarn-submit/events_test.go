package main

import (
	"os"
	"path/filepath"
	"testing"

	"holdfast/proto"
)

// TestScalarsOfEventFiles: a program that prints nothing, and writes an event file to its
// checkpoint path, has steps and a loss.
func TestScalarsOfEventFiles(t *testing.T) {
	p := newPlace(t)
	events, err := filepath.Abs("../../runtime/tfevents/testdata/loss.tfevents") // of 10 steps, written by TensorFlow
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	id := p.detached("--worker", "1", "--checkpoint", "out="+out, "--", "sh", "-c", `dd bs=100 status=none if="$0" of=out/events.out.tfevents.1; exec sleep 1000`, events)
	s := p.until(id, "a loss", func(s *proto.JobStatus) bool { return len(s.Scalars) == 1 && s.Step == 10 })
	if v := s.Scalars[0]; v.Name != "loss" || float32(v.Value) != 0.1 {
		t.Errorf("the scalar is %+v", v)
	}
	want, err := os.ReadFile(events)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(out, "events.out.tfevents.1")); err != nil || string(got) != string(want) {
		t.Errorf("of the file there are %d of %d bytes: %v", len(got), len(want), err)
	}
	p.call("kill", id)
}
