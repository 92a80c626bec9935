package submit

import (
	"strings"
	"testing"

	"holdfast/proto"
)

// On one machine, tasks that find no free GPU have no other node to move to.
func TestALocalJobAsksForNoMoreGPUsThanThereAre(t *testing.T) {
	for name, c := range map[string]struct {
		roles   []*proto.RoleSpec
		there   int
		refused string // what the error names; empty: the job may run
	}{
		"enough":              {roles: []*proto.RoleSpec{{Name: "ps", Count: 4}, {Name: "worker", Count: 2, Gpus: 2}}, there: 4},
		"too few together":    {roles: []*proto.RoleSpec{{Name: "worker", Count: 3, Gpus: 1}}, there: 1, refused: "ask for 3 GPUs together (worker 3 × 1), and this machine has 1 that they may use: lower --worker or --worker-gpus, or"},
		"too few for two":     {roles: []*proto.RoleSpec{{Name: "chief", Count: 1, Gpus: 1}, {Name: "worker", Count: 1, Gpus: 2}}, there: 2, refused: "3 GPUs together (chief 1 × 1, worker 1 × 2)"},
		"who only looks on":   {roles: []*proto.RoleSpec{{Name: "worker", Count: 1, Gpus: 1}, {Name: "evaluator", Count: 1, Gpus: 1, Completion: proto.CompletionRule_COMPLETION_RULE_OPTIONAL}}, there: 1},
		"some may start":      {roles: []*proto.RoleSpec{{Name: "worker", Count: 4, Min: 1, Gpus: 1}}, there: 1},
		"no GPUs of NVIDIA's": {roles: []*proto.RoleSpec{{Name: "worker", Count: 2, Gpus: 1}}},
		"none asked for":      {roles: []*proto.RoleSpec{{Name: "worker", Count: 2}}, there: 1},
	} {
		err := checkGPUs(&proto.JobSpec{Roles: c.roles}, c.there)
		if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
			t.Errorf("%s: %v, want %q", name, err, c.refused)
		}
	}
}
