package main

import (
	"archive/zip"
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"holdfast/client"
	"holdfast/cmd/yarn-submit/cli"
	"holdfast/proto"
)

// TestOnlyTheNamedJobIsChanged: how a name begins names no job for what ends, changes or removes
// something, and what has ended cannot be asked.
func TestOnlyTheNamedJobIsChanged(t *testing.T) {
	p := newPlace(t)
	id := p.detached("--name", "mnist-10", "--worker", "1", "--checkpoint", "./out=ck", "--", "sleep", "1000")
	refuses := func(want string, all ...[]string) {
		t.Helper()
		for _, args := range all {
			if out, errs, code := p.call(args...); code != client.ExitUsage || !strings.Contains(errs, want) {
				t.Errorf("%v ended with %d, want %q:\n%s%s", args, code, want, out, errs)
			}
		}
	}
	refuses(`there is no job "mnist-1"; did you mean mnist-10 (`+id+`, `,
		[]string{"kill", "mnist-1"}, []string{"kill", "mnist-1", "worker-0"}, []string{"rm", "mnist-1"}, []string{"scale", "mnist-1", "worker=1"},
		[]string{"exec", "mnist-1", "worker-0", "--", "true"}, []string{"ckpt", "prune", "mnist-1", "--keep", "1", "--yes"}, []string{"ckpt", "rollback", "mnist-1", "4", "--yes"})
	refuses(`there is no job "local-"; did you mean mnist-10 (`+id, []string{"kill", "local-"})
	refuses("an argument is empty", []string{"kill", ""}, []string{"rm", ""}, []string{"kill", "mnist-10", ""}, []string{"logs", "mnist-10", ""},
		[]string{"ckpt", "verify", "mnist-10", ""}, []string{"ckpt", "show", "mnist-10", ""})
	refuses("there is no role foo: its roles are worker", []string{"scale", "mnist-10", "foo=2"})
	if s := p.status("mnist-1"); s.Id != id || s.State != proto.JobState_JOB_STATE_RUNNING {
		t.Fatalf("%s is %s", s.Id, s.State)
	}
	if _, errs, code := p.call("kill", "mnist-10"); code != 0 {
		t.Errorf("kill ended with %d: %s", code, errs)
	}
	refuses(id+" has ended (killed): nothing runs in it; its output: yarn-submit logs "+id,
		[]string{"exec", id, "worker-0", "--", "true"}, []string{"scale", id, "worker=1"}, []string{"kill", id, "worker-0"}, []string{"stacks", id, "worker-0"}, []string{"stacks", id})
	refuses(`did you mean mnist-10 (`+id+`, killed)?`, []string{"rm", "mnist-1"})
	if _, err := os.Stat(filepath.Join(p.home, "jobs", id)); err != nil {
		t.Error(err)
	}
	alone(t, id)
	out, errs, code := p.call("rm", id, "mnist-1", "-o", "json")
	if code != client.ExitUsage || !strings.Contains(out, `"`+id+`"`) || !strings.Contains(errs, `\"mnist-1\"`) {
		t.Errorf("rm of one that is there, and one that is not, ended with %d: %s%s", code, out, errs)
	}
	id = p.detached("--name", "mnist-10", "--worker", "1", "--", "sleep", "1000")

	// Where the cluster does not answer, what is known here is shown all the same.
	away := "HADOOP_CONF_DIR=" + noCluster(t)
	for want, args := range map[string][]string{
		id:                                      {"list"},
		"by its full id, which begins with loc": {"status", "mnist-10"},
	} {
		cmd := p.command(args...)
		cmd.Env = append(cmd.Env, away)
		if out, err := runFor(cmd, limit); cmd.ProcessState.ExitCode() != client.ExitUnreachable || !strings.Contains(out, want) || !strings.Contains(out, "127.0.0.1:1") {
			t.Errorf("%v ended with %v, want %q:\n%s", args, err, want, out)
		}
	}
}

