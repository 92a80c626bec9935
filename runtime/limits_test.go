package runtime_test

import (
	"strings"
	"syscall"
	"testing"

	"holdfast/runtime"
	"holdfast/runtime/framework"
)

// A job whose lists of hosts Linux would not let its tasks start with is refused,
// and one that can do without them is not given them.
func TestListsThatAreTooLong(t *testing.T) {
	for name, c := range map[string]struct {
		framework string
		workers   int
		word, env string
		says      string // empty: it is accepted
	}{
		"unused":             {"none", 10000, "{index}", "", ""},
		"just short enough":  {"none", 7000, "{worker_hosts}", "", ""},
		"a word":             {"none", 10000, "--workers={worker_hosts}", "", `the word "--workers={worker_hosts}" in the command of worker`},
		"a variable":         {"none", 10000, "", "{worker_hosts}", "out of --env LIST"},
		"our variable, used": {"none", 10000, "echo $HOLDFAST_WORKER_HOSTS", "", "uses HOLDFAST_WORKER_HOSTS"},
		"TF_CONFIG":          {"tensorflow", 10000, "", "", "the variable TF_CONFIG would be"},
		"TensorFlow, fewer":  {"tensorflow", 6000, "", "", ""},
		"ranks need no list": {"pytorch", 10000, "", "", ""},
		"a list thrice":      {"none", 7000, "{worker_hosts} ", "{worker_hosts}", ""},
	} {
		s := spec(c.framework, "worker", c.workers)
		s.Command = []string{"train", c.word}
		if c.env != "" {
			s.Env = map[string]string{"LIST": c.env}
		}
		err := runtime.Complete(s)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		if err != nil {
			continue
		}
		ports := map[string]int{}
		for _, task := range runtime.Tasks(s) {
			ports[task.Name] = 65535
		}
		_, env, err := runtime.Command(s, framework.Attempt{Task: runtime.Tasks(s)[1], Ports: ports})
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range env {
			if err := run("true", k+"="+v); err != nil {
				t.Errorf("%s: a program with %s of %d bytes: %v", name, k, len(v), err)
			}
		}
		if _, there := env["HOLDFAST_WORKER_HOSTS"]; there != (c.workers < 10000) {
			t.Errorf("%s: HOLDFAST_WORKER_HOSTS is there: %v", name, there)
		}
	}
}

// Each list is short enough, and all together are not.
func TestListsThatAreTooMany(t *testing.T) {
	s := spec("none", "a", 7000, "b", 7000, "c", 7000, "d", 7000, "e", 7000, "f", 7000, "g", 7000, "h", 7000)
	if err := runtime.Complete(s); err != nil {
		t.Fatal(err)
	}
	s.Command = append(s.Command, "{a_hosts}", "{b_hosts}", "{c_hosts}", "{d_hosts}", "{e_hosts}", "{f_hosts}", "{g_hosts}", "{h_hosts}", "{a_hosts}", "{b_hosts}", "{c_hosts}", "{d_hosts}", "{e_hosts}")
	if err := runtime.Complete(s); err == nil || !strings.Contains(err.Error(), "leave lists like {a_hosts} out") {
		t.Error(err)
	}
}

// The limits are the kernel's.
func TestLengthsThatLinuxAllows(t *testing.T) {
	if err := run("true", "A="+strings.Repeat("x", 128<<10-len("A=")-1)); err != nil {
		t.Error(err)
	}
	if err := run("true", "A="+strings.Repeat("x", 128<<10-len("A="))); err != syscall.E2BIG {
		t.Errorf("a variable that is too long: %v", err)
	}
}

// run starts a program with one variable.
func run(program, variable string) error {
	var status syscall.WaitStatus
	pid, err := syscall.ForkExec("/bin/"+program, []string{program}, &syscall.ProcAttr{Env: []string{variable}})
	if err == nil {
		_, err = syscall.Wait4(pid, &status, 0, nil)
	}
	return err
}
