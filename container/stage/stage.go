// Package stage puts into place what an attempt needs before it starts:
// directories, the job's files, its environment, a warm interpreter if it can be
// known what is to be run, and the task's checkpoint paths.
package stage

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	pb "google.golang.org/protobuf/proto"

	"holdfast/container/failure"
	"holdfast/container/peers"
	"holdfast/container/sandbox"
	"holdfast/container/steer"
	"holdfast/container/warm"
	"holdfast/hdfsckpt/store"
	"holdfast/proto"
	"holdfast/runtime"
)

// Options are what a stage is made from.
type Options struct {
	WorkDir string        // the container's directory, which exists
	TmpDir  string        // for spools and, unless its name is too long, the task's TMPDIR
	Stores  *store.Opener // of checkpoint directories and the directories of files
	Env     []string      // from which the task gets the little that it inherits
	Tokens  string        // the task's credentials file; empty: it has none
	After   time.Duration // warm.Options's
	Log     *logrus.Entry
}

// Stage is what a container has for whichever task comes: directories, the job's
// files and, if it can be known what is to be run, a warm interpreter. A spare's
// agent furnishes it before it has a task. Its methods may be called from any
// goroutine.
type Stage struct {
	Standby *warm.Standby
	// Supervisor answers from the beginning, since every connect waits for it;
	// nil where steering is not allowed.
	Supervisor *steer.Supervisor

	options Options
	work    string // working directory
	home    string // directory for HOME
	shim    string // directory for PYTHONPATH

	mu     sync.Mutex // one furnishes at a time
	stands bool
	files  []*proto.FileSpec // that are there
}

// New is a stage in box on which nothing stands yet.
func New(o Options, box *sandbox.Box) (*Stage, error) {
	s := &Stage{options: o}
	s.work, s.home, s.shim = filepath.Join(o.WorkDir, "work"), filepath.Join(o.WorkDir, "home"), filepath.Join(o.WorkDir, "shim")
	if box.Restrictions().Steer == nil {
		var err error
		if s.Supervisor, err = steer.New(box.Listener(), o.Log); err != nil {
			return nil, err
		}
	}
	s.Standby = warm.New(warm.Options{Box: box, Notes: s.shim, After: o.After, Log: o.Log})
	return s, nil
}

// Close ends what the stage has started, and the box. It may be called again.
func (s *Stage) Close(box *sandbox.Box) {
	s.Standby.Close()
	box.Close()
	if s.Supervisor != nil {
		s.Supervisor.Close()
	}
}

// Furnish makes the directories and fetches the files. What is there already
// stays. memoryMB is what the container may use; 0: there is no limit.
func (s *Stage) Furnish(ctx context.Context, files []*proto.FileSpec, memoryMB int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Standby.Limit(memoryMB << 20)
	same := func(a, b *proto.FileSpec) bool { return pb.Equal(a, b) }
	if s.stands && slices.EqualFunc(s.files, files, same) {
		return nil
	}
	for _, d := range []string{s.work, s.home, s.shim} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return failure.Node(fmt.Errorf("making the task's directory: %w", err))
		}
	}
	if err := runtime.WriteShim(s.shim); err != nil {
		return failure.Node(fmt.Errorf("writing the task's Python start-up file: %w", err))
	}
	if err := fetchFiles(ctx, s.options, s.work, files); err != nil {
		return err
	}
	s.stands, s.files = true, files
	return nil
}

// Command makes what is run from words and variables that are final.
func (s *Stage) Command(argv []string, given map[string]string, python []string) (sandbox.Command, error) {
	tmp, err := temporary(s.options.TmpDir)
	if err != nil {
		return sandbox.Command{}, err
	}
	return sandbox.Command{
		Argv: argv, Env: environment(s.options.Env, given, tmp, s.home, s.options.Tokens, append([]string{s.shim}, python...)), Dir: s.work,
	}, nil
}

// longestTemporary is how long the name of a temporary directory may be so that
// sockets can be made in it, as Python's multiprocessing does: their names are
// limited to 107 bytes, unix(7).
const longestTemporary = 64

// temporary makes the task's temporary directory; "" is the system's, where the
// container's would be too long a name, as on YARN.
func temporary(dir string) (string, error) {
	tmp := filepath.Join(dir, "task")
	if len(tmp) > longestTemporary {
		return "", nil
	}
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return "", fmt.Errorf("making the task's temporary directory: %w", err)
	}
	return tmp, nil
}

// Prewarm has an interpreter made for a task to come, if it is known how; soon
// if the task is about to start. The stage is furnished.
func (s *Stage) Prewarm(p *peers.Peers, r *proto.PrewarmPlan, soon bool) error {
	if r == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	port := cmp.Or(p.OwnPort(), 1) // it may not be known yet, and no import depends on it
	argv, given, err := p.Command(r.Command, r.Env, port, runtime.Attempt{})
	if err != nil {
		return err
	}
	c, err := s.Command(argv, given, nil)
	if err != nil {
		return err
	}
	s.Standby.Prewarm(c, localProfile(r.ImportProfile, s.directories()), soon)
	return nil
}

// ImportProfile is what the AM is to know of the task's script, and how often that
// has changed; nil: nothing yet.
func (s *Stage) ImportProfile() (*proto.ImportProfile, int) {
	k, news := s.Standby.Known()
	if news == 0 {
		return nil, 0
	}
	if k.Refused != "" {
		return &proto.ImportProfile{Unsupported: k.Refused}, news
	}
	i := &proto.ImportProfile{SysPath: k.Path, SetEnv: map[string]string{}, Directories: s.directories()}
	for name, v := range k.Environ {
		if v == nil {
			i.UnsetEnv = append(i.UnsetEnv, name)
		} else {
			i.SetEnv[name] = *v
		}
	}
	slices.Sort(i.UnsetEnv)
	if !valid(i) {
		return nil, news
	}
	return i, news
}

// valid reports whether a message can carry it: strings must be UTF-8.
func valid(i *proto.ImportProfile) bool {
	_, err := pb.Marshal(i)
	return err == nil
}

// localProfile is what an import profile of another container is in this one.
func localProfile(i *proto.ImportProfile, own []string) warm.ImportProfile {
	var pairs []string
	for n, d := range i.GetDirectories() {
		if n < len(own) {
			pairs = append(pairs, d, own[n])
		}
	}
	here := strings.NewReplacer(pairs...)
	c := warm.ImportProfile{Environ: map[string]*string{}}
	for _, p := range i.GetSysPath() {
		c.Path = append(c.Path, here.Replace(p))
	}
	for name, v := range i.GetSetEnv() {
		v = here.Replace(v)
		c.Environ[name] = &v
	}
	for _, name := range i.GetUnsetEnv() {
		c.Environ[name] = nil
	}
	return c
}

// directories are the names under which the container's own can be found, in an
// order that is the same everywhere; Python resolves links in some of them.
func (s *Stage) directories() []string {
	resolved, err := filepath.EvalSymlinks(s.options.WorkDir)
	if err != nil {
		resolved = s.options.WorkDir
	}
	return []string{resolved, s.options.WorkDir}
}