// TestMistakesAreRefused: before anything is done, and with what to write instead.
func TestMistakesAreRefused(t *testing.T) {
	p := newPlace(t)
	in := func(name string) string { return filepath.Join(p.dir, name) }
	for name, text := range map[string]string{
		"train.py": "", "src/train.py": "", "data/x": "", "bad.zip": "PK\x03\x04 and no more", "bad.tar.gz": "no archive", "empty.tar": strings.Repeat("\x00", 1024), "none.zip": emptyZip(t),
		"twice.yaml": "local: true\nroles: {worker: 1}\ncommand: [\"true\"]\nfiles: [train.py, src/train.py]\n",
		"two.yaml":   "local: true\nroles: {worker: 1}\ncommand: [\"true\"]\n---\nname: other\n",
		"slash.yaml": "local: true\nroles: {worker: 1}\ncommand: [\"true\"]\ncheckpoints: {./a: x, a: y}\n",
		"plain.yaml": "local: true\nroles: {worker: 1}\ncommand: [\"true\"]\nfiles: [train.py]\ncheckpoints: {./a: x}\n",
	} {
		if err := os.MkdirAll(filepath.Dir(in(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, in(name), text)
	}
	run := func(args ...string) []string {
		return append(append([]string{"run", "--dry-run", "--local", "--worker", "1"}, args...), "--", "true")
	}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{run("--files", "train.py,src/train.py"), []string{in("train.py") + " and " + in("src/train.py"), "would both stand at train.py", "PATH#NAME"}},
		{run("--files", "train.py", "--files", "src/train.py"), []string{"would both stand at train.py"}},
		{run("--files", "data#x,src#x"), []string{"would both stand at x"}},
		{run("--files", "data#x.zip", "--archives", "bad.zip#x.zip"), []string{"would both stand at x.zip"}},
		{run("--checkpoint", "./a=X", "--checkpoint", "./a=Y"), []string{"./a", "X", "Y", "one of them"}},
		{run("--checkpoint", "./a=X", "--checkpoint", "a/=Y"), []string{"./a", "X", "Y", "one of them"}},
		{[]string{"run", "--dry-run", "-f", "twice.yaml"}, []string{"line 4", "would both stand at train.py"}},
		{[]string{"run", "--dry-run", "-f", "slash.yaml"}, []string{"one of them"}},
		{[]string{"run", "--dry-run", "-f", "two.yaml"}, []string{"two.yaml", "line 4", "---"}},
		{[]string{"run", "--dry-run", "-f", "src"}, []string{"src is a directory", "-f names a YAML file"}},
		{run("--archives", "bad.zip#x"), []string{in("bad.zip"), "--archives"}},
		{run("--archives", "bad.tar.gz#x"), []string{in("bad.tar.gz"), "--archives"}},
		{run("--archives", "empty.tar"), []string{in("empty.tar"), "empty"}},
		{run("--archives", "none.zip"), []string{in("none.zip"), "empty"}},
		{run("--files", "train.py", "--checkpoint", "./train.py=ck"), []string{"./train.py", in("train.py"), "checkpoint"}},
		{run("--files", "train.py", "--checkpoint", "train.py/deep=ck"), []string{"train.py/deep", in("train.py")}},
		{run("--worker-memory", "2"), []string{"--worker-memory 2", "2g or 2m"}},
		{run("--queue", "q"), []string{"--queue", "--local"}},
		{run("--env", "HOLDFAST_TASK=x"), []string{"HOLDFAST_TASK"}},
		{[]string{"gc", "--older-than", "x"}, []string{"--older-than x: write a number; see"}},
		{[]string{"wait", "--timeout", "5"}, []string{"--timeout 5: write a length of time, as in 90s, 10m or 2h; see"}},
		{[]string{"wait", "--timeout", "-5s"}, []string{"--timeout -5s", "write a length of time, as in 90s, 10m or 2h"}},
		{[]string{"wait", "--timeout", "0s"}, []string{"--timeout 0s", "write a length of time"}},
		{[]string{"list", "--limit", "-3"}, []string{"--limit -3", "0 for all"}},
		{[]string{"ckpt", "prune", "data", "--keep", "1", "--every", "0"}, []string{"--every 0"}},
		{[]string{"ckpt", "prune", "data", "--keep", "1", "--every", "-5"}, []string{"--every -5"}},
		{[]string{"completion"}, []string{"yarn-submit completion bash|zsh|fish"}},
	} {
		out, errs, code := p.call(c.args...)
		if code != client.ExitUsage {
			t.Errorf("%v ended with %d:\n%s%s", c.args, code, out, errs)
			continue
		}
		contains(t, errs, c.want...)
	}
	// What comes from somewhere else is replaced, and the same twice is no mistake.
	for _, args := range [][]string{
		{"run", "--dry-run", "-f", "plain.yaml", "--files", "src/train.py", "--checkpoint", "a=" + in("z")},
		{"run", "--dry-run", "-f", "plain.yaml", "--files", "src/train.py,src/train.py", "--checkpoint", "a=" + in("z"), "--checkpoint", "a=" + in("z")},
	} {
		out, errs, code := p.call(args...)
		if code != 0 || !strings.Contains(out, in("src/train.py")+"#train.py") || !strings.Contains(out, in("z")) {
			t.Errorf("%v ended with %d:\n%s%s", args, code, out, errs)
		}
	}
	if _, errs, code := p.call(run("--elastic-wait", "1m")...); code != 0 || !strings.Contains(errs, "--elastic-wait and --elastic-grow have no effect") {
		t.Errorf("it ended with %d: %s", code, errs)
	}
	if list, _ := os.ReadDir(filepath.Join(p.home, "jobs")); len(list) != 0 {
		t.Errorf("jobs that were refused left %v", list)
	}
}

// emptyZip returns an archive without files.
func emptyZip(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	if err := zip.NewWriter(&b).Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestEveryCommandHasHelp: "NAME --help" and "NAME -h" show the help of NAME, which shows nothing
// of how flags are made.
func TestEveryCommandHasHelp(t *testing.T) {
	var paths [][]string
	var visit func(*cobra.Command, []string)
	visit = func(cmd *cobra.Command, path []string) {
		paths = append(paths, path)
		for _, c := range cmd.Commands() {
			visit(c, append(path[:len(path):len(path)], c.Name()))
		}
	}
	visit(newRootCommand(nil), nil)
	help := func(args []string) (string, int) {
		out, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		before, errs := os.Stdout, os.Stderr
		os.Stdout, os.Stderr = out, out
		defer func() { os.Stdout, os.Stderr = before, errs }()
		code := run(t.Context(), args)
		text, err := os.ReadFile(out.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(text), code
	}
	for _, path := range paths {
		for _, flag := range []string{"--help", "-h"} {
			text, code := help(append(path[:len(path):len(path)], flag))
			if code != 0 || !strings.Contains(text, strings.TrimSpace("yarn-submit "+strings.Join(path, " "))) || strings.Contains(text, "(default -1)") {
				t.Errorf("%v %s ended with %d: %s", path, flag, code, text)
			}
		}
	}
	// What a flag does not take is said in words of ours.
	var flags func(*cobra.Command)
	flags = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			err := cmd.ParseFlags([]string{"--" + f.Name + "=@,\"@"})
			if err == nil {
				return
			}
			if text := cli.FlagError(cmd, err).Error(); regexp.MustCompile(`strconv|parsing|invalid|time: |parse error`).MatchString(text) {
				t.Errorf("of %s it is said: %s", cmd.CommandPath(), text)
			}
		})
		for _, c := range cmd.Commands() {
			flags(c)
		}
	}
	flags(newRootCommand(nil))
	if text, code := help([]string{"ckpt", "l", "--help"}); code != client.ExitUsage || !strings.Contains(text, "did you mean ls?") {
		t.Errorf("it ended with %d: %s", code, text)
	}
	dir := t.TempDir()
	if err := runMan(dir); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, "yarn-submit-logs.1"))
	if err != nil || !bytes.Contains(page, []byte("follow")) || bytes.Contains(page, []byte("[=false]")) || bytes.Contains(page, []byte("-1")) && bytes.Contains(page, []byte("default -1")) {
		t.Errorf("the manual page of logs (%v):\n%s", err, page)
	}
}

// TestJSONKeepsItsRules: times are in UTC, to the millisecond, and every field is there.
func TestJSONKeepsItsRules(t *testing.T) {
	p := newPlace(t)
	for _, name := range []string{"ps-0.json", "COMMITTED"} {
		if err := os.MkdirAll(filepath.Join(p.dir, "step-5"), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(p.dir, "step-5", name), "{}")
	}
	times := regexp.MustCompile(`"(?:time|sealed)": "([^"]*)"`)
	for _, args := range [][]string{{"ckpt", "ls", p.dir}, {"ckpt", "show", p.dir, "5"}} {
		out, errs, code := p.call(append(args, "-o", "json")...)
		found := times.FindAllStringSubmatch(out, -1)
		if code != 0 || len(found) == 0 {
			t.Fatalf("%v ended with %d: %s%s", args, code, out, errs)
		}
		for _, m := range found {
			if !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`).MatchString(m[1]) {
				t.Errorf("%v: %s is no time of docs/json.md", args, m[0])
			}
		}
	}
	if out, _, _ := p.call("version", "-o", "json"); !strings.Contains(out, `"revision"`) {
		t.Errorf("version says %s", out)
	}
}
