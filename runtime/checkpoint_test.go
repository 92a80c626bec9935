package runtime_test

import (
	"strings"
	"testing"

	"holdfast/proto"
	"holdfast/runtime"
)

// TestCheckpointRulesAreChecked: what a spec says about checkpoints is checked with the job.
func TestCheckpointRulesAreChecked(t *testing.T) {
	for format, want := range map[string]string{"dcp": "", "pickle": "./logs"} {
		c := &proto.CheckpointSpec{Path: "./logs", Format: format}
		err := runtime.Complete(&proto.JobSpec{Command: []string{"true"}, Roles: []*proto.RoleSpec{{Name: "worker", Count: 1}}, Checkpoints: []*proto.CheckpointSpec{c}})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", format, err)
		}
	}
}
