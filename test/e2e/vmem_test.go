package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/proto"
	"holdfast/test/testcluster"
)

// reserves has a program reserve 10 GB in its first attempt, of which it uses nothing, until YARN ends it.
const reserves = `import mmap, os, time
if os.environ["HOLDFAST_ATTEMPT"] == "0":
    noreserve = 0x4000
    reserved = mmap.mmap(-1, 10 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | noreserve, prot=mmap.PROT_READ)
    print("reserved", flush=True)
    time.sleep(1000)
`

// TestLongVirtualMemoryIsLimited: where NodeManagers limit virtual memory, doctor says so,
// and a task that is killed for it is told as that, with the remedy, and gets a larger
// container where its role may have one.
func TestLongVirtualMemoryIsLimited(t *testing.T) {
	daemons.enter(t)
	w := where{testcluster.ForTest(t, testcluster.Options{DataNodes: 1, NodeManagers: 1, Conf: map[string]string{
		"yarn.nodemanager.resource.memory.enforced":      "false", // by cgroups, which are not there
		"yarn.nodemanager.vmem-check-enabled":            "true",
		"yarn.nodemanager.vmem-pmem-ratio":               "8", // an agent alone reserves 4 GB
		"yarn.nodemanager.container-monitor.interval-ms": "500",
	}})}
	script := filepath.Join(t.TempDir(), "maps.py")
	must(t, os.WriteFile(script, []byte(reserves), 0o644))
	ctx, cancel := context.WithTimeout(t.Context(), callLimit)
	defer cancel()
	out, errs, _ := w.call(ctx, "", "doctor")
	if want := "kill containers whose virtual memory is more than 8 times what they asked for"; !strings.Contains(out, want) || !strings.Contains(out, "yarn.nodemanager.vmem-check-enabled") {
		t.Errorf("doctor does not say %q:\n%s%s", want, out, errs)
	}
	const cause, why = "over the node's limit of virtual memory", "it reserved more virtual memory than its node allows a container of 1024 MB (yarn.nodemanager.vmem-pmem-ratio); "
	args := []string{"--worker", "1", "--am-memory", "1g", "--worker-memory", "1g", "--files", script, "--", "python3", "maps.py"}
	s := w.start(t, "", append([]string{"--worker-memory-max", "2g"}, args...)...).end(long, proto.JobState_JOB_STATE_SUCCEEDED)
	if i := s.Incidents; len(i) != 1 || i[0].Cause != cause || i[0].Evidence != why+"from now on it has 1536" {
		t.Errorf("incidents: %v", i)
	}
	if k := task(s, "worker-0"); k.Attempt != 1 || k.Failures != 1 {
		t.Errorf("it ended as attempt %d, with %d failures", k.Attempt, k.Failures)
	}
	s = w.start(t, "", append([]string{"--restarts", "0"}, args...)...).end(long, proto.JobState_JOB_STATE_FAILED)
	for _, want := range []string{why, "have yarn.nodemanager.vmem-check-enabled set to false on the nodes; until then, give the role more with --worker-memory"} {
		if !strings.Contains(s.Why, want) {
			t.Errorf("it failed because %q, which does not say %q", s.Why, want)
		}
	}
}
