package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/client"
	"holdfast/proto"
	"holdfast/test/testcluster"
)

// What the tests of this file share: a cluster of four nodes, of which the second and the
// third have a label that containers must name, and the fourth one that they need not.
var partitionedUp = sync.OnceValues(func() (*testcluster.Cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	conf := testcluster.Partitions(exclusiveLabel, lentLabel)
	conf["dfs.replication"] = "1"
	conf["yarn.scheduler.capacity.root.small.maximum-capacity"] = "60"
	conf["yarn.scheduler.capacity.root.small.user-limit-factor"] = "6"
	conf["yarn.nodemanager.resource.memory-mb"] = "2048"
	conf["yarn.cluster.max-application-priority"] = "10"
	conf["yarn.log-aggregation-enable"] = "true"
	conf["yarn.nodemanager.remote-app-log-dir"] = "/app-logs"
	c, err := testcluster.Start(ctx, testcluster.Options{DataNodes: 1, NodeManagers: 4, Conf: conf})
	stopAtEnd(c)
	if err == nil {
		err = c.Label(ctx, []string{exclusiveLabel, lentLabel + "(exclusive=false)"}, map[string]string{"nm1": exclusiveLabel, "nm2": exclusiveLabel, "nm3": lentLabel})
	}
	return c, err
})

const exclusiveLabel, lentLabel = "gpu", "spot"

// The hosts of nodes of that cluster.
const (
	plainNode = "127.0.0.2"
	gpuNode1  = "127.0.0.3"
	gpuNode2  = "127.0.0.4"
	spotNode  = "127.0.0.5"
)

func partitioned(t *testing.T) *testcluster.Cluster {
	t.Helper()
	c, err := partitionedUp()
	if err != nil {
		t.Fatalf("starting the test cluster: %v", err)
	}
	return c
}

// sleepers is a job that only takes room.
func (w where) sleepers(t *testing.T, args ...string) *job {
	t.Helper()
	return w.start(t, "", append(args, "--", "sleep", "1000")...)
}

// kill ends a job and waits for that.
func (j *job) kill() {
	j.t.Helper()
	if _, errs, code := call(j.t.Context(), j.env, "", "kill", j.id); code != 0 {
		j.t.Fatalf("kill ended with %d: %s", code, errs)
	}
	j.end(long, proto.JobState_JOB_STATE_KILLED)
}

// nodesOf are the nodes of a role's tasks.
func nodesOf(s *proto.JobStatus, role string) []string {
	var list []string
	for _, k := range s.Tasks {
		if strings.HasPrefix(k.Task, role+"-") {
			list = append(list, k.Node)
		}
	}
	return list
}

// allOn reports whether all nodes are among some.
func allOn(nodes []string, some ...string) bool {
	for _, n := range nodes {
		if !strings.Contains(" "+strings.Join(some, " ")+" ", " "+n+" ") {
			return false
		}
	}
	return len(nodes) > 0
}

// TestLongNodeLabels: containers, the application master's included, are in the partition that
// the job and its roles name, and stay there after a loss.
func TestLongNodeLabels(t *testing.T) {
	daemons.enter(t)
	c := partitioned(t)
	w := where{c}

	j := w.sleepers(t, "--node-label", exclusiveLabel, "--worker", "3", "--worker-memory", "256m", "--role", "reader=1", "--reader-memory", "256m", "--reader-node-label", lentLabel)
	s := j.until(long, "all to run", running)
	if !allOn(append(nodesOf(s, "worker"), s.AmHost), gpuNode1, gpuNode2) || !allOn(nodesOf(s, "reader"), spotNode) {
		t.Errorf("workers are on %v, the master on %s, the reader on %v", nodesOf(s, "worker"), s.AmHost, nodesOf(s, "reader"))
	}
	j.killContainer("worker-1")
	j.killContainer("reader-0")
	j.back(long, "worker-1")
	j.back(long, "reader-0")
	if s = j.status(); !allOn(nodesOf(s, "worker"), gpuNode1, gpuNode2) || !allOn(nodesOf(s, "reader"), spotNode) {
		t.Errorf("after a loss, workers are on %v, the reader on %v", nodesOf(s, "worker"), nodesOf(s, "reader"))
	}
	j.kill()

	// Without a label, they are on the nodes without, and on those that others lend.
	j = w.sleepers(t, "--worker", "4", "--worker-memory", "768m")
	s = j.until(long, "all to run", running)
	if nodes := append(nodesOf(s, "worker"), s.AmHost); !allOn(nodes, plainNode, spotNode) || allOn(nodes, plainNode) || allOn(nodes, spotNode) {
		t.Errorf("without a label, containers are on %v", nodes)
	}
	j.kill()
}

