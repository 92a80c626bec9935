package yarn_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/am"
	hadoop "holdfast/internal/hadoop/yarn"
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
	j.tell(order{Launch: running})
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
	j.tell(order{Launch: late})
	var lost, failed bool
	for !lost || !failed {
		h := j.await("the loss of both containers", func(h happening) bool { return h.Ended != nil || h.Failed != "" })
		switch {
		case h.Failed == late:
			failed = true
			if !strings.Contains(h.Fault, host) {
				t.Errorf("%q does not name %s", h.Fault, host)
			}
		case h.Ended != nil && h.Ended.Cause == am.EndNodeLost:
			lost = lost || h.Ended.Container == running
			failed = failed || h.Ended.Container == late // the RM may have been first
		default:
			t.Fatalf("%s", describe(h))
		}
	}
	j.finish(am.Outcome{Succeeded: true})
}

func TestResourceManagerComesBack(t *testing.T) {
	j := submit(t, runs+"sleep 1000")
	j.ask("ps", 1, 64)
	first := j.allocated(1)[0]
	j.tell(order{Launch: first.Container})
	pid := j.pid(first.Container)
	rm := cluster(t).Daemon("rm")
	begin := time.Now()
	if err := rm.Kill(); err != nil {
		t.Fatal(err)
	}
	j.tell(order{Ask: &am.Ask{Request: "meanwhile", Role: "ps", MemoryMB: 64, VCores: 1}})
	h := j.await("a word of it", func(h happening) bool { return h.Waiting != nil && h.Waiting.Why != "" })
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
	j.tell(order{Launch: second.Container})
	j.pid(second.Container)
	if !alive(pid) {
		t.Error("the container of before is gone")
	}
	j.tell(order{Release: first.Container})
	if e := j.ended(first.Container); e.Cause != am.EndReleased || alive(pid) {
		t.Errorf("the container of before: %+v", e)
	}
	j.finish(am.Outcome{Succeeded: true})
	if r := j.state(hadoop.StateFinished); r.Final != hadoop.FinalSucceeded || r.Attempt != 1 {
		t.Errorf("final state: %s of attempt %d", r.Final, r.Attempt)
	}
}
