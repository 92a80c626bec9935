// Package spec turns flags and YAML into a job's spec.
//
// A Draft is what the user wrote: a YAML file (ReadDraft), overridden by flags
// (Flags.Draft). Draft.Spec checks it and returns the proto.JobSpec. It does not
// contact the cluster.
//
// An option is one row of a table in options.go, which names the field of the spec that
// it sets. Flags, keys of YAML, defaults, checks, --help, shell completion, the output
// of --dry-run, the manual page and docs/options.md are derived from the row.
package spec

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	pb "google.golang.org/protobuf/proto"

	"holdfast/client"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/proc"
	"holdfast/proto"
	"holdfast/runtime"
)

// Draft is a job as its user describes it, unchecked. Use NewDraft.
type Draft struct {
	// Job holds what options set. Its URIs are as the user wrote them, and the count
	// and finish of a role are unset if they were not given.
	Job    *proto.JobSpec
	Inputs []Input
	// Principal and Keytab identify the submitting user on a cluster with Kerberos;
	// both or neither are set.
	Principal, Keytab string

	dir string // relative paths are below it; empty: the working directory
	// named are the names of inputs and the paths of checkpoint directories that the present
	// source has given: a file, or all flags. Those of an earlier one it replaces.
	named map[string]bool
}

// NewDraft returns a draft with the default values.
func NewDraft() *Draft {
	d := &Draft{Job: &proto.JobSpec{}}
	setDefaults(jobOptions, d, "")
	return d
}

// Role returns the role with a name, and adds it with default values if it does not
// exist.
func (d *Draft) Role(name string) *proto.RoleSpec {
	for _, r := range d.Job.Roles {
		if r.Name == name {
			return r
		}
	}
	r := &proto.RoleSpec{Name: name, Count: unset, FinishMs: unset}
	setDefaults(roleOptions, r, name)
	d.Job.Roles = append(d.Job.Roles, r)
	return r
}

var (
	// roleName matches names that can be part of a flag; runtime.Complete decides which
	// names roles can have.
	roleName = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)
	envName  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// Spec checks the draft and returns the job's spec without its files: see Collect. It
// reports all errors at once.
func (d *Draft) Spec() (*proto.JobSpec, error) {
	spec := pb.Clone(d.Job).(*proto.JobSpec)
	spec.User = rpc.CurrentUser()
	if spec.Local {
		spec.ShellPath = os.Getenv("PATH")
		if name, err := proc.UserName(); err == nil {
			spec.User = name
		}
	}
	if spec.Framework == "" {
		spec.Framework, _ = d.impliedFramework(spec)
	}
	if spec.Name == "" {
		spec.Name = defaultName(spec)
	}
	wrong := checkValues(jobOptions, d, flagOf, spec.Local)
	if (d.Principal == "") != (d.Keytab == "") {
		wrong = append(wrong, client.Usagef("--principal and --keytab go together: name the principal and the file that has its key"))
	}
	for _, r := range spec.Roles {
		wrong = append(wrong, checkRole(r, spec.Local)...)
		if r.FinishMs == unset {
			r.FinishMs = runtime.UsualFinish(spec.Framework, r.Name).Milliseconds()
		}
	}
	if strings.ContainsAny(spec.Name, "\n\r\x00") || len(spec.Name) > 200 {
		wrong = append(wrong, client.Usagef("the name %.40q cannot be a job's: it is one line of at most 200 bytes", spec.Name))
	}
	if spec.AmMemoryMb != 0 && spec.AmMemoryMb < leastMasterMB {
		wrong = append(wrong, client.Usagef("--am-memory is %dm, in which no application master can work: write %dm or more", spec.AmMemoryMb, leastMasterMB))
	}
	wrong = append(wrong, checkPlacement(spec)...)
	wrong = append(wrong, checkSpares(spec)...)
	wrong = append(wrong, checkEnv(spec.Env)...)
	wrong = append(wrong, checkImages(spec)...)
	wrong = append(wrong, completeCheckpoints(spec)...)
	if len(wrong) > 0 {
		return nil, joinErrors("the job cannot be run as it is described:", wrong)
	}
	if err := runtime.Complete(spec); err != nil {
		hint := ""
		if len(spec.Roles) == 0 && len(spec.Command) == 1 && isJobFile(spec.Command[0]) {
			hint = fmt.Sprintf("; the job that %s describes is run with -f %[1]s", spec.Command[0])
		}
		return nil, client.Usagef("%w%s", err, hint)
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Env)) {
		if runtime.Sets(spec, name) {
			return nil, client.Usagef("--env %s=... has no effect, since each task gets its own %[1]s: leave it out, or give it another name", name)
		}
	}
	return spec, nil
}

