package core_test

import (
	"slices"
	"testing"
	"time"

	"holdfast/am/core"
)

// TestASpreadRoleIsKeptApart: a request for a task names the containers of the role's other
// tasks.
func TestASpreadRoleIsKeptApart(t *testing.T) {
	roles := psAndWorkers(2, 1)
	roles[0].Spread = true
	p := playWith(t, roles, 3, 0, core.Limits{})
	p.step(core.Begin{})
	ps := map[string]string{}
	for _, name := range []string{"ps-0", "ps-1"} {
		ps[name] = p.named(name).Container
	}
	var asks []core.Ask
	for _, a := range p.job.Step(p.now, core.ContainerEnded{Container: ps["ps-0"], Cause: core.CauseKilled, Diagnostics: "killed"}) {
		if a, ok := a.(core.Ask); ok {
			asks = append(asks, a)
		}
	}
	if len(asks) != 1 || asks[0].Task != "ps-0" || !slices.Equal(asks[0].Apart, []string{ps["ps-1"]}) {
		t.Errorf("asked for %+v, want it apart from %s", asks, ps["ps-1"])
	}
}

// TestARequestNamesWhereOthersAre: those that share no node with the task, whichever role says
// so, and those beside which it is wanted.
func TestARequestNamesWhereOthersAre(t *testing.T) {
	roles := psAndWorkers(1, 2)
	roles[0].AntiAffinity, roles[1].Pack = []string{"worker"}, true
	p := playWith(t, roles, 3, 0, core.Limits{})
	p.step(core.Begin{})
	at := func(name string) string { return p.named(name).Container }
	lost, server, other := at("worker-0"), at("ps-0"), at("worker-1")
	for _, a := range p.job.Step(p.now, core.ContainerEnded{Container: lost, Cause: core.CauseKilled, Diagnostics: "killed"}) {
		if a, ok := a.(core.Ask); ok && (a.Task != "worker-0" || !slices.Equal(a.Apart, []string{server}) || !slices.Equal(a.Near, []string{other})) {
			t.Errorf("asked for %+v, want it apart from %s and near %s", a, server, other)
		} else if ok {
			return
		}
	}
	t.Error("nothing is asked for")
}

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
