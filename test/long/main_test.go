package main

import (
	"context"
	"go/ast"
	"go/build"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/proc"
	"holdfast/test/programs"
	"holdfast/test/sources"
	"holdfast/test/testcluster/dist"
)

// hidden are the test files that the default build leaves out: they need what no
// package registry has, or make what other tests read. docs/structure.md says how they
// are run.
var hidden = map[string]string{
	"test/e2e/secure_executor_test.go":             "needs Hadoop's native container-executor",
	"hdfsckpt/torchfile/pytorch_test.go":           "needs a PyTorch of version 2",
	"internal/hadoop/hdfs/transfer/record_test.go": "writes testdata anew",
}

// declared are the tests of all packages.
func declared(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	sources.Each(t, func(f *sources.File) {
		if !f.IsTest() {
			return
		}
		for _, d := range f.Syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") && fn.Name.Name != "TestMain" {
				all[filepath.Dir(f.Path)] = append(all[filepath.Dir(f.Path)], fn.Name.Name)
			}
		}
	})
	return all
}

// TestEachLongTestIsInOneSlice: and slices have nothing that is not there.
func TestEachLongTestIsInOneSlice(t *testing.T) {
	all := declared(t)
	times := map[string]int{}
	for _, s := range allSlices {
		for _, in := range s.tests {
			for _, name := range in.names {
				if s.hadoop == "" {
					times[in.in+" "+name]++
				}
				if name != ".*" && !slices.Contains(all[in.in], name) {
					t.Errorf("slice %s has %s of %s, which is not there", s.name, name, in.in)
				}
			}
		}
	}
	for _, in := range slices.Sorted(maps.Keys(all)) {
		for _, name := range all[in] {
			n := times[in+" "+name]
			switch long := strings.HasPrefix(name, "TestLong"); {
			case long && n != 1:
				t.Errorf("%s of %s is in %d slices, must be in one: see slices.go", name, in, n)
			case !long && n != 0:
				t.Errorf("%s of %s is in a slice, and make test runs it too: its name must begin with TestLong", name, in)
			}
		}
	}
}

// TestEnvironmentsDoNotCount: each slice names the families whose programs it runs, so that
// their environments are made before its time begins. Each family is one's.
func TestEnvironmentsDoNotCount(t *testing.T) {
	times := map[string]int{}
	for _, s := range allSlices {
		for _, family := range s.families {
			times[family]++
		}
		run := 0
		for _, in := range s.tests {
			if in.in == "test/programs" {
				run += len(in.names)
			}
		}
		if run != len(s.families) {
			t.Errorf("slice %s runs %d families of programs, and makes the environments of %q", s.name, run, s.families)
		}
	}
	for family := range programs.Families {
		if times[family] != 1 {
			t.Errorf("the programs of the family %s are run by %d slices, must be by one: see slices.go", family, times[family])
		}
	}
	begun := time.Now()
	s := slice{name: "none", families: []string{"mxnet"}}
	if err := s.run(t.Context(), limits{environments: time.Nanosecond, budget: time.Hour}); err == nil || !strings.Contains(err.Error(), "the environments of mxnet are not there within 1ns") || time.Since(begun) > time.Minute {
		t.Errorf("environments that take too long: %v", err)
	}
}

// TestTheVersionOfHadoopIsHeard: make names it as test clusters read it.
func TestTheVersionOfHadoopIsHeard(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(makefile), "\nexport "+dist.VersionEnv+" := $(HADOOP)\n") {
		t.Errorf("the Makefile does not set %s", dist.VersionEnv)
	}
	t.Setenv(dist.VersionEnv, "1.2.3")
	if v := dist.Version(); v != "1.2.3" {
		t.Errorf("with %s=1.2.3, Hadoop's version is %s", dist.VersionEnv, v)
	}
}

// TestNothingElseIsLeftOut: `make test` leaves out long tests and nothing else.
func TestNothingElseIsLeftOut(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(makefile), "-skip "); n != 1 || !strings.Contains(string(makefile), "-skip '^TestLong'") {
		t.Errorf("the Makefile leaves tests out in %d places, want one, with -skip '^TestLong'", n)
	}
	sources.Each(t, func(f *sources.File) {
		if !f.IsTest() && !imports(f, "testing") {
			return
		}
		dir, name := filepath.Split(filepath.Join("../..", f.Path))
		if built, err := build.Default.MatchFile(dir, name); (err != nil || !built) && hidden[f.Path] == "" {
			t.Errorf("%s is not built here (%v): say here why", f.Path, err)
		}
		for _, group := range f.Syntax.Comments {
			for _, c := range group.List {
				if strings.HasPrefix(c.Text, "//go:build") && hidden[f.Path] == "" {
					t.Errorf("%s is built on some condition only (%s): say here why", f.Path, c.Text)
				}
			}
		}
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, _ := sel.X.(*ast.Ident)
			if short := sel.Sel.Name == "Short" && x != nil && x.Name == "testing"; short || slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, sel.Sel.Name) {
				t.Errorf("%s calls %s: install what is missing, or fail saying how", f.Position(sel), sel.Sel.Name)
			}
			return true
		})
	})
}

// imports reports whether a file imports a package.
func imports(f *sources.File, path string) bool {
	return slices.ContainsFunc(f.Syntax.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == strconv.Quote(path) })
}

// TestASliceThatIsEndedLeavesNothingRunning: its tests end with it, whatever they are at.
func TestASliceThatIsEndedLeavesNothingRunning(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	t.Setenv("HOLDFAST_ENDLESS", file)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		s := slice{name: "endless", tests: []tests{{"testdata/endless", []string{"TestEndless"}}}}
		ended <- s.run(ctx, limits{budget: time.Hour})
	}()
	var pid int
	for deadline := time.Now().Add(3 * time.Minute); pid == 0; time.Sleep(20 * time.Millisecond) {
		if text, err := os.ReadFile(file); err == nil {
			if pid, err = strconv.Atoi(string(text)); err != nil {
				t.Fatal(err)
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("the test of the slice does not run")
		}
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("a slice that did not come to its end has passed")
	}
	if command, err := proc.CommandLine(pid); err == nil && len(command) > 0 {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		t.Errorf("its test still runs: %q", command)
	}
}

func TestEachSliceHasItsTurn(t *testing.T) {
	seen := map[string]bool{}
	for day := range len(allSlices) {
		seen[turn(time.Date(2026, 12, 28+day, 23, 0, 0, 0, time.UTC)).name] = true
	}
	if len(seen) != len(allSlices) {
		t.Errorf("within %d days, %d slices have their turn", len(allSlices), len(seen))
	}
}
