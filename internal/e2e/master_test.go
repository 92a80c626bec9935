package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/proto"
)

// TestTheMasterIsLost: tasks do not notice, and what is lost after that is
// dealt with by the next master.
func TestTheMasterIsLost(t *testing.T) {
	for _, loss := range []struct {
		name   string
		signal syscall.Signal
	}{
		{"killed", syscall.SIGKILL},
		{"ended", syscall.SIGTERM}, // as a NodeManager does
	} {
		t.Run(loss.name, func(t *testing.T) {
			c := hadoop(t)
			j := where{c}.train(t, c.HDFS()+"/tests/"+strings.ReplaceAll(t.Name(), "/", "-"), 600)
			before := j.until(long, "all to run", running)
			j.untilCheckpoint(long, 1)
			masters := j.masters()
			if len(masters) != 1 {
				t.Fatalf("application masters: %v", masters)
			}
			lost := time.Now()
			if err := syscall.Kill(masters[0], loss.signal); err != nil {
				t.Fatal(err)
			}
			s := j.until(long, "the next master to have all agents", func(s *proto.JobStatus) bool {
				for _, t := range s.Tasks {
					if t.AgentPid == 0 || !strings.Contains(story(s), "attempt 2 has taken over") {
						return false
					}
				}
				return len(s.Tasks) == 4
			})
			t.Logf("all agents were with the next master %s after the loss, status included", time.Since(lost).Round(10*time.Millisecond))
			if s.StartedUnixMs != before.StartedUnixMs {
				t.Error("the job began anew")
			}
			for _, b := range before.Tasks {
				if now := task(s, b.Task); now.Pid != b.Pid || now.Attempt != b.Attempt || now.Container != b.Container {
					t.Errorf("%s ran as process %d (attempt %d), and now as %d (attempt %d)", b.Task, b.Pid, b.Attempt, now.Pid, now.Attempt)
				}
			}
			step := j.untilCheckpoint(long, 1)
			j.killContainer("ps-1")
			j.back(long, "ps-1")
			j.end(long, proto.JobState_JOB_STATE_SUCCEEDED)
			if newest := j.newestComplete(); newest != 600 {
				t.Errorf("the newest checkpoint is of step %d, want 600", newest)
			}
			if restored := lastNumber(t, j.logs("worker-0"), `restored step (\d+)`); restored < step {
				t.Errorf("it went on from step %d, and the checkpoint of step %d was complete", restored, step)
			}
		})
	}
}

// story is a job's story in one text.
func story(s *proto.JobStatus) string {
	var all strings.Builder
	for _, m := range s.Timeline {
		all.WriteString(m.Text + "\n")
	}
	return all.String()
}
