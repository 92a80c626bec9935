package e2e

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/proto"
	"holdfast/test/testcluster"
)

// What the tests of this file share: a cluster with two ResourceManagers that
// keep their state, NodeManagers that take their containers over when they are
// restarted, keys that are rolled every minute or two, and two queues of which
// each may take from the other.
var pairUp = sync.OnceValues(func() (*testcluster.Cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	conf := testcluster.TwoQueues(50)
	maps.Copy(conf, map[string]string{
		"dfs.replication": "1",
		// Hadoop's own clients wait half a minute before they try the other one.
		"yarn.client.failover-sleep-base-ms":                                     "100",
		"yarn.client.failover-sleep-max-ms":                                      "500",
		"yarn.am.liveness-monitor.expiry-interval-ms":                            "20000",
		"yarn.nm.liveness-monitor.expiry-interval-ms":                            "40000",
		"yarn.resourcemanager.am-rm-tokens.master-key-rolling-interval-secs":     masterKeysRoll,
		"yarn.resourcemanager.nm-tokens.master-key-rolling-interval-secs":        nodeKeysRoll,
		"yarn.resourcemanager.container-tokens.master-key-rolling-interval-secs": nodeKeysRoll,
		"yarn.nodemanager.recovery.enabled":                                      "true",
		"yarn.nodemanager.recovery.supervised":                                   "true",
		"yarn.nodemanager.resource.memory-mb":                                    "2048",
		// A NodeManager is unhealthy while its directory has a file "sick".
		"yarn.nodemanager.health-checker.script.path":                           "/bin/bash",
		"yarn.nodemanager.health-checker.script.opts":                           `-c,d=$(tr '\0' '\n' </proc/$PPID/cmdline | sed -n s/^-Djava.io.tmpdir=//p); test ! -e "$d/sick" || echo ERROR it smells of smoke`,
		"yarn.nodemanager.health-checker.interval-ms":                           "2000",
		"yarn.resourcemanager.decommissioning-nodes-watcher.poll-interval-secs": "1",
	})
	c, err := testcluster.Start(ctx, testcluster.Options{ResourceManagers: 2, DataNodes: 1, Conf: conf})
	stopAtEnd(c)
	return c, err
})

// How often keys are rolled, in seconds: YARN wants more than three times the
// expiry interval, of masters 20 s and of nodes 40 s, which a ResourceManager and a
// NodeManager need that are restarted on a busy machine.
const (
	masterKeysRoll = "61"
	nodeKeysRoll   = "121"
)

func pair(t *testing.T) *testcluster.Cluster {
	t.Helper()
	c, err := pairUp()
	if err != nil {
		t.Fatalf("starting the test cluster: %v", err)
	}
	return c
}

// must fails the test.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// revive has a failed test leave to the next one what it needs.
func revive(t *testing.T, c *testcluster.Cluster) {
	if !t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	if err := c.Exclude(); err != nil {
		t.Error(err)
	}
	restart := func(which func(*testcluster.Daemon) bool) {
		for _, d := range c.Daemons() {
			if which(d) {
				if err := d.Restart(ctx); err != nil {
					t.Error(err)
				}
			}
		}
	}
	restart(func(d *testcluster.Daemon) bool { return strings.HasPrefix(d.Name(), "rm") })
	if err := c.Activate(ctx, "rm1"); err != nil {
		t.Error(err)
	}
	restart(func(d *testcluster.Daemon) bool { return !d.Running() }) // which NodeManagers are not before one is active
}

// undisturbed fails the test unless the tasks run as before, but for some. Where
// a parameter server is among those, the chief may have failed in a save.
func (j *job) undisturbed(before *proto.JobStatus, but ...string) {
	j.t.Helper()
	if slices.ContainsFunc(but, func(name string) bool { return strings.HasPrefix(name, "ps-") }) {
		but = append(slices.Clone(but), "worker-0")
	}
	s, other := j.status(), false
	for _, b := range before.Tasks {
		if now := task(s, b.Task); !slices.Contains(but, b.Task) && (now.Pid != b.Pid || now.Attempt != b.Attempt || now.Container != b.Container) {
			other = true
			j.t.Errorf("%s ran as process %d (attempt %d), and now as %d (attempt %d)", b.Task, b.Pid, b.Attempt, now.Pid, now.Attempt)
		}
	}
	if other {
		j.t.Logf("what happened:\n%s", eventLog(s))
	}
}

// whole waits until all tasks run, one of them a later attempt than before.
func (j *job) whole(what string, before *proto.JobStatus, later string) *proto.JobStatus {
	j.t.Helper()
	return j.until(long, what, func(s *proto.JobStatus) bool {
		return running(s) && task(s, later).Attempt > task(before, later).Attempt
	})
}

