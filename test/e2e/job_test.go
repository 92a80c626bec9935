package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs"
	"holdfast/proto"
	"holdfast/test/testcluster"
	"holdfast/test/testcluster/kdc"
)

// where says on what a job runs.
type where struct {
	cluster *testcluster.Cluster // nil: --local
}

func (w where) env() []string {
	if w.cluster == nil {
		return os.Environ()
	}
	env := append(os.Environ(), "HADOOP_CONF_DIR="+w.cluster.ConfDir())
	if k := w.cluster.KDC(); k != nil {
		env = append(env, "KRB5_CONFIG="+k.Config(), "KRB5CCNAME="+k.TicketCache(kdc.Alice))
	}
	return env
}

// call runs yarn-submit to its end.
func (w where) call(ctx context.Context, dir string, args ...string) (stdout, stderr string, code int) {
	return call(ctx, w.env(), dir, args...)
}

func call(ctx context.Context, env []string, dir string, args ...string) (stdout, stderr string, code int) {
	cmd := exec.CommandContext(ctx, submit, args...)
	cmd.Env, cmd.Dir = env, dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit):
		code = exit.ExitCode()
	default:
		code = -1
		errs.WriteString(err.Error())
	}
	return out.String(), errs.String(), code
}

// job is a job that was submitted and is followed by status alone.
type job struct {
	t     *testing.T
	w     where
	env   []string // of those who ask about it
	id    string
	store string // where its checkpoints are
	// came is how often a task had come back when the test ended it last.
	came map[string]int
}

// callLimit bounds one call of yarn-submit that does not follow a job.
const callLimit = 2 * time.Minute

// start submits a job. args are of `run`, after --detach.
func (w where) start(t *testing.T, dir string, args ...string) *job {
	t.Helper()
	return w.startWith(t, w.env(), dir, args...)
}

// startWith submits a job, and asks about it, in an environment.
func (w where) startWith(t *testing.T, env []string, dir string, args ...string) *job {
	t.Helper()
	all := []string{"run", "--detach", "--output", "json"}
	if w.cluster == nil {
		all = append(all, "--local")
	}
	ctx, cancel := context.WithTimeout(t.Context(), callLimit)
	defer cancel()
	stdout, stderr, code := call(ctx, env, dir, append(all, args...)...)
	var answer struct {
		ID string `json:"id"`
	}
	if code != 0 || json.Unmarshal([]byte(stdout), &answer) != nil || answer.ID == "" {
		t.Fatalf("submitting ended with %d:\n%s\n%s", code, stdout, stderr)
	}
	j := &job{t: t, w: w, env: env, id: answer.ID, came: map[string]int{}}
	t.Cleanup(j.tidy)
	return j
}

func (j *job) status() *proto.JobStatus {
	j.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	stdout, stderr, code := call(ctx, j.env, "", "status", j.id, "--output", "json")
	s := &proto.JobStatus{}
	if err := proto.FromJSON([]byte(stdout), s); err != nil {
		j.t.Fatalf("status of %s ended with %d: %v\n%s\n%s", j.id, code, err, stdout, stderr)
	}
	return s
}

