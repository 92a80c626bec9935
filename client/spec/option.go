package spec

import (
	"reflect"

	"go.yaml.in/yaml/v3"

	"holdfast/client"
)

// option is an option of a T: a job, a role or a checkpoint directory. Flags, keys of
// YAML, defaults, checks, --help, shell completion, the output of --dry-run and
// docs/options.md are derived from it.
type option[T any] struct {
	name  string // of the flag, and the key in YAML; empty: there is no flag
	key   string // in YAML, where it is not name
	group string // the heading under which it is listed

	placeholder string // of a value, where that of the kind says too little
	help        string // one line
	doc         string // Markdown, where help says too little

	def         string            // the default, as flags spell it; empty: the zero value
	defOf       map[string]string // by role, where it is not def
	clusterOnly bool              // it means nothing to a local job

	// kind returns the kind of the option, bound to the field of a T that it sets.
	kind func(*T) kind
}

func (o *option[T]) yamlKey() string {
	if o.key != "" {
		return o.key
	}
	return o.name
}

// findOption returns the option with a name, or nil.
func findOption[T any](table []option[T], name string) *option[T] {
	for i := range table {
		if table[i].name == name && name != "" {
			return &table[i]
		}
	}
	return nil
}

// names returns the names of the options that have one.
func names[T any](table []option[T]) []string {
	var list []string
	for _, o := range table {
		if o.name != "" {
			list = append(list, o.name)
		}
	}
	return list
}

// defaultOf returns the default value for a role; role is empty for options of a job.
func (o *option[T]) defaultOf(role string) string {
	if def, ok := o.defOf[role]; ok {
		return def
	}
	return o.def
}

// setDefaults sets the fields of a T to their default values.
func setDefaults[T any](table []option[T], of *T, role string) {
	for i := range table {
		if def := table[i].defaultOf(role); def != "" {
			if err := table[i].kind(of).set(def); err != nil {
				panic("the default of " + table[i].name + ": " + err.Error()) // a row is wrong
			}
		}
	}
}

// checkValues returns an error for each unusable value of a T. flag returns the name of
// an option for messages.
func checkValues[T any](table []option[T], of *T, flag func(*option[T]) string, local bool) []error {
	var wrong []error
	for i := range table {
		o := &table[i]
		k := o.kind(of)
		if o.clusterOnly && local && !isZero(k.encode()) {
			wrong = append(wrong, client.Usagef("%s is for a cluster: leave it out with --local", flag(o)))
		}
		if k.check == nil {
			continue
		}
		if err := k.check(); err != nil {
			value := k.encode()
			if k.secret {
				value = "a text that is not shown, since it may hold a secret"
			}
			wrong = append(wrong, client.Usagef("%s is %v: %w", flag(o), value, err))
		}
	}
	return wrong
}

// decode sets the fields of a T from a YAML mapping.
func decode[T any](n *yaml.Node, what string, table []option[T], to *T) error {
	return eachPair(n, what, func(key string, v *yaml.Node) error {
		var known []string
		for i := range table {
			if table[i].yamlKey() == key {
				return table[i].read(to, v)
			}
			known = append(known, table[i].yamlKey())
		}
		return unknownKey(v, key, what, known)
	})
}

// read sets the field of a T from a YAML value. null leaves it as it is.
func (o *option[T]) read(to *T, n *yaml.Node) error {
	k := o.kind(to)
	return decodeWith(n, func(n *yaml.Node) error {
		if k.decode != nil {
			return k.decode(n)
		}
		text, err := scalar(n, o.yamlKey())
		if err != nil {
			return err
		}
		if err := k.set(text); err != nil {
			return errorAt(n, "%s is %q: %w", o.yamlKey(), n.Value, err)
		}
		return nil
	})
}

// encode returns the fields of a T as a YAML mapping, in the order of the table,
// without fields that are zero and have no default.
func encode[T any](table []option[T], from *T) *yaml.Node {
	var m mapping
	for i := range table {
		o := &table[i]
		k := o.kind(from)
		v := k.encode()
		if v == nil || isZero(v) && !k.optional && o.def == "" {
			continue
		}
		m.put(o.yamlKey(), v)
	}
	return m.node()
}

func isZero(v any) bool {
	r := reflect.ValueOf(v)
	return !r.IsValid() || r.IsZero() || (r.Kind() == reflect.Slice || r.Kind() == reflect.Map) && r.Len() == 0
}
