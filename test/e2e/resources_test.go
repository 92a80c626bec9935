package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/client"
	"holdfast/test/testcluster"
)

// What the tests of this file share: a cluster that counts vcores, and not memory alone.
var countedUp = sync.OnceValues(func() (*testcluster.Cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	c, err := testcluster.Start(ctx, testcluster.Options{DataNodes: 1, NodeManagers: 3, Conf: map[string]string{
		"dfs.replication":                             "1",
		"yarn.nodemanager.resource.memory-mb":         "4096",
		"yarn.nodemanager.resource.cpu-vcores":        "8",
		"yarn.scheduler.capacity.resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
	}})
	stopAtEnd(c)
	return c, err
})

func counted(t *testing.T) where {
	t.Helper()
	c, err := countedUp()
	if err != nil {
		t.Fatalf("starting the test cluster: %v", err)
	}
	return where{c}
}

// refused submits a job, which is to be refused as a wrong use, and checks what is said.
func (w where) refused(t *testing.T, args string, want ...string) {
	t.Helper()
	_, errs, code := w.call(t.Context(), "", append(append([]string{"run", "--detach"}, strings.Fields(args)...), "--", "true")...)
	if code != client.ExitUsage {
		t.Errorf("%s ended with %d: %s", args, code, errs)
	}
	for _, s := range want {
		if !strings.Contains(errs, s) {
			t.Errorf("%s does not say %q: %s", args, s, errs)
		}
	}
}

// TestTheMasterIsAsLargeAsAsked: its container has the memory and the vcores of the options,
// and its heap's limit follows; what no container may have is refused at submission.
func TestTheMasterIsAsLargeAsAsked(t *testing.T) {
	daemons.enter(t)
	w := counted(t)
	j := w.sleepers(t, "--worker", "1", "--worker-memory", "256m", "--am-memory", "640m", "--am-vcores", "3")
	j.until(long, "all to run", running)
	if app := j.application(); app.AllocatedMB != 640+256 || app.AllocatedVCores != 3+1 {
		t.Errorf("the job has %d MB and %d vcores", app.AllocatedMB, app.AllocatedVCores)
	}
	environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", j.masters()[0]))
	if must(t, err); !bytes.Contains(environment, []byte("\x00GOMEMLIMIT=576MiB\x00")) {
		t.Errorf("the application master's limit is not 576 MiB: %q", environment)
	}
	j.kill()
	w.refused(t, "--worker 1 --am-memory 5g", "the application master asks for 5 GB", "4 GB", "--am-memory")
	w.refused(t, "--worker 1 --am-vcores 5", "the cluster gives a container at most 4 GB, 4 vcores: lower --am-vcores")
	w.refused(t, "--worker 1 --am-memory 64m", "write 128m or more")
}
