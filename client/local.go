package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/token"
	"holdfast/internal/jobtls"
	"holdfast/proto"
)

// EnvHome names the variable that stands for ~/.holdfast, where local jobs are.
const EnvHome = "HOLDFAST_HOME"

// Files of a local job that only the client uses.
const (
	pidFile         = "am.pid"
	masterLog       = "am.log"
	credentialsFile = "credentials"
)

// localPrefix begins the ids of local jobs.
const localPrefix = "local-"

// localHome is where local jobs are.
func localHome() (string, error) {
	if dir := os.Getenv(EnvHome); dir != "" {
		return filepath.Abs(dir)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the home directory, where local jobs are kept: %w; set %s to a directory", err, EnvHome)
	}
	return filepath.Join(home, proto.HomeDir), nil
}

// openLocalHome opens, and makes, Holdfast's local directory.
func openLocalHome(ctx context.Context) (store.Store, error) {
	dir, err := localHome()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of local jobs: %w; set %s to one that can be written", err, EnvHome)
	}
	s, err := store.Open(ctx, dir, nil)
	if err == nil {
		if err = keepPrivate(ctx, s); err != nil {
			s.Close()
			return nil, fmt.Errorf("close the directory of local jobs %s to others: %w; set %s to one that is yours", dir, err, EnvHome)
		}
	}
	return s, err
}

// newLocalID makes an id that sorts by time.
func newLocalID(now time.Time) string {
	return localPrefix + now.Format("20060102-150405-") + strings.ToLower(rand.Text()[:4])
}

// StartLocal starts a job on this machine: its application master is a process
// of its own session, so that it outlives the client where that is wanted. tell hears
// of what it waits for.
func StartLocal(ctx context.Context, spec *proto.JobSpec, exe string, tell Tell) (_ *Job, err error) {
	for _, c := range spec.Checkpoints {
		if err := checkLocalDirectory(ctx, c, tell); err != nil {
			return nil, err
		}
	}
	keep, err := keepJobs()
	if err != nil {
		return nil, err
	}
	home, err := openLocalHome(ctx)
	if err != nil {
		return nil, err
	}
	id := newLocalID(time.Now())
	j := &Job{ID: id, home: home, dir: path.Join(jobsDir, id)}
	j.Note = sweepJobs(ctx, home, keep, func(_ context.Context, old *Job) error {
		if old.masterRuns() {
			return fs.ErrExist
		}
		return os.RemoveAll(old.localPath())
	})
	defer func() {
		if err != nil {
			_ = os.RemoveAll(j.localPath()) // the error that led here is the one to tell
			j.Close()
		}
	}()
	if err := os.MkdirAll(filepath.Dir(j.localPath()), 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of local jobs: %w", err)
	}
	if err := os.Mkdir(j.localPath(), 0o700); err != nil {
		return nil, fmt.Errorf("make the job's directory: %w", err)
	}
	set, err := jobtls.New(id)
	if err != nil {
		return nil, err
	}
	j.keys = &set.Client
	secrets := token.New()
	secrets.Secrets[proto.SecretMaster] = set.Master.Marshal()
	secrets.Secrets[proto.SecretAgent] = set.Agent.Marshal()
	if err := secrets.WriteFile(filepath.Join(j.localPath(), credentialsFile)); err != nil {
		return nil, err
	}
	if err := j.writeSpec(ctx, spec); err != nil {
		return nil, err
	}
	if err := store.WriteFile(ctx, home, path.Join(j.dir, proto.KeysFile), set.Client.Marshal(), 0o600); err != nil {
		return nil, err
	}
	return j, j.startMaster(exe)
}

// checkLocalDirectory makes a checkpoint directory and tries to write in it.
func checkLocalDirectory(ctx context.Context, c *proto.CheckpointSpec, tell Tell) error {
	s, err := store.Open(ctx, c.Uri, nil)
	if err == nil {
		defer s.Close()
		err = writable(ctx, s)
	}
	if err != nil {
		return fmt.Errorf("the checkpoint directory %s cannot be written: %w; name another with --checkpoint", c.Uri, err)
	}
	return alone(ctx, s, c, overLocally, tell)
}

func (j *Job) startMaster(exe string) error {
	dir := j.localPath()
	log, err := os.OpenFile(filepath.Join(dir, masterLog), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("start the application master: %w", err)
	}
	defer log.Close()                               // the master has a descriptor of its own
	cmd := exec.Command(exe, "am", "--local", j.ID) // masterPIDIn knows it by that
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(),
		proto.EnvJob+"="+j.ID,
		proto.EnvJobDirectory+"="+dir,
		proto.EnvCredentials+"="+filepath.Join(dir, credentialsFile),
	)
	// A Ctrl-C in the terminal is for the client, which asks what to do.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the application master: %w", err)
	}
	done := make(chan struct{})
	j.process = done
	go func() {
		_ = cmd.Wait() // how it ended stands in the job's directory
		close(done)
	}()
	if err := os.WriteFile(filepath.Join(dir, pidFile), []byte(strconv.Itoa(cmd.Process.Pid)), 0o600); err != nil {
		_ = cmd.Process.Kill() // a job that nobody can find must not stay
		<-done
		return fmt.Errorf("note the application master's process: %w", err)
	}
	return nil
}

// localPath is the directory of a local job.
func (j *Job) localPath() string {
	return filepath.Join(strings.TrimPrefix(j.home.URI(), "file://"), filepath.FromSlash(j.dir))
}

// masterPID is the process of a local job's application master, 0 if it does
// not run. A process that has got its number since is told apart by its command line,
// which is open to all: its environment is not, package nodump.
func (j *Job) masterPID() int { return j.masterPIDIn(j.localPath()) }

func (j *Job) masterPIDIn(dir string) int {
	text, err := os.ReadFile(filepath.Join(dir, pidFile))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 0 {
		return 0
	}
	command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !strings.HasSuffix(string(command), "\x00am\x00--local\x00"+j.ID+"\x00") {
		return 0
	}
	return pid
}

// masterRuns tells whether a local job's application master is alive.
func (j *Job) masterRuns() bool {
	select {
	case <-j.process: // nil, and so never, for a master that another process started
		return false
	default:
		return j.process != nil || j.masterPID() != 0
	}
}
