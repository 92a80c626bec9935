package spec_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/client"
	"holdfast/client/spec"
	"holdfast/proto"
	"holdfast/test/bound"
)

// parse makes a spec of run's arguments, as the command does.
func parse(t *testing.T, args ...string) (*proto.JobSpec, error) {
	t.Helper()
	cmd := &cobra.Command{Use: "run"}
	cmd.Flags().SetInterspersed(false)
	flags := spec.AddFlags(cmd, spec.Scan(append([]string{"run"}, args...)), nil)
	if err := cmd.ParseFlags(args); err != nil {
		if invalid := (*pflag.InvalidValueError)(nil); errors.As(err, &invalid) {
			return nil, client.Usagef("--%s %s: %w", invalid.GetFlag().Name, invalid.GetValue(), errors.Unwrap(invalid))
		}
		return nil, client.Usagef("%w", err)
	}
	draft, err := flags.Draft(cmd.Flags().Args())
	if err != nil {
		return nil, err
	}
	return draft.Spec()
}

func role(t *testing.T, s *proto.JobSpec, name string) *proto.RoleSpec {
	t.Helper()
	for _, r := range s.Roles {
		if r.Name == name {
			return r
		}
	}
	t.Fatalf("there is no role %s in %s", name, protojson.Format(s))
	return nil
}

// TestAJobFileThatIsAPipe: as of a shell's <(...). It is read one time, and whole, also where the roles
// that it names have flags, and relative paths are relative to the working directory.
func TestAJobFileThatIsAPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	written := make(chan error, 1)
	go func() {
		_, err := w.WriteString("name: piped\n" + strings.Repeat("# more than a pipe holds\n", 10000))
		if err == nil {
			_, err = w.WriteString("files: [draft_test.go]\nroles: {helper: 2}\ncommand: \"true\"\n")
		}
		written <- errors.Join(err, w.Close())
	}()
	file := fmt.Sprintf("/dev/fd/%d", r.Fd())
	scanned := spec.Scan([]string{"run", "-f", file, "--helper-memory", "256m"})
	for range 2 { // run and rerun
		cmd := &cobra.Command{Use: "run"}
		flags := spec.AddFlags(cmd, scanned, nil)
		if err := cmd.ParseFlags([]string{"-f", file, "--helper-memory", "256m"}); err != nil {
			t.Fatal(err)
		}
		draft, err := flags.Draft(nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := draft.Spec()
		if err != nil || s.Name != "piped" || role(t, s, "helper").Count != 2 || role(t, s, "helper").MemoryMb != 256 {
			t.Errorf("the job is %s, %v", protojson.Format(s), err)
		}
		here, err := filepath.Abs("draft_test.go")
		if err != nil || len(draft.Inputs) != 1 || draft.Inputs[0].Path != here {
			t.Errorf("the files are %v, %v", draft.Inputs, err)
		}
	}
	if err := <-written; err != nil {
		t.Error(err)
	}
}

func TestFlags(t *testing.T) {
	s, err := parse(t, "--ps", "2", "--worker=3", "--worker-memory", "1.5g", "--worker-gpus", "1", "--role", "reader=2",
		"--reader-memory=512m", "--reader-vcores", "4", "--checkpoint", "./train_logs=hdfs:///user/me/logs", "--env", "A=1", "--env", "B=x=y,z",
		"--queue", "q", "--restarts", "0", "--tf1", "python", "train.py", "--ps", "7")
	if err != nil {
		t.Fatal(err)
	}
	if s.Framework != "tensorflow" || s.Queue != "q" || s.Restarts != 0 || !s.Tf1 || s.Name != "train.py" || s.Local {
		t.Errorf("the job is %s", protojson.Format(s))
	}
	if got := strings.Join(s.Command, " "); got != "python train.py --ps 7" {
		t.Errorf("what follows the command is the command's; it is %q", got)
	}
	if r := role(t, s, "ps"); r.Count != 2 || r.MemoryMb != 1024 || r.Vcores != 1 || r.Completion != proto.CompletionRule_COMPLETION_RULE_SERVICE {
		t.Errorf("ps is %v", r)
	}
	if r := role(t, s, "worker"); r.Count != 3 || r.MemoryMb != 1536 || r.Gpus != 1 {
		t.Errorf("worker is %v", r)
	}
	if r := role(t, s, "reader"); r.Count != 2 || r.MemoryMb != 512 || r.Vcores != 4 {
		t.Errorf("reader is %v", r)
	}
	if s.Env["A"] != "1" || s.Env["B"] != "x=y,z" {
		t.Errorf("the environment is %v", s.Env)
	}
	if c := s.Checkpoints; len(c) != 1 || c[0].Path != "./train_logs" || c[0].Uri != "hdfs:///user/me/logs" {
		t.Errorf("the checkpoints are %v", c)
	}
}

