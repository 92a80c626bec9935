// Package spec turns what a user wrote into a job's spec.
//
// A Draft is what a user wrote, from a YAML file (ReadDraft) and from flags
// (Flags.Draft), the latter over the former. Draft.Spec checks it and makes the
// proto.JobSpec. Nothing is asked of a cluster for that.
package spec

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/client"
	"holdfast/internal/hadoop/acl"
	"holdfast/internal/hadoop/rpc"
	"holdfast/proto"
	"holdfast/runtime"
)

// Defaults of what a spec leaves open.
const (
	DefaultRestarts = 3
	defaultVCores   = 1
	// defaultStalled is for how long no step may be made, at least, until the silent task
	// is restarted.
	defaultStalled = 10 * time.Minute
	// defaultStopGrace is what a task gets between SIGTERM and SIGKILL, and mostStopGrace
	// the most that it can: until then a kill by a person, or a node that is taken out of
	// service, would wait.
	defaultStopGrace, mostStopGrace = 5 * time.Second, 10 * time.Minute
)

// KnownRoles have flags of their own without being named first by --role.
var KnownRoles = []string{"ps", "worker", "chief", "evaluator", "tensorboard"}

// Draft is a job as its user describes it, unchecked.
type Draft struct {
	Name, Queue, Framework string
	Roles                  []DraftRole // in the order in which they were named
	Command                []string
	Env                    map[string]string
	Checkpoints            []DraftCheckpoint
	Inputs                 []Input
	TF1                    bool
	Restarts, Spares       *int
	StartLimit             time.Duration  // 0: none
	RestartStalled         *time.Duration // 0: never; nil: the default
	StopGrace              *time.Duration // nil: the default
	KeepInterpreterWaits   bool
	Progress               string // pattern for the step; empty: the usual ones
	Cold                   bool
	Local                  bool
	Principal, Keytab      string // Kerberos; both or neither
	ViewACL, ModifyACL     string // "USER,USER GROUP,GROUP"
}

// DraftRole is a role of a Draft; zero values stand for the defaults.
type DraftRole struct {
	Name     string
	Count    *int
	Min      *int
	MemoryMB int64
	// MemoryMaxMB is to where memory grows for a task that ran out of it; 0: it does not.
	MemoryMaxMB int64
	// Finish is how long a task that decides nothing may go on once the job has
	// succeeded; nil: as long as is usual for the role.
	Finish  *time.Duration
	VCores  *int
	GPUs    *int
	Command []string
}

// DraftCheckpoint says where the checkpoints of PATH are kept, and how they are
// known to be complete: see proto.CheckpointSpec.
type DraftCheckpoint struct {
	Path, URI      string
	Format, Marker string
	Quiet          time.Duration
	Share          bool
}

// Set sets what stands beside the URI, as YAML and flags spell it.
func (c *DraftCheckpoint) Set(key, value string) error {
	switch key {
	case "format":
		c.Format = value
	case "marker":
		c.Marker = value
	case "quiet":
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 {
			return fmt.Errorf("quiet is %q: write a time such as 30s or 2m", value)
		}
		c.Quiet = d
	case "share":
		share, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("share is %q: write true where other jobs may write to the directory too", value)
		}
		c.Share = share
	default:
		return fmt.Errorf("%q is not known of a checkpoint directory: there are format, marker, quiet, share", key)
	}
	return nil
}

// Role returns the role of that name, which is added if it is new.
func (d *Draft) Role(name string) *DraftRole {
	for i := range d.Roles {
		if d.Roles[i].Name == name {
			return &d.Roles[i]
		}
	}
	d.Roles = append(d.Roles, DraftRole{Name: name})
	return &d.Roles[len(d.Roles)-1]
}

// SetCheckpoint adds a checkpoint directory, or moves the one of that path.
func (d *Draft) SetCheckpoint(c DraftCheckpoint) {
	for i := range d.Checkpoints {
		if path.Clean(d.Checkpoints[i].Path) == path.Clean(c.Path) {
			d.Checkpoints[i] = c
			return
		}
	}
	d.Checkpoints = append(d.Checkpoints, c)
}