// TestLongNodeLabelsAreChecked: what the queue may not use is refused at submission; a full
// partition is named while the job waits.
func TestLongNodeLabelsAreChecked(t *testing.T) {
	daemons.enter(t)
	c := partitioned(t)
	w := where{c}
	for _, x := range []struct {
		args []string
		want []string
	}{
		{[]string{"--node-label", "tpu"}, []string{"no such node label", "gpu, spot"}},
		{[]string{"--queue", "small", "--worker-node-label", "gpu"}, []string{"--worker-node-label", `the queue "small" may not use these nodes`, "without a label only"}},
		{[]string{"--node-label", "gpu", "--worker-memory", "256m", "--spares", "1", "--role", "reader=1", "--reader-node-label", "spot"}, []string{"different labels", "--spares"}},
	} {
		_, errs, code := w.call(t.Context(), "", append(append([]string{"run", "--detach", "--worker", "1"}, x.args...), "--", "true")...)
		if code != client.ExitUsage {
			t.Errorf("%v ended with %d: %s", x.args, code, errs)
		}
		for _, want := range x.want {
			if !strings.Contains(errs, want) {
				t.Errorf("%v does not say %q: %s", x.args, want, errs)
			}
		}
	}
	if _, errs, code := (where{hadoop(t)}).call(t.Context(), "", "run", "--detach", "--worker", "1", "--node-label", "gpu", "--", "true"); code != client.ExitUsage || !strings.Contains(errs, "yarn.node-labels.enabled") {
		t.Errorf("a cluster without labels: %d: %s", code, errs)
	}

	j := w.sleepers(t, "--worker", "4", "--worker-memory", "1g", "--worker-node-label", "gpu")
	j.until(long, "all to run", running)
	other := w.sleepers(t, "--worker", "1", "--worker-memory", "1g", "--worker-node-label", "gpu")
	other.until(long, "the full partition to be named", func(s *proto.JobStatus) bool {
		return strings.Contains(s.Why, `the label "gpu"`) && strings.Contains(s.Why, "waiting for 1 container for worker")
	})
	t.Logf("the job that waits: %s", other.status().Why)
	j.kill()
	other.until(long, "all to run", running)
	other.kill()

	out, errs, _ := w.call(t.Context(), "", "doctor")
	if want := regexp.MustCompile(`node labels: 1 node without \([0-9.]+ [GM]B free\), 2 nodes with gpu \(exclusive, [0-9.]+ [GM]B free\), 1 node with spot \(lent to jobs that name none, [0-9.]+ [GM]B free\)`); !want.MatchString(out) {
		t.Errorf("doctor does not say %q:\n%s%s", want, out, errs)
	}
	out, errs, _ = w.call(t.Context(), "", "doctor", "--cluster")
	if strings.Contains(out, "no container there") || !strings.Contains(out, "4 nodes ("+strings.Join([]string{plainNode, gpuNode1, gpuNode2, spotNode}, ", ")+")") {
		t.Errorf("doctor has not looked at all nodes:\n%s%s", out, errs)
	}
	out, errs, _ = w.call(t.Context(), "", "doctor", "--cluster", "--queue", "small")
	if !strings.Contains(out, `it has the label "gpu", and the queue "small" may not use such nodes`) {
		t.Errorf("doctor does not say which nodes the queue may not use:\n%s%s", out, errs)
	}
}

