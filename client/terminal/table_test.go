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
	table.Optional = []string{"NOTE"}
	table.AddBelow("two lines below, of which the second is cut, as it is long", 2)
	if err := table.Write(&b, 30); err != nil {
		t.Fatal(err)
	}
	want = `ID                  NAME
application_1_0001  a short n…
application_1_0002  ein Träger
  two lines below, of which
  the second is cut, as it is…
`
	if b.String() != want {
		t.Errorf("in 30 columns it is\n%swant\n%s", b.String(), want)
	}
	b.Reset()
	if err := table.Write(&b, 12); err != nil || longest(b.String()) != 12 {
		t.Errorf("in 12 columns it is\n%s", b.String())
	}
	b.Reset()
	if err := table.Write(&b, 0); err != nil || !strings.Contains(b.String(), "that a person has\n") {
		t.Errorf("without a terminal it is\n%s", b.String())
	}
}

// TestWideCharactersInATable: of characters that take two columns of a terminal, or none, lines are as wide
// as of others, and columns stand below each other.
func TestWideCharactersInATable(t *testing.T) {
	table := NewTable("TASK", "NOTE", "NODE")
	table.Flexible = []string{"NOTE"}
	table.Add("worker-0", "🚀🚀 epoch 3", "a")
	table.Add("worker-1", "損失が発散しました、学習を停止します", "b")
	table.Add("worker-2", "e\u0301\tat\tjava.lang", "c")
	table.AddBelow("原因は不明です 二行目", 2)
	for width, want := range map[int]string{
		0: "TASK      NOTE                                  NODE\n" +
			"worker-0  🚀🚀 epoch 3                          a\n" +
			"worker-1  損失が発散しました、学習を停止します  b\n" +
			"worker-2  e\u0301 at java.lang                        c\n" +
			"  原因は不明です 二行目\n",
		// A character of two columns that would be cut in halves is left out.
		29: "TASK      NOTE           NODE\n" +
			"worker-0  🚀🚀 epoch 3   a\n" +
			"worker-1  損失が発散し…  b\n" +
			"worker-2  e\u0301 at java.la…  c\n" +
			"  原因は不明です 二行目\n",
	} {
		var b strings.Builder
		if err := table.Write(&b, width); err != nil || !strings.HasPrefix(b.String(), want) {
			t.Errorf("in %d columns it is\n%swant\n%s", width, b.String(), want)
		}
	}
}

// TestTableKeepsWhatSays: before a column has less than its least width, those go that may.
func TestTableKeepsWhatSays(t *testing.T) {
	table := NewTable("TASK", "CPU", "NODE", "NOTE")
	table.Flexible, table.Optional, table.Least = []string{"NODE", "NOTE"}, []string{"NODE", "CPU"}, map[string]int{"NODE": 12, "NOTE": 20}
	table.Add("worker-0", "1.5/2", "node-1.example.org", "step 7, and the loss of it")
	for width, want := range map[int]string{
		80: "worker-0  1.5/2  node-1.example.org  step 7, and the loss of it\n",
		54: "worker-0  1.5/2  node-1.example…  step 7, and the los…\n",
		50: "worker-0  1.5/2  step 7, and the loss of it\n",
		40: "worker-0  1.5/2  step 7, and the loss o…\n",
		36: "worker-0  step 7, and the loss of it\n",
	} {
		var b strings.Builder
		if err := table.Write(&b, width); err != nil || !strings.HasSuffix(b.String(), want) {
			t.Errorf("in %d columns it is\n%swant\n%s", width, b.String(), want)
		}
	}
}

// longest returns the characters of the longest line.
func longest(text string) int {
	most := 0
	for line := range strings.Lines(text) {
		most = max(most, len([]rune(strings.TrimSuffix(line, "\n"))))
	}
	return most
}
