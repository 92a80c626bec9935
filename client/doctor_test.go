package client

import (
	"strings"
	"testing"

	"holdfast/doctor"
	"holdfast/internal/hadoop/conf"
)

func TestWriteFindings(t *testing.T) {
	list := []doctor.Finding{
		{Subject: "HDFS", Level: doctor.Good, Text: "fine"},
		{Node: "a", Subject: "/tmp", Level: doctor.Bad, Text: "noexec"},
		{Node: "a", Subject: "clock", Level: doctor.Good, Text: "1 s"},
		{Node: "b", Subject: "clock", Level: doctor.Good, Text: "2 s"},
		{Node: "a", Subject: "disk", Level: doctor.Good, Text: "1"},
		{Node: "a", Subject: "disk", Level: doctor.Note, Text: "little"},
		{Node: "a", Subject: "disk", Level: doctor.Good, Text: "2"},
		{Node: "b", Subject: "disk", Level: doctor.Note, Text: "little"},
	}
	var b strings.Builder
	if err := WriteFindings(&b, list); err != nil {
		t.Fatal(err)
	}
	want := `ok    HDFS: fine

2 nodes (a, b)
ok on all: clock

node  /tmp  disk
a     bad   note
b     -     note

bad  /tmp, on a: noexec

note  disk, on a, b: little
`
	if b.String() != want {
		t.Errorf("got:\n%s", b.String())
	}
	if err := FindingsError(list); ExitCode(err) != ExitFailed || !strings.Contains(err.Error(), "the node a") {
		t.Errorf("%v", err)
	}
	if err := FindingsError(list[2:]); err != nil {
		t.Errorf("%v", err)
	}
	if err := FindingsError([]doctor.Finding{{Subject: "YARN", Level: doctor.Bad, Exit: ExitDenied}}); ExitCode(err) != ExitDenied {
		t.Errorf("%v", err)
	}
}

func TestVirtualMemoryIsDiagnosed(t *testing.T) {
	const check, enforced = "yarn.nodemanager.vmem-check-enabled", "yarn.nodemanager.resource.memory.enforced"
	for _, tt := range []struct {
		properties map[string]string
		level      doctor.Level
		says       []string
	}{
		{nil, doctor.Note, []string{"2.1 times", check, "newer versions"}},
		{map[string]string{enforced: "false", "yarn.nodemanager.vmem-pmem-ratio": "5"}, doctor.Note, []string{"5 times", check}},
		{map[string]string{enforced: "true"}, doctor.Good, []string{"cgroups"}},
		{map[string]string{check: "false", enforced: "false"}, doctor.Good, nil},
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
