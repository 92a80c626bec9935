package frameworks_test

import (
	"go/ast"
	"go/token"
	"path"
	"testing"

	"holdfast/test/sources"
)

// TestFrameworksAreDecidedHereOnly: no other package compares a job's framework with a
// name.
func TestFrameworksAreDecidedHereOnly(t *testing.T) {
	named := func(e ast.Expr) bool {
		if c, ok := e.(*ast.CallExpr); ok {
			e = c.Fun
		}
		s, ok := e.(*ast.SelectorExpr)
		return ok && (s.Sel.Name == "Framework" || s.Sel.Name == "GetFramework")
	}
	text := func(e ast.Expr) bool {
		b, ok := e.(*ast.BasicLit)
		return ok && b.Kind == token.STRING && b.Value != `""`
	}
	sources.Each(t, func(f *sources.File) {
		if f.IsTest() || path.Dir(f.Path) == "runtime/frameworks" {
			return
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			bad := false
			switch n := n.(type) {
			case *ast.BinaryExpr:
				bad = named(n.X) && text(n.Y) || named(n.Y) && text(n.X)
			case *ast.SwitchStmt:
				bad = n.Tag != nil && named(n.Tag)
			}
			if bad {
				t.Errorf("%s decides by the name of a framework: make it a field of framework.Framework", f.Position(n))
			}
			return true
		})
	})
}