// AddInput adds a file; one of the same name is replaced.
func (d *Draft) AddInput(in Input) {
	for i := range d.Inputs {
		if d.Inputs[i].Name == in.Name {
			d.Inputs[i] = in
			return
		}
	}
	d.Inputs = append(d.Inputs, in)
}

var (
	// roleName is what may stand in a flag; runtime.Complete decides about roles.
	roleName = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)
	envName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// most is more than there can be of anything in a job.
const most = 10000

// Spec checks the draft and makes a spec of it, all but its files: see Collect.
// All that is wrong is told at once.
func (d *Draft) Spec() (*proto.JobSpec, error) {
	var wrong []error
	complain := func(format string, args ...any) { wrong = append(wrong, client.Usagef(format, args...)) }

	spec := &proto.JobSpec{
		Name: d.Name, Queue: d.Queue, Framework: d.Framework, User: rpc.CurrentUser(),
		Command: d.Command, Env: maps.Clone(d.Env), Tf1: d.TF1, Restarts: DefaultRestarts,
		KeepInterpreterWaits: d.KeepInterpreterWaits, Cold: d.Cold, Progress: d.Progress, Local: d.Local,
		ViewAcl: d.ViewACL, ModifyAcl: d.ModifyACL,
	}
	if d.Local {
		spec.ShellPath = os.Getenv("PATH")
		if u, err := user.Current(); err == nil {
			spec.User = u.Username
		}
	}
	switch {
	case (d.Principal == "") != (d.Keytab == ""):
		complain("--principal and --keytab go together: name the principal and the file that has its key")
	case d.Keytab != "" && d.Local:
		complain("--principal and --keytab are for a cluster: leave them out with --local")
	}
	for _, list := range []struct{ flag, text string }{{"--view-acl", d.ViewACL}, {"--modify-acl", d.ModifyACL}} {
		if _, err := acl.Parse(list.text); err != nil {
			complain("%s: %v", list.flag, err)
		} else if list.text != "" && d.Local {
			complain("%s is for a cluster: a local job is its user's alone", list.flag)
		}
	}
	if d.Restarts != nil {
		if *d.Restarts < 0 || *d.Restarts > most {
			complain("restarts is %d: it is how often one task may fail by its own fault, from 0 to %d", *d.Restarts, most)
		}
		spec.Restarts = int32(*d.Restarts)
	}
	if d.Spares != nil {
		if *d.Spares < 0 || *d.Spares > most {
			complain("spares is %d: it is how many idle containers are kept for tasks that lose theirs, from 0 to %d", *d.Spares, most)
		}
		spec.Spares = int32(*d.Spares)
	}
	if d.StartLimit < 0 || d.StartLimit > 0 && d.StartLimit < time.Second {
		complain("the start limit is %s: write how long the tasks may wait for each other, as in --start-limit 10m", d.StartLimit)
	}
	spec.StartLimitMs = d.StartLimit.Milliseconds()
	switch stalled := d.RestartStalled; {
	case stalled == nil:
		spec.RestartStalledMs = defaultStalled.Milliseconds()
	case *stalled < 0 || *stalled > 0 && *stalled < time.Second:
		complain("a stalled task is to be restarted after %s: write how long no step may be made, as in --restart-stalled 10m", *stalled)
	default:
		spec.RestartStalledMs = stalled.Milliseconds()
	}
	grace := defaultStopGrace
	if d.StopGrace != nil {
		grace = *d.StopGrace
	}
	if grace < 0 || grace > mostStopGrace || grace%time.Millisecond != 0 {
		complain("the stop grace is %s: write what a task gets between SIGTERM and SIGKILL, from 0 to %s, as in --stop-grace 30s", grace, mostStopGrace)
	}
	graceMs := grace.Milliseconds()
	spec.StopGraceMs = &graceMs
	for _, r := range d.Roles {
		role, err := r.spec()
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		spec.Roles = append(spec.Roles, role)
	}
	if spec.Framework == "" {
		spec.Framework = runtime.ImpliedFramework(spec)
	}
	for _, role := range spec.Roles {
		if d.Role(role.Name).Finish == nil {
			role.FinishMs = runtime.UsualFinish(spec.Framework, role.Name).Milliseconds()
		}
	}
	if d.Name == "" {
		spec.Name = defaultName(spec)
	}
	if strings.ContainsAny(spec.Name, "\n\r\x00") || len(spec.Name) > 200 {
		complain("the name %.40q cannot be a job's: it is one line of at most 200 bytes", spec.Name)
	}
	for _, k := range slices.Sorted(maps.Keys(d.Env)) {
		switch {
		case !envName.MatchString(k):
			complain("%q is not the name of an environment variable: write --env NAME=VALUE", k)
		case strings.ContainsRune(d.Env[k], 0):
			complain("the value of the environment variable %s holds a zero byte, which no process can be given", k)
		}
	}
	for i, c := range d.Checkpoints {
		uri, err := c.check(d.Local)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		for _, other := range d.Checkpoints[:i] {
			if within(c.Path, other.Path) || within(other.Path, c.Path) {
				complain("the checkpoint directories %s and %s lie in each other: name the outer one only", other.Path, c.Path)
			}
		}
		for _, other := range spec.Checkpoints {
			if within(uri, other.Uri) || within(other.Uri, uri) {
				complain("the checkpoints of %s and of %s go to one place, %s and %s: give each a directory of its own, outside of the other's", other.Path, c.Path, other.Uri, uri)
			}
		}
		spec.Checkpoints = append(spec.Checkpoints, &proto.CheckpointSpec{
			Path: c.Path, Uri: uri, Format: c.Format, Marker: c.Marker, QuietSeconds: c.Quiet.Seconds(), Share: c.Share,
		})
	}
	if len(wrong) > 0 {
		return nil, joinLines("the job cannot be run as it is described:", wrong)
	}
	if err := runtime.Complete(spec); err != nil {
		return nil, client.Usagef("%w", err)
	}
	return spec, nil
}

