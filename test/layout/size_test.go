package layout

import (
	"go/ast"
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

// catalogs are the packages that have a file for each of their kind, with what shows that a
// file is one. Those files do not count: that they are many hides nothing.
var catalogs = map[string]func(*ast.File) bool{"hdfsckpt/formats": isFormat}

// isFormat reports whether a file has the type of a format.
func isFormat(f *ast.File) bool {
	for _, d := range f.Decls {
		if m, ok := d.(*ast.FuncDecl); ok && m.Recv != nil && m.Name.Name == "Traits" {
			return true
		}
	}
	return false
}

// TestPackagesAreSmall: no package has more files than one takes in at a glance.
func TestPackagesAreSmall(t *testing.T) {
	files, listed := map[string]int{}, map[string]int{}
	sources.Each(t, func(f *sources.File) {
		dir := path.Dir(f.Path)
		switch one := catalogs[dir]; {
		case f.IsTest() || strings.HasSuffix(f.Path, ".pb.go"):
		case one != nil && one(f.Syntax):
			listed[dir]++
		default:
			files[dir]++
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
	for dir := range catalogs {
		if listed[dir] == 0 {
			t.Errorf("%s has no file of its kind", dir)
		}
	}
}
