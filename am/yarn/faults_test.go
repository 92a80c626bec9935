package yarn_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	hadoop "holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

func TestNodeIsLost(t *testing.T) {
	j := submit(t, runs+"sleep 1000")
	r := j.state(hadoop.StateRunning)
	j.ask("ps", 6, 64)
	on := map[string][]string{}
	for _, a := range j.allocated(6) {
		if a.Node != r.Host {
			on[a.Node] = append(on[a.Node], a.Container)
		}
	}
	var host string
	for h, list := range on {
		if len(list) >= 2 {
			host = h
		}
	}
	if host == "" {
		t.Fatalf("no node but the AM's has two containers: %v", on)
	}
	running, late := on[host][0], on[host][1]
	j.tell(request{Launch: running})
	pid := j.pid(running)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	last, err := strconv.Atoi(host[strings.LastIndexByte(host, '.')+1:])
	if err != nil {
		t.Fatal(err)
	}
	nm := cluster(t).Daemon(fmt.Sprintf("nm%d", last-2))
	if err := nm.Kill(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := nm.Restart(context.Background()); err != nil {
			t.Error(err)
		}
	})
	j.tell(request{Launch: late})
	var lost, failed bool
	for !lost || !failed {
		h := j.await("the loss of both containers", func(h report) bool { return h.Ended != nil || h.Failed != "" })
		switch {
		case h.Failed == late:
			failed = true
			if !strings.Contains(h.Fault, host) {
				t.Errorf("%q does not name %s", h.Fault, host)
			}
		case h.Ended != nil && h.Ended.Cause == event.CauseNodeLost:
			lost = lost || h.Ended.Container == running
			failed = failed || h.Ended.Container == late // the RM may have been first
		default:
			t.Fatalf("%s", describe(h))
		}
	}
	j.finish(action.Finish{State: proto.JobState_JOB_STATE_SUCCEEDED})
}

func TestResourceManagerComesBack(t *testing.T) {
	// It is away for longer than Hadoop's own clients wait for it.
	impatient := loadConf(t)
	impatient.Set("yarn.resourcemanager.connect.max-wait.ms", "1000")
	packed, err := impatient.Pack()
	if err != nil {
		t.Fatal(err)
	}
	j := submit(t, runs+"sleep 1000", func(s *hadoop.Submission) {
		s.Launch.Credentials.Secrets[proto.SecretConf] = packed
		s.Launch.Environment[envLossy] = "1"
	})
	j.ask("ps", 1, 64)
	first := j.allocated(1)[0]
	j.tell(request{Launch: first.Container})
	pid := j.pid(first.Container)
	rm := cluster(t).Daemon("rm")
	begin := time.Now()
	if err := rm.Kill(); err != nil {
		t.Fatal(err)
	}
	j.tell(request{Ask: &action.Ask{Request: "meanwhile", Role: "ps", MemoryMB: 64, VCores: 1}})
	h := j.await("a word of it", func(h report) bool { return h.Waiting != nil && h.Waiting.Why != "" })
	t.Logf("said after %v", time.Since(begin))
	if !strings.Contains(h.Waiting.Why, "ResourceManager has not answered") {
		t.Errorf("it says %q", h.Waiting.Why)
	}
	if err := rm.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("the ResourceManager is back after %v", time.Since(begin))
	second := j.allocated(1)[0]
	t.Logf("it has answered after %v", time.Since(begin))
	if second.Request != "meanwhile" {
		t.Errorf("what was asked for meanwhile is answered by %+v", second)
	}
	j.tell(request{Launch: second.Container})
	j.pid(second.Container)
	if !alive(pid) {
		t.Error("the container of before is gone")
	}
	j.tell(request{Release: first.Container})
	if e := j.ended(first.Container); e.Cause != event.CauseReleased || alive(pid) {
		t.Errorf("the container of before: %+v", e)
	}
	j.finish(action.Finish{State: proto.JobState_JOB_STATE_SUCCEEDED})
	if r := j.state(hadoop.StateFinished); r.Final != hadoop.FinalSucceeded || r.Attempt != 1 {
		t.Errorf("final state: %s of attempt %d", r.Final, r.Attempt)
	}
}

