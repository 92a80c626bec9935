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

// Files of a local job that only the client uses: where the process of its application master is
// (see RecordMaster), and its output.
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

// MasterCommand returns the arguments that run the binary as the application master of
// a local job.
func MasterCommand(job string) []string { return []string{"am", "--local", job} }

// RecordMaster writes to the directory of a local job which process of this machine its application
// master is.
func RecordMaster(dir string, pid int) error {
	here, err := proc.Here()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, PIDFile), fmt.Appendf(nil, "%d\n%s", pid, here), 0o600)
}

// localMaster is the application master of a local job, as RecordMaster has written it.
type localMaster struct {
	pid   int        // 0: it is not known
	place proc.Place // the zero value: it is not known
}

func readMaster(dir string) (m localMaster) {
	text, err := os.ReadFile(filepath.Join(dir, PIDFile))
	if err != nil {
		return m
	}
	first, rest, _ := strings.Cut(string(text), "\n")
	m.pid, _ = strconv.Atoi(strings.TrimSpace(first))
	m.place, _ = proc.ParsePlace(rest)
	return m
}

// liveness returns what this machine knows of the application master. The directory may be shared
// by machines, of which each has its own processes.
func (m localMaster) liveness(job string) Liveness {
	here, err := proc.Here()
	if err != nil || m.pid <= 0 || m.place == (proc.Place{}) {
		return Unknown
	}
	switch {
	case m.place.Boot != here.Boot && m.place.Host == here.Host:
		return Ended // with the machine
	case m.place.Boot != here.Boot, m.place.Namespace != here.Namespace:
		return Unknown
	}
	// A process that has reused the id is recognized by its command line; its environment cannot
	// be read (package nodump).
	command, err := proc.CommandLine(m.pid)
	if err != nil || len(command) == 0 || !slices.Equal(command[1:], MasterCommand(job)) {
		return Ended
	}
	return Alive
}

// localLiveness is Liveness of a job on this machine, or on another one with the same home directory.
func (j *Job) localLiveness() Liveness {
	if j.process == nil {
		return readMaster(j.LocalPath()).liveness(j.ID)
	}
	select {
	case <-j.process:
		return Ended
	default:
		return Alive
	}
}

// MasterRuns reports whether the application master of a local job is known to run.
func (j *Job) MasterRuns() bool { return j.localLiveness() == Alive }

// Elsewhere returns the name of the machine, which may be a container, that a local job runs on or was
// lost with; empty if it is this one, or that is not known.
func (j *Job) Elsewhere() string {
	if !j.Local() || j.localLiveness() != Unknown {
		return ""
	}
	return readMaster(j.LocalPath()).place.Name()
}

// LocalLiveness is Liveness of a local job of this user: its tasks do not outlive its application
// master.
func LocalLiveness(job string) Liveness {
	home, err := LocalHome()
	if err != nil || !strings.HasPrefix(job, LocalPrefix) || path.Base(job) != job {
		return Unknown
	}
	return readMaster(filepath.Join(home, Directory(job))).liveness(job)
}
