package doctor

import (
	"strings"
	"testing"

	"holdfast/client"
	"holdfast/doctor/check"
)

func TestWrite(t *testing.T) {
	list := []check.Finding{
		{Subject: "HDFS", Level: check.Good, Text: "fine"},
		{Node: "a", Subject: "/tmp", Level: check.Bad, Text: "noexec"},
		{Node: "a", Subject: "clock", Level: check.Good, Text: "1 s"},
		{Node: "b", Subject: "clock", Level: check.Good, Text: "2 s"},
		{Node: "a", Subject: "disk", Level: check.Good, Text: "1"},
		{Node: "a", Subject: "disk", Level: check.Note, Text: "little"},
		{Node: "a", Subject: "disk", Level: check.Good, Text: "2"},
		{Node: "b", Subject: "disk", Level: check.Note, Text: "little"},
	}
	var b strings.Builder
	if err := Write(&b, list); err != nil {
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
	if err := Error(list); client.ExitCode(err) != client.ExitFailed || !strings.Contains(err.Error(), "the node a") {
		t.Errorf("%v", err)
	}
	if err := Error(list[2:]); err != nil {
		t.Errorf("%v", err)
	}
	if err := Error([]check.Finding{{Subject: "YARN", Level: check.Bad, Exit: client.ExitDenied}}); client.ExitCode(err) != client.ExitDenied {
		t.Errorf("%v", err)
	}
}
