package mutation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// rule is a promise to users, the code that keeps it, and a test that fails without
// that code.
type rule struct {
	promise  string // one sentence that a user understands
	file     string // the code, by its path in the module
	old, new string // old is in the file once; new in its place removes the rule
	pkg      string // the test's package, by its path in the module
	test     string // TestName, or TestName/subtest as `go test -v` prints it
	// hangs: without the rule the test does not end. For other rules, a test that
	// does not end in time has shown nothing.
	hangs bool
	limit time.Duration // within which the test must end; 0: usualLimit
}

const usualLimit = 2 * time.Minute

// ruleSets are the rules of the parts of the product, by the long test that breaks them.
var ruleSets = map[string][]rule{
	"TestLongEachStorageRuleHasATestThatFailsWithoutIt":      storageRules,
	"TestLongEachRuleOfBytesHasATestThatFailsWithoutIt":      byteRules,
	"TestLongEachRuleOfHDFSHasATestThatFailsWithoutIt":       hdfsRules,
	"TestLongEachRecoveryRuleHasATestThatFailsWithoutIt":     recoveryRules,
	"TestLongEachRuleOfTheClusterHasATestThatFailsWithoutIt": clusterRules,
}

// TestMutationsAreUpToDate: the code that each mutation replaces is there once.
func TestMutationsAreUpToDate(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range mutations {
		if seen[m.name] {
			t.Errorf("%q is there twice", m.name)
		}
		seen[m.name] = true
		if _, err := replaceOnce(filepath.Join(inModule(t, "am/core"), m.file), m.old, m.new); err != nil {
			t.Errorf("%q: %v", m.name, err)
		}
	}
}

// TestRulesAreUpToDate: the code that each rule names is there once, and so is its
// test.
func TestRulesAreUpToDate(t *testing.T) {
	seen := map[string]bool{}
	tests := map[string][]string{} // by package
	own := testsOf(t, "test/mutation")
	for breaks, rules := range ruleSets {
		if len(rules) == 0 || !slices.Contains(own, breaks) {
			t.Errorf("%s is to break %d rules, and must be a test", breaks, len(rules))
		}
		for _, r := range rules {
			if seen[r.promise] {
				t.Errorf("%q is there twice", r.promise)
			}
			seen[r.promise] = true
			if _, err := replaceOnce(inModule(t, r.file), r.old, r.new); err != nil {
				t.Errorf("%q: %v", r.promise, err)
			}
			if tests[r.pkg] == nil {
				tests[r.pkg] = testsOf(t, r.pkg)
			}
			if name, _, _ := strings.Cut(r.test, "/"); !slices.Contains(tests[r.pkg], name) {
				t.Errorf("%q: %s has no test %s", r.promise, r.pkg, r.test)
			}
		}
	}
}

// testsOf returns the tests that a package declares.
func testsOf(t *testing.T, pkg string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(inModule(t, pkg), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names
}

// eachFailsWithout removes one rule of the test's after the other, and fails for those whose
// own test does not fail without them.
func eachFailsWithout(t *testing.T) {
	rules := ruleSets[t.Name()]
	if len(rules) == 0 {
		t.Fatal("it has no rules to break")
	}
	for _, r := range rules {
		t.Run(r.promise, func(t *testing.T) {
			begun := time.Now()
			out, err := r.testWithout(t)
			if err := r.judge(out, err); err != nil {
				t.Fatalf("%s of %s: %v\n%s", r.test, r.pkg, err, out)
			}
			t.Logf("%s: %s of %s fails without it (%.0f s)", r.promise, r.test, r.pkg, time.Since(begun).Seconds())
		})
	}
}

// errBuild: without the rule, its package does not build.
var errBuild = errors.New("it does not build without the rule, which shows nothing")

// testWithout runs the rule's test with the rule removed, and returns its output.
func (r rule) testWithout(t *testing.T) (string, error) {
	overlay, err := overlayFor(t, inModule(t, r.file), r.old, r.new)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	if filepath.Ext(r.file) == ".py" {
		compile := exec.CommandContext(ctx, "python3", "-c", "import sys; compile(sys.stdin.read(), sys.argv[1], 'exec')", r.file)
		text, err := replaceOnce(inModule(t, r.file), r.old, r.new)
		if err != nil {
			return "", err
		}
		compile.Stdin = strings.NewReader(text)
		if out, err := compile.CombinedOutput(); err != nil {
			return string(out), fmt.Errorf("%w: %w", errBuild, err)
		}
	}
	binary := filepath.Join(t.TempDir(), "mutant.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-overlay", overlay, "-o", binary, ".")
	build.Dir = inModule(t, r.pkg)
	if out, err := build.CombinedOutput(); err != nil {
		return string(out), fmt.Errorf("%w: %w", errBuild, err)
	}
	// Parts of a name are matched by themselves.
	name := "^" + strings.ReplaceAll(regexp.QuoteMeta(r.test), "/", "$/^") + "$"
	test := exec.CommandContext(ctx, binary, "-test.count=1", "-test.timeout="+cmp.Or(r.limit, usualLimit).String(), "-test.run="+name)
	test.Dir = build.Dir
	// What the test itself builds is without the rule as well.
	test.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+overlay))
	test.WaitDelay = time.Minute
	out, err := test.CombinedOutput()
	return string(out), err
}

