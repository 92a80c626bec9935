package e2e

import (
	"strings"
	"testing"

	"holdfast/proto"
)

// hangs makes steps, and in its first attempt worker-0 stops doing so, when the pace
// of the job has been seen for long enough.
const hangs = `i=0; while [ $i -lt 300 ]; do i=$((i+1)); echo "step $i"; sleep 0.07
[ $HOLDFAST_ATTEMPT-{index} = 0-0 ] && [ $i = 290 ] && sleep 600; done; exit 0`

func TestAStalledTaskIsRestarted(t *testing.T) {
	plain.enter(t)
	j := where{}.start(t, "", "--worker", "2", "--restart-stalled", "3s", "--", "sh", "-c", hangs)
	s := j.end(long, proto.JobState_JOB_STATE_SUCCEEDED)
	if len(s.Incidents) != 1 {
		t.Fatalf("incidents: %v", s.Incidents)
	}
	i := s.Incidents[0]
	if i.Task != "worker-0" || i.Cause != "no steps any longer" || !strings.Contains(i.Evidence, "since step 290") || i.Recovery != "in place" || i.RecoveredUnixMs == 0 {
		t.Errorf("the incident is %v", i)
	}
	if a, b := task(s, "worker-0").Attempt, task(s, "worker-1").Attempt; a != 1 || b != 0 {
		t.Errorf("worker-0 ended as attempt %d, worker-1 as %d", a, b)
	}
}