// checkImages checks the settings of container images together.
func checkImages(spec *proto.JobSpec) []error {
	var wrong []error
	used := spec.Image != "" || slices.ContainsFunc(spec.Roles, func(r *proto.RoleSpec) bool { return r.Image != "" })
	if !used && (spec.ImageRuntime != "" || len(spec.ImageMounts) > 0 || spec.ImageNetwork != "" || spec.ImagePrivileged) {
		wrong = append(wrong, client.Usagef("--image-runtime, --image-mounts, --image-network and --image-privileged are about an image, and the job has none: name one with --image"))
	}
	if spec.ImageRuntime == "runc" && spec.ImageNetwork != "" {
		wrong = append(wrong, client.Usagef("--image-network is Docker's, and --image-runtime is runc, which knows no networks: leave one of them out"))
	}
	return wrong
}

// isJobFile reports whether a file is called as one that describes a job.
func isJobFile(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

// leastMasterMB is the memory in which an application master of a small job can work.
const leastMasterMB = 128

// checkRole checks the options of a role, each and together.
func checkRole(r *proto.RoleSpec, local bool) []error {
	if r.Name == "am" {
		return []error{client.Usagef("a role cannot be called am, since --am-memory and --am-vcores are about the application master: give it another name")}
	}
	if r.Count == unset {
		return []error{client.Usagef("the role %s has no count: say how many tasks it has with --role %s=COUNT, or count in the YAML file", r.Name, r.Name)}
	}
	wrong := checkValues(roleOptions, r, func(o *option[proto.RoleSpec]) string { return "--" + roleFlag(r.Name, o.name) }, local)
	if len(wrong) > 0 {
		return wrong
	}
	if r.Min > r.Count {
		wrong = append(wrong, client.Usagef("the role %s is to have %d tasks, and at least %d: the least is a number from 1 to %d, as in --role %s=1..%d", r.Name, r.Count, r.Min, r.Count, r.Name, r.Count))
	}
	if r.MemoryMaxMb != 0 && r.MemoryMaxMb < r.MemoryMb {
		wrong = append(wrong, client.Usagef("the memory of the role %s is %d MB and may grow to %d MB: that is less", r.Name, r.MemoryMb, r.MemoryMaxMb))
	}
	return wrong
}

// checkPlacement checks where roles are to be with respect to each other.
func checkPlacement(spec *proto.JobSpec) []error {
	var wrong []error
	for _, r := range spec.Roles {
		if r.Pack && r.Spread {
			wrong = append(wrong, client.Usagef("the tasks of the role %s are to be on one node (--%[1]s-pack) and on different ones (--%[1]s-spread): leave one of them out", r.Name))
		}
		for _, other := range r.AntiAffinity {
			switch {
			case other == r.Name:
				wrong = append(wrong, client.Usagef("--%s-anti-affinity names the role itself: write --%[1]s-spread to have its tasks on different nodes", r.Name))
			case !slices.ContainsFunc(spec.Roles, func(o *proto.RoleSpec) bool { return o.Name == other }):
				wrong = append(wrong, client.Usagef("--%s-anti-affinity names %s, and the job has no such role", r.Name, other))
			}
		}
	}
	return wrong
}

// checkSpares returns an error if spare containers cannot be where any task may be.
func checkSpares(spec *proto.JobSpec) []error {
	if spec.Spares == 0 {
		return nil
	}
	for _, r := range spec.Roles {
		if own, other := cmp.Or(r.NodeLabel, spec.NodeLabel), cmp.Or(spec.Roles[0].NodeLabel, spec.NodeLabel); own != other {
			return []error{client.Usagef("the roles %s and %s are for nodes with different labels, and a spare container is for any task: leave --spares out, or give all roles one label with --node-label", spec.Roles[0].Name, r.Name)}
		}
	}
	return nil
}

func checkEnv(env map[string]string) []error {
	var wrong []error
	for _, k := range slices.Sorted(maps.Keys(env)) {
		switch {
		case !envName.MatchString(k):
			wrong = append(wrong, client.Usagef("%q is not the name of an environment variable: write --env NAME=VALUE", k))
		case strings.ContainsRune(env[k], 0):
			wrong = append(wrong, client.Usagef("the value of the environment variable %s holds a zero byte, which no process can be given", k))
		}
	}
	return wrong
}

// completeCheckpoints checks the URIs of checkpoint directories, makes them absolute,
// and refuses directories inside each other.
func completeCheckpoints(spec *proto.JobSpec) []error {
	var wrong []error
	for i, c := range spec.Checkpoints {
		uri, err := checkURI(c, spec.Local)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		c.Uri = uri
		for _, other := range spec.Checkpoints[:i] {
			switch {
			case isWithin(c.Path, other.Path) && isWhole(other) || isWithin(other.Path, c.Path) && isWhole(c):
				wrong = append(wrong, client.Usagef("of the checkpoint directories %s and %s one is the whole working directory, in which the other one lies: name only ., or only directories in it", other.Path, c.Path))
			case isWithin(c.Path, other.Path) || isWithin(other.Path, c.Path):
				wrong = append(wrong, client.Usagef("the checkpoint directories %s and %s lie in each other: name the outer one only", other.Path, c.Path))
			}
			if isWithin(uri, other.Uri) || isWithin(other.Uri, uri) {
				wrong = append(wrong, client.Usagef("the checkpoints of %s and of %s go to one place, %s and %s: give each a directory of its own, outside of the other's", other.Path, c.Path, other.Uri, uri))
			}
		}
	}
	return wrong
}

// checkURI checks where checkpoints go, and returns the URI as specs have it.
func checkURI(c *proto.CheckpointSpec, local bool) (string, error) {
	p := path.Clean(c.Path)
	switch {
	case c.Path == "" || c.Uri == "":
		return "", client.Usagef("the checkpoint directory %s=%s lacks a half: write PATH=URI, PATH as the script spells it, as in ./train_logs=hdfs:///user/%s/train_logs", c.Path, c.Uri, rpc.CurrentUser())
	case p == "/" || p == ".." || strings.HasPrefix(p, "../"):
		return "", client.Usagef("%s cannot be a checkpoint directory: name the working directory (.), one below it, as in ./train_logs, or an absolute one", c.Path)
	}
	u, err := url.Parse(c.Uri)
	if err != nil {
		return "", client.Usagef("where the checkpoints of %s go is not a URI: %v", c.Path, err)
	}
	switch u.Scheme {
	case "hdfs", "viewfs":
		if local {
			return "", client.Usagef("the checkpoints of %s go to %s: a local job keeps them in a local directory only, not yet on HDFS", c.Path, c.Uri)
		}
		if path.Clean("/"+u.Path) == "/" {
			return "", client.Usagef("the checkpoints of %s go to the root of a file system: name a directory, as in %s/user/%s/train_logs", c.Path, strings.TrimSuffix(c.Uri, "/"), rpc.CurrentUser())
		}
		return c.Uri, nil
	case "file":
		if u.Host != "" && u.Host != "localhost" || !path.IsAbs(u.Path) {
			return "", client.Usagef("%s is not a local directory: write file:///PATH", c.Uri)
		}
		return filepath.Clean(u.Path), nil
	case "":
		if !local {
			return "", client.Usagef("the checkpoints of %s go to %q, without saying on what: write hdfs:///PATH for a directory on HDFS, or file:///PATH for one that every node has under that path (NFS and the like)", c.Path, c.Uri)
		}
		abs, err := filepath.Abs(c.Uri)
		if err != nil {
			return "", fmt.Errorf("find the directory %s: %w", c.Uri, err)
		}
		return abs, nil
	}
	return "", client.Usagef("the checkpoints of %s go to %s: of the schemes hdfs and file are known", c.Path, c.Uri)
}

// isWhole reports whether a checkpoint directory is the tasks' working directory itself.
func isWhole(c *proto.CheckpointSpec) bool { return path.Clean(c.Path) == "." }

// isWithin reports whether directory a is b or inside b.
func isWithin(a, b string) bool {
	a, b = path.Clean(a), path.Clean(b)
	if b == "." {
		return filepath.IsLocal(a)
	}
	return a == b || strings.HasPrefix(a, b+"/")
}

// defaultName names a job after its script or program.
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

// joinErrors lists several errors under a heading, so that a user can correct all of
// them at once.
func joinErrors(heading string, complaints []error) error {
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
