package am_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/proto"
)

// awaitEvent waits until the event log has a line with this text.
func (j *job) awaitEvent(want string) {
	j.t.Helper()
	j.eventually("the words "+want, func() bool {
		status, err := j.client.Status(context.Background(), &proto.StatusRequest{})
		if err != nil {
			j.t.Fatal(err)
		}
		return slices.ContainsFunc(status.Events, func(m *proto.JobEvent) bool { return strings.Contains(m.Text, want) })
	})
}

// The task of a container that is about to be preempted runs on until the next checkpoint
// is complete, and is then stopped with time to save.
func TestAContainerIsWantedBack(t *testing.T) {
	j := start(t, func(s *proto.JobSpec, _ *cluster) {
		s.Checkpoints[0].Format, s.Checkpoints[0].QuietSeconds = "plain", 0.2
	})
	w0, _ := j.started("worker-0")
	w1, _ := j.started("worker-1")
	j.started("ps-0")
	j.awaitEvents("worker-1", action.KindStarted)
	j.events.Put(event.PreemptionWarned{Containers: []string{w1.container}, Within: 4 * time.Hour})
	j.awaitEvent("takes its container on n1 back within 4h0m0s")
	if err := os.WriteFile(filepath.Join(j.dir, "checkpoints", "state-7.npz"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	w0.send(&proto.FromAgent{Message: &proto.FromAgent_Committed{Committed: &proto.Committed{Path: "./train_logs", Files: []*proto.CommittedFile{{Name: []byte("state-7.npz"), Size: 2, Crc32C: 33, HasCrc32C: true}}}}})
	j.awaitEvents("worker-1", action.KindStarted, action.KindLost, action.KindRecovered)
	if again, s := j.started("worker-1"); again.container == w1.container || s.Attempt != 1 {
		t.Errorf("attempt %d in %s", s.Attempt, again.container)
	}
	if g := time.Duration(w1.grace.Load()) * time.Millisecond; g != time.Hour {
		t.Errorf("it was given %s to save", g)
	}
	status, err := j.client.Status(t.Context(), &proto.StatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if len(status.Incidents) != 1 || status.Incidents[0].Cause != "container preempted" || status.Incidents[0].Container != w1.container {
		t.Errorf("incidents: %v", status.Incidents)
	}
	j.stop()
	j.end(proto.JobState_JOB_STATE_KILLED)
}

// The tasks on a node that is decommissioned move, each once its new container is there.
func TestANodeIsTakenOutOfService(t *testing.T) {
	j := start(t, nil)
	for _, task := range []string{"ps-0", "worker-0", "worker-1"} {
		j.started(task)
	}
	j.events.Put(event.NodeDecommissioning{Node: "n1", Within: 5 * time.Second})
	var status *proto.JobStatus
	j.eventually("all tasks to run on the other node", func() bool {
		var err error
		if status, err = j.client.Status(context.Background(), &proto.StatusRequest{}); err != nil {
			t.Fatal(err)
		}
		for _, k := range status.Tasks {
			if k.Node != "n2" || k.Pid == 0 || k.Attempt != 1 || k.Failures != 0 {
				return false
			}
		}
		return true
	})
	j.events.Put(event.NodeRecommissioned{Node: "n1"})
	j.awaitEvent("n1 is in service again")
	for _, i := range status.Incidents {
		if i.Cause != "node taken out of service" || i.Node != "n1" || !strings.Contains(i.Recovery, "n2") {
			t.Errorf("incident: %v", i)
		}
	}
	j.stop()
	j.end(proto.JobState_JOB_STATE_KILLED)
}

// A task gets the time to stop that its job says, also if that is none.
func TestWhatATaskGetsToStop(t *testing.T) {
	ms := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct{ said, want *int64 }{
		"half a minute": {ms(30000), ms(30000)},
		"none":          {ms(0), ms(0)},
		"not said":      {nil, ms(100)}, // as this test's limits say
	} {
		t.Run(name, func(t *testing.T) {
			j := start(t, func(s *proto.JobSpec, _ *cluster) { s.StopGraceMs = c.said })
			w, _ := j.started("worker-0")
			j.awaitEvents("worker-0", action.KindStarted)
			w.grace.Store(-1)
			r, err := j.client.Kill(t.Context(), &proto.KillRequest{})
			if err != nil {
				t.Fatal(err)
			}
			if r.StopGraceMs != *c.want {
				t.Errorf("who kills it is told of %d ms", r.StopGraceMs)
			}
			j.end(proto.JobState_JOB_STATE_KILLED)
			if got := w.grace.Load(); got != *c.want {
				t.Errorf("it was given %d ms", got)
			}
		})
	}
}