func (r *DraftRole) spec() (*proto.RoleSpec, error) {
	if r.Count == nil {
		return nil, client.Usagef("the role %s has no count: say how many tasks it has with --role %s=COUNT, or count in the YAML file", r.Name, r.Name)
	}
	if *r.Count < 0 || *r.Count > most {
		return nil, client.Usagef("the role %s has %d tasks: write a number from 0 to %d", r.Name, *r.Count, most)
	}
	s := &proto.RoleSpec{Name: r.Name, Count: int32(*r.Count), MemoryMb: r.MemoryMB, Vcores: defaultVCores, Command: r.Command}
	if s.MemoryMb == 0 {
		s.MemoryMb = 2048
		if r.Name == "ps" {
			s.MemoryMb = 1024
		}
	}
	if r.Min != nil {
		if *r.Min < 1 || *r.Min > *r.Count {
			return nil, client.Usagef("the role %s has %d tasks and is to start with %d: write a number from 1 to %d", r.Name, *r.Count, *r.Min, *r.Count)
		}
		s.Min = int32(*r.Min)
	}
	if r.MemoryMaxMB != 0 {
		if r.MemoryMaxMB < s.MemoryMb {
			return nil, client.Usagef("the memory of the role %s is %d MB and may grow to %d MB: that is less", r.Name, s.MemoryMb, r.MemoryMaxMB)
		}
		s.MemoryMaxMb = r.MemoryMaxMB
	}
	switch {
	case r.Finish == nil: // the framework's usual time
	case *r.Finish < 0:
		return nil, client.Usagef("the role %s may go on for %s when the job has succeeded: write a time, as in --%s-finish 5m, or 0", r.Name, *r.Finish, r.Name)
	default:
		s.FinishMs = r.Finish.Milliseconds()
	}
	if r.VCores != nil {
		if *r.VCores < 1 || *r.VCores > most {
			return nil, client.Usagef("the role %s asks for %d vcores: write a number from 1 to %d", r.Name, *r.VCores, most)
		}
		s.Vcores = int32(*r.VCores)
	}
	if r.GPUs != nil {
		if *r.GPUs < 0 || *r.GPUs > most {
			return nil, client.Usagef("the role %s asks for %d GPUs: write a number from 0 to %d", r.Name, *r.GPUs, most)
		}
		s.Gpus = int32(*r.GPUs)
	}
	return s, nil
}

