package jobs

import (
	"strings"
	"testing"
	"time"

	"holdfast/client"
	"holdfast/proto"
)

// TestWhichJobIsMeant: a name means the job that runs, whichever is newer.
func TestWhichJobIsMeant(t *testing.T) {
	now := time.Now()
	job := func(id, name, state string, age time.Duration) *proto.JobSummary {
		of := proto.JobState_value["JOB_STATE_"+strings.ToUpper(state)]
		return &proto.JobSummary{Id: id, Name: name, State: proto.JobState(of), Where: "q", StartedUnixMs: now.Add(-age).UnixMilli()}
	}
	list := []*proto.JobSummary{ // the newest first
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
		"application_1_0002": "application_1_0002", "du": "application_1_0004", "ov": "application_1_0003", "": "application_1_0007",
	} {
		if e, err := resolve(ref, list); err != nil || e.Id != want {
			t.Errorf("%s is taken for %s (%v), want %s", ref, e.GetId(), err, want)
		}
	}
	for _, c := range []struct {
		ref  string
		want []string
	}{
		{"twice", []string{"2 jobs", "\n  application_1_0007  twice  waiting", "\n  application_1_0006  twice  running"}},
		{"ovre", []string{`no job "ovre"`, "did you mean over?"}},
		{"tw", []string{"2 jobs called"}},
		{"application_1", []string{"7 jobs begin with", "application_1_0003  over  killed"}},
		{"else", []string{`no job "else"`, "yarn-submit list"}},
	} {
		e, err := resolve(c.ref, list)
		if client.ExitCode(err) != client.ExitUsage {
			t.Errorf("%s is taken for %s: %v", c.ref, e.GetId(), err)
			continue
		}
		for _, w := range c.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %q is missing in: %v", c.ref, w, err)
			}
		}
	}
}
