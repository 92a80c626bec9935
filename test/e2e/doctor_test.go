package e2e

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"holdfast/client"
	"holdfast/doctor/nodecheck"
	"holdfast/proto"
)

// TestAnInterruptedDoctorLeavesNothing: its application is ended, and a script is told.
func TestAnInterruptedDoctorLeavesNothing(t *testing.T) {
	plain.enter(t)
	w := where{hadoop(t)}
	// The queue has room for one application master, so that of the check waits.
	w.start(t, "", "--worker", "1", "--worker-memory", "256m", "--queue", "small", "--am-memory", "1100m", "--", "sleep", "600")
	checks := func() map[string]string { // those of the queue, and their states
		t.Helper()
		resp, err := http.Get("http://" + w.cluster.RMWeb() + "/ws/v1/cluster/apps?queue=small&applicationTypes=" + nodecheck.ApplicationType)
		must(t, err)
		defer resp.Body.Close()
		var answer struct {
			Apps struct{ App []struct{ ID, State string } }
		}
		must(t, json.NewDecoder(resp.Body).Decode(&answer))
		states := map[string]string{}
		for _, a := range answer.Apps.App {
			states[a.ID] = a.State
		}
		return states
	}
	before := checks()
	cmd := exec.Command(submit, "doctor", "--cluster", "--queue", "small", "-o", "json")
	cmd.Env = w.env()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	must(t, cmd.Start())
	timer := time.AfterFunc(long, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	id := ""
	for end := time.Now().Add(long); id == ""; time.Sleep(50 * time.Millisecond) {
		for found, state := range checks() {
			if _, known := before[found]; !known && state == "ACCEPTED" {
				id = found
			}
		}
		if id == "" && time.Now().After(end) {
			t.Fatal("the check was not submitted")
		}
	}
	must(t, cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait()
	var answer struct{ Error proto.Failure }
	if err := json.Unmarshal(errs.Bytes(), &answer); err != nil || cmd.ProcessState.ExitCode() != client.ExitInterrupted || answer.Error.Kind != "interrupted" || out.Len() > 0 {
		t.Errorf("it ended with %d (%v): %s%s", cmd.ProcessState.ExitCode(), err, &out, &errs)
	}
	for end := time.Now().Add(long); checks()[id] != "KILLED"; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the check is %s", checks()[id])
		}
	}
}
