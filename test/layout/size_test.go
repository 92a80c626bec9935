package layout

import (
	"path"
	"strings"
	"testing"

	"holdfast/test/sources"
)

// mostFiles is how many files a package may have, tests and generated ones aside: among
// more, one does not see at a glance which of them is meant.
const mostFiles = 17

// larger are the packages that may have more files, with their number and why.
var larger = map[string]struct {
	files int
	why   string
}{
	"am/core": {19, "one state machine: a package of its own for a further part would need the state exported"},
}

// TestPackagesAreSmall: no package has more files than one takes in at a glance.
func TestPackagesAreSmall(t *testing.T) {
	files := map[string]int{}
	sources.Each(t, func(f *sources.File) {
		if !f.IsTest() && !strings.HasSuffix(f.Path, ".pb.go") {
			files[path.Dir(f.Path)]++
		}
	})
	for dir, n := range files {
		most := mostFiles
		if l, ok := larger[dir]; ok {
			most = l.files
		}
		if n > most {
			t.Errorf("%s has %d files, and may have %d: give a part of it a package of its own", dir, n, most)
		}
	}
	for dir, l := range larger {
		if files[dir] <= mostFiles {
			t.Errorf("%s has %d files, so it needs no exception (%s)", dir, files[dir], l.why)
		}
	}
}
