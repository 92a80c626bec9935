package spec

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"holdfast/client"
	"holdfast/proto"
)

// Flags are the flags of `yarn-submit run` that describe the job.
type Flags struct {
	set    *pflag.FlagSet
	args   *Args
	file   string
	given  []assignment
	groups map[string]string // of flags
}

// assignment is a flag that was given, and its effect on the draft.
type assignment struct {
	flag  string
	apply func(*Draft) error
}

// AddFlags declares the flags on a command, with their shell completion. The roles that args
// name get flags of their own, beside KnownRoles. queues completes the names of queues, which
// the cluster knows.
func AddFlags(cmd *cobra.Command, args *Args, queues cobra.CompletionFunc) *Flags {
	f := &Flags{set: cmd.Flags(), args: args, groups: map[string]string{}}
	f.set.StringVarP(&f.file, "file", "f", "", "the job as a YAML `FILE`; flags override what it says")
	for i := range jobOptions {
		if o := &jobOptions[i]; o.name != "" {
			var complete cobra.CompletionFunc
			if o.name == "queue" {
				complete = queues
			}
			declareFlag(f, cmd, o, o.name, "", complete, func(d *Draft) *Draft { return d })
		}
	}
	for _, role := range append(slices.Clone(KnownRoles), args.roles...) {
		if !roleName.MatchString(role) || f.set.Lookup(role) != nil {
			continue // a role that is called like another flag is for --role and YAML
		}
		for i := range roleOptions {
			if o := &roleOptions[i]; o.name != "" {
				declareFlag(f, cmd, o, roleFlag(role, o.name), role, nil, func(d *Draft) *proto.RoleSpec { return d.Role(role) })
			}
		}
	}
	return f
}

// flagOf returns the flag of an option of a job.
func flagOf(o *option[Draft]) string { return "--" + o.name }

// roleFlag returns the name of the flag of a role's option: worker, worker-memory.
func roleFlag(role, name string) string {
	if name == "count" {
		return role
	}
	return role + "-" + name
}

// declareFlag declares the flag of an option. complete completes its values, or if it is nil
// the option's kind does; in returns the part of a draft that has the option.
func declareFlag[T any](f *Flags, cmd *cobra.Command, o *option[T], name, role string, complete cobra.CompletionFunc, in func(*Draft) *T) {
	if f.set.Lookup(name) != nil {
		return
	}
	k := o.kind(in(NewDraft()))
	flag := addFlag(f.set, o, name, k, func(text string) {
		f.given = append(f.given, assignment{name, func(d *Draft) error { return o.kind(in(d)).set(text) }})
	})
	flag.DefValue = o.defaultOf(role)
	if flag.Value.Type() == "bool" {
		flag.NoOptDefVal, flag.DefValue = "true", "false"
	}
	f.groups[name] = o.group
	if role != "" {
		flag.Annotations = map[string][]string{ofRole: {role}}
	}
	if complete == nil {
		complete = k.complete
	}
	if complete == nil {
		complete = cobra.NoFileCompletions
	}
	if err := cmd.RegisterFlagCompletionFunc(name, complete); err != nil {
		panic(err) // it is declared, and for the first time
	}
}

// addFlag adds the flag of an option to a set. Values that the kind accepts are passed
// to keep.
func addFlag[T any](set *pflag.FlagSet, o *option[T], name string, k kind, keep func(string)) *pflag.Flag {
	v := flagValue{k, cmp.Or(o.placeholder, k.placeholder), keep}
	if k.repeated {
		return set.VarPF(&listValue{v}, name, "", o.help)
	}
	return set.VarPF(&v, name, "", o.help)
}

// flagValue is a pflag.Value that checks values and keeps them for the draft.
type flagValue struct {
	kind        kind // of a field that nobody reads
	placeholder string
	keep        func(text string)
}

func (v *flagValue) Set(text string) error {
	err := v.kind.set(text)
	if err == nil {
		v.keep(text)
	}
	return err
}

func (v *flagValue) String() string { return "" }

// Type returns the placeholder of a value in --help.
func (v *flagValue) Type() string { return cmp.Or(v.placeholder, "bool") }

// listValue is the value of a flag that can be repeated.
type listValue struct{ flagValue }

// GetSlice makes cobra complete the flag again although it was given.
func (v *listValue) GetSlice() []string { return nil }

var _ cobra.SliceValue = (*listValue)(nil)

// Group is a part of the flags with its heading in --help.
type Group struct {
	Heading string
	Flags   *pflag.FlagSet
}

