package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/test/forbid"
	"holdfast/test/pyenv"
	"holdfast/test/testcluster"
)

// What all tests share, made when first needed and taken down by TestMain.
var (
	scratch string // removed at the end
	submit  string // the yarn-submit binary
	trainer string // examples/gotrainer

	sharedMu sync.Mutex
	shared   []*testcluster.Cluster // those of more than one test
)

// clearAtEnd has a process wait until clear is called or this one ends, in whatever
// way, and then end what runs a program of the directory, as jobs on this machine
// do, which outlive who started them; and remove the directory.
func clearAtEnd(dir string) (clear func(), err error) {
	cmd := exec.Command("sh", "-c", `cat; pkill -KILL -f "$0/"; rm -rf "$0"`, dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is not for it
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting what clears up: %w", err)
	}
	return func() {
		stdin.Close()
		_ = cmd.Wait()
	}, nil
}

// stopAtEnd has a cluster, nil if it did not start, stopped after all tests.
func stopAtEnd(c *testcluster.Cluster) {
	sharedMu.Lock()
	defer sharedMu.Unlock()
	if c != nil {
		shared = append(shared, c)
	}
}

// Tests run beside each other, one of each lane at a time and in their order
// there, so that one waits for a lease or a token to end while another keeps the
// machine busy. So none of them may change its process's environment.
var (
	training lane // TensorFlow, whose imports want all cores
	plain    lane // jobs that cost little, on the cluster that all share or on none
	daemons  lane // clusters of a test's own, or whose daemons it ends
	guarded  lane // the cluster with Kerberos
)

// lane is closed when the last test that has entered it is over.
type lane <-chan struct{}

// enter has a test run beside those of other lanes. It is the first that a test calls.
func (l *lane) enter(t *testing.T) {
	before, over := *l, make(chan struct{})
	*l = over // tests run one by one until they are parallel
	t.Parallel()
	t.Cleanup(func() { close(over) })
	if before != nil {
		begin := time.Now()
		<-before
		t.Logf("it has waited %s for the one before it", time.Since(begin).Round(time.Second)) // which counts as its own time
	}
}

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && strings.HasPrefix(os.Args[1], "part-") {
		if err := part(os.Args[1], os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "100"); err != nil { // lanes are what bounds it
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(run(m))
}

// part does what needs a process of its own, as a test has started it.
func part(name string, args []string) error {
	switch name {
	case "part-forbidden": // a system call, and a command to which it is forbidden
		if err := forbid.Call(args[0]); err != nil {
			return err
		}
		return syscall.Exec(args[1], args[1:], os.Environ())
	case "part-tokens": // the file for them
		return partTokens(context.Background(), args[0])
	}
	return fmt.Errorf("no test starts %s", name)
}

func run(m *testing.M) int {
	var err error
	scratch, err = os.MkdirTemp("", "holdfast-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	clear, err := clearAtEnd(scratch)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer clear()
	submit = filepath.Join(scratch, "yarn-submit")
	trainer = filepath.Join(scratch, "gotrainer")
	for out, pkg := range map[string]string{submit: "holdfast/cmd/yarn-submit", trainer: "holdfast/examples/gotrainer"} {
		build := exec.Command("go", "build", "-trimpath", "-o", out, pkg)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out == submit && withRaces() {
			build = exec.Command("go", "build", "-race", "-o", out, pkg)
		}
		if text, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "building %s: %v\n%s", pkg, err, text)
			return 1
		}
	}
	os.Setenv("GORACE", "log_path="+filepath.Join(scratch, racePrefix))
	os.Setenv("HOLDFAST_HOME", filepath.Join(scratch, "home"))
	os.Unsetenv("HADOOP_CONF_DIR")
	code := m.Run()
	for _, c := range shared {
		if err := c.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	if found := racesIn(scratch); found != "" {
		fmt.Fprintln(os.Stderr, found)
		return 1
	}
	return code
}

var hadoopUp = sync.OnceValues(func() (*testcluster.Cluster, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	c, err := testcluster.Start(ctx, testcluster.Options{})
	stopAtEnd(c)
	return c, err
})

// hadoop is the cluster that all tests share.
func hadoop(t *testing.T) *testcluster.Cluster {
	t.Helper()
	c, err := hadoopUp()
	if err != nil {
		t.Fatalf("starting the test cluster: %v", err)
	}
	return c
}

// tensorflow is a Python with TensorFlow.
func tensorflow(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	python, err := pyenv.TensorFlow(ctx)
	if err != nil {
		t.Fatalf("making a Python environment with TensorFlow: %v", err)
	}
	return python
}
