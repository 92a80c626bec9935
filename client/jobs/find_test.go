package jobs

import (
	"os"
	"path/filepath"
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
		{"application_1", []string{"7 jobs begin with", "application_1_0003  over  killed, started "}},
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

// TestClusterAway: where neither the ResourceManager nor HDFS answers, that is said within
// seconds, and not after all the retries of both.
func TestClusterAway(t *testing.T) {
	dir := t.TempDir()
	for file, property := range map[string]string{
		"core-site.xml": "<name>fs.defaultFS</name><value>hdfs://127.0.0.1:1</value>",
		"yarn-site.xml": "<name>yarn.resourcemanager.address</name><value>127.0.0.1:1</value>",
	} {
		text := "<configuration><property>" + property + "</property></configuration>"
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HADOOP_CONF_DIR", dir)
	began := time.Now()
	j, err := Open(t.Context(), "application_1795571056298_0001")
	if err == nil {
		j.Close()
		t.Fatal("a job is found on a cluster that does not answer")
	}
	if took := time.Since(began); took > 12*time.Second || client.ExitCode(err) != client.ExitUnreachable {
		t.Errorf("after %s: %v", took, err)
	}
}