// application is what the ResourceManager says of a job.
func (j *job) application() (app struct {
	ApplicationTags       string
	Priority              any
	AmNodeLabelExpression string
	AllocatedMB           int
	AllocatedVCores       int
	Timeouts              struct {
		Timeout []struct {
			Type                   string
			RemainingTimeInSeconds int
		}
	}
}) {
	j.t.Helper()
	resp, err := http.Get("http://" + j.w.cluster.RMWeb() + "/ws/v1/cluster/apps/" + j.id)
	must(j.t, err)
	defer resp.Body.Close()
	var answer map[string]json.RawMessage
	must(j.t, json.NewDecoder(resp.Body).Decode(&answer))
	if err := json.Unmarshal(answer["app"], &app); err != nil {
		j.t.Fatalf("what the ResourceManager says of %s: %v: %s", j.id, err, answer["app"])
	}
	return app
}

// TestHowAJobIsFound: the ResourceManager knows its tags, its priority and when it has to
// end, and NodeManagers collect the log files that it names.
func TestHowAJobIsFound(t *testing.T) {
	daemons.enter(t)
	w := where{partitioned(t)}
	j := w.sleepers(t, "--worker", "1", "--worker-memory", "256m", "--tags", "Vision,team a", "--priority", "3", "--lifetime", "1h",
		"--log-include", "agent.*|.*[.]sh", "--log-exclude", "launch.*")
	j.until(long, "all to run", running)
	app := j.application()
	if app.ApplicationTags != "team a,vision" && app.ApplicationTags != "vision,team a" || fmt.Sprint(app.Priority) != "3" {
		t.Errorf("the ResourceManager knows the job by %+v", app)
	}
	if l := app.Timeouts.Timeout; len(l) != 1 || l[0].Type != "LIFETIME" || l[0].RemainingTimeInSeconds < 3000 || l[0].RemainingTimeInSeconds > 3600 {
		t.Errorf("it ends the job at %+v", app.Timeouts)
	}
	collected := func() string {
		out, _ := w.cluster.Hadoop(t.Context(), "logs", "-applicationId", j.id) // which fails while there are none
		return out
	}
	j.kill()
	out := ""
	for end := time.Now().Add(long); !strings.Contains(out, "LogType:agent.log"); out = collected() {
		if time.Now().After(end) {
			t.Fatalf("the agent's log was not collected:\n%s", out)
		}
	}
	for _, not := range []string{"LogType:am.log", "LogType:launch_container.sh"} {
		if strings.Contains(out, not) {
			t.Errorf("collected was, too: %s:\n%s", not, out)
		}
	}
}

// TestLongSpread: the tasks of a role are on different nodes, after a loss too, and none is on a
// node that the user has ruled out. What cannot be is refused, or said.
func TestLongSpread(t *testing.T) {
	daemons.enter(t)
	w := where{partitioned(t)}
	j := w.sleepers(t, "--node-label", exclusiveLabel, "--worker", "2", "--worker-memory", "256m", "--worker-spread", "--role", "reader=3", "--reader-memory", "256m", "--avoid-node", spotNode)
	s := j.until(long, "all to run", running)
	apart := func(s *proto.JobStatus) bool {
		n := nodesOf(s, "worker")
		return len(n) == 2 && n[0] != n[1] && allOn(n, gpuNode1, gpuNode2)
	}
	if !apart(s) {
		t.Errorf("workers are on %v", nodesOf(s, "worker"))
	}
	j.killContainer("worker-1")
	j.back(long, "worker-1")
	if s = j.status(); !apart(s) {
		t.Errorf("after a loss, workers are on %v", nodesOf(s, "worker"))
	}
	j.kill()

	j = w.sleepers(t, "--worker", "3", "--worker-memory", "512m", "--avoid-node", spotNode+","+gpuNode1)
	if s = j.until(long, "all to run", running); !allOn(nodesOf(s, "worker"), plainNode) {
		t.Errorf("workers are on %v, and %s is ruled out", nodesOf(s, "worker"), spotNode)
	}
	j.kill()

	for _, x := range []struct{ args, want string }{
		{"--node-label gpu --worker-spread", "to be on different nodes (--worker-spread), and the job may use 2"},
		{"--avoid-node nowhere", "knows no such node"},
	} {
		_, errs, code := w.call(t.Context(), "", append(append([]string{"run", "--detach", "--worker", "3"}, strings.Fields(x.args)...), "--", "true")...)
		if code != client.ExitUsage || !strings.Contains(errs, x.want) {
			t.Errorf("%s ended with %d and does not say %q: %s", x.args, code, x.want, errs)
		}
	}
}
