package am_test

import (
	"testing"
	"time"

	"holdfast/proto"
)

// TestNewTokens: new tokens reach the agents that run, and those that come later
// get the newest.
func TestNewTokens(t *testing.T) {
	j := start(t, nil)
	ps, _ := j.started("ps-0")
	worker, _ := j.started("worker-0")
	expect := func(a *agent, want string) {
		t.Helper()
		select {
		case got := <-a.tokens:
			if string(got) != want {
				t.Errorf("%s got %q, want %q", a.container, got, want)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%s got no tokens", a.container)
		}
	}
	for _, tokens := range []string{"first", "second"} {
		j.app.NewTokens([]byte(tokens))
		expect(ps, tokens)
		expect(worker, tokens)
	}
	j.lose("ps-0")
	again, _ := j.started("ps-0")
	expect(again, "second")
	j.stop()
	j.end(proto.JobState_JOB_STATE_KILLED)
}
