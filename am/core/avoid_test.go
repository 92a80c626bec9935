package core_test

import (
	"testing"
	"time"

	"holdfast/am/core"
)

// TestNodesAreAvoidedForAWhile: a node that failed twice is avoided, and it is told why and
// until when; another application master knows that, and the failures are forgotten.
func TestNodesAreAvoidedForAWhile(t *testing.T) {
	p := playWith(t, psAndWorkers(0, 2), 3, 0, core.Limits{})
	p.step(core.Begin{})
	begin := p.now
	node := p.named("worker-0").Node
	fail := func(cause core.Cause) {
		c := p.named("worker-0")
		p.step(core.ContainerEnded{Container: c.Container, Cause: cause, Diagnostics: "a disk is broken"})
	}
	if fail(core.CauseDisksFailed); len(p.job.AvoidedNodes()) != 0 {
		t.Errorf("after one failure: %+v", p.job.AvoidedNodes())
	}
	for p.named("worker-0").Node != node {
		fail(core.CauseKilled)
	}
	fail(core.CauseDisksFailed)
	check := func() {
		t.Helper()
		l := p.job.AvoidedNodes()
		if len(l) != 1 || l[0].Node != node || l[0].Why != "worker-0: a disk is broken" || l[0].Until.Truncate(time.Millisecond) != begin.Add(time.Hour).Truncate(time.Millisecond) {
			t.Errorf("avoided: %+v, want %s until %v", l, node, begin.Add(time.Hour))
		}
	}
	check()
	containers := map[string]string{}
	for _, k := range p.job.Tasks() {
		containers[k.Container] = k.Node
	}
	p.takeOver(core.Recovered{Containers: containers})
	check()
	p.wait(time.Hour)
	p.step(core.Tick{})
	if l := p.job.AvoidedNodes(); len(l) != 0 {
		t.Errorf("an hour later: %+v", l)
	}
}
