package terminal

import (
	"strings"
	"testing"
)

// In a terminal a table is as wide as that is at most, and what must be whole is whole.
func TestTableFits(t *testing.T) {
	table := NewTable("ID", "NAME", "NOTE")
	table.Flexible = []string{"NAME", "NOTE"}
	table.Add("application_1_0001", "a short name", "")
	table.Add("application_1_0002", "ein Träger", "a note that says\nmore than fits in a line \x1b[2Jof any terminal that a person has")
	var b strings.Builder
	if err := table.Write(&b, 60); err != nil {
		t.Fatal(err)
	}
	want := `ID                  NAME          NOTE
application_1_0001  a short name
application_1_0002  ein Träger    a note that says more tha…
`
	if b.String() != want {
		t.Errorf("it is\n%swant\n%s", b.String(), want)
	}
	b.Reset()
	if err := table.Write(&b, 0); err != nil || !strings.Contains(b.String(), "that a person has\n") {
		t.Errorf("without a terminal it is\n%s", b.String())
	}
}
