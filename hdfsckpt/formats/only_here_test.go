package formats_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"

	"holdfast/hdfsckpt/formats"
	"holdfast/test/sources"
)

// TestFormatsAreDecidedHereOnly: no other package names a format, in a comparison, as
// the key of a map or otherwise; it asks the format.
func TestFormatsAreDecidedHereOnly(t *testing.T) {
	var kinds []string
	for _, f := range formats.All {
		kinds = append(kinds, `"`+string(f.Traits().Kind)+`"`)
	}
	names := constants(t)
	if len(names) != len(kinds) {
		t.Fatalf("the formats %v have the constants %v", kinds, names)
	}
	sources.Each(t, func(f *sources.File) {
		if f.IsTest() || isHere(f) {
			return
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			if decides(n, names, kinds) {
				t.Errorf("%s decides by the name of a format: ask the format (format.Format)", f.Position(n))
			}
			return true
		})
	})
}

// isHere reports whether a file is of this package, or of one below.
func isHere(f *sources.File) bool { return strings.HasPrefix(f.Path, "hdfsckpt/formats/") }

// decides reports whether a node names a format by its constant or its type, or compares a kind or a
// format with its text.
func decides(n ast.Node, names, kinds []string) bool {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		x, ok := n.X.(*ast.Ident)
		return ok && (x.Name == "formats" || x.Name == "pytorch") && slices.Contains(names, strings.TrimSuffix(n.Sel.Name, "Format"))
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

// constants are the names of the constants of type Kind here.
func constants(t *testing.T) (names []string) {
	t.Helper()
	sources.Each(t, func(f *sources.File) {
		if !isHere(f) {
			return
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok {
				if kind, ok := v.Type.(*ast.SelectorExpr); ok && kind.Sel.Name == "Kind" && len(v.Values) == 1 {
					names = append(names, v.Names[0].Name)
				}
			}
			return true
		})
	})
	return names
}
