// Package sources reads the Go files of this module, for tests of how it is written.
package sources

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// File is a parsed Go file.
type File struct {
	Path   string // relative to the module's root
	Syntax *ast.File
	set    *token.FileSet
}

// Position returns where a node begins, for a person.
func (f *File) Position(n ast.Node) token.Position { return f.set.Position(n.Pos()) }

// IsTest reports whether the file is a test's.
func (f *File) IsTest() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Each calls f for each Go file of the module, generated ones and tests included.
func Each(t *testing.T, f func(*File)) {
	t.Helper()
	err := filepath.WalkDir(root(t), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		file := &File{set: token.NewFileSet()}
		if file.Syntax, err = parser.ParseFile(file.set, path, nil, parser.ParseComments|parser.SkipObjectResolution); err != nil {
			return err
		}
		if file.Path, err = filepath.Rel(root(t), path); err != nil {
			return err
		}
		f(file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// root returns the directory of go.mod above that of the test.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no directory above has a go.mod")
		}
	}
}
