package e2e

import (
	"strings"
	"testing"
	"time"

	"holdfast/proto"
)

// TestLogsOfMasterAndAgents: what the application master and the agents of a job on a cluster
// log is shown while it runs and after its end, also of a container that was lost.
func TestLogsOfMasterAndAgents(t *testing.T) {
	plain.enter(t)
	w := where{hadoop(t)}
	j := w.start(t, "", "--worker", "1", "--worker-memory", "256m", "--", "sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done")
	j.until(long, "all to run", running)
	logs := func(of ...string) (out, errs string) {
		t.Helper()
		out, errs, code := w.call(t.Context(), "", append([]string{"logs", j.id}, of...)...)
		if code != 0 {
			t.Fatalf("logs %q ended with %d: %s%s", of, code, out, errs)
		}
		return out, errs
	}
	wait := func(what string, of []string, ok func(string) bool) {
		t.Helper()
		for end := time.Now().Add(long); ; time.Sleep(200 * time.Millisecond) {
			out, errs := logs(of...)
			if ok(out) {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s is not in the logs %q:\n%s%s", what, of, out, errs)
			}
		}
	}
	has := func(texts ...string) func(string) bool {
		return func(out string) bool {
			for _, s := range texts {
				if !strings.Contains(out, s) {
					return false
				}
			}
			return true
		}
	}
	wait("the start", []string{"am"}, has("==> am, attempt 1 <==", "prepared: mounting"))
	wait("the start", []string{"worker-0", "--agent"}, has("==> worker-0, attempt 0 <==", "started"))
	j.killContainer("worker-0")
	j.back(long, "worker-0")
	wait("the container that was lost", []string{"worker", "--agent"}, has("==> worker-0, attempt 0 <==", "==> worker-0, attempt 1 <=="))
	if _, stderr, code := w.call(t.Context(), "", "kill", j.id); code != 0 {
		t.Fatalf("kill ended with %d: %s", code, stderr)
	}
	j.end(long, proto.JobState_JOB_STATE_KILLED)
	wait("the end", []string{"am"}, has("==> am, attempt 1 <==", "the job ended as"))
	wait("the end", []string{"--agent"}, has("==> worker-0, attempt 0 <==", "==> worker-0, attempt 1 <==", "told to end"))
}