// goesOn waits for a newer checkpoint.
func (j *job) goesOn() {
	j.t.Helper()
	j.untilCheckpoint(long, j.newestComplete()+1)
}

// awayFromMaster is a task that is on another node than the application master.
func awayFromMaster(t *testing.T, s *proto.JobStatus) *proto.TaskStatus {
	t.Helper()
	for _, k := range s.Tasks {
		if k.Node != s.AmHost {
			return k
		}
	}
	t.Fatalf("all tasks are on the master's node %s", s.AmHost)
	return nil
}

func on(s *proto.JobStatus, node string) []string {
	var names []string
	for _, k := range s.Tasks {
		if k.Node == node {
			names = append(names, k.Task)
		}
	}
	return names
}

// TestLongTheClusterChangesUnderAJob has one job live through what may happen to
// the ResourceManagers and to the nodes.
func TestLongTheClusterChangesUnderAJob(t *testing.T) {
	daemons.enter(t)
	c := pair(t)
	w := where{c}
	ctx := t.Context()
	// Two workers have no room on one node, so that one is away from the master.
	j := w.train(t, c.HDFS()+"/tests/"+t.Name(), untilFinish, "--worker-memory", "1100m")
	t.Cleanup(func() { revive(t, c) })
	before := j.until(long, "all to run", running)
	j.untilCheckpoint(long, 1)
	pageThrough(t, c, j.id, 0)
	begin := time.Now()
	lap := func(what string) {
		t.Logf("%5.1f s: %s", time.Since(begin).Seconds(), what)
	}

	// The ResourceManager is restarted, and something is lost while it is away.
	rm1, rm2 := c.Daemon("rm1"), c.Daemon("rm2")
	must(t, rm1.Kill())
	j.killContainer("ps-1")
	j.until(long, "a word of the ResourceManager", func(s *proto.JobStatus) bool {
		return strings.Contains(eventLog(s), "the ResourceManager has not answered")
	})
	j.undisturbed(before, "ps-1")
	must(t, rm1.Restart(ctx))
	must(t, c.Activate(ctx, "rm1"))
	lap("the ResourceManager was restarted")
	after := j.whole("ps-1 to be back", before, "ps-1")
	j.undisturbed(before, "ps-1")
	j.goesOn()
	lap("what was lost meanwhile is back")

	// Another one takes over.
	must(t, rm1.Kill())
	must(t, c.Activate(ctx, "rm2"))
	lap("the second ResourceManager is active")
	if out, errs, code := w.call(ctx, "", "list"); code != 0 || !strings.Contains(out, j.id) {
		t.Errorf("list ended with %d and does not tell of the job:\n%s\n%s", code, out, errs)
	}
	j.killContainer("worker-1")
	before = after
	after = j.whole("worker-1 to be back", before, "worker-1")
	j.undisturbed(before, "worker-1")
	j.goesOn()
	must(t, rm1.Restart(ctx))
	pageThrough(t, c, j.id, 1)
	lap("what was lost after that is back")

	// A NodeManager is restarted, and its containers live on.
	k := awayFromMaster(t, after)
	nm := c.NodeManager(k.Node)
	must(t, nm.Restart(ctx))
	lap(nm.Name() + " was restarted")
	j.goesOn()
	j.undisturbed(after)
	before = j.status()
	j.killContainer(k.Task) // the restarted NodeManager says so
	after = j.whole(k.Task+" to be back", before, k.Task)
	j.undisturbed(before, k.Task)
	lap("a container of that node was lost and is back")

	// A node is taken out of service.
	k = awayFromMaster(t, after)
	leaving, tasks := k.Node, on(after, k.Node)
	must(t, c.Exclude(c.NodeManager(leaving).Name()))
	_, err := c.Hadoop(ctx, "rmadmin", "-refreshNodes", "-g", "120", "-server")
	must(t, err)
	before = after
	after = j.until(long, "all tasks to run elsewhere", func(s *proto.JobStatus) bool {
		return running(s) && len(on(s, leaving)) == 0
	})
	lap(fmt.Sprintf("%v moved off %s", tasks, leaving))
	for _, name := range tasks {
		if n := task(after, name); n.Attempt != task(before, name).Attempt+1 || n.Failures != task(before, name).Failures {
			t.Errorf("%s moved: it was attempt %d with %d failures, and is attempt %d with %d", name, task(before, name).Attempt, task(before, name).Failures, n.Attempt, n.Failures)
		}
	}
	j.undisturbed(before, tasks...)
	for _, i := range after.Incidents[len(after.Incidents)-len(tasks):] {
		if i.Cause != "node taken out of service" || i.Node != leaving || i.RecoveredUnixMs == 0 {
			t.Errorf("the incident: %v", i)
		}
	}
	left := func() (names []string) {
		all, err := c.Containers()
		must(t, err)
		for _, k := range all {
			if k.Node == c.NodeManager(leaving).Name() {
				names = append(names, k.ID)
			}
		}
		return names
	}
	j.until(30*time.Second, "the node to be empty", func(*proto.JobStatus) bool { return len(left()) == 0 })
	must(t, c.Exclude())
	_, err = c.Hadoop(ctx, "rmadmin", "-refreshNodes")
	must(t, err)
	j.until(long, "a word of the node's return", func(s *proto.JobStatus) bool {
		if d := c.NodeManager(leaving); !d.Running() { // the RM had shut it down before
			must(t, d.Restart(ctx))
		}
		return strings.Contains(eventLog(s), leaving+" is in service again")
	})
	lap("the node was taken into service again")

	// A NodeManager is lost, and its containers go on.
	k = awayFromMaster(t, after)
	lost, tasks := c.NodeManager(k.Node), on(after, k.Node)
	must(t, lost.Kill())
	before = after
	after = j.until(long, "all tasks to run elsewhere", func(s *proto.JobStatus) bool {
		return running(s) && len(on(s, k.Node)) == 0
	})
	lap(fmt.Sprintf("%s was lost, and %v are elsewhere", lost.Name(), tasks))
	j.undisturbed(before, tasks...)
	for _, i := range after.Incidents[len(before.Incidents):] {
		if i.Node == k.Node && (i.Cause != "node lost" || !strings.Contains(i.Evidence, "stopped in order")) {
			t.Errorf("%s ran on without its NodeManager, and did not leave in order: %v", i.Task, i)
		}
	}
	must(t, lost.Restart(ctx))
	j.goesOn()

	// New keys of all kinds are in use. Then another ResourceManager wants to see the
	// master's token, and a NodeManager that of a new container.
	for _, manager := range []string{"AMRMTokenSecretManager", "NMTokenSecretManagerInRM", "RMContainerTokenSecretManager"} {
		activated := regexp.MustCompile(manager + `.*Activating next master key`)
		j.until(2*long, "a new key of "+manager+" to be in use", func(*proto.JobStatus) bool {
			return activated.MatchString(rm2.Log())
		})
	}
	lap("all keys were rolled")
	must(t, rm2.Kill())
	must(t, c.Activate(ctx, "rm1"))
	j.killContainer("ps-1")
	before = after
	after = j.whole("ps-1 to be back", before, "ps-1")
	j.undisturbed(before, "ps-1")
	j.goesOn()
	if n := len(j.masters()); n != 1 || strings.Contains(eventLog(after), "has taken over") {
		t.Errorf("%d application masters; the events:\n%s", n, eventLog(after))
	}
	if _, errs, code := w.call(ctx, "", "kill", j.id); code != 0 {
		t.Errorf("kill ended with %d: %s", code, errs)
	}
	j.end(long, proto.JobState_JOB_STATE_KILLED)
	lap("the job was killed")
	must(t, rm2.Restart(ctx))
}