// until polls the job's state until ok, or fails after limit.
func (j *job) until(limit time.Duration, what string, ok func(*proto.JobStatus) bool) *proto.JobStatus {
	j.t.Helper()
	for end := time.Now().Add(limit); ; {
		s := j.status()
		if ok(s) {
			return s
		}
		if time.Now().After(end) || s.State.Done() {
			j.t.Fatalf("waited for %s; the job is:\n%s\n%s", what, protojson.Format(s), j.allLogs())
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// end waits for the job's end.
func (j *job) end(limit time.Duration, want proto.JobState) *proto.JobStatus {
	j.t.Helper()
	s := j.until(limit, "the job's end", func(s *proto.JobStatus) bool { return s.State.Done() })
	if s.State != want {
		j.t.Fatalf("the job ended as %s (%s), want %s:\n%s\n%s", s.State, s.Why, want, protojson.Format(s), j.allLogs())
	}
	return s
}

func task(s *proto.JobStatus, name string) *proto.TaskStatus {
	for _, t := range s.Tasks {
		if t.Task == name {
			return t
		}
	}
	return &proto.TaskStatus{}
}

// logs is a task's output, of all its attempts.
func (j *job) logs(task string) string {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	stdout, stderr, code := call(ctx, j.env, "", "logs", j.id, task)
	if code != 0 {
		return fmt.Sprintf("logs of %s: %d %s", task, code, stderr)
	}
	return stdout
}

func (j *job) allLogs() string {
	var all strings.Builder
	for _, t := range j.status().Tasks {
		fmt.Fprintf(&all, "---- %s\n%s\n", t.Task, tail(j.logs(t.Task), 40))
	}
	return all.String()
}

func tail(s string, lines int) string {
	all := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// said waits until a task's output matches, and returns the first group.
func (j *job) said(limit time.Duration, task, pattern string) string {
	j.t.Helper()
	re := regexp.MustCompile(pattern)
	for end := time.Now().Add(limit); ; {
		text := j.logs(task)
		if m := re.FindStringSubmatch(text); m != nil {
			return m[len(m)-1]
		}
		if s := j.status(); time.Now().After(end) || s.State.Done() {
			j.t.Fatalf("%s never said %q; the job is %s (%s):\n%s", task, pattern, s.State, s.Why, j.allLogs())
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// checkpoints is what `ckpt ls` says of the job's store.
type checkpoint struct {
	Step     int64  `json:"step"`
	Shards   int    `json:"shards"`
	Complete bool   `json:"complete"`
	State    string `json:"state"`
	Retained bool   `json:"retained"`
}

func (j *job) checkpoints() []checkpoint {
	j.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	stdout, stderr, code := call(ctx, j.env, "", "ckpt", "ls", j.store, "--output", "json")
	var list struct{ Checkpoints []checkpoint }
	if err := json.Unmarshal([]byte(stdout), &list); err != nil {
		j.t.Fatalf("ckpt ls %s ended with %d: %v\n%s\n%s", j.store, code, err, stdout, stderr)
	}
	return list.Checkpoints
}

// newestComplete gives the newest complete checkpoint's step; -1 if there is none.
func (j *job) newestComplete() int64 {
	j.t.Helper()
	newest := int64(-1)
	for _, c := range j.checkpoints() {
		if c.Complete {
			newest = max(newest, c.Step)
		}
	}
	return newest
}

// untilCheckpoint waits for a complete checkpoint of at least this step and
// returns the newest one's.
func (j *job) untilCheckpoint(limit time.Duration, step int64) int64 {
	j.t.Helper()
	for end := time.Now().Add(limit); ; {
		newest := j.newestComplete()
		if newest >= step {
			return newest
		}
		if s := j.status(); time.Now().After(end) || s.State.Done() {
			j.t.Fatalf("no checkpoint of step %d or later; the job is %s (%s):\n%s", step, s.State, s.Why, j.allLogs())
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// killProcess ends a task's process.
func (j *job) killProcess(name string) {
	j.t.Helper()
	s := j.status()
	pid := int(task(s, name).Pid)
	if pid == 0 {
		j.t.Fatalf("%s does not run: %s", name, protojson.Format(s))
	}
	j.came[name] = len(returns(s, name))
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		j.t.Fatalf("killing process %d of %s: %v", pid, name, err)
	}
}

// killContainer ends a task's agent, and its process with it.
func (j *job) killContainer(name string) {
	j.t.Helper()
	s := j.status()
	pid := int(task(s, name).AgentPid)
	if pid == 0 {
		j.t.Fatalf("%s has no agent: %s", name, protojson.Format(s))
	}
	j.came[name] = len(returns(s, name))
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		j.t.Fatalf("killing agent %d of %s: %v", pid, name, err)
	}
}

// masters are the processes of the job's application masters, and agents those
// of its agents.
func (j *job) masters() []int { return j.processes("yarn-submit\x00am\x00") }
func (j *job) agents() []int  { return j.processes("yarn-submit\x00agent\x00") }

// processes are the job's, found by its id in their environment, whose command
// line ends like this.
func (j *job) processes(suffix string) []int {
	var pids []int
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		environ, err := os.ReadFile(filepath.Join(d, "environ"))
		if err != nil || !bytes.Contains(environ, []byte("HOLDFAST_JOB="+j.id+"\x00")) {
			continue
		}
		cmdline, _ := os.ReadFile(filepath.Join(d, "cmdline"))
		if bytes.HasSuffix(cmdline, []byte(suffix)) {
			pid, _ := strconv.Atoi(filepath.Base(d))
			pids = append(pids, pid)
		}
	}
	return pids
}

// returns are the moments at which a task was back after a loss.
func returns(s *proto.JobStatus, name string) (all []*proto.JobEvent) {
	for _, m := range s.Events {
		if m.Task == name && m.Kind == "recovered" {
			all = append(all, m)
		}
	}
	return all
}

// back waits until a task runs again after its last loss and returns how long that took.
func (j *job) back(limit time.Duration, name string) time.Duration {
	j.t.Helper()
	s := j.until(limit, name+" to be back", func(s *proto.JobStatus) bool { return len(returns(s, name)) > j.came[name] })
	return time.Duration(returns(s, name)[j.came[name]].SinceLossMs) * time.Millisecond
}

// tidy ends what a failed test left, and fails the test if anything of the job
// outlives it.
func (j *job) tidy() {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	var killed string
	if s := j.status(); !s.State.Done() {
		begin := time.Now()
		out, errs, code := call(ctx, j.env, "", "kill", j.id)
		killed = fmt.Sprintf("; kill took %s and ended with %d: %s%s", time.Since(begin).Round(time.Millisecond), code, out, errs)
	}
	for end := time.Now().Add(time.Minute); ; {
		left := j.left()
		if left == "" {
			return
		}
		if time.Now().After(end) {
			j.t.Errorf("the job %s left this behind%s:\n%s\n%s", j.id, killed, left, eventLog(j.status()))
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// left names the processes of the job that still live, found by the job's id
// in their environment, and the hidden files in its store.
func (j *job) left() string {
	var found strings.Builder
	for _, pid := range j.processes("") {
		cmdline, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		fmt.Fprintf(&found, "process %d: %s\n", pid, bytes.ReplaceAll(cmdline, []byte{0}, []byte{' '}))
	}
	for _, name := range j.hidden() {
		fmt.Fprintf(&found, "file %s\n", name)
	}
	return found.String()
}

// hidden names the temporary files in the job's store, which listings through
// Holdfast do not show.
func (j *job) hidden() []string {
	var names []string
	switch {
	case j.store == "":
	case j.w.cluster == nil:
		_ = filepath.Walk(j.store, func(path string, _ os.FileInfo, err error) error {
			if err == nil && strings.HasSuffix(path, ".hf-tmp") {
				names = append(names, path)
			}
			return nil
		})
	case j.w.cluster.KDC() != nil:
		text, err := j.w.cluster.Hadoop(context.Background(), "fs", "-ls", "-R", j.store)
		if err != nil && !strings.Contains(err.Error(), "No such file") {
			return []string{err.Error()}
		}
		for _, line := range strings.Split(text, "\n") {
			if strings.HasSuffix(line, ".hf-tmp") {
				names = append(names, line)
			}
		}
	default:
		c, err := conf.Load(j.w.cluster.ConfDir())
		if err != nil {
			return []string{err.Error()}
		}
		client, err := hdfs.New(j.w.cluster.HDFS(), c, hdfs.Options{})
		if err != nil {
			return []string{err.Error()}
		}
		defer client.Close()
		names = below(client, strings.TrimPrefix(j.store, j.w.cluster.HDFS()))
	}
	return names
}

// below names the temporary files below an HDFS directory.
func below(client *hdfs.Client, dir string) []string {
	list, err := client.List(context.Background(), dir)
	if errors.Is(err, syscall.ENOENT) {
		return nil
	}
	if err != nil {
		return []string{err.Error()}
	}
	var names []string
	for _, i := range list {
		name := path.Join(dir, i.Name)
		switch {
		case i.Mode.IsDir():
			names = append(names, below(client, name)...)
		case strings.HasSuffix(name, ".hf-tmp"):
			names = append(names, name)
		}
	}
	return names
}
