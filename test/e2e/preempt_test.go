package e2e

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/proto"
	"holdfast/test/testcluster"
)

// TestPreemption: the CapacityScheduler says which containers it would take, and
// takes others or none as it comes.
func TestPreemption(t *testing.T) {
	daemons.enter(t)
	preemption(t, pair(t), "10s", "--worker-memory", "1g", "--worker", "3")
}

// fairShares has two queues of equal weight. Who has had less than its share for a
// second gets it.
const fairShares = `<allocations>
<defaultFairSharePreemptionTimeout>1</defaultFairSharePreemptionTimeout>
<defaultFairSharePreemptionThreshold>1.0</defaultFairSharePreemptionThreshold>
<queue name="default"/>
<queue name="other"/>
</allocations>
`

// TestLongFairScheduler: the FairScheduler takes the very containers that it has named.
func TestLongFairScheduler(t *testing.T) {
	daemons.enter(t)
	c := testcluster.ForTest(t, testcluster.Options{DataNodes: 1, Conf: fairScheduler(t)})
	// All tasks are of one size, so that any node can make room: one of three is not
	// taken from, as the job that waits for what was taken has reserved it
	// (FSPreemptionThread.isNodeAlreadyReserved), and a job keeps its share.
	preemption(t, c, "8s", "--worker-memory", "512m", "--worker", "6")
}

// fairScheduler is the configuration of a cluster of 6 GB that has it.
func fairScheduler(t *testing.T) map[string]string {
	t.Helper()
	shares := filepath.Join(t.TempDir(), "fair-scheduler.xml")
	must(t, os.WriteFile(shares, []byte(fairShares), 0o600))
	const fair = "yarn.scheduler.fair."
	return map[string]string{
		"dfs.replication":                                    "1",
		"yarn.resourcemanager.scheduler.class":               "org.apache.hadoop.yarn.server.resourcemanager.scheduler.fair.FairScheduler",
		fair + "allocation.file":                             shares,
		fair + "user-as-default-queue":                       "false",
		fair + "preemption":                                  "true",
		fair + "preemption.cluster-utilization-threshold":    "0",
		fair + "waitTimeBeforeKill":                          "8000",
		"yarn.resource-types.memory-mb.increment-allocation": "64",
		"yarn.nodemanager.resource.memory-mb":                "2048",
		"yarn.nodemanager.resource.cpu-vcores":               "8",
	}
}

// preemption has the queue other want its share back, which is half of the cluster's
// 6 GB, and later need it no more. The scheduler says so before it takes anything,
// and so finds nothing to take.
func preemption(t *testing.T, c *testcluster.Cluster, within string, workers ...string) {
	w := where{c}
	// This job takes 4.25 GB with its master, and the other one wants 2.25 GB.
	j := w.train(t, c.HDFS()+"/tests/"+t.Name(), untilFinish, append([]string{"--ps-memory", "512m"}, workers...)...)
	before := j.until(long, "all to run", running)
	j.untilCheckpoint(long, 1)
	defer func() {
		if t.Failed() {
			t.Logf("the job that was to make room:\n%s", eventLog(j.status()))
		}
	}()
	begin := time.Now()
	other := w.start(t, "", "--queue", testcluster.OtherQueue, "--worker", "4", "--worker-memory", "512m", "--", "sleep", "1000")
	other.until(long, "the other job to run", running)
	t.Logf("the other job ran after %s", time.Since(begin).Round(10*time.Millisecond))
	s := j.until(long, "the job to wait for room", func(s *proto.JobStatus) bool { return strings.Contains(s.Why+eventLog(s), "waiting for") })
	if len(s.Incidents) == 0 {
		t.Fatalf("no incident is recorded:\n%s", eventLog(s))
	}
	var taken []string
	for _, i := range s.Incidents {
		taken = append(taken, i.Task)
		if i.Cause != "container preempted" || !strings.Contains(i.Evidence, "stopped in order") {
			t.Errorf("%s was not stopped in order: %v", i.Task, i)
		}
		if want := "the scheduler takes its container on " + i.Node + " back within " + within; !strings.Contains(eventLog(s), want) {
			t.Errorf("the job does not say that %s:\n%s", want, eventLog(s))
		}
	}
	if n := preempted(t, c, j.id); n != 0 {
		t.Errorf("the scheduler had to take %d containers itself", n)
	}
	if _, errs, code := w.call(t.Context(), "", "kill", other.id); code != 0 {
		t.Fatalf("kill ended with %d: %s", code, errs)
	}
	s = j.until(long, "all to run again", running)
	t.Logf("%v were taken and are back %s after the beginning", taken, time.Since(begin).Round(10*time.Millisecond))
	for _, k := range s.Tasks {
		if k.Failures != 0 {
			t.Errorf("%s has %d failures", k.Task, k.Failures)
		}
	}
	j.undisturbed(before, taken...)
	j.goesOn()
	for _, i := range j.status().Incidents {
		if whole := i.CompleteStep; i.ResumedStep != 0 && i.ResumedStep < whole {
			t.Errorf("%s went on with step %d, and the checkpoint of step %d was complete", i.Task, i.ResumedStep, whole)
		}
	}
}

// preempted is how many of a job's containers the scheduler has taken itself, as the
// (first) ResourceManager counts them.
func preempted(t *testing.T, c *testcluster.Cluster, job string) int {
	t.Helper()
	resp, err := http.Get("http://" + c.RMWeb() + "/ws/v1/cluster/apps/" + job)
	must(t, err)
	defer resp.Body.Close()
	var answer struct {
		App *struct{ NumNonAMContainerPreempted int }
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.App == nil {
		t.Fatalf("what the ResourceManager says of %s: %s, %v", job, resp.Status, err)
	}
	return answer.App.NumNonAMContainerPreempted
}
