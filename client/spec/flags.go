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

// Flags are those of `yarn-submit run` that describe the job.
type Flags struct {
	set    *pflag.FlagSet
	file   string
	given  []assignment
	groups map[string]string // of flags
}

// assignment is what a flag that was given does.
type assignment struct {
	flag  string
	apply func(*Draft) error
}

// AddFlags declares the flags on a command, and what shells complete. roles are those
// beside KnownRoles that get flags of their own: see RolesIn.
func AddFlags(cmd *cobra.Command, roles []string) *Flags {
	f := &Flags{set: cmd.Flags(), groups: map[string]string{}}
	f.set.StringVarP(&f.file, "file", "f", "", "the job as a YAML `FILE`; flags override what it says")
	for i := range jobOptions {
		if o := &jobOptions[i]; o.name != "" {
			declare(f, cmd, o, o.name, "", func(d *Draft) *Draft { return d })
		}
	}
	for _, role := range append(slices.Clone(KnownRoles), roles...) {
		if !roleName.MatchString(role) || f.set.Lookup(role) != nil {
			continue // a role that is called like another flag is for --role and YAML
		}
		for i := range roleOptions {
			if o := &roleOptions[i]; o.name != "" {
				declare(f, cmd, o, roleFlag(role, o.name), role, func(d *Draft) *proto.RoleSpec { return d.Role(role) })
			}
		}
	}
	return f
}

// flagOf is how a user names an option of a job.
func flagOf(o *option[Draft]) string { return "--" + o.name }

// roleFlag is the flag of a role's option: --worker, and --worker-memory and the like.
func roleFlag(role, name string) string {
	if name == "count" {
		return role
	}
	return role + "-" + name
}

// declare declares the flag of an option. in finds what has the option in a draft.
func declare[T any](f *Flags, cmd *cobra.Command, o *option[T], name, role string, in func(*Draft) *T) {
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
	complete := k.complete
	if complete == nil {
		complete = cobra.NoFileCompletions
	}
	if err := cmd.RegisterFlagCompletionFunc(name, complete); err != nil {
		panic(err) // it is declared, and for the first time
	}
}

// addFlag adds a flag of an option to a set. It checks what it is given by a kind, and
// gives it to keep.
func addFlag[T any](set *pflag.FlagSet, o *option[T], name string, k kind, keep func(string)) *pflag.Flag {
	v := flagValue{k, cmp.Or(o.placeholder, k.placeholder), keep}
	if k.repeated {
		return set.VarPF(&listValue{v}, name, "", o.help)
	}
	return set.VarPF(&v, name, "", o.help)
}

// flagValue reads the values that a flag is given, and keeps them for the draft.
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

// Type is what --help shows in the place of a value.
func (v *flagValue) Type() string { return cmp.Or(v.placeholder, "bool") }

// listValue is a flag that may be repeated.
type listValue struct{ flagValue }

// GetSlice has cobra offer the flag again when it is there already.
func (v *listValue) GetSlice() []string { return nil }

var _ cobra.SliceValue = (*listValue)(nil)

// Group is some of the flags, under a heading.
type Group struct {
	Heading string
	Flags   *pflag.FlagSet
}

// Groups returns the flags as --help shows them: those of the roles once, for a role
// that is called ROLE.
func (f *Flags) Groups() []Group {
	var groups []Group
	for _, heading := range []string{groupRoles, groupProgram, groupLosses, groupCluster} {
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

// ofRole annotates the flags of roles.
const ofRole = "role"

// SummarizeRoles puts flags of a role that is called ROLE in the place of those of all
// roles, for a manual.
func SummarizeRoles(set *pflag.FlagSet) {
	set.VisitAll(func(f *pflag.Flag) { f.Hidden = f.Hidden || f.Annotations[ofRole] != nil })
	addRoleFlags(set)
}

// addRoleFlags adds flags that show those of roles; they set nothing.
func addRoleFlags(set *pflag.FlagSet) {
	for i := range roleOptions {
		o := &roleOptions[i]
		if o.name == "" {
			continue
		}
		addFlag(set, o, roleFlag("ROLE", o.name), o.kind(&proto.RoleSpec{}), func(string) {}).DefValue = o.defaults()
	}
}

// defaults are the default and those of particular roles, for people.
func (o *option[T]) defaults() string {
	text := o.def
	for _, role := range KnownRoles {
		if def, ok := o.defOf[role]; ok {
			text += "; " + def + " for " + role
		}
	}
	return text
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
				for _, r := range d.Job.Roles {
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
	d := NewDraft()
	if f.file != "" {
		var err error
		if d, err = ReadDraft(f.file); err != nil {
			return nil, err
		}
	}
	// In the order of their names, so that tasks have the same ranks however the flags
	// are ordered; a flag that is repeated, in the order in which it was given.
	slices.SortStableFunc(f.given, func(a, b assignment) int { return strings.Compare(a.flag, b.flag) })
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