// A ResourceManager that has been restarted may allow less for a while.
func TestMaximumIsSmallerForAWhile(t *testing.T) {
	c := cluster(t)
	const key = "yarn.scheduler.maximum-allocation-mb"
	j := submit(t, runs+"sleep 1000")
	j.ask("ps", 1, 64)
	first := j.allocated(1)[0]
	j.tell(request{Launch: first.Container})
	pid := j.pid(first.Container)
	restart := func(maximum string) {
		t.Helper()
		if err := c.Configure(map[string]string{key: maximum}); err != nil {
			t.Fatal(err)
		}
		if err := c.Daemon("rm").Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	before, _ := loadConf(t).Lookup(key)
	restart("512")
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		_ = c.Configure(map[string]string{key: before})
		_ = c.Daemon("rm").Restart(context.Background())
	})
	j.tell(request{Ask: &action.Ask{Request: "large", Role: "worker", MemoryMB: 1024, VCores: 1}})
	j.tell(request{Ask: &action.Ask{Request: "small", Role: "ps", MemoryMB: 128, VCores: 1}})
	refused, small := "", false
	for refused == "" || !small {
		h := j.await("a word of what is refused, and the rest", func(h report) bool { return h.Waiting != nil || h.Allocated != nil })
		switch {
		case h.Allocated != nil && h.Allocated.Request == "small":
			small = true
		case h.Allocated != nil:
			t.Fatalf("%+v", *h.Allocated)
		case strings.Contains(h.Waiting.Why, "the scheduler refuses 1 container for worker"):
			refused = h.Waiting.Why
		}
	}
	t.Log(refused)
	restart(before)
	if a := j.allocated(1)[0]; a.Request != "large" {
		t.Errorf("%+v", a)
	}
	if !alive(pid) {
		t.Error("the container of before is gone")
	}
	j.finish(action.Finish{State: proto.JobState_JOB_STATE_SUCCEEDED})
}

// What runs on a node that comes to a restarted ResourceManager later than the next
// application master is told to that.
func TestResourceManagerAndMasterAreLostTogether(t *testing.T) {
	j := submit(t, runs+"sleep 1000", func(s *hadoop.Submission) { s.MaxAttempts, s.KeepContainers = 2, true })
	r := j.state(hadoop.StateRunning)
	j.ask("ps", 6, 64)
	var there event.Allocated
	for _, a := range j.allocated(6) {
		if a.Node != r.Host {
			there = a
		}
	}
	if there.Container == "" {
		t.Fatal("all containers are on the AM's node")
	}
	j.tell(request{Launch: there.Container})
	pid := j.pid(there.Container)
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	last, err := strconv.Atoi(there.Node[strings.LastIndexByte(there.Node, '.')+1:])
	if err != nil {
		t.Fatal(err)
	}
	nm, rm := cluster(t).Daemon(fmt.Sprintf("nm%d", last-2)), cluster(t).Daemon("rm")
	if err := nm.Pause(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nm.Resume() })
	if err := rm.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(j.process, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	serves := make(chan error, 1)
	go func() { serves <- rm.Restart(t.Context()) }() // when all nodes are there
	j.meet()
	if err := nm.Resume(); err != nil {
		t.Fatal(err)
	}
	h := j.await("the container to be found", func(h report) bool { return h.Found != nil || h.Ended != nil })
	if h.Found == nil || h.Found.Container != there.Container || h.Found.Node != there.Node {
		t.Fatalf("%s", describe(h))
	}
	if err := <-serves; err != nil {
		t.Fatal(err)
	}
	if !alive(pid) {
		t.Error("what ran there was ended")
	}
	j.tell(request{Release: there.Container})
	if e := j.ended(there.Container); e.Cause != event.CauseReleased || alive(pid) {
		t.Errorf("after its release: %+v; alive: %t", e, alive(pid))
	}
	j.finish(action.Finish{State: proto.JobState_JOB_STATE_SUCCEEDED})
}

// The scheduler keeps what an application master had it avoid for the next one, which may not
// want that any longer.
func TestTheNextMasterAvoidsWhatItWants(t *testing.T) {
	j := submit(t, runs+"sleep 1000", func(s *hadoop.Submission) { s.MaxAttempts, s.KeepContainers, s.Queue = 2, true, "small" })
	r := j.state(hadoop.StateRunning)
	nodes, err := j.client.Nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(nodes, func(n hadoop.Node) bool { return n.ID.Host != r.Host })
	avoided := nodes[i].ID.Host
	j.ask("ps", 1, 64)
	j.allocated(1)
	// The queue has no room for the next; the one after it shows that the scheduler has both.
	j.tell(request{Ask: &action.Ask{Request: "large", Role: "worker", MemoryMB: 4096, VCores: 1, Avoid: []string{avoided}}})
	j.tell(request{Ask: &action.Ask{Request: "small", Role: "ps", MemoryMB: 64, VCores: 1, Avoid: []string{avoided}}})
	if a := j.allocated(1)[0]; a.Node == avoided {
		t.Fatalf("%+v is on the node that is to be avoided", a)
	}
	if err := syscall.Kill(j.process, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	j.meet()
	j.ask("ps", 6, 64)
	if there := j.allocated(6); !slices.ContainsFunc(there, func(a event.Allocated) bool { return a.Node == avoided }) {
		t.Errorf("%s is still avoided: %+v", avoided, there)
	}
	j.finish(action.Finish{State: proto.JobState_JOB_STATE_SUCCEEDED})
}
