// Package stage prepares what an attempt needs before it starts: directories, the job's
// files, its environment, a warm interpreter if it is known what will be run, and the
// task's checkpoint paths.
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
	"holdfast/runtime/framework"
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

// Stage is what a container prepares for any task: directories, the job's files and, if it is
// known what will be run, a warm interpreter. A spare's agent prepares it before it has a
// task. Its methods may be called from any goroutine.
type Stage struct {
	Standby *warm.Standby
	// Supervisor runs from the beginning, since every connect waits for it; nil where
	// steering is not allowed.
	Supervisor *steer.Supervisor
	// Apart is why the task sees its working directory at another path than tasks in other
	// containers do, though the node allows private mounts; nil: it does not.
	Apart error

	options Options
	work    string // working directory
	seen    string // where the task sees it
	point   *mountPoint
	home    string // directory for HOME
	shim    string // directory for PYTHONPATH

	mu     sync.Mutex // one furnishes at a time
	stands bool
	files  []*proto.FileSpec // that are there
}

// New returns a stage in box for which nothing is prepared.
func New(o Options, box *sandbox.Box) (*Stage, error) {
	s := &Stage{options: o}
	s.work, s.home, s.shim = filepath.Join(o.WorkDir, "work"), filepath.Join(o.WorkDir, "home"), filepath.Join(o.WorkDir, "shim")
	if box.Restrictions().Steer == nil {
		var err error
		if s.Supervisor, err = steer.New(box.Listener(), o.Log); err != nil {
			return nil, err
		}
	}
	s.seen = s.work
	if box.Restrictions().Namespace == nil {
		s.Apart = s.bindWork(box)
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
	if s.point != nil { // nothing is mounted there any longer
		s.point.leave()
		s.point = nil
	}
}

// Furnish makes the directories and fetches the files. It keeps what exists. memoryMB is
// what the container may use; 0: there is no limit.
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

// Command makes the sandbox command of words and variables that are final.
func (s *Stage) Command(argv []string, given map[string]string, python []string) (sandbox.Command, error) {
	tmp, err := temporary(s.options.TmpDir)
	if err != nil {
		return sandbox.Command{}, err
	}
	return sandbox.Command{
		Argv: argv, Env: environment(s.options.Env, given, tmp, s.home, s.options.Tokens, append([]string{s.shim}, python...)), Dir: s.seen,
	}, nil
}

// longestTemporary bounds the name of a temporary directory, so that sockets can be made in
// it, as Python's multiprocessing does: their names are limited to 107 bytes, unix(7).
const longestTemporary = 64

// temporary makes the task's temporary directory. It returns "", for the system's, if the
// container's has too long a name, as on YARN.
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

// Prewarm starts making an interpreter for a future task, if its plan is known; soon: the task
// is about to start. Furnish has been called.
func (s *Stage) Prewarm(p *peers.Peers, r *proto.PrewarmPlan, soon bool) error {
	if r == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	port := cmp.Or(p.OwnPort(), 1) // it may not be known yet, and no import depends on it
	argv, given, err := p.Command(r.Command, r.Env, port, framework.Attempt{})
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

// ImportProfile returns the import profile of the task's script for the AM, nil if there is
// none yet, and its version.
func (s *Stage) ImportProfile() (*proto.ImportProfile, int) {
	k, version := s.Standby.Known()
	if version == 0 {
		return nil, 0
	}
	if k.Refused != "" {
		return &proto.ImportProfile{Unsupported: k.Refused}, version
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
		return nil, version
	}
	return i, version
}

// valid reports whether a message can carry it: its strings must be UTF-8.
func valid(i *proto.ImportProfile) bool {
	_, err := pb.Marshal(i)
	return err == nil
}

// localProfile translates an import profile of another container to this one.
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

// directories returns the names of the container's own directories, in the same order in
// every container; Python resolves links in some of them.
func (s *Stage) directories() []string {
	resolved, err := filepath.EvalSymlinks(s.options.WorkDir)
	if err != nil {
		resolved = s.options.WorkDir
	}
	return []string{s.seen, resolved, s.options.WorkDir}
}
