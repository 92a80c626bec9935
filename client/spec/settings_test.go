package spec

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"holdfast/proto"
)

// fillAll sets every field of a message.
func fillAll(m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		sample := func() protoreflect.Value {
			switch f.Kind() {
			case protoreflect.StringKind:
				return protoreflect.ValueOfString(fmt.Sprintf("value-of-%s", f.Name()))
			case protoreflect.BoolKind:
				return protoreflect.ValueOfBool(true)
			case protoreflect.EnumKind:
				return protoreflect.ValueOfEnum(1)
			case protoreflect.DoubleKind:
				return protoreflect.ValueOfFloat64(60)
			case protoreflect.Int64Kind:
				return protoreflect.ValueOfInt64(60000)
			case protoreflect.Uint32Kind:
				return protoreflect.ValueOfUint32(60)
			}
			return protoreflect.ValueOfInt32(60)
		}
		switch {
		case f.IsMap():
			all := m.Mutable(f).Map()
			v := all.NewValue()
			if f.MapValue().Kind() == protoreflect.MessageKind {
				fillAll(v.Message())
			} else {
				v = protoreflect.ValueOfString("value")
			}
			all.Set(protoreflect.ValueOfString("name").MapKey(), v)
		case f.IsList() && f.Kind() == protoreflect.MessageKind:
			e := m.Mutable(f).List().NewElement()
			fillAll(e.Message())
			m.Mutable(f).List().Append(e)
		case f.IsList():
			m.Mutable(f).List().Append(sample())
		case f.Kind() == protoreflect.MessageKind:
			fillAll(m.Mutable(f).Message())
		default:
			m.Set(f, sample())
		}
	}
}

// TestEverySettingIsTold: where all fields of a spec are set, the settings have every option of
// the tables but those that the spec itself tells.
func TestEverySettingIsTold(t *testing.T) {
	spec := &proto.JobSpec{}
	fillAll(spec.ProtoReflect())
	got := SettingsOf(spec)
	names := func(list []Setting) (all []string) {
		for _, s := range list {
			if s.Value == "" || s.Usual {
				t.Errorf("%s is %q, usual %v", s.Name, s.Value, s.Usual)
			}
			all = append(all, s.Name)
		}
		return all
	}
	job, role, checkpoint := names(got.Job), names(got.Roles[0]), names(got.Checkpoints[0])
	for _, o := range jobOptions {
		// Who submits is not in the spec.
		if k := o.yamlKey(); slices.Contains(job, k) == (structured[k] || k == "principal" || k == "keytab") {
			t.Errorf("of the job's options, %s is told: %v", k, slices.Contains(job, k))
		}
	}
	for _, o := range roleOptions {
		if k := o.yamlKey(); slices.Contains(role, k) == structured[k] {
			t.Errorf("of a role's options, %s is told: %v", k, slices.Contains(role, k))
		}
	}
	for _, o := range checkpointOptions {
		if !slices.Contains(checkpoint, o.yamlKey()) {
			t.Errorf("of a checkpoint directory's options, %s is not told", o.yamlKey())
		}
	}
	for _, s := range got.Job {
		if s.Secret != (s.Name == "notify") {
			t.Errorf("%s can hold a secret: %v", s.Name, s.Secret)
		}
	}
}

// TestUsualSettings: what nobody has set but has a default is told to be that.
func TestUsualSettings(t *testing.T) {
	d := NewDraft()
	d.Role("worker").Count = 2
	d.Job.StragglerMoves, d.Job.Restarts = 1, 5
	got := SettingsOf(d.Job)
	for _, want := range []Setting{
		{Name: "restarts", Group: groupLosses, Value: "5"}, {Name: "stop-grace", Group: groupLosses, Value: "5s", Usual: true}, {Name: "straggler-moves", Group: groupLosses, Value: "1"},
	} {
		if !slices.Contains(got.Job, want) {
			t.Errorf("%v is missing in %v", want, got.Job)
		}
	}
	for _, want := range []Setting{{Name: "count", Group: groupRoles, Value: "2"}, {Name: "memory", Group: groupRoles, Value: "2g", Usual: true}} {
		if !slices.Contains(got.Roles[0], want) {
			t.Errorf("%v is missing in %v", want, got.Roles[0])
		}
	}
}