// TestARangeOfTasks: as flags and in a file.
func TestARangeOfTasks(t *testing.T) {
	check := func(s *proto.JobSpec, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		if r := role(t, s, "worker"); r.Min != 4 || r.Count != 16 || r.Multiple != 2 || s.GetElasticWaitMs() != 60_000 || s.ElasticGrowMs != 600_000 {
			t.Errorf("the job is %s", protojson.Format(s))
		}
	}
	check(parse(t, "--worker", "4..16", "--worker-multiple", "2", "--elastic-wait", "60s", "--elastic-grow", "10m", "--framework", "pytorch", "true"))
	draft, err := spec.ParseDraft([]byte("{framework: pytorch, command: [\"true\"], elastic-wait: 60s, elastic-grow: 10m, roles: {worker: {count: {min: 4, max: 16, multiple: 2}}}}"), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	check(draft.Spec())
	s, err := parse(t, "--worker", "4..16", "--elastic-grow", "checkpoint", "--framework", "pytorch", "true")
	if err != nil || s.ElasticWaitMs != nil || s.ElasticGrowMs != 0 {
		t.Errorf("the job is %s, %v", protojson.Format(s), err)
	}
}

// TestTheOrderOfRoles: it gives tasks their ranks, and so does not depend on the order
// of flags.
func TestTheOrderOfRoles(t *testing.T) {
	s, err := parse(t, "--worker", "2", "--role", "reader=1", "--chief", "1", "true")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range s.Roles {
		names = append(names, r.Name)
	}
	if got := strings.Join(names, " "); got != "chief reader worker" {
		t.Errorf("the roles are %s", got)
	}
}

func TestFlagsOfLosses(t *testing.T) {
	s, err := parse(t, "--worker", "4", "--worker-min", "3", "--worker-memory", "1g", "--worker-memory-max", "3g", "--spares", "2", "--start-limit", "10m", "--stop-grace", "0", "true")
	if err != nil {
		t.Fatal(err)
	}
	if r := role(t, s, "worker"); r.Min != 3 || r.MemoryMaxMb != 3072 || s.Spares != 2 || s.StartLimitMs != 600000 || s.StopGraceMs == nil || *s.StopGraceMs != 0 {
		t.Errorf("the job is %s", protojson.Format(s))
	}
	for want, args := range map[int64][]string{600000: nil, 60000: {"--restart-stalled", "1m"}, 0: {"--restart-stalled", "0"}} {
		if s, err = parse(t, append(args, "--worker", "1", "true")...); err != nil || s.RestartStalledMs != want {
			t.Errorf("%v: a stall is acted on after %d ms, want %d (%v)", args, s.GetRestartStalledMs(), want, err)
		}
	}
}

func TestFileAndFlags(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "job.yaml")
	write(t, file, `
name: from-file
framework: none
roles:
  worker: {count: 2, memory: 3g, vcores: 2}
  helper: 1
command: [sh, -c, "echo {task}"]
env: {A: file, N: 3, T: true}
checkpoints: {./logs: ckpt, ./state: {uri: state, format: plain, marker: _SUCCESS}}
restarts: 5
local: true
`)
	s, err := parse(t, "-f", file, "--worker", "4", "--helper-memory", "256m", "--env", "A=flag", "--name", "mine", "--checkpoint", "logs=/elsewhere",
		"--checkpoint", "other=/a,b=c,format=plain,quiet=90s")
	if err != nil {
		t.Fatal(err)
	}
	if s.Name != "mine" || s.Restarts != 5 || !s.Local || s.Framework != "none" {
		t.Errorf("the job is %s", protojson.Format(s))
	}
	if r := role(t, s, "worker"); r.Count != 4 || r.MemoryMb != 3072 || r.Vcores != 2 {
		t.Errorf("a flag overrides its own value only; worker is %v", r)
	}
	if r := role(t, s, "helper"); r.Count != 1 || r.MemoryMb != 256 {
		t.Errorf("helper is %v", r)
	}
	if s.Env["A"] != "flag" || s.Env["N"] != "3" || s.Env["T"] != "true" {
		t.Errorf("the environment is %v", s.Env)
	}
	if c := s.Checkpoints; len(c) != 3 || c[0].Uri != "/elsewhere" || c[1].Uri != filepath.Join(dir, "state") || c[1].Format != "plain" ||
		c[1].Marker != "_SUCCESS" || c[2].Uri != "/a,b=c" || c[2].Format != "plain" || c[2].QuietSeconds != 90 {
		t.Errorf("the checkpoints are %v", c)
	}

	s, err = parse(t, "-f", file)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Checkpoints[0].Uri; got != filepath.Join(dir, "ckpt") {
		t.Errorf("paths in a file are relative to it; the checkpoints go to %s", got)
	}
	if got := strings.Join(s.Command, "|"); got != "sh|-c|echo {task}" {
		t.Errorf("the command is %s", got)
	}
}