// unprovided is what a test says for which there is no cluster or no Python. Neither has any
// of the code that rules remove.
var unprovided = regexp.MustCompile(`starting the test cluster|making a Python environment`)

// judge returns nil if a process that ended with that output and error shows that the
// rule's test fails.
func (r rule) judge(out string, err error) error {
	var exit *exec.ExitError
	hung := strings.Contains(out, "panic: test timed out after")
	switch {
	case err == nil && strings.Contains(out, "no tests to run"):
		return errors.New("there is no such test")
	case err == nil:
		return errors.New("it passes without the rule")
	case errors.Is(err, errBuild) || !errors.As(err, &exit):
		return err
	case unprovided.MatchString(out):
		return errors.New("what it stands on is not there, which shows nothing")
	case hung && !r.hangs:
		return errors.New("it did not end in time, which shows nothing")
	case hung:
		return nil
	case r.hangs:
		return fmt.Errorf("it ended (%w); the rule says that it would not", err)
	case !regexp.MustCompile(`(?m)^\s*--- FAIL: ` + regexp.QuoteMeta(r.test) + ` `).MatchString(out):
		return fmt.Errorf("its process failed (%w), the test itself did not", err)
	}
	return nil
}

// TestWhatShowsThatATestFails: only the failure of the test itself does.
func TestWhatShowsThatATestFails(t *testing.T) {
	exit := &exec.ExitError{}
	failed := "--- FAIL: TestA (0.00s)\n    a_test.go:1: no\nFAIL\n"
	hung := "panic: test timed out after 1s\nrunning tests:\n\tTestA (1s)\n"
	for name, c := range map[string]struct {
		rule rule
		out  string
		err  error
		want bool
	}{
		"it fails":                 {rule{test: "TestA"}, failed, exit, true},
		"a subtest fails":          {rule{test: "TestA/b"}, "--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)\n", exit, true},
		"another subtest fails":    {rule{test: "TestA/b"}, "--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/bc (0.00s)\n", exit, false},
		"it passes":                {rule{test: "TestA"}, "PASS\n", nil, false},
		"it is not there":          {rule{test: "TestA"}, "testing: warning: no tests to run\nPASS\n", nil, false},
		"it does not build":        {rule{test: "TestA"}, failed, fmt.Errorf("%w: %w", errBuild, exit), false},
		"it was not run":           {rule{test: "TestA"}, failed, os.ErrNotExist, false},
		"the process fails":        {rule{test: "TestA"}, "cannot start a cluster\n", exit, false},
		"its cluster is not there": {rule{test: "TestA"}, "--- FAIL: TestA (0.00s)\n    a_test.go:1: starting the test cluster: no java on the PATH\nFAIL\n", exit, false},
		"nor is its Python":        {rule{test: "TestA"}, "--- FAIL: TestA (0.00s)\n    a_test.go:1: making a Python environment with TensorFlow: no network\nFAIL\n", exit, false},
		"it hangs":                 {rule{test: "TestA"}, hung, exit, false},
		"it hangs, as it should":   {rule{test: "TestA", hangs: true}, hung, exit, true},
		"it fails instead of that": {rule{test: "TestA", hangs: true}, failed, exit, false},
	} {
		if err := c.rule.judge(c.out, c.err); (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
