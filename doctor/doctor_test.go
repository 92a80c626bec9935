package doctor

import (
	"strings"
	"testing"

	"holdfast/doctor/check"
	"holdfast/internal/hadoop/conf"
)

func TestVirtualMemoryIsDiagnosed(t *testing.T) {
	const checked, enforced = "yarn.nodemanager.vmem-check-enabled", "yarn.nodemanager.resource.memory.enforced"
	for _, tt := range []struct {
		properties map[string]string
		level      check.Level
		says       []string
	}{
		{nil, check.Note, []string{"2.1 times", checked, "newer versions"}},
		{map[string]string{enforced: "false", "yarn.nodemanager.vmem-pmem-ratio": "5"}, check.Note, []string{"5 times", checked}},
		{map[string]string{enforced: "true"}, check.Good, []string{"cgroups"}},
		{map[string]string{checked: "false", enforced: "false"}, check.Good, nil},
	} {
		f := diagnoseVirtualMemory(conf.New(tt.properties))
		if f.Level != tt.level {
			t.Errorf("%v: %s: %s", tt.properties, f.Level, f.Text)
		}
		for _, w := range tt.says {
			if !strings.Contains(f.Text, w) {
				t.Errorf("%v: %q does not say %q", tt.properties, f.Text, w)
			}
		}
	}
}
