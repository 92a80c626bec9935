package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"holdfast/proto"
)

// TestLongNodesFallSickAndLeave: tasks leave an unhealthy node; and a node with the
// application master is taken out of service, which is not held against the job.
func TestLongNodesFallSickAndLeave(t *testing.T) {
	daemons.enter(t)
	c := pair(t)
	t.Cleanup(func() { revive(t, c) })
	ctx := t.Context()
	j := where{c}.train(t, c.HDFS()+"/tests/"+t.Name(), untilFinish)
	before := j.until(long, "all to run", running)
	j.untilCheckpoint(long, 1)
	elsewhere := func(before *proto.JobStatus, node, cause, evidence string) *proto.JobStatus {
		t.Helper()
		names := on(before, node)
		after := j.until(long, "all tasks to run, none of them on "+node, func(s *proto.JobStatus) bool {
			return running(s) && len(on(s, node)) == 0 && s.AmHost != node
		})
		t.Logf("%v left %s", names, node)
		j.undisturbed(before, names...)
		told := map[string]bool{}
		for _, i := range after.Incidents[len(before.Incidents):] {
			if i.Node == node {
				told[i.Task] = true
				if i.Cause != cause || !strings.Contains(i.Evidence, evidence) || i.RecoveredUnixMs == 0 {
					t.Errorf("the incident: %v", i)
				}
			}
		}
		for _, name := range names {
			if !told[name] || task(after, name).Failures != task(before, name).Failures {
				t.Errorf("the loss of %s, now %v, is not told of in %v", name, task(after, name), after.Incidents)
			}
		}
		return after
	}

	node := awayFromMaster(t, before).Node
	sick := filepath.Join(c.Dir(), c.NodeManager(node).Name(), "sick")
	must(t, os.WriteFile(sick, nil, 0o644))
	t.Cleanup(func() { os.Remove(sick) })
	after := elsewhere(before, node, "node lost", "smells of smoke")
	j.goesOn()
	must(t, os.Remove(sick))

	// YARN allows two attempts (yarn.resourcemanager.am.max-attempts).
	node = after.AmHost
	nm := c.NodeManager(node).Name()
	must(t, c.Exclude(nm))
	_, err := c.Hadoop(ctx, "rmadmin", "-refreshNodes", "-g", "15", "-server")
	must(t, err)
	j.until(long, node+" to be avoided", func(s *proto.JobStatus) bool {
		a := s.AvoidedNodes
		return len(a) == 1 && a[0].Node == node && a[0].Why == "it is taken out of service"
	})
	before = after
	after = elsewhere(before, node, "node taken out of service", "")
	for _, want := range []string{node + " is taken out of service", "the application master there is followed by another", "attempt 2 has taken over"} {
		if !strings.Contains(eventLog(after), want) {
			t.Errorf("the job does not say %q:\n%s", want, eventLog(after))
		}
	}
	j.goesOn()
	d := c.Daemon(nm)
	j.until(long, nm+" to be shut down", func(*proto.JobStatus) bool { return !d.Running() })
	must(t, c.Exclude())
	_, err = c.Hadoop(ctx, "rmadmin", "-refreshNodes")
	must(t, err)
	must(t, d.Restart(ctx))
	masters := j.masters()
	if len(masters) != 1 {
		t.Fatalf("application masters: %v", masters)
	}
	must(t, syscall.Kill(masters[0], syscall.SIGKILL))
	j.until(long, "a third application master", func(s *proto.JobStatus) bool {
		return running(s) && strings.Contains(eventLog(s), "attempt 3 has taken over")
	})
	j.undisturbed(after)
	if _, errs, code := j.w.call(ctx, "", "kill", j.id); code != 0 {
		t.Errorf("kill ended with %d: %s", code, errs)
	}
	j.end(long, proto.JobState_JOB_STATE_KILLED)
}
