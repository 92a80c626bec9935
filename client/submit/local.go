package submit

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"holdfast/client/jobs"
	"holdfast/container/gpu"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/token"
	"holdfast/internal/jobtls"
	"holdfast/proto"
)

// credentialsFile holds the secrets of a local job's application master and agents.
const credentialsFile = "credentials"

// newLocalID returns a job id; ids sort by time.
func newLocalID(now time.Time) string {
	return jobs.LocalPrefix + now.Format("20060102-150405-") + strings.ToLower(rand.Text()[:4])
}

// Local starts a job on this machine. Its application master is a process in a session
// of its own, so that it can outlive the client. It reports what it waits for and what
// it cleaned up through notify.
func Local(ctx context.Context, spec *proto.JobSpec, exe string, notify Notify) (_ *jobs.Job, err error) {
	if err := CheckLocal(spec); err != nil {
		return nil, err
	}
	for _, c := range spec.Checkpoints {
		if err := checkLocalDirectory(ctx, c, notify); err != nil {
			return nil, err
		}
	}
	keep, err := retention()
	if err != nil {
		return nil, err
	}
	home, err := jobs.OpenLocalHome(ctx)
	if err != nil {
		return nil, err
	}
	job := jobs.OnMachine(home, newLocalID(time.Now()))
	removeOldJobs(ctx, home, keep, notify, localJobs(home))
	defer func() {
		if err != nil {
			_ = os.RemoveAll(job.LocalPath()) // the error that led here is the one to tell
			job.Close()
		}
	}()
	set, err := makeLocalDirectory(ctx, home, job, spec)
	if err != nil {
		return nil, err
	}
	claimed, err := claimAll(ctx, spec, job.ID, func(string) bool { return true }, openLocal)
	if err != nil {
		return nil, err
	}
	master, err := startMaster(job, exe)
	if err != nil {
		claimed.remove(ctx)
		return nil, err
	}
	job.SetStarted(set.Client, master)
	return job, nil
}

// CheckLocal returns an error if the job's tasks ask for more GPUs than this machine has for them.
// A machine without NVIDIA's GPUs is not asked to have any: tasks run there all the same.
func CheckLocal(spec *proto.JobSpec) error {
	return checkGPUs(spec, len(gpu.Given(gpu.Here.Devices(), os.Environ())))
}

func checkGPUs(spec *proto.JobSpec, there int) error {
	total := 0
	var asks, flags []string
	for _, r := range spec.Roles {
		if r.Gpus == 0 || r.Completion == proto.CompletionRule_COMPLETION_RULE_OPTIONAL {
			continue // the job can do without an optional one
		}
		count := cmp.Or(r.Min, r.Count) // those without which the job does not start
		total += int(count) * int(r.Gpus)
		asks = append(asks, fmt.Sprintf("%s %d × %d", r.Name, count, r.Gpus))
		flags = append(flags, fmt.Sprintf("--%s or --%[1]s-gpus", r.Name))
	}
	if there == 0 || total <= there {
		return nil
	}
	return fmt.Errorf("the job's tasks ask for %d GPUs together (%s), and this machine has %d that they may use: lower %s, or leave the numbers of GPUs out, so that tasks share them",
		total, strings.Join(asks, ", "), there, strings.Join(flags, ", "))
}

// makeLocalDirectory creates the job's directory with its spec and keys.
func makeLocalDirectory(ctx context.Context, home store.Store, job *jobs.Job, spec *proto.JobSpec) (jobtls.Set, error) {
	if err := os.MkdirAll(filepath.Dir(job.LocalPath()), 0o700); err != nil {
		return jobtls.Set{}, fmt.Errorf("make the directory of local jobs: %w", err)
	}
	if err := os.Mkdir(job.LocalPath(), 0o700); err != nil {
		return jobtls.Set{}, fmt.Errorf("make the job's directory: %w", err)
	}
	set, err := jobtls.New(job.ID)
	if err != nil {
		return set, err
	}
	secrets := token.New()
	secrets.Secrets[proto.SecretMaster] = set.Master.Marshal()
	secrets.Secrets[proto.SecretAgent] = set.Agent.Marshal()
	if err := secrets.WriteFile(filepath.Join(job.LocalPath(), credentialsFile)); err != nil {
		return set, err
	}
	dir := jobs.Directory(job.ID)
	if err := writeSpec(ctx, home, dir, spec); err != nil {
		return set, err
	}
	return set, writeKeys(ctx, home, dir, set)
}

// checkLocalDirectory creates a checkpoint directory, and checks that it is writable
// and that no other job uses it.
func checkLocalDirectory(ctx context.Context, c *proto.CheckpointSpec, notify Notify) error {
	s, err := store.Open(ctx, c.Uri, nil)
	if err == nil {
		defer s.Close()
		err = CheckWritable(ctx, s)
	}
	if err != nil {
		return fmt.Errorf("the checkpoint directory %s cannot be written: %w; name another with --checkpoint", c.Uri, err)
	}
	return checkExclusive(ctx, s, c, openLocal, livenessOnThisMachine, notify)
}

func openLocal(ctx context.Context, uri string) (store.Store, error) {
	return store.OpenExisting(ctx, uri, nil)
}

// startMaster starts the application master of a local job. The returned channel is
// closed when its process has ended.
func startMaster(job *jobs.Job, exe string) (ended <-chan struct{}, err error) {
	dir := job.LocalPath()
	log, err := os.OpenFile(filepath.Join(dir, jobs.MasterLog), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start the application master: %w", err)
	}
	defer log.Close() // the master has a descriptor of its own
	cmd := exec.Command(exe, jobs.MasterCommand(job.ID)...)
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(),
		proto.EnvJob+"="+job.ID,
		proto.EnvJobDirectory+"="+dir,
		proto.EnvCredentials+"="+filepath.Join(dir, credentialsFile),
	)
	// Ctrl-C in the terminal must reach the client only, which asks what to do.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the application master: %w", err)
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended stands in the job's directory
		close(done)
	}()
	if err := jobs.RecordMaster(dir, cmd.Process.Pid); err != nil {
		_ = cmd.Process.Kill() // a job that nobody can find must not stay
		<-done
		return nil, fmt.Errorf("note the application master's process: %w", err)
	}
	return done, nil
}
