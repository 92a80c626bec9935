package core_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"holdfast/am/core"
	"holdfast/am/core/action"
	"holdfast/am/core/event"
)

// TestASpreadRoleIsKeptApart: a request for a task names the containers of the role's other
// tasks.
func TestASpreadRoleIsKeptApart(t *testing.T) {
	roles := psAndWorkers(2, 1)
	roles[0].Spread = true
	p := playWith(t, roles, 3, 0, core.Limits{})
	p.step(event.Begin{})
	ps := map[string]string{}
	for _, name := range []string{"ps-0", "ps-1"} {
		ps[name] = p.named(name).Container
	}
	var asks []action.Ask
	for _, a := range p.job.Step(p.now, event.ContainerEnded{Container: ps["ps-0"], Cause: event.CauseKilled, Diagnostics: "killed"}) {
		if a, ok := a.(action.Ask); ok {
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
	p.step(event.Begin{})
	at := func(name string) string { return p.named(name).Container }
	lost, server, other := at("worker-0"), at("ps-0"), at("worker-1")
	for _, a := range p.job.Step(p.now, event.ContainerEnded{Container: lost, Cause: event.CauseKilled, Diagnostics: "killed"}) {
		if a, ok := a.(action.Ask); ok && (a.Task != "worker-0" || !slices.Equal(a.Apart, []string{server}) || !slices.Equal(a.Near, []string{other})) {
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
	p.step(event.Begin{})
	begin := p.now
	node := p.named("worker-0").Node
	fail := func(cause event.Cause) {
		c := p.named("worker-0")
		p.step(event.ContainerEnded{Container: c.Container, Cause: cause, Diagnostics: "a disk is broken"})
	}
	if fail(event.CauseDisksFailed); len(p.job.AvoidedNodes()) != 0 {
		t.Errorf("after one failure: %+v", p.job.AvoidedNodes())
	}
	for p.named("worker-0").Node != node {
		fail(event.CauseKilled)
	}
	fail(event.CauseDisksFailed)
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
	p.takeOver(event.Recovered{Containers: containers})
	check()
	p.wait(time.Hour)
	p.step(event.Tick{})
	if l := p.job.AvoidedNodes(); len(l) != 0 {
		t.Errorf("an hour later: %+v", l)
	}
}

// TestANodeThatYARNUsesAgainIsNotLeft: a ResourceManager need not say that a node is in service
// again. A container that it gives there after the time by which all were to be gone says it.
func TestANodeThatYARNUsesAgainIsNotLeft(t *testing.T) {
	p := playWith(t, psAndWorkers(0, 2), 3, 0, core.Limits{})
	elsewhere := p.node
	p.node = func(c int) string { return elsewhere(3 * c) } // n0
	p.step(event.Begin{})
	p.node = func(int) string { return "n1" }
	lose := func() {
		t.Helper()
		p.step(event.ContainerEnded{Container: p.named("worker-0").Container, Cause: event.CauseKilled, Diagnostics: "killed"})
	}
	lose()
	p.node = func(int) string { return "n2" }
	p.step(event.NodeDecommissioning{Node: "n1", Within: time.Minute})
	p.wait(2 * time.Minute)
	if on := p.named("worker-0").Node; on != "n2" {
		t.Fatalf("worker-0 is on %s", on)
	}
	before := p.containers
	p.node = func(c int) string {
		if c > before+10 {
			t.Fatal("container after container is asked for")
		}
		return "n1"
	}
	lose()
	before = p.containers
	p.wait(2 * time.Minute)
	if k := p.named("worker-0"); k.Node != "n1" || p.containers != before {
		t.Errorf("worker-0 is on %s, and %d more containers came", k.Node, p.containers-before)
	}
	if l := p.job.AvoidedNodes(); len(l) != 0 {
		t.Errorf("avoided: %+v", l)
	}
}

// TestAContainerOnANodeThatClosesSaysNothing: until the time that was told, a scheduler may give
// the room of a container there that has just ended (YARN-5128).
func TestAContainerOnANodeThatClosesSaysNothing(t *testing.T) {
	p := playWith(t, psAndWorkers(0, 1), 3, 0, core.Limits{})
	p.node = func(int) string { return "n1" }
	p.step(event.Begin{})
	request := ""
	for _, a := range p.job.Step(p.now, event.NodeDecommissioning{Node: "n1", Within: 10 * time.Minute}) {
		if ask, is := a.(action.Ask); is {
			request = ask.Request
		}
	}
	p.mute["Allocated"] = true // the answer to the next ask
	p.step(event.Allocated{Request: request, Container: "c9", Node: "n1"})
	if l := p.job.AvoidedNodes(); len(l) != 1 || l[0].Node != "n1" {
		t.Errorf("avoided: %+v", l)
	}
}

// TestANodeThatClosedIsAvoidedForAWhile: where nothing more is heard of a node that was to be
// taken out of service, it is avoided for as long as a failure counts, and no longer.
func TestANodeThatClosedIsAvoidedForAWhile(t *testing.T) {
	for name, within := range map[string]time.Duration{"by a known time": time.Minute, "some time": 0} {
		t.Run(name, func(t *testing.T) {
			p := playWith(t, psAndWorkers(0, 2), 3, 0, core.Limits{})
			p.node = func(c int) string { return fmt.Sprintf("n%d", c) }
			p.step(event.Begin{})
			node := p.named("worker-0").Node
			p.mute["Allocated"] = true
			p.step(event.NodeDecommissioning{Node: node, Within: within})
			p.wait(3 * time.Second)
			if l := p.job.AvoidedNodes(); len(l) != 1 || !l[0].Until.IsZero() {
				t.Errorf("with a task there: %+v", l)
			}
			p.mute["Allocated"] = false
			for _, c := range p.job.Spares() {
				t.Errorf("a spare: %+v", c)
			}
			p.step(event.ContainerEnded{Container: p.named("worker-0").Container, Cause: event.CauseKilled, Diagnostics: "killed"})
			until := time.Unix(1000, 0).Add(within + time.Hour)
			if l := p.job.AvoidedNodes(); len(l) != 1 || l[0].Node != node || !l[0].Until.Equal(until) {
				t.Errorf("avoided: %+v, want %s until %v", l, node, until)
			}
			p.wait(until.Sub(p.now) - time.Second)
			if l := p.job.AvoidedNodes(); len(l) != 1 {
				t.Errorf("a second before: %+v", l)
			}
			p.wait(time.Second)
			if l := p.job.AvoidedNodes(); len(l) != 0 {
				t.Errorf("at %v: %+v", until, l)
			}
		})
	}
}
