package main

import (
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"holdfast/proto"
)

// TestMetricsOfAJob: Prometheus sees that a task was lost, how long it took until it ran
// again, and the step; not without the key of the page.
func TestMetricsOfAJob(t *testing.T) {
	p := newPlace(t)
	id := p.detached("--worker", "1", "--", "sh", "-c", "echo step 7; exec sleep 1000")
	s := p.until(id, "the task runs", func(s *proto.JobStatus) bool { return s.Step == 7 && s.Tasks[0].Pid != 0 })
	if err := syscall.Kill(int(s.Tasks[0].Pid), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s = p.until(id, "the task runs again", func(s *proto.JobStatus) bool {
		return len(s.Incidents) == 1 && s.Incidents[0].RecoveredUnixMs != 0
	})
	get := func(url string) (int, string) {
		r, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return r.StatusCode, string(text)
	}
	app := `{app="` + id + `"`
	code, text := get(s.TrackingUrl + "metrics")
	for _, want := range []string{
		"\nholdfast_tasks" + app + `,role="worker",state="running"} 1` + "\n",
		"\nholdfast_step" + app + "} 7\n",
		"\nholdfast_losses_total" + app + `,cause="` + s.Incidents[0].Cause + `"} 1` + "\n",
		"\nholdfast_recovery_seconds_count" + app + "} 1\n",
		"\nholdfast_incidents_open" + app + "} 0\n",
	} {
		if code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("the metrics (%d) have no %s:\n%s", code, want, text)
		}
	}
	root := s.TrackingUrl[:strings.LastIndexByte(strings.TrimSuffix(s.TrackingUrl, "/"), '/')]
	if code, text := get(root + "/metrics"); code != http.StatusForbidden || strings.Contains(text, "holdfast_") {
		t.Errorf("without the key the metrics answer %d:\n%s", code, text)
	}
}
