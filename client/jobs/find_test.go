package jobs

import (
	"strings"
	"testing"
	"time"

	"holdfast/client"
)

// TestWhichJobIsMeant: a name means the job that runs, whichever is newer.
func TestWhichJobIsMeant(t *testing.T) {
	now := time.Now()
	job := func(id, name, state string, age time.Duration) Entry {
		return Entry{ID: id, Name: name, State: state, Where: "q", Started: now.Add(-age), over: state != "running" && state != "waiting"}
	}
	list := []Entry{ // the newest first
		job("application_1_0007", "twice", "waiting", time.Minute),
		job("application_1_0006", "twice", "running", 2*time.Minute),
		job("application_1_0005", "dup", "succeeded", 3*time.Minute),
		job("application_1_0004", "dup", "running", 4*time.Minute),
		job("application_1_0003", "over", "killed", 5*time.Minute),
		job("application_1_0002", "over", "succeeded", 6*time.Minute),
		job("application_1_0001", "application_1_0002", "running", 7*time.Minute), // called like another's id
	}
	for ref, want := range map[string]string{
		"dup": "application_1_0004", "over": "application_1_0003", "application_1_0005": "application_1_0005",
		"application_1_0002": "application_1_0002",
	} {
		if e, err := resolve(ref, list); err != nil || e.ID != want {
			t.Errorf("%s is taken for %s (%v), want %s", ref, e.ID, err, want)
		}
	}
	for _, c := range []struct {
		ref  string
		want []string
	}{
		{"twice", []string{"2 jobs", "\n  application_1_0007  waiting", "\n  application_1_0006  running"}},
		{"ovre", []string{`no job "ovre"`, "did you mean over?"}},
		{"else", []string{`no job "else"`, "yarn-submit list"}},
	} {
		e, err := resolve(c.ref, list)
		if client.ExitCode(err) != client.ExitUsage {
			t.Errorf("%s is taken for %s: %v", c.ref, e.ID, err)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q is missing in: %v", c.ref, w, err)
			}
		}
	}
}