// TestTheResourceManagerForgets: without recovery, a ResourceManager that is
// restarted does not know its applications. It is the last test of the cluster.
func TestTheResourceManagerForgets(t *testing.T) {
	daemons.enter(t)
	c := pair(t)
	j := where{c}.train(t, c.HDFS()+"/tests/"+t.Name(), untilFinish)
	j.until(long, "all to run", running)
	step := j.untilCheckpoint(long, 1)
	must(t, c.Configure(map[string]string{"yarn.resourcemanager.recovery.enabled": "false"}))
	for _, name := range []string{"rm1", "rm2"} {
		must(t, c.Daemon(name).Kill())
	}
	must(t, c.Daemon("rm1").Restart(t.Context()))
	must(t, c.Activate(t.Context(), "rm1"))
	begin := time.Now()
	s := j.until(long, "the job's end", func(s *proto.JobStatus) bool { return s.State.Done() })
	t.Logf("after %s: %s: %s", time.Since(begin).Round(10*time.Millisecond), s.State, s.Why)
	if s.State != proto.JobState_JOB_STATE_FAILED || !strings.Contains(s.Why, "ResourceManager") {
		t.Errorf("the job ended as %s: %q", s.State, s.Why)
	}
	if newest := j.newestComplete(); newest < step {
		t.Errorf("the newest checkpoint is of step %d, and there was one of step %d", newest, step)
	}
	j.store = "" // the NodeManager may kill the master while it writes there
}
