package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/client"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/yarn"
	"holdfast/proto"
	"holdfast/test/testcluster"
)

// What the tests of this file share: a cluster that counts not memory alone, but vcores and
// two resource types of its own.
var countedUp = sync.OnceValues(func() (*testcluster.Cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	c, err := testcluster.Start(ctx, testcluster.Options{DataNodes: 1, NodeManagers: 3, Conf: map[string]string{
		"dfs.replication":                             "1",
		"yarn.nodemanager.resource.memory-mb":         "4096",
		"yarn.nodemanager.resource.cpu-vcores":        "8",
		"yarn.scheduler.capacity.resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
		"yarn.resource-types":                         fpga + "," + disk,
		"yarn.resource-types." + disk + ".units":      "G",
		"yarn.nodemanager.resource-type." + fpga:      "2",
		"yarn.nodemanager.resource-type." + disk:      "100G",

		"yarn.scheduler.capacity.root.queues":                    "default,small,half,share",
		"yarn.scheduler.capacity.root.default.capacity":          "20",
		"yarn.scheduler.capacity.root.default.user-limit-factor": "5",
		"yarn.scheduler.capacity.root.half.capacity":             "30",
		"yarn.scheduler.capacity.root.half.maximum-capacity":     "50",
		"yarn.scheduler.capacity.root.half.user-limit-factor":    "2",
		"yarn.scheduler.capacity.root.share.capacity":            "40",
	}})
	stopAtEnd(c)
	return c, err
})

// Of the queues beside default and small, half may have half of the cluster, and share all of it;
// but a user may have no more of share than its own share.

const fpga, disk = "example.com/fpga", "example.com/disk"

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
	w.refused(t, "--worker 1 --am-vcores 5", "the cluster gives a container at most", "GB, 4 vcores: lower --am-vcores")
	w.refused(t, "--worker 1 --am-memory 64m", "write 128m or more")
}

// TestLongOtherResources: tasks get as much of resource types of the cluster's own as was asked
// for, in its units, and no node more tasks than it has resources for; who waits is told for
// which. Types that the cluster does not have, and amounts that no node has, are refused.
func TestLongOtherResources(t *testing.T) {
	daemons.enter(t)
	w := counted(t)
	j := w.sleepers(t, "--worker", "5", "--worker-memory", "256m", "--worker-resource", fpga+"=1", "--worker-resource", disk+"=1500M")
	s := j.until(long, "all to run", running)
	on := map[string]int{}
	for _, n := range nodesOf(s, "worker") {
		if on[n]++; on[n] > 2 {
			t.Errorf("%d workers are on %s, which has 2 of what each needs", on[n], n)
		}
	}
	id, err := yarn.ParseApplicationID(j.id)
	must(t, err)
	cf, err := conf.Load(w.cluster.ConfDir())
	must(t, err)
	rm, err := yarn.NewClient(cf, yarn.Options{})
	must(t, err)
	defer rm.Close()
	if r := task(s, "worker-0").Resources; len(r) != 2 || r[fpga] != "1" || r[disk] != "2G" { // as the cluster counts it
		t.Errorf("worker-0 is said to have %v", r)
	}
	if out, errs, code := w.call(t.Context(), "", "describe", j.id, "worker-0"); code != 0 || !strings.Contains(out, "2G "+disk+", 1 "+fpga) {
		t.Errorf("describe ended with %d and does not say what worker-0 has:\n%s%s", code, out, errs)
	}
	if strings.Contains(eventLog(s), "counts memory alone") {
		t.Errorf("the scheduler counts all, and the job says otherwise:\n%s", eventLog(s))
	}
	report, err := rm.Report(t.Context(), id)
	must(t, err)
	if used := report.Used.Others; used[fpga].Value != 5 || used[disk] != (yarn.Amount{Value: 10, Unit: "G"}) {
		t.Errorf("in use are %v", report.Used)
	}
	other := w.sleepers(t, "--worker", "2", "--worker-memory", "256m", "--worker-resource", fpga+"=1")
	other.until(long, "what is scarce to be named", func(s *proto.JobStatus) bool {
		return strings.Contains(s.Why, "no node has 1 of "+fpga+" free now for worker; the most is 0")
	})
	t.Logf("the job that waits: %s", other.status().Why)
	j.kill()
	other.until(long, "all to run", running)
	other.kill()

	w.refused(t, "--worker 1 --worker-resource example.com/fgpa=1", "no such resource type", "it has example.com/disk, example.com/fpga; did you mean example.com/fpga?")
	w.refused(t, "--worker 1 --worker-resource example.com/fpga=3", "3 example.com/fpga a task", "--worker-resource", "2")
	w.refused(t, "--worker 1 --worker-resource yarn.io/gpu=1", "--ROLE-gpus")
	w.refused(t, "--worker 1 --worker-resource example.com/disk=1X", `no unit "X"`)
	where{hadoop(t)}.refused(t, "--worker 1 --worker-resource example.com/fpga=1", "yarn.resource-types", "none but memory and vcores")
	out, errs, _ := w.call(t.Context(), "", "doctor")
	if want := "resource types: memory and vcores, and example.com/disk on 3 nodes (--ROLE-resource example.com/disk=N), example.com/fpga on 3 nodes"; !strings.Contains(out, want) {
		t.Errorf("doctor does not say %q:\n%s%s", want, out, errs)
	}
}

// TestLongLimitsOfOtherResources: a job that waits for a resource type of the cluster's own since
// its queue, or its user, may have no more of that is told so, with how much there is.
func TestLongLimitsOfOtherResources(t *testing.T) {
	daemons.enter(t)
	w := counted(t)
	ask := func(queue string, workers string) *job {
		t.Helper()
		return w.sleepers(t, "--queue", queue, "--worker", workers, "--worker-memory", "256m", "--worker-resource", fpga+"=1", "--worker-min", "1")
	}
	waits := func(j *job, want ...string) {
		t.Helper()
		s := j.until(long, fmt.Sprintf("what it waits for to be told by %q", want), func(s *proto.JobStatus) bool {
			return !slices.ContainsFunc(want, func(text string) bool { return !strings.Contains(s.Why, text) })
		})
		t.Logf("it waits: %s", s.Why)
	}
	// The cluster has 6 in all, and half may have 3.
	first := ask("half", "3")
	first.until(long, "all to run", running)
	other := ask("half", "1")
	waits(other, `the queue "half" is full (it may have 3 of `+fpga+" at most)", "leaves this job 0 of "+fpga, "worker asks for 256 MB, 1 vcore, 1 "+fpga, "others in the queue end")
	first.kill()
	other.until(long, "all to run", running)
	other.kill()
	// What no end of other jobs gives it.
	greedy := ask("half", "5")
	waits(greedy, "needs 5 of "+fpga+" in all, more than the 3 of "+fpga+" that the queue may ever have", "--queue")
	greedy.kill()
	none := ask("small", "1") // a tenth of 6
	waits(none, "needs 1 of "+fpga+" in all, more than the 0 of "+fpga+" that the queue may ever have")
	none.kill()

	first = ask("share", "2")
	first.until(long, "all to run", running)
	other = ask("share", "2")
	waits(other, `the queue "share" may have more, and its user may not`, "of "+fpga, "other jobs of")
	first.kill()
	other.until(long, "all to run", running)
	other.kill()
}
