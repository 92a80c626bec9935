package spec

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"holdfast/client"
)

// Flags are those of `yarn-submit run` that describe the job.
type Flags struct {
	set *pflag.FlagSet

	file                   string
	name, queue, framework string
	roles                  []string // NAME=COUNT
	checkpoints, env       []string
	files, archives        []string
	tf1, local, keepWaits  bool
	noWarm                 bool
	restarts, spares       int
	principal, keytab      string
	viewACL, modifyACL     string
	perRole                []string // roles that have flags of their own
	counts, vcores, gpus   map[string]*int
	memory, memoryMax      map[string]*string
	min                    map[string]*int
	finish                 map[string]*time.Duration
	startLimit             time.Duration
	restartStalled         time.Duration
	stopGrace              time.Duration
	progress               string
}

// AddFlags declares the flags on set. roles are those beside KnownRoles that get
// flags of their own: see RolesIn.
func AddFlags(set *pflag.FlagSet, roles []string) *Flags {
	f := &Flags{
		set:    set,
		counts: map[string]*int{}, vcores: map[string]*int{}, gpus: map[string]*int{}, memory: map[string]*string{},
		memoryMax: map[string]*string{}, min: map[string]*int{}, finish: map[string]*time.Duration{},
	}
	set.StringVarP(&f.file, "file", "f", "", "the job as a YAML `file`; flags override what it says")
	set.StringVar(&f.name, "name", "", "the job's `name` (default: its script's)")
	set.StringVar(&f.queue, "queue", "", "YARN's `queue` (default \"default\")")
	set.StringVar(&f.framework, "framework", "", "tensorflow, pytorch, jax or none (default tensorflow where there is a ps, else none)")
	set.StringArrayVar(&f.roles, "role", nil, "a role with any `NAME=COUNT`; may be repeated. NAME gets the flags --NAME-memory, --NAME-vcores and --NAME-gpus")
	set.StringArrayVar(&f.checkpoints, "checkpoint", nil, "`PATH=URI`: PATH as the script spells it, URI hdfs://... or a local directory; may be repeated. After it: ,format=tensorflow|torch|dcp|huggingface|plain, and for plain ,marker=NAME or ,quiet=30s; ,share=true where another job may write there too")
	set.StringSliceVar(&f.files, "files", nil, "`files` and directories for the tasks' working directory, PATH or PATH#NAME, separated by commas")
	set.StringSliceVar(&f.archives, "archives", nil, "`archives` to be unpacked there, PATH#NAME (venv.tar.gz#venv), separated by commas")
	set.StringArrayVar(&f.env, "env", nil, "`K=V` for the tasks' environment; may be repeated")
	set.BoolVar(&f.tf1, "tf1", false, "run an unedited TensorFlow 1 script on TensorFlow 2")
	set.BoolVar(&f.keepWaits, "keep-interpreter-waits", false, "leave TensorFlow's own 30 s wait between readiness checks as it is")
	set.BoolVar(&f.noWarm, "no-warm", false, "keep no interpreters that have TensorFlow imported, from which attempts start in a fraction of the time")
	set.IntVar(&f.restarts, "restarts", DefaultRestarts, "how `often` one task may fail by its own fault")
	set.StringVar(&f.progress, "progress", "", "`pattern` (RE2, with one group) that finds the step in a line of output (default: \"step 12\" and the like)")
	set.BoolVar(&f.local, "local", false, "run on this machine, without Hadoop")
	set.StringVar(&f.principal, "principal", "", "Kerberos `principal` to act as, with --keytab; the job gets new tokens for as long as it runs")
	set.StringVar(&f.keytab, "keytab", "", "`file` with the key of --principal (default: the tickets of kinit)")
	set.StringVar(&f.viewACL, "view-acl", "", "`who` may see the job beside you: \"USER,USER GROUP,GROUP\", or * for everybody")
	set.StringVar(&f.modifyACL, "modify-acl", "", "`who` may end the job beside you, in the same form")
	set.IntVar(&f.spares, "spares", 0, "`number` of idle containers, for tasks that lose theirs")
	set.DurationVar(&f.startLimit, "start-limit", 0, "how `long` the tasks may wait until all can start for the first time, as in 10m; 0: for ever")
	set.DurationVar(&f.restartStalled, "restart-stalled", defaultStalled, "restart the silent task when none has made a step for so `long`, and for ten times the longest pause of late; then all, then end the job; 0: only tell")
	set.DurationVar(&f.stopGrace, "stop-grace", defaultStopGrace, "what a task that is stopped gets between SIGTERM and SIGKILL, to save what it wants, up to 10m; less where a container's or node's end leaves less `time`")
	for _, r := range append(slices.Clone(KnownRoles), roles...) {
		if f.counts[r] != nil || !roleName.MatchString(r) || set.Lookup(r) != nil {
			continue // a role that is called like another flag is for --role and YAML
		}
		f.perRole = append(f.perRole, r)
		f.counts[r] = set.Int(r, 0, "`number` of "+r+" tasks")
		f.memory[r] = set.String(r+"-memory", "", "memory of a "+r+" task (default "+defaultMemory(r)+")")
		f.vcores[r] = set.Int(r+"-vcores", defaultVCores, "virtual cores of a "+r+" task")
		f.gpus[r] = set.Int(r+"-gpus", 0, "GPUs of a "+r+" task")
		f.memoryMax[r] = set.String(r+"-memory-max", "", "to where memory grows for a "+r+" task that ran out of it (default: it does not)")
		f.min[r] = set.Int(r+"-min", 0, "with how many "+r+" tasks the job starts if it has to (default: all)")
		f.finish[r] = set.Duration(r+"-finish", 0, "how `long` a task of "+r+" that decides nothing may go on once the job has succeeded (default for evaluator 5m, else 0)")
		set.Lookup(r + "-finish").Hidden = r != "evaluator"
		if r == "ps" {
			set.Lookup(r + "-min").Hidden = true // a role without which nothing goes
		}
		if !slices.Contains([]string{"ps", "worker"}, r) {
			for _, name := range []string{r + "-memory", r + "-vcores", r + "-gpus", r + "-memory-max", r + "-min"} {
				set.Lookup(name).Hidden = true // they are like those of ps and worker
			}
		}
	}
	return f
}

