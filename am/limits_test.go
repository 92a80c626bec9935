package am

import (
	"testing"
	"time"

	"holdfast/am/core"
	"holdfast/proto"
)

// A job is restarted when it stalls, unless its spec says that this is only told.
func TestStallsAreActedOn(t *testing.T) {
	for ms, want := range map[int64]time.Duration{600_000: 10 * time.Minute, 0: -1} {
		c := Config{Spec: &proto.JobSpec{RestartStalledMs: ms}}
		if got := c.limits(1).Stall; got != want {
			t.Errorf("with %d ms the limit is %v, want %v", ms, got, want)
		}
	}
	if l := core.New(nil, 0, 0, core.Limits{}).Limits(); l.Stall != 10*time.Minute || l.StallWarning != 2*time.Minute {
		t.Errorf("the usual limits are %v, and %v until it is told", l.Stall, l.StallWarning)
	}
}
