package main

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"holdfast/proto"
)

// keys returns the paths of all members of a JSON value; those of an array's elements together.
func keys(value any, at string, found map[string]bool) map[string]bool {
	switch v := value.(type) {
	case map[string]any:
		for key, e := range v {
			found[at+"."+key] = true
			keys(e, at+"."+key, found)
		}
	case []any:
		for _, e := range v {
			keys(e, at+"[]", found)
		}
	}
	return found
}

// TestThePageAndTheCommandSayTheSame: of a job that runs and has lost a task, and of the same
// when it has ended, status.json beside the page and status --output json have the same members,
// which docs/json.md has (TestDocsHaveTheJSON of the package proto).
func TestThePageAndTheCommandSayTheSame(t *testing.T) {
	p := newPlace(t)
	id := p.detached("--worker", "2", "--checkpoint", "./out=ck", "--", "sh", "-c", "echo step 7 loss: 0.5; [ {attempt} = 1 ] || kill -KILL $$; exec sleep 1000")
	s := p.until(id, "both tasks are back", func(s *proto.JobStatus) bool {
		return len(s.Incidents) >= 2 && s.OpenIncidents() == 0 && len(s.Scalars) > 0
	})
	members := func(text string) map[string]bool {
		t.Helper()
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		return keys(value, "", map[string]bool{})
	}
	command := func() map[string]bool {
		text, _, _ := p.call("status", id, "--output", "json") // its exit code is how the job has ended
		return members(text)
	}
	same := func(page func() string) {
		t.Helper()
		var paths [2]map[string]bool
		for settled := false; !settled; { // a task may report more meanwhile
			paths[0], paths[1] = command(), members(page())
			settled = maps.Equal(paths[0], command())
		}
		if a, b := slices.Sorted(maps.Keys(paths[0])), slices.Sorted(maps.Keys(paths[1])); !slices.Equal(a, b) {
			t.Errorf("the command has\n%s\nthe page has\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
		}
		for _, want := range []string{".json_version", ".tasks[].received_bytes_per_second", ".incidents[].lost_steps", ".checkpoints[].uri", ".scalars[].value"} {
			if !paths[0][want] {
				t.Errorf("there is no %s", want)
			}
		}
	}
	same(func() string { return get(t, s.TrackingUrl+"status.json") })
	out, errs, code := p.call("kill", id, "--output", "json")
	if code != 0 {
		t.Fatalf("kill ended with %d: %s", code, errs)
	}
	if ended, s := hadEnded(t, out); ended || s.State != proto.JobState_JOB_STATE_KILLED {
		t.Errorf("of a job that ran, kill says %s", out)
	}
	u := p.ui()
	browser := u.browser(t)
	same(func() string {
		code, text := u.ask(t, browser, "/jobs/"+id+"/status.json", "")
		if code != http.StatusOK {
			t.Fatalf("after its end the page answers %d: %s", code, text)
		}
		return text
	})
}