func defaultMemory(role string) string {
	if role == "ps" {
		return "1g"
	}
	return "2g"
}

// RolesIn finds the roles that arguments name by --role or in the file of -f, so
// that they can have flags of their own before the arguments are parsed.
func RolesIn(args []string) []string {
	var roles []string
	value := func(i int, names ...string) (string, bool) {
		for _, n := range names {
			if args[i] == n && i+1 < len(args) {
				return args[i+1], true
			}
			if v, ok := strings.CutPrefix(args[i], n+"="); ok {
				return v, true
			}
		}
		return "", false
	}
	for i, a := range args {
		if a == "--" {
			break
		}
		if v, ok := value(i, "--role"); ok {
			name, _, _ := strings.Cut(v, "=")
			roles = append(roles, name)
		}
		if v, ok := value(i, "-f", "--file"); ok {
			if d, err := ReadDraft(v); err == nil { // if not, Draft says so
				for _, r := range d.Roles {
					roles = append(roles, r.Name)
				}
			}
		}
	}
	return roles
}

// Draft reads the file, if there is one, and applies the flags and the command
// over it.
func (f *Flags) Draft(command []string) (*Draft, error) {
	d := &Draft{}
	if f.file != "" {
		var err error
		if d, err = ReadDraft(f.file); err != nil {
			return nil, err
		}
	}
	var problem error
	f.set.Visit(func(flag *pflag.Flag) {
		if problem == nil {
			problem = f.apply(d, flag.Name)
		}
	})
	if problem != nil {
		return nil, problem
	}
	if len(command) > 0 {
		d.Command = command
	}
	return d, nil
}