// What is wrong is told with what to do about it.
func TestBadInput(t *testing.T) {
	dir := t.TempDir()
	yaml := func(text string) string {
		f, err := os.CreateTemp(dir, "*.yaml")
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		write(t, f.Name(), text)
		return f.Name()
	}
	ok := []string{"--worker", "1"}
	for _, c := range []struct {
		name string
		args []string
		want []string // in the message
	}{
		{"a key that is nearly one", []string{"-f", yaml("roles: {worker: {count: 1, memroy: 2g}}")}, []string{`"memroy"`, "did you mean memory?"}},
		{"no tasks", []string{"true"}, []string{"no tasks", "--worker"}},
		{"no command", ok, []string{"worker", "no command", "--"}},
		{"only services", []string{"--ps", "2", "true"}, []string{"never end", "--worker"}},
		{"framework", append(ok, "--framework", "theano", "true"), []string{"theano", "tensorflow"}},
		{"tf1 elsewhere", append(ok, "--framework", "pytorch", "--tf1", "true"), []string{"--tf1", "pytorch"}},
		{"memory", append(ok, "--worker-memory", "lots", "true"), []string{"--worker-memory lots", "512m"}},
		{"no memory", append(ok, "--worker-memory", "0", "true"), []string{"--worker-memory"}},
		{"vcores", append(ok, "--worker-vcores", "0", "true"), []string{"--worker-vcores is 0", "from 1 to"}},
		{"gpus", append(ok, "--worker-gpus", "-1", "true"), []string{"--worker-gpus is -1", "from 0 to"}},
		{"count", []string{"--worker", "-1", "true"}, []string{"--worker is -1", "from 0 to"}},
		{"restarts", append(ok, "--restarts", "-2", "true"), []string{"--restarts is -2", "from 0 to 10000"}},
		{"role without count", []string{"--role", "reader", "true"}, []string{"NAME=COUNT", "reader"}},
		{"role's memory only", []string{"--worker", "1", "--chief-memory", "1g", "true"}, []string{"chief", "no count"}},
		{"role's name", []string{"--role", "Bad.Name=2", "true"}, []string{"Bad.Name", "letters"}},
		{"unknown flag", append(ok, "--wroker-memory", "1g", "true"), []string{"wroker-memory"}},
		{"env", append(ok, "--env", "A", "true"), []string{"--env A", "NAME=VALUE"}},
		{"env name", append(ok, "--env", "1A=2", "true"), []string{`"1A"`}},
		{"checkpoint form", append(ok, "--checkpoint", "./logs", "true"), []string{"--checkpoint ./logs", "PATH=URI"}},
		{"checkpoint half", append(ok, "--checkpoint", "./logs=", "true"), []string{"./logs", "PATH=URI"}},
		{"checkpoint format", append(ok, "--checkpoint", "x=hdfs:///x,format=pickle", "true"), []string{"pickle", "tensorflow", "dcp"}},
		{"checkpoint option", append(ok, "--checkpoint", "x=hdfs:///x,format=plain,markr=done", "true"), []string{"markr is no option of a checkpoint directory; did you mean marker?"}},
		{"checkpoint quiet", append(ok, "--checkpoint", "x=hdfs:///x,format=plain,quiet=soon", "true"), []string{"soon", "30s"}},
		{"checkpoint scheme", append(ok, "--checkpoint", "./logs=s3://b/x", "true"), []string{"s3://b/x", "hdfs"}},
		{"checkpoint on top", append(ok, "--checkpoint", "/=hdfs:///x", "true"), []string{"/ cannot", "working directory"}},
		{"checkpoint in the whole", append(ok, "--checkpoint", ".=hdfs:///x", "--checkpoint", "./out=hdfs:///y", "true"), []string{". and ./out", "whole working directory", "only ."}},
		{"checkpoint around others", append(ok, "--checkpoint", "out=hdfs:///x", "--checkpoint", "./=hdfs:///y", "true"), []string{"out and ./", "whole working directory", "only ."}},
		{"checkpoint in the place of the whole", append(ok, "--checkpoint", ".=hdfs:///x", "--checkpoint", "/out=hdfs:///x/y", "true"), []string{"of . and of /out", "one place"}},
		{"checkpoint above", append(ok, "--checkpoint", "../x=hdfs:///x", "true"), []string{"../x"}},
		{"checkpoint root", append(ok, "--checkpoint", "x=hdfs:///", "true"), []string{"root"}},
		{"checkpoint without scheme", append(ok, "--checkpoint", "x=/data/x", "true"), []string{"/data/x", "hdfs:///", "file:///"}},
		{"checkpoints in one place", append(ok, "--checkpoint", "x=hdfs:///x", "--checkpoint", "y=hdfs:///x/", "true"), []string{"of x and of y", "one place"}},
		{"checkpoints in those of others", append(ok, "--checkpoint", "x=hdfs:///x/y", "--checkpoint", "y=hdfs:///x", "true"), []string{"of x and of y", "one place"}},
		{"too many spares", append(ok, "--spares", "20000", "true"), []string{"20000", "from 0 to 10000"}},
		{"a start limit that nothing can keep", append(ok, "--start-limit", "1ms", "true"), []string{"--start-limit is 1ms", "1s or more", "10m"}},
		{"checkpoints nested", append(ok, "--checkpoint", "x=hdfs:///x", "--checkpoint", "x/y=hdfs:///y", "true"), []string{"x/y", "lie in each other"}},
		{"local on HDFS", append(ok, "--local", "--checkpoint", "x=hdfs:///x", "true"), []string{"hdfs:///x", "local"}},
		{"ACL of a local job", append(ok, "--local", "--view-acl", "amy", "true"), []string{"--view-acl is for a cluster", "--local"}},
		{"no address of a page", append(ok, "--history-url", "history:80/jobs", "true"), []string{"--history-url is history:80/jobs", "https://HOST/PATH"}},
		{"no URL to notify", append(ok, "--notify", "hooks.example.org/in", "true"), []string{"--notify is a text that is not shown", "https://HOST/PATH"}},
		{"a URL to notify by mail", append(ok, "--notify", "mailto:me@example.org", "true"), []string{"--notify is a text that is not shown", "https://HOST/PATH"}},
		{"a URL to notify without a host", append(ok, "--notify", "https:///in", "true"), []string{"--notify is a text that is not shown", "https://HOST/PATH"}},
		{"an image that is none", append(ok, "--image", "a b", "true"), []string{"--image is a b", "REGISTRY/NAME:TAG"}},
		{"an image of a local job", append(ok, "--local", "--worker-image", "me/tf", "true"), []string{"--worker-image is for a cluster", "--local"}},
		{"an unknown runtime", append(ok, "--image", "me/tf", "--image-runtime", "podman", "true"), []string{"--image-runtime is podman", "docker or runc"}},
		{"a mount without a place in the image", append(ok, "--image", "me/tf", "--image-mounts", "/data", "true"), []string{"--image-mounts /data", "/ON/THE/NODE:/IN/THE/IMAGE:ro"}},
		{"mounts without an image", append(ok, "--image-mounts", "/data:/data", "true"), []string{"--image-mounts", "--image"}},
		{"a network of runc", append(ok, "--image", "me/tf", "--image-runtime", "runc", "--image-network", "host", "true"), []string{"--image-network", "runc"}},
		{"a page that is elsewhere", append(ok, "--worker-web", "http://h/x", "true"), []string{"--worker-web is http://h/x", "begins with a slash"}},
		{"a page on another host", append(ok, "--worker-web", "//h/x", "true"), []string{"--worker-web is //h/x", "begins with a slash"}},
		{"keytab", append(ok, "--keytab", "k", "true"), []string{"--keytab", "go together"}},
		{"spares", append(ok, "--spares", "-1", "true"), []string{"--spares is -1"}},
		{"an evaluator that has finished before", append(ok, "--evaluator", "1", "--evaluator-finish", "-1s", "true"), []string{"--evaluator-finish is -1s", "5m"}},
		{"stalls", append(ok, "--restart-stalled", "10ms", "true"), []string{"--restart-stalled is 10ms", "10m"}},
		{"a stop grace that is none", append(ok, "--stop-grace", "-1s", "true"), []string{"--stop-grace is -1s", "30s"}},
		{"a stop grace for ever", append(ok, "--stop-grace", "11m", "true"), []string{"--stop-grace is 11m", "from 0s to 10m"}},
		{"stop grace in a file", []string{"-f", yaml("stop-grace: soon\n")}, []string{"line 1", `"soon"`}},
		{"start limit", append(ok, "--start-limit", "-1s", "true"), []string{"--start-limit is -1s", "10m"}},
		{"more than all", append(ok, "--worker-min", "5", "true"), []string{"worker", "at least 5"}},
		{"fewer parameter servers", append(ok, "--ps", "3", "--ps-min", "2", "true"), []string{"ps", "a part of the model"}},
		{"fewer ranks", []string{"--framework", "xgboost", "--worker", "2..3", "true"}, []string{"worker", "ranks of XGBoost", "as many as they were"}},
		{"no range", append(ok, "--worker", "4..", "true"), []string{"--worker", "4..16"}},
		{"a range from nothing", append(ok, "--worker", "0..4", "true"), []string{"--worker", "4..16"}},
		{"no range of a role", append(ok, "--role", "reader=4..x", "true"), []string{"--role", "NAME=MIN..MAX"}},
		{"a count of parts in a file", []string{"-f", yaml("roles:\n  worker:\n    count: {least: 2}\n")}, []string{"line 3", "least", "multiple: 2"}},
		{"no multiple", []string{"--framework", "pytorch", "--worker", "2..5", "--worker-multiple", "2", "true"}, []string{"worker", "no multiples of 2"}},
		{"a wait for ever", append(ok, "--elastic-wait", "2h", "true"), []string{"--elastic-wait is 2h", "to 1h"}},
		{"no time to grow", append(ok, "--elastic-grow", "soon", "true"), []string{"--elastic-grow", "write checkpoint"}},
		{"memory shrinks", append(ok, "--worker-memory", "2g", "--worker-memory-max", "1g", "true"), []string{"worker", "less"}},
		{"start limit in a file", []string{"-f", yaml("start-limit: soon\n")}, []string{"line 1", `"soon"`, "10m"}},
		{"no file", []string{"-f", filepath.Join(dir, "none.yaml")}, []string{"none.yaml", "-f"}},
		{"not YAML", []string{"-f", yaml("a: [")}, []string{"not YAML", "line"}},
		{"unknown key", []string{"-f", yaml("name: x\nworkers: 2\n")}, []string{"line 2", `"workers"`, "roles"}},
		{"unknown role key", []string{"-f", yaml("roles:\n  worker:\n    cuont: 2\n")}, []string{"line 3", `"cuont"`, "count"}},
		{"key twice", []string{"-f", yaml("name: x\nname: y\n")}, []string{"line 2", `"name" stands twice in the file`}},
		{"number", []string{"-f", yaml("roles: {worker: many}\n")}, []string{"line 1", `"many"`}},
		{"list for text", []string{"-f", yaml("name: [a]\n")}, []string{"line 1", "single value"}},
		{"text for list", []string{"-f", yaml("files: a.py\n")}, []string{"files", "list"}},
		{"bool", []string{"-f", yaml("tf1: maybe\n")}, []string{"line 1", "maybe", "true nor false"}},
		{"files as absolute name", append(ok, "--files", "a.py#/etc/passwd", "true"), []string{"--files", "/etc/passwd"}},
		{"files above", append(ok, "--files", "a.py#../x", "true"), []string{"--files", "../x"}},
		{"archive's kind", append(ok, "--archives", "a.rar", "true"), []string{"a.rar", ".tar.gz"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parse(t, c.args...)
			if err == nil {
				t.Fatal("it was accepted")
			}
			if client.ExitCode(err) != client.ExitUsage {
				t.Errorf("the exit code is %d, want that of usage; the error is: %v", client.ExitCode(err), err)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q is not in: %v", w, err)
				}
			}
			if i := slices.Index(c.args, "--notify"); i >= 0 && strings.Contains(err.Error(), c.args[i+1]) {
				t.Errorf("a URL that may hold a secret is in: %v", err)
			}
		})
	}
}

