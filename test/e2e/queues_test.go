package e2e

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"holdfast/client"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/yarn"
	"holdfast/test/testcluster"
)

// TestLongQueueMappings: where YARN puts jobs into another queue than they name, no job is
// refused for the one that it names, but for that which it gets; and the latter is what is
// shown.
func TestLongQueueMappings(t *testing.T) {
	daemons.enter(t)
	const mapped, mappings, override = "mapped", "yarn.scheduler.capacity.queue-mappings", "yarn.scheduler.capacity.queue-mappings-override.enable"
	const root = "yarn.scheduler.capacity.root."
	cf := testcluster.Partitions(exclusiveLabel, lentLabel)
	for key, value := range map[string]string{
		root + "queues":                           "default,small," + mapped,
		root + "default.capacity":                 "50",
		root + mapped + ".capacity":               "40",
		root + mapped + ".maximum-capacity":       "100",
		root + mapped + ".user-limit-factor":      "3",
		root + mapped + ".accessible-node-labels": exclusiveLabel,
		root + mapped + ".accessible-node-labels." + exclusiveLabel + ".capacity": "50",
		root + "default.accessible-node-labels." + exclusiveLabel + ".capacity":   "50",
		"dfs.replication": "1",
		mappings:          "u:%user:" + mapped,
		override:          "true",
	} {
		cf[key] = value
	}
	c, err := testcluster.Start(t.Context(), testcluster.Options{DataNodes: 1, NodeManagers: 3, Conf: cf})
	must(t, err)
	t.Cleanup(func() { must(t, c.Stop()) })
	labels := func() {
		must(t, c.Label(t.Context(), []string{exclusiveLabel, lentLabel}, map[string]string{"nm1": exclusiveLabel, "nm2": lentLabel}))
	}
	labels()
	w := where{c}
	// From 3.2 on, YARN tells the path of a queue that a job was put into.
	path := func(queue string) *regexp.Regexp { return regexp.MustCompile(`^(root\.)?` + queue + "$") }
	small := []string{"--worker", "1", "--worker-memory", "256m"}

	for _, args := range [][]string{
		nil,
		{"--queue", "nowhere"},
		{"--queue", "small", "--worker-node-label", exclusiveLabel}, // which small may not use
		{"--queue", "root"},
	} {
		j := w.sleepers(t, append(args, small...)...)
		s := j.until(long, "all to run", running)
		if !path(mapped).MatchString(s.Queue) {
			t.Errorf("%v: the job is said to be in the queue %q", args, s.Queue)
		}
		out, errs, _ := w.call(t.Context(), "", "status", j.id)
		if !strings.Contains(out, "\n  queue: "+s.Queue+"\n") {
			t.Errorf("%v: status does not tell the queue: %s%s", args, out, errs)
		}
		if out, errs, _ := w.call(t.Context(), "", "list", "--wide"); !strings.Contains(out, s.Queue) {
			t.Errorf("%v: list does not tell the queue: %s%s", args, out, errs)
		}
		resp, err := http.Get("http://" + c.RMWeb() + "/proxy/" + j.id + "/configuration")
		must(t, err)
		page, err := io.ReadAll(resp.Body)
		must(t, err)
		must(t, resp.Body.Close())
		if !strings.Contains(string(page), "It is in the queue "+s.Queue+".") {
			t.Errorf("%v: the page does not tell the queue: %s", args, page)
		}
		j.kill()
	}

	// What holds for the queue that it names counts for nothing, and that of its own does.
	w.refused(t, "--worker 1 --queue default --worker-node-label "+lentLabel, "YARN puts the job into the queue", "may not use these nodes", "it may use "+exclusiveLabel)
	w.refused(t, "--worker 1 --queue nowhere --worker-node-label "+lentLabel, "YARN puts the job into the queue", "may not use these nodes")
	w.refused(t, "--worker 1 --queue nowhere --worker-memory 100g", "100 GB")
	for _, args := range []string{"run --dry-run --worker 1 --queue nowhere -- true", "doctor --cluster --queue nowhere"} {
		out, errs, code := w.call(t.Context(), "", strings.Fields(args)...)
		if code != 0 || strings.Contains(out+errs, "has no queue") {
			t.Errorf("%s ended with %d: %s%s", args, code, out, errs)
		}
	}
	_, errs, code := w.call(t.Context(), "", append(append([]string{"run", "--detach", "--queue", "nowhere"}, small...), "--", "true")...)
	if code != 0 || !regexp.MustCompile(`YARN has put the job into the queue "(root\.)?mapped", and not into "nowhere"`).MatchString(errs) {
		t.Errorf("run does not say where the job is: %d: %s", code, errs)
	}
	w.nothingIsLeft(t)

	// Without the override, only jobs that name no queue are put into another.
	must(t, c.Reconfigure(t.Context(), map[string]string{override: "false"}))
	labels()
	w.refused(t, "--worker 1 --queue nowhere", `no queue "nowhere"`, mapped)
	w.refused(t, "--worker 1 --queue root", "takes no applications itself")
	for queue, want := range map[string]string{"": mapped, "small": "small"} {
		args := small
		if queue != "" {
			args = append([]string{"--queue", queue}, small...)
		}
		j := w.sleepers(t, args...)
		if s := j.until(long, "all to run", running); !path(want).MatchString(s.Queue) {
			t.Errorf("named %q, the job is in %q", queue, s.Queue)
		}
		j.kill()
	}
	w.nothingIsLeft(t)
}

