package main

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"holdfast/proto"
)

// TestMetricsOfAJob: Prometheus sees that a task was lost, how long it took until it ran
// again, the step, and how long a save and the restore from it took; not without the key of the
// page.
func TestMetricsOfAJob(t *testing.T) {
	p := newPlace(t)
	// The save begins with data and ends, a second later, with the marker; the next attempt reads
	// the data, and a second later reads them again.
	id := p.detached("--worker", "1", "--total-steps", "700", "--checkpoint", "./out=ck", "--", "sh", "-c",
		`if [ -e out/step-5 ]; then cat out/step-5/data; sleep 1; cat out/step-5/data; echo step 6
		else mkdir -p out/step-5; echo x > out/step-5/data; sleep 1; touch out/step-5/COMMITTED; fi
		echo step 7; exec sleep 1000`)
	s := p.until(id, "the task has saved", func(s *proto.JobStatus) bool {
		return s.Step == 7 && s.Tasks[0].Pid != 0 && s.SaveMs != nil
	})
	// Ages are told in whole milliseconds, so a few are lost.
	if s.GetSaveMs() < 950 || s.GetSaveMs() > 60_000 || s.Tasks[0].RestoreMs != nil {
		t.Errorf("a save of a second took %d ms; the task, which has read nothing, restored for %v", s.GetSaveMs(), s.Tasks[0].RestoreMs)
	}
	if out, _, _ := p.call("status", id); !strings.Contains(out, "step 7/700") {
		t.Errorf("status does not say how many steps there are:\n%s", out)
	}
	if err := syscall.Kill(int(s.Tasks[0].Pid), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s = p.until(id, "the task runs again", func(s *proto.JobStatus) bool {
		return len(s.Incidents) == 1 && s.Incidents[0].RecoveredUnixMs != 0 && s.Tasks[0].RestoreMs != nil
	})
	if took := s.Tasks[0].GetRestoreMs(); took < 950 || took > 60_000 {
		t.Errorf("reading twice, a second apart, took %d ms", took)
	}
	if out, _, _ := p.call("describe", id, "worker-0"); !strings.Contains(out, "restored in") {
		t.Errorf("describe does not say how long the restore took:\n%s", out)
	}
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
		"\nholdfast_save_seconds_count" + app + "} 1\n",
		"\nholdfast_save_seconds_bucket" + app + `,le="0.5"} 0` + "\n",
		"\nholdfast_restore_seconds_count" + app + "} 1\n",
		"\nholdfast_restore_seconds_bucket" + app + `,le="0.5"} 0` + "\n",
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

// TestTheDashboardIsAboutWhatAJobHas: each metric that a query of the dashboard for Grafana names
// is one of a job that makes steps, writes checkpoints, talks over the network and loses a task;
// but for those of GPUs, which this machine need not have.
func TestTheDashboardIsAboutWhatAJobHas(t *testing.T) {
	text, err := os.ReadFile("../../examples/grafana-dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string]bool{}
	for _, name := range regexp.MustCompile(`\b(?:holdfast|process|go)_[a-z0-9_]+`).FindAllString(string(text), -1) {
		wanted[name] = true
	}
	delete(wanted, "holdfast_gpus_busy")
	delete(wanted, "holdfast_gpu_memory_bytes")
	if len(wanted) < 15 {
		t.Fatalf("the dashboard names only %v", wanted)
	}
	p := newPlace(t)
	id := p.detached("--worker", "1", "--straggler-time", "10s", "--checkpoint", "./out=ck", "--", "sh", "-c", `python3 -c '
import socket, time
listener = socket.create_server(("127.0.0.1", 0))
a = socket.create_connection(listener.getsockname())
b, _ = listener.accept()
while True:
    a.sendall(bytes(1000))
    b.recv(1000)
    time.sleep(0.1)
' &
mkdir -p out/step-5; echo x > out/step-5/data; touch out/step-5/COMMITTED; i=5
while :; do i=$((i+1)); echo "step $i loss: 0.5"; sleep 0.2; done`)
	s := p.until(id, "the task has saved", func(s *proto.JobStatus) bool { return s.Step > 6 && s.CompleteStep == 5 })
	if err := syscall.Kill(int(s.Tasks[0].Pid), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.until(id, "each metric of the dashboard", func(s *proto.JobStatus) bool {
		exported := get(t, s.TrackingUrl+"metrics")
		for name := range wanted {
			if !regexp.MustCompile(`(?m)^` + name + `(?:\{| )`).MatchString(exported) {
				t.Logf("there is no %s yet", name)
				return false
			}
		}
		return true
	})
}
