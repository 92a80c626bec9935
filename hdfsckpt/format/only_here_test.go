package format_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/hdfsckpt/format"
)

// TestFormatsAreDecidedHereOnly: no other package names a format, in a comparison, as
// the key of a map or otherwise; it asks the format.
func TestFormatsAreDecidedHereOnly(t *testing.T) {
	var kinds []string
	for _, f := range format.All {
		kinds = append(kinds, `"`+string(f.Traits().Kind)+`"`)
	}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	names := constants(t)
	if len(names) != len(kinds) {
		t.Fatalf("the formats %v have the constants %v", kinds, names)
	}
	err = filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		if abs, err := filepath.Abs(path); err != nil || filepath.Dir(abs) == here {
			return err
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if decides(n, names, kinds) {
				t.Errorf("%s decides by the name of a format: ask the format (hdfsckpt/format)", files.Position(n.Pos()))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// decides reports whether a node names a format by its constant, or compares a kind or a
// format with its text.
func decides(n ast.Node, names, kinds []string) bool {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		x, ok := n.X.(*ast.Ident)
		return ok && x.Name == "format" && slices.Contains(names, n.Sel.Name)
	case *ast.BinaryExpr:
		named := func(e ast.Expr) bool {
			s, ok := e.(*ast.SelectorExpr)
			return ok && (s.Sel.Name == "Kind" || s.Sel.Name == "Format")
		}
		text := func(e ast.Expr) bool {
			b, ok := e.(*ast.BasicLit)
			return ok && slices.Contains(kinds, b.Value)
		}
		return named(n.X) && text(n.Y) || named(n.Y) && text(n.X)
	}
	return false
}

// constants are the names of this package's constants of type Kind.
func constants(t *testing.T) (names []string) {
	t.Helper()
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, source := range sources {
		f, err := parser.ParseFile(token.NewFileSet(), source, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok {
				if kind, ok := v.Type.(*ast.Ident); ok && kind.Name == "Kind" && len(v.Values) == 1 {
					names = append(names, v.Names[0].Name)
				}
			}
			return true
		})
	}
	return names
}
