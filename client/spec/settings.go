package spec

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	pb "google.golang.org/protobuf/proto"

	"holdfast/proto"
)

// Setting is an option as it is set, for people.
type Setting struct {
	Name   string // as YAML spells it
	Group  string // the heading under which options are listed
	Value  string
	Secret bool // the value can hold a secret
	Usual  bool // it is the default
}

// Settings are the options that are set in a job's spec, in the order of the tables. What is no
// single value is left to the spec: commands, the environment and files.
type Settings struct {
	Job         []Setting
	Roles       [][]Setting // in the order of the spec's
	Checkpoints [][]Setting // the same
}

// structured are the options that Settings leaves to the spec, or has apart.
var structured = map[string]bool{"roles": true, "checkpoints": true, "command": true, "env": true, "files": true, "archives": true}

// SettingsOf returns the options that are set in a spec. That of an option that is added to a
// table is among them without more.
func SettingsOf(spec *proto.JobSpec) Settings {
	spec = pb.Clone(spec).(*proto.JobSpec) // some kinds set what is not set
	s := Settings{Job: settings(jobOptions, &Draft{Job: spec}, NewDraft())}
	for _, r := range spec.GetRoles() {
		usual := (&Draft{Job: &proto.JobSpec{}}).Role(r.Name)
		s.Roles = append(s.Roles, settings(roleOptions, r, usual))
	}
	for _, c := range spec.GetCheckpoints() {
		s.Checkpoints = append(s.Checkpoints, settings(checkpointOptions, c, &proto.CheckpointSpec{}))
	}
	return s
}

// settings returns the options of a T that are set, as encode does.
func settings[T any](table []option[T], of, usual *T) (list []Setting) {
	for i := range table {
		o := &table[i]
		k := o.kind(of)
		v := k.encode()
		if structured[o.yamlKey()] || v == nil || isZero(v) && !k.optional && o.def == "" {
			continue
		}
		list = append(list, Setting{
			Name: o.yamlKey(), Group: o.group, Value: settingText(v), Secret: k.secret,
			Usual: reflect.DeepEqual(v, o.kind(usual).encode()),
		})
	}
	return list
}

// settingText is a value for people.
func settingText(v any) string {
	switch v := v.(type) {
	case bool:
		return map[bool]string{true: "yes", false: "no"}[v]
	case []string:
		return strings.Join(v, ", ")
	case map[string]string:
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, name+"="+v[name])
		}
		return strings.Join(parts, ", ")
	}
	return cmp.Or(fmt.Sprint(v), "–")
}
