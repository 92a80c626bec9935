package core_test

import (
	"slices"
	"testing"

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