// check returns the URI in the form in which specs have it.
func (c DraftCheckpoint) check(local bool) (string, error) {
	p := path.Clean(c.Path)
	switch {
	case c.Path == "" || c.URI == "":
		return "", client.Usagef("the checkpoint directory %s=%s lacks a half: write PATH=URI, PATH as the script spells it, as in ./train_logs=hdfs:///user/%s/train_logs", c.Path, c.URI, rpc.CurrentUser())
	case p == "." || p == "/" || p == ".." || strings.HasPrefix(p, "../"):
		return "", client.Usagef("%s cannot be a checkpoint directory: name one below the working directory, as in ./train_logs, or an absolute one", c.Path)
	}
	u, err := url.Parse(c.URI)
	if err != nil {
		return "", client.Usagef("where the checkpoints of %s go is not a URI: %v", c.Path, err)
	}
	switch u.Scheme {
	case "hdfs":
		if local {
			return "", client.Usagef("the checkpoints of %s go to %s: a local job keeps them in a local directory only, not yet on HDFS", c.Path, c.URI)
		}
		if path.Clean("/"+u.Path) == "/" {
			return "", client.Usagef("the checkpoints of %s go to the root of a file system: name a directory, as in %s/user/%s/train_logs", c.Path, strings.TrimSuffix(c.URI, "/"), rpc.CurrentUser())
		}
		return c.URI, nil
	case "file":
		if u.Host != "" && u.Host != "localhost" || !path.IsAbs(u.Path) {
			return "", client.Usagef("%s is not a local directory: write file:///PATH", c.URI)
		}
		return filepath.Clean(u.Path), nil
	case "":
		if !local {
			return "", client.Usagef("the checkpoints of %s go to %q, without saying on what: write hdfs:///PATH for a directory on HDFS, or file:///PATH for one that every node has under that path (NFS and the like)", c.Path, c.URI)
		}
		abs, err := filepath.Abs(c.URI)
		if err != nil {
			return "", fmt.Errorf("find the directory %s: %w", c.URI, err)
		}
		return abs, nil
	}
	return "", client.Usagef("the checkpoints of %s go to %s: of the schemes hdfs and file are known", c.Path, c.URI)
}

// within reports whether the directory a is b or lies in it.
func within(a, b string) bool {
	a, b = path.Clean(a), path.Clean(b)
	return a == b || strings.HasPrefix(a, b+"/")
}

// defaultName calls a job after its script or program.
func defaultName(spec *proto.JobSpec) string {
	command := spec.Command
	for _, r := range spec.Roles {
		if len(command) == 0 {
			command = r.Command
		}
	}
	for _, word := range command {
		if ext := path.Ext(word); ext == ".py" || ext == ".sh" {
			return path.Base(word)
		}
	}
	if len(command) == 0 {
		return "job"
	}
	return path.Base(command[0])
}

// joinLines puts several complaints under one heading, so that a user can mend
// all of them at once.
func joinLines(heading string, complaints []error) error {
	if len(complaints) == 1 {
		return complaints[0]
	}
	lines := make([]string, 0, len(complaints)+1)
	lines = append(lines, heading)
	for _, c := range complaints {
		lines = append(lines, "  - "+c.Error())
	}
	return client.Usagef("%s", strings.Join(lines, "\n"))
}