// nothingIsLeft fails unless no application goes on once those that ended by themselves have.
func (w where) nothingIsLeft(t *testing.T) {
	t.Helper()
	cf, err := conf.Load(w.cluster.ConfDir())
	must(t, err)
	rm, err := yarn.NewClient(cf, yarn.Options{})
	must(t, err)
	defer rm.Close()
	for end := time.Now().Add(long); ; time.Sleep(100 * time.Millisecond) {
		list, err := rm.List(t.Context(), yarn.Filter{States: []yarn.State{yarn.StateSubmitted, yarn.StateAccepted, yarn.StateRunning}})
		if must(t, err); len(list) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("these applications have not ended: %+v", list)
		}
	}
}

// TestLongQueueMappingsAndACLs: on a cluster with Kerberos, too, a job may name a queue that there
// is not and be put into another; and if it is not for the user, that one is named.
func TestLongQueueMappingsAndACLs(t *testing.T) {
	guarded.enter(t)
	const acl = "yarn.scheduler.capacity.root.mapped.acl_submit_applications"
	c := secure(t, testcluster.Security{}, testcluster.Options{Conf: map[string]string{
		"dfs.replication":                                        "1",
		"yarn.scheduler.capacity.root.queues":                    "default,small,mapped",
		"yarn.scheduler.capacity.root.default.capacity":          "40",
		"yarn.scheduler.capacity.root.mapped.capacity":           "50",
		"yarn.scheduler.capacity.queue-mappings":                 "u:%user:mapped",
		"yarn.scheduler.capacity.queue-mappings-override.enable": "true",
		acl: "*",
	}})
	w := where{c}
	args := []string{"run", "--detach", "--queue", "nowhere", "--worker", "1", "--worker-memory", "256m", "--", "true"}
	if _, errs, code := w.call(t.Context(), "", args...); code != 0 || !strings.Contains(errs, "YARN has put the job into the queue") {
		t.Errorf("run ended with %d: %s", code, errs)
	}
	must(t, c.Reconfigure(t.Context(), map[string]string{acl: " "}))
	if _, errs, code := w.call(t.Context(), "", args...); code != client.ExitDenied || !regexp.MustCompile(`the queue "(root\.)?mapped" is not for alice`).MatchString(errs) {
		t.Errorf("run ended with %d: %s", code, errs)
	}
}