// All that is wrong is told at once.
func TestSeveralComplaints(t *testing.T) {
	_, err := parse(t, "--worker", "1", "--worker-vcores", "0", "--restarts", "-1", "--env", "9=1", "true")
	if err == nil || strings.Count(err.Error(), "\n  - ") != 3 {
		t.Errorf("want three complaints, have: %v", err)
	}
}

func TestParseMemory(t *testing.T) {
	for text, want := range map[string]int64{
		"1g": 1024, "1G": 1024, "1.5g": 1536, "2gb": 2048, "2GiB": 2048, "512m": 512, "1t": 1 << 20, " 3 g ": 3072, "0.1m": 1,
	} {
		if got, err := spec.ParseMemory(text); err != nil || got != want {
			t.Errorf("%q is %d MB (%v), want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "g", "-1g", "0", "0m", "512", "1.5", "1x", "1kb", "nan", "inf", "1e3g", "0x10", "1_000m", "99999999999t", "b", "1b"} {
		if got, err := spec.ParseMemory(text); err == nil {
			t.Errorf("%q was taken for %d MB", text, got)
		}
	}
}

func FuzzParseMemory(f *testing.F) {
	f.Add("1.5g")
	f.Add("1e3g")
	f.Fuzz(func(t *testing.T, s string) {
		defer bound.Memory(t, len(s), 64)()
		if mb, err := spec.ParseMemory(s); err == nil && mb < 1 {
			t.Errorf("%q is %d MB", s, mb)
		}
	})
}

func FuzzParseDraft(f *testing.F) {
	f.Add([]byte("roles: {ps: 1, worker: {count: 2, memory: 1g, command: [a]}}\nenv: {A: b}\nfiles: [a, b#c]"))
	f.Add([]byte("a: &x [*x]"))
	for _, key := range []string{"", "tf1: ", "name: ", "env: {A: ", "files: [", "roles: {worker: "} {
		f.Add([]byte(key + "{" + strings.Repeat("a: b, ", 2000) + "}" + strings.Repeat("]", strings.Count(key, "[")) + strings.Repeat("}", strings.Count(key, "{"))))
	}
	f.Add([]byte("roles: &r {worker: 1}\nenv: *r\ncommand: x"))
	f.Fuzz(func(t *testing.T, text []byte) {
		defer bound.Memory(t, len(text), 2000)()
		d, err := spec.ParseDraft(text, "/dir")
		if err != nil {
			return
		}
		if _, err := d.Spec(); err != nil && err.Error() == "" {
			t.Error("an error without words")
		}
	})
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestHowLongAnEvaluatorMayGoOn(t *testing.T) {
	for want, args := range map[int64][]string{
		300000: {"--framework", "tensorflow", "--worker", "1", "--evaluator", "1", "true"},
		0:      {"--framework", "tensorflow", "--worker", "1", "--evaluator", "1", "--evaluator-finish", "0", "true"},
		60000:  {"--framework", "tensorflow", "--worker", "1", "--evaluator", "1", "--evaluator-finish", "1m", "true"},
	} {
		s, err := parse(t, args...)
		if err != nil {
			t.Fatal(err)
		}
		if r := role(t, s, "evaluator"); r.FinishMs != want {
			t.Errorf("%v: %d ms", args, r.FinishMs)
		}
	}
}
