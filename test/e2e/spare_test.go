package e2e

import (
	"testing"

	"holdfast/proto"
)

// TestASpareContainer takes the place of a lost one.
func TestASpareContainer(t *testing.T) {
	plain.enter(t)
	places(t, func(t *testing.T, w where, store string) {
		j := w.train(t, store, untilFinish, "--spares", "1")
		j.until(long, "all to run", running)
		before := j.untilCheckpoint(long, 1)
		j.until(long, "the spare's agent", func(*proto.JobStatus) bool { return len(j.agents()) == 5 })
		j.killContainer("ps-1")
		took := j.back(long, "ps-1")
		t.Logf("running again after %s", took)
		s := j.until(long, "the next spare's agent", func(*proto.JobStatus) bool { return len(j.agents()) == 5 })
		if a := task(s, "ps-1").Attempt; a != 1 {
			t.Errorf("ps-1 runs attempt %d", a)
		}
		if restored := number(t, j.said(long, "worker-0", `restored step (\d+)`)); restored < before {
			t.Errorf("it went on from step %d, and the checkpoint of step %d was complete", restored, before)
		}
		j.finish(long)
	})
}
