package layout

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// retired are words that this project once had for things for which the field has
// terms, with the terms. They match without regard to case.
var retired = []struct{ pattern, term string }{
	{`clerk|\berrands?\b`, "journal writer, entry"},
	{`vigil`, "liveness file"},
	{`\bheirs?\b`, "successor"},
	{`\boust`, "evict, remove"},
	{`\bsurvey`, "reconciliation"},
	{`rehears`, "prewarm"},
	{`shut(s|ting)? ?out\b`, "fence"},
	{`bring ?back`, "restore, or restart"},
	{`\blonely\b|\bsurely\b`, "what is really meant"},
	{`\b(hub|board|story|stories)\b`, "agent server, status store, event log"},
	{`kindback|\bsent home\b|\battend\b`, "recovered, released, serve"},
	{`\bkeepers?\b`, "store preparer, watchdog"},
	{`\bdeeds?\b|\bslots?(?:[^=\w]|$)`, "entry, backup entry"}, // an actor is Ray's, and slots=N stands in a hostfile
	{`\bgathering\b|\bcrowd|\bdress|\bhappenings?\b`, "gang start, or what is really meant"},
	{`\bat rest\b|\bdoubts?\b|\bcircumstances\b|\bunbroken\b`, "idle, or what is really meant"},
	{`\btells whether\b`, "report whether"},
	{`\bmend(s|ed|ing)?\b`, "repair, fix"},
	{`^(<<<<<<<|>>>>>>>) `, "what was meant: a merge has left this"},
}

// TestRetiredWords: code, comments, messages and documentation have the field's terms.
func TestRetiredWords(t *testing.T) {
	root := filepath.Join("..", "..")
	patterns := make([]*regexp.Regexp, len(retired))
	for i, r := range retired {
		patterns[i] = regexp.MustCompile(`(?i)` + r.pattern)
	}
	read := []string{".go", ".md", ".py", ".proto", ".sh", ".yaml"}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata" || d.Name() == "bin" || d.Name() == "dist"):
			return filepath.SkipDir
		case d.IsDir() || d.Name() == "words_test.go" || strings.HasSuffix(path, ".pb.go") || !slices.Contains(read, filepath.Ext(path)):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		n := 0
		for line := range strings.Lines(string(text)) {
			n++
			for i, p := range patterns {
				if word := p.FindString(line); word != "" {
					t.Errorf("%s:%d: %q is not a word of the field: say %s", path, n, word, retired[i].term)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
