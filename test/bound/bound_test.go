package bound

import (
	"fmt"
	"go/ast"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/test/sources"
)

// recorder is a test whose failures are only noted.
type recorder struct {
	testing.TB
	failed string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) { r.failed = fmt.Sprintf(format, args...) }

var sink []byte

func TestMemory(t *testing.T) {
	for _, x := range []struct {
		n, allocates int
		fails        bool
	}{
		{0, 0, false},
		{10, 1 << 20, false},
		{10, 40 << 20, true},
		{1 << 20, 40 << 20, false},
		{1 << 20, 60 << 20, true},
	} {
		r := &recorder{TB: t}
		end := Memory(r, x.n, 16)
		sink = make([]byte, x.allocates)
		end()
		if (r.failed != "") != x.fails {
			t.Errorf("%d bytes for %d, 16 for each: %q", x.allocates, x.n, r.failed)
		}
	}
}

// TestEveryTargetIsBounded: each fuzz target asserts how much is allocated, by itself or in a
// function of its package that it calls.
func TestEveryTargetIsBounded(t *testing.T) {
	targets := map[string]*sources.File{}
	bounded := map[string]bool{} // functions
	calls := map[string][]string{}
	sources.Each(t, func(f *sources.File) {
		if !f.IsTest() {
			return
		}
		for _, d := range f.Syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			name := filepath.Join(filepath.Dir(f.Path), fn.Name.Name)
			if fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Fuzz") {
				targets[name] = f
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				switch of := call.Fun.(type) {
				case *ast.SelectorExpr:
					if pkg, ok := of.X.(*ast.Ident); ok && pkg.Name == "bound" && of.Sel.Name == "Memory" {
						bounded[name] = true
					}
				case *ast.Ident:
					calls[name] = append(calls[name], filepath.Join(filepath.Dir(f.Path), of.Name))
				}
				return true
			})
		}
	})
	if len(targets) < 50 {
		t.Errorf("only %d targets are found", len(targets))
	}
	for name := range targets {
		is := bounded[name]
		for _, called := range calls[name] {
			is = is || bounded[called]
		}
		if !is {
			t.Errorf("%s does not call bound.Memory", name)
		}
	}
}
