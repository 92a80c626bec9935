package container

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/container/gpu"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/jobtls"
	"holdfast/proto"
)

// Config is the configuration of an agent.
type Config struct {
	Master string // host:port of the AM that started the agent
	// JobDirectory is the job's directory (URI): output goes to
	// logs/TASK/ATTEMPT.log below it, and am.json there says where the AM is.
	JobDirectory string
	Container    string // as the driver named it
	Host         string // the address under which peers reach this host
	Keys         jobtls.Keys
	Conf         *conf.Conf // Hadoop's configuration; nil without Hadoop
	WorkDir      string     // the container's directory
	LogDir       string
	// OwnLog is the name, in the job's directory, of a copy of what this process writes to
	// its standard error; empty: there is none.
	OwnLog string
	TmpDir string
	Log    *logrus.Entry
	// NewTokens replaces this process's tokens by those of a credentials file; nil:
	// there are none.
	NewTokens func(credentials []byte) error
	// TokenFile is the task's own credentials file, which NewTokens keeps fresh;
	// empty: it has none.
	TokenFile string
	Exe       string // this binary; empty: /proc/self/exe
	// Env is the environment from which the task gets the little that it
	// inherits (PATH, HOME, LANG and such); nil: this process's.
	Env []string

	// WarmAfter is how long a task has been at work before a warm interpreter is
	// prepared; 0: a while.
	WarmAfter time.Duration

	// EndLimit is how long an attempt may take to end after SIGKILL, when the agent ends;
	// 0: proto.EndLimit.
	EndLimit time.Duration

	// OwnProcess: this process runs nothing but the agent. Then its memory is protected
	// from others (package nodump) after the sandbox's start and before the task's.
	OwnProcess bool

	// Image is the container image in which this process runs; empty: in none.
	Image string
	// Unfit is why no task may run in this container; nil: one may.
	Unfit error

	// GPUs is where GPUs are looked for; nil: on this node.
	GPUs *gpu.Node

	// NoNamespace, UserNamespace and NoSteering are sandbox.Options's.
	NoNamespace, UserNamespace, NoSteering bool
}

func (c *Config) complete() error {
	if c.Master == "" || c.Container == "" || c.JobDirectory == "" {
		return errors.New("an agent needs the address of its application master, its job's directory and its container's name; people do not start it by hand")
	}
	if c.Log == nil {
		c.Log = logrus.NewEntry(logrus.StandardLogger())
	}
	if c.Host == "" {
		c.Host = "127.0.0.1"
	}
	if c.GPUs == nil {
		c.GPUs = &gpu.Here
	}
	if c.NewTokens == nil {
		c.NewTokens = func([]byte) error { return nil }
	}
	c.EndLimit = cmp.Or(c.EndLimit, proto.EndLimit)
	if c.Env == nil {
		c.Env = os.Environ()
	}
	for _, d := range []*string{&c.WorkDir, &c.LogDir, &c.TmpDir} {
		if *d == "" {
			return errors.New("an agent needs a working, a log and a temporary directory")
		}
		abs, err := filepath.Abs(*d)
		if err != nil {
			return fmt.Errorf("finding the container's directory: %w", err)
		}
		*d = abs
		if err := os.MkdirAll(abs, 0o755); err != nil {
			return fmt.Errorf("making the container's directory: %w", err)
		}
	}
	return nil
}
