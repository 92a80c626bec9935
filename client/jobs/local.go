package jobs

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"holdfast/client/cluster"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/proc"
	"holdfast/proto"
)

// EnvHome is the environment variable that replaces ~/.holdfast, the directory of local
// jobs.
const EnvHome = "HOLDFAST_HOME"

// Files of a local job that only the client uses: the process id of its application
// master, and its output.
const (
	PIDFile   = "am.pid"
	MasterLog = "am.log"
)

// LocalPrefix is the prefix of the ids of local jobs.
const LocalPrefix = "local-"

// LocalHome returns the directory of local jobs.
func LocalHome() (string, error) {
	if dir := os.Getenv(EnvHome); dir != "" {
		return filepath.Abs(dir)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the home directory, where local jobs are kept: %w; set %s to a directory", err, EnvHome)
	}
	return filepath.Join(home, proto.HomeDir), nil
}

// OpenLocalHome opens the directory of local jobs, and creates it if it does not exist.
func OpenLocalHome(ctx context.Context) (store.Store, error) {
	dir, err := LocalHome()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of local jobs: %w; set %s to one that can be written", err, EnvHome)
	}
	s, err := store.Open(ctx, dir, nil)
	if err == nil {
		if err = cluster.MakePrivate(ctx, s); err != nil {
			s.Close()
			return nil, fmt.Errorf("close the directory of local jobs %s to others: %w; set %s to one that is yours", dir, err, EnvHome)
		}
	}
	return s, err
}

// LocalPath returns the directory of a local job.
func (j *Job) LocalPath() string {
	return filepath.Join(strings.TrimPrefix(j.home.URI(), "file://"), filepath.FromSlash(j.dir))
}

// masterPID returns the process id of a local job's application master, or 0 if it does
// not run. A process that has reused the id is recognized by its command line; its
// environment cannot be read (package nodump).
func masterPID(dir, job string) int {
	text, err := os.ReadFile(filepath.Join(dir, PIDFile))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 0 {
		return 0
	}
	command, err := proc.CommandLine(pid)
	if err != nil || len(command) == 0 || !slices.Equal(command[1:], MasterCommand(job)) {
		return 0
	}
	return pid
}

// MasterCommand returns the arguments that run the binary as the application master of
// a local job.
func MasterCommand(job string) []string { return []string{"am", "--local", job} }

// MasterRuns reports whether the application master of a local job runs.
func (j *Job) MasterRuns() bool {
	select {
	case <-j.process: // nil, and so never, for a master that another process started
		return false
	default:
		return j.process != nil || masterPID(j.LocalPath(), j.ID) != 0
	}
}

// LocalEnded reports whether a job of this user on this machine is known to have ended:
// its tasks do not outlive its application master.
func LocalEnded(_ context.Context, job string) bool {
	home, err := LocalHome()
	if err != nil || !strings.HasPrefix(job, LocalPrefix) || path.Base(job) != job {
		return false
	}
	dir := filepath.Join(home, Directory(job))
	_, err = os.Stat(filepath.Join(dir, PIDFile))
	return err == nil && masterPID(dir, job) == 0
}
