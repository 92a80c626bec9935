package layout

import (
	"os"
	"path"
	"strings"
	"testing"
)

// TestTheStructureNamesAllPackages: docs/structure.md says of each package what it is for, by its
// name or the last part of that.
func TestTheStructureNamesAllPackages(t *testing.T) {
	text, err := os.ReadFile("../../docs/structure.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range rooms {
		if !strings.HasSuffix(name, "...") && !strings.Contains(string(text), name+"`") && !strings.Contains(string(text), "`"+path.Base(name)+"`") {
			t.Errorf("docs/structure.md does not say what %s is for", name)
		}
	}
}
