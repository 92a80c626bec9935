package mount_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPosix runs the cases as an ordinary user on a mount of a local store and
// on the host's tmpfs: the answers differ where docs/filesystem.md says, and
// nowhere else.
func TestPosix(t *testing.T) {
	b, store := localBox(t)
	posix(t, b, "local")
	noLeftovers(t, store)
}

func posix(t *testing.T, b *box, store string) {
	intended := differences(t, store)
	met := make(map[difference]bool)
	oracle := b.oracle(t)
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			lines := scriptLines(c.script)
			name := fmt.Sprintf("/case-%02d", i)
			for _, dir := range []string{oracle, b.dir} {
				b.task.do(call{Op: "mkdir", Path: dir + name, Mode: 0o755})
			}
			right := b.task.script(oracle+name, lines)
			got := b.task.script(b.dir+name, lines)
			for i, line := range lines {
				if right[i] == got[i] {
					continue
				}
				d := difference{c.name, line, right[i], got[i]}
				if intended[d] {
					met[d] = true
					continue
				}
				t.Errorf("%s\n\tis answered %s, and on tmpfs %s%s", line, got[i], right[i], after(lines[:i], got))
			}
		})
	}
	for _, d := range slices.SortedFunc(maps.Keys(intended), func(a, b difference) int { return strings.Compare(a.subject+a.call, b.subject+b.call) }) {
		if !met[d] {
			t.Errorf("%s: listed as a difference, but there is none: %+v", differencesFile, d)
		}
	}
}

// oracle makes a tmpfs in the task's namespace.
func (b *box) oracle(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	letOthersIn(dir)
	b.task.do(call{Op: "tmpfs", Path: dir})
	return dir
}

func scriptLines(script string) (lines []string) {
	for line := range strings.Lines(script) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// after shows what went before.
func after(lines, answers []string) string {
	var b strings.Builder
	for i, line := range lines {
		fmt.Fprintf(&b, "\n\t\t%s → %s", line, answers[i])
	}
	return b.String()
}

// difference is a call of a case that a mount answers differently.
type difference struct{ subject, call, posix, here string }

const differencesFile = "../../docs/filesystem.md"

// cell is a call or an answer in the table.
var cell = regexp.MustCompile("`([^`]*)`")

// differences reads the table of intended differences. The last column says
// why; a row whose first column ends with "(hdfs)" or "(local)" is about that
// store only.
func differences(t *testing.T, store string) map[difference]bool {
	t.Helper()
	b, err := os.ReadFile(differencesFile)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[difference]bool)
	for line := range strings.Lines(string(b)) {
		columns := strings.Split(line, "|")
		if len(columns) != 7 || !strings.Contains(columns[2], "`") {
			continue
		}
		subject := strings.TrimSpace(columns[1])
		if s, only, ok := strings.Cut(subject, " ("); ok {
			if only != store+")" {
				continue
			}
			subject = s
		}
		var words [3]string
		for i := range words {
			m := cell.FindStringSubmatch(columns[2+i])
			if m == nil {
				t.Fatalf("%s: a row has no `answer` in column %d: %s", differencesFile, 2+i, line)
			}
			words[i] = m[1]
		}
		all[difference{subject, words[0], words[1], words[2]}] = true
	}
	if len(all) == 0 {
		t.Fatalf("%s holds no table of differences", differencesFile)
	}
	return all
}