// Groups returns the flags as --help shows them: the flags of roles are shown once, for
// a role called ROLE.
func (f *Flags) Groups() []Group {
	var groups []Group
	for _, heading := range []string{groupRoles, groupProgram, groupLosses, groupCluster, groupImage} {
		set := pflag.NewFlagSet(heading, pflag.ContinueOnError)
		set.SortFlags = false
		if heading == groupRoles {
			addRoleFlags(set)
		}
		for i := range jobOptions {
			if name := jobOptions[i].name; f.groups[name] == heading && name != "" {
				set.AddFlag(f.set.Lookup(name))
			}
		}
		groups = append(groups, Group{heading, set})
	}
	return groups
}

// Has reports whether a flag describes the job.
func (f *Flags) Has(flag string) bool { return f.groups[flag] != "" }

// ofRole is the annotation of flags of roles.
const ofRole = "role"

// SummarizeRoles replaces the flags of all roles by those of a role called ROLE, for a
// manual.
func SummarizeRoles(set *pflag.FlagSet) {
	set.VisitAll(func(f *pflag.Flag) { f.Hidden = f.Hidden || f.Annotations[ofRole] != nil })
	addRoleFlags(set)
}

// addRoleFlags adds the flags of a role called ROLE, for display only.
func addRoleFlags(set *pflag.FlagSet) {
	for i := range roleOptions {
		o := &roleOptions[i]
		if o.name == "" {
			continue
		}
		addFlag(set, o, roleFlag("ROLE", o.name), o.kind(&proto.RoleSpec{}), func(string) {}).DefValue = o.defaults()
	}
}

// defaults describes the default value, and those of particular roles.
func (o *option[T]) defaults() string {
	var parts []string
	if o.def != "" {
		parts = append(parts, o.def)
	}
	for _, role := range KnownRoles {
		if def, ok := o.defOf[role]; ok {
			parts = append(parts, def+" for "+role)
		}
	}
	return strings.Join(parts, "; ")
}

// Args are what has to be known of the arguments of the program before they are parsed. They hold the
// job file, which is read one time: it may be a pipe.
type Args struct {
	roles []string
	files map[string]jobFile // by name
}

// Scan returns the Args with the roles that the arguments name with --role or in the file of -f. Only
// run and rerun have that flag: of other commands it is another one, and names no file.
func Scan(args []string) *Args {
	scanned := &Args{files: map[string]jobFile{}}
	command := slices.IndexFunc(args, func(a string) bool { return a == "run" || a == "rerun" })
	if command < 0 {
		return scanned
	}
	args = args[command+1:]
	value := func(i int, names ...string) (string, bool) {
		for _, n := range names {
			if args[i] == n && i+1 < len(args) {
				return args[i+1], true
			}
			if v, ok := strings.CutPrefix(args[i], n+"="); ok {
				return v, true
			}
			if v, ok := strings.CutPrefix(args[i], n); ok && len(n) == 2 && v != "" {
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
			scanned.roles = append(scanned.roles, name)
		}
		if v, ok := value(i, "-f", "--file"); ok {
			if d, err := scanned.draft(v); err == nil { // if not, Draft says so
				for _, r := range d.Job.Roles {
					scanned.roles = append(scanned.roles, r.Name)
				}
			}
		}
	}
	return scanned
}

// draft is ReadDraft of a file that is read at the first call only.
func (a *Args) draft(name string) (*Draft, error) {
	f, known := a.files[name]
	if !known {
		f = readFile(name)
		a.files[name] = f
	}
	return f.draft(name)
}

// Draft reads the file, if there is one, and applies the flags and the command to it.
func (f *Flags) Draft(command []string) (*Draft, error) {
	d := NewDraft()
	if f.file != "" {
		var err error
		if d, err = f.args.draft(f.file); err != nil {
			return nil, err
		}
	}
	return f.Override(d, command)
}

// Override applies the flags and the command, if there is one, to a draft, and returns it.
func (f *Flags) Override(d *Draft, command []string) (*Draft, error) {
	// Flags are applied in the order of their names, so that the ranks of tasks do not
	// depend on the order of flags. Values of a repeated flag stay in the order given.
	slices.SortStableFunc(f.given, func(a, b assignment) int { return strings.Compare(a.flag, b.flag) })
	d.named = nil // what the draft has by now is another source's
	for _, a := range f.given {
		if err := a.apply(d); err != nil {
			return nil, client.Usagef("%w", err) // not what it was a moment ago
		}
	}
	if len(command) > 0 {
		d.Job.Command = command
	}
	return d, nil
}