// apply takes over one flag that the user gave.
func (f *Flags) apply(d *Draft, name string) error {
	switch name {
	case "name":
		d.Name = f.name
	case "queue":
		d.Queue = f.queue
	case "framework":
		d.Framework = f.framework
	case "tf1":
		d.TF1 = f.tf1
	case "local":
		d.Local = f.local
	case "principal":
		d.Principal = f.principal
	case "keytab":
		d.Keytab = f.keytab
	case "view-acl":
		d.ViewACL = f.viewACL
	case "modify-acl":
		d.ModifyACL = f.modifyACL
	case "keep-interpreter-waits":
		d.KeepInterpreterWaits = f.keepWaits
	case "no-warm":
		d.Cold = f.noWarm
	case "restarts":
		d.Restarts = &f.restarts
	case "progress":
		d.Progress = f.progress
	case "spares":
		d.Spares = &f.spares
	case "start-limit":
		d.StartLimit = f.startLimit
	case "restart-stalled":
		d.RestartStalled = &f.restartStalled
	case "stop-grace":
		d.StopGrace = &f.stopGrace
	case "role":
		for _, r := range f.roles {
			role, count, ok := strings.Cut(r, "=")
			n, err := strconv.Atoi(count)
			if !ok || err != nil || n < 0 {
				return client.Usagef("--role %s: write NAME=COUNT, as in --role reader=2", r)
			}
			d.Role(role).Count = &n
		}
	case "env":
		for _, e := range f.env {
			k, v, ok := strings.Cut(e, "=")
			if !ok {
				return client.Usagef("--env %s: write NAME=VALUE", e)
			}
			if d.Env == nil {
				d.Env = map[string]string{}
			}
			d.Env[k] = v
		}
	case "checkpoint":
		for _, c := range f.checkpoints {
			parsed, err := parseCheckpoint(c)
			if err != nil {
				return client.Usagef("--checkpoint %s: %w", c, err)
			}
			d.SetCheckpoint(parsed)
		}
	case "files", "archives":
		list := f.files
		if name == "archives" {
			list = f.archives
		}
		for _, s := range list {
			in, err := ParseInput(s, "", name == "archives")
			if err != nil {
				return client.Usagef("--%s: %w", name, err)
			}
			d.AddInput(in)
		}
	}
	return f.applyRole(d, name)
}

// parseCheckpoint reads PATH=URI[,format=F][,marker=M][,quiet=D][,share=B]. A comma before
// anything else belongs to the URI.
func parseCheckpoint(text string) (DraftCheckpoint, error) {
	p, uri, ok := strings.Cut(text, "=")
	if !ok {
		return DraftCheckpoint{}, errors.New("write PATH=URI, PATH as the script spells it, as in ./train_logs=hdfs:///user/me/train_logs")
	}
	c := DraftCheckpoint{Path: p}
	for {
		i := strings.LastIndexByte(uri, ',')
		key, value, ok := strings.Cut(uri[i+1:], "=")
		if i < 0 || !ok || !slices.Contains([]string{"format", "marker", "quiet", "share"}, key) {
			c.URI = uri
			return c, nil
		}
		if err := c.Set(key, value); err != nil {
			return c, err
		}
		uri = uri[:i]
	}
}

func (f *Flags) applyRole(d *Draft, name string) error {
	for _, r := range f.perRole {
		switch name {
		case r:
			d.Role(r).Count = f.counts[r]
		case r + "-vcores":
			d.Role(r).VCores = f.vcores[r]
		case r + "-gpus":
			d.Role(r).GPUs = f.gpus[r]
		case r + "-min":
			d.Role(r).Min = f.min[r]
		case r + "-finish":
			d.Role(r).Finish = f.finish[r]
		case r + "-memory", r + "-memory-max":
			text, to := f.memory[r], &d.Role(r).MemoryMB
			if name != r+"-memory" {
				text, to = f.memoryMax[r], &d.Role(r).MemoryMaxMB
			}
			mb, err := ParseMemory(*text)
			if err != nil {
				return client.Usagef("--%s: %w", name, err)
			}
			*to = mb
		}
	}
	return nil
}
