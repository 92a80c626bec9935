package agents_test

import (
	"testing"

	"holdfast/am/agents"
	"holdfast/am/core/action"
	"holdfast/proto"
	"holdfast/runtime"
)

// TestStepsOfServices: what a service prints of the steps that others make, as torchft's
// lighthouse does, is not taken for steps of the job.
func TestStepsOfServices(t *testing.T) {
	job := &proto.JobSpec{Framework: "torchft", Command: []string{"python", "train.py"}, Roles: []*proto.RoleSpec{{Name: "replica", Count: 1}}, Progress: `s(\d+)`}
	if err := runtime.Complete(job); err != nil {
		t.Fatal(err)
	}
	m := agents.NewMessages("j", job)
	for task, want := range map[string]string{"replica-0": `s(\d+)`, "lighthouse-0": ""} {
		if a := m.Assign(action.Assign{Task: task}, 0, 0, nil); a.Progress != want {
			t.Errorf("steps of %s are %q, want %q", task, a.Progress, want)
		}
	}
}
