package status

import (
	"testing"
	"time"

	"holdfast/am/core"
	"holdfast/proto"
)

// TestWhatALossCosts: steps are lost from the newest complete checkpoint on, whatever
// step is told first.
func TestWhatALossCosts(t *testing.T) {
	at := time.UnixMilli(100_000)
	for name, c := range map[string]struct {
		incident *proto.Incident
		whole    int64
		first    int64
		want     int64
	}{
		"back to the beginning":                  {&proto.Incident{Step: 394}, 0, 195, 394},
		"back to a checkpoint":                   {&proto.Incident{Step: 394, CompleteStep: 300}, 300, 305, 94},
		"a parameter server, and steps are rare": {&proto.Incident{Step: 400, CompleteStep: 350, RolledBack: true}, 350, 600, 50},
		"a worker, and the others go on":         {&proto.Incident{Step: 400, CompleteStep: 350}, 350, 401, 0},
		"sealed a moment after the loss":         {&proto.Incident{Step: 400, CompleteStep: 300, RolledBack: true}, 400, 500, 0},
		"sealed long after the loss":             {&proto.Incident{Step: 400, CompleteStep: 300, RolledBack: true}, 700, 710, 100},
	} {
		i := c.incident
		i.AtUnixMs, i.RecoveredUnixMs = at.UnixMilli()-5000, at.UnixMilli()-2000
		s := &proto.JobStatus{Incidents: []*proto.Incident{i}, CompleteStep: c.whole}
		recordStep(s, newTotals(nil), c.first, at)
		recordStep(s, newTotals(nil), c.first+10, at.Add(time.Second))
		if i.LostSteps != c.want || i.ResumedStep != c.first || i.ProgressAfterMs != 5000 {
			t.Errorf("%s: %d steps lost, want %d; it went on with step %d after %d ms", name, i.LostSteps, c.want, i.ResumedStep, i.ProgressAfterMs)
		}
	}
}

// TestStepsThatAreToldAfterALossAreLost: the others' last steps are heard when they have
// been stopped.
func TestStepsThatAreToldAfterALossAreLost(t *testing.T) {
	at := time.UnixMilli(100_000)
	for rolledBack, want := range map[bool]int64{true: 18, false: 0} {
		i := &proto.Incident{AtUnixMs: at.UnixMilli(), Step: 10, RolledBack: rolledBack}
		s := &proto.JobStatus{Incidents: []*proto.Incident{i}}
		recordStep(s, newTotals(nil), 18, at)
		i.RecoveredUnixMs = at.UnixMilli() + 500
		recordStep(s, newTotals(nil), 19, at.Add(time.Second))
		if i.LostSteps != want {
			t.Errorf("rolled back %v: %d steps lost, want %d", rolledBack, i.LostSteps, want)
		}
	}
}

// TestWhatRollsBack: the model's state goes with ranks and with parameter servers, and not
// with a service that only coordinates.
func TestWhatRollsBack(t *testing.T) {
	const service = proto.CompletionRule_COMPLETION_RULE_SERVICE
	for _, c := range []struct {
		role *proto.RoleSpec
		want bool
	}{
		{&proto.RoleSpec{Loss: proto.LossRule_LOSS_RULE_ALL}, true},
		{&proto.RoleSpec{Completion: service}, true},
		{&proto.RoleSpec{Completion: service, Coordinates: true}, false},
		{&proto.RoleSpec{}, false},
	} {
		if got := rollsBack(core.Task{Role: c.role}); got != c.want {
			t.Errorf("%v: %v", c.role, got)
		}
	}
}
