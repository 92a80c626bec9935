package proto

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// JSONVersion is the version of the JSON that programs are given: by --output json, by
// the tracking page and in errors. It increases when a field changes its meaning or
// disappears; new fields leave it. docs/json.md describes all shapes.
const JSONVersion = 1

// VersionMember is the first member of each JSON object that a command or a page answers
// with; its value is JSONVersion.
const VersionMember = "json_version"

// timeSuffix ends the names of fields that hold a time in milliseconds since 1970. In JSON
// the field has no such suffix, and its value is a text in RFC 3339, or null.
const timeSuffix = "_unix_ms"

// timeFormat is RFC 3339 in UTC with milliseconds.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// JSON returns a message as JSON for programs, in one line, with VersionMember
// first. Other than protojson, which encodes the files that only this program reads, it
// names fields as the .proto file does, writes states as words, times in RFC 3339, all
// numbers as numbers, and every field whether it is set or not.
func JSON(m proto.Message) ([]byte, error) {
	return marshal(m, member{VersionMember, JSONVersion})
}

// JSONWith is JSON with one more member, after the version: what an answer says beside the message.
func JSONWith(m proto.Message, name string, value any) ([]byte, error) {
	return marshal(m, member{VersionMember, JSONVersion}, member{name, value})
}

// JSONPart returns a message as JSON does, without the version: for a part of an answer.
func JSONPart(m proto.Message) ([]byte, error) { return marshal(m) }

// VersionedJSON returns a value that is a JSON object as JSON in one line, with VersionMember
// first.
func VersionedJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	members := bytes.TrimPrefix(bytes.TrimSpace(b.Bytes()), []byte("{"))
	if len(members) > 1 {
		members = append([]byte(","), members...)
	}
	return append(fmt.Appendf(nil, `{%q:%d`, VersionMember, JSONVersion), members...), nil
}

// Failure is an error in JSON.
type Failure struct {
	Code    int    `json:"code"` // the exit code of a command that fails so
	Kind    string `json:"kind"` // a word for it
	Message string `json:"message"`
}

// JSON returns the error as JSON in one line.
func (f Failure) JSON() []byte {
	text, _ := VersionedJSON(map[string]Failure{"error": f}) // texts and numbers can be
	return text
}

// marshal returns a message as JSON, after some members of its object.
func marshal(m proto.Message, first ...member) ([]byte, error) {
	v, ok := jsonOf(m.ProtoReflect())
	if !ok {
		return nil, fmt.Errorf("%s has no JSON", m.ProtoReflect().Descriptor().Name())
	}
	return json.Marshal(append(object(first), v...))
}

// object is a JSON object that keeps the order of its members.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(m.value); err != nil {
			return nil, err
		}
		b.Truncate(b.Len() - 1) // Encode adds a line feed
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func jsonOf(m protoreflect.Message) (object, bool) {
	fields := m.Descriptor().Fields()
	o := make(object, 0, fields.Len())
	for i := range fields.Len() {
		f := fields.Get(i)
		value, ok := jsonOfField(m, f)
		if !ok {
			return nil, false
		}
		o = append(o, member{JSONName(f), value})
	}
	return o, true
}

// JSONName returns the name of a field in JSON.
func JSONName(f protoreflect.FieldDescriptor) string {
	return strings.TrimSuffix(string(f.Name()), timeSuffix)
}

// isTime reports whether a field holds a time.
func isTime(f protoreflect.FieldDescriptor) bool {
	return strings.HasSuffix(string(f.Name()), timeSuffix)
}

func jsonOfField(m protoreflect.Message, f protoreflect.FieldDescriptor) (any, bool) {
	v := m.Get(f)
	switch {
	case f.IsMap():
		all := map[string]any{}
		ok := true
		v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			all[k.String()], ok = jsonOfValue(f.MapValue(), v)
			return ok
		})
		return all, ok
	case f.IsList():
		all := make([]any, v.List().Len())
		for i := range all {
			var ok bool
			if all[i], ok = jsonOfValue(f, v.List().Get(i)); !ok {
				return nil, false
			}
		}
		return all, true
	case f.HasPresence() && !m.Has(f):
		return nil, true
	}
	return jsonOfValue(f, v)
}

func jsonOfValue(f protoreflect.FieldDescriptor, v protoreflect.Value) (any, bool) {
	switch f.Kind() {
	case protoreflect.MessageKind:
		return jsonOf(v.Message())
	case protoreflect.EnumKind:
		return word(f.Enum(), v.Enum()), true
	case protoreflect.BytesKind, protoreflect.GroupKind: // no message for programs has any
		return nil, false
	case protoreflect.DoubleKind, protoreflect.FloatKind:
		if n := v.Float(); math.IsNaN(n) || math.IsInf(n, 0) { // JSON has no such numbers
			return nil, true
		}
	case protoreflect.Int64Kind:
		if isTime(f) {
			if v.Int() == 0 {
				return nil, true
			}
			return time.UnixMilli(v.Int()).UTC().Format(timeFormat), true
		}
	}
	return v.Interface(), true
}

// word returns a value of an enum as JSON has it: its name in lower case, without the name
// of the enum.
func word(e protoreflect.EnumDescriptor, n protoreflect.EnumNumber) string {
	v := e.Values().ByNumber(n)
	if v == nil {
		return fmt.Sprint(n)
	}
	return strings.TrimPrefix(strings.ToLower(string(v.Name())), enumPrefix(e))
}

// enumPrefix returns "job_state_" for JobState, as the .proto file spells it.
func enumPrefix(e protoreflect.EnumDescriptor) string {
	return strings.TrimSuffix(strings.ToLower(string(e.Values().Get(0).Name())), "unspecified")
}

// FromJSON reads what JSON has returned into m. Members that the message does not have
// are ignored.
func FromJSON(text []byte, m proto.Message) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var o map[string]any
	if err := d.Decode(&o); err != nil {
		return fmt.Errorf("read JSON of %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	if err := readObject(o, m.ProtoReflect()); err != nil {
		return fmt.Errorf("read JSON of %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	return nil
}

func readObject(o map[string]any, m protoreflect.Message) error {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		value, given := o[JSONName(f)]
		if !given || value == nil && !isFloat(f) {
			continue
		}
		if err := readField(value, m, f); err != nil {
			return fmt.Errorf("%s: %w", JSONName(f), err)
		}
	}
	return nil
}

func readField(value any, m protoreflect.Message, f protoreflect.FieldDescriptor) error {
	switch {
	case f.IsMap():
		all, ok := value.(map[string]any)
		if !ok {
			return fmt.Errorf("an object is wanted, not %T", value)
		}
		to := m.Mutable(f).Map()
		for k, item := range all {
			v, err := readValue(item, f.MapValue(), to.NewValue)
			if err != nil {
				return err
			}
			to.Set(protoreflect.ValueOfString(k).MapKey(), v)
		}
		return nil
	case f.IsList():
		all, ok := value.([]any)
		if !ok {
			return fmt.Errorf("an array is wanted, not %T", value)
		}
		list := m.Mutable(f).List()
		for _, item := range all {
			v, err := readValue(item, f, list.NewElement)
			if err != nil {
				return err
			}
			list.Append(v)
		}
		return nil
	}
	v, err := readValue(value, f, func() protoreflect.Value { return m.NewField(f) })
	if err == nil {
		m.Set(f, v)
	}
	return err
}

// readValue reads a single value. element returns a new one of messages.
func readValue(value any, f protoreflect.FieldDescriptor, element func() protoreflect.Value) (none protoreflect.Value, err error) {
	switch v := value.(type) {
	case nil:
		if isFloat(f) {
			return floatOf(f, math.NaN()), nil
		}
	case bool:
		if f.Kind() == protoreflect.BoolKind {
			return protoreflect.ValueOfBool(v), nil
		}
	case string:
		return readText(v, f)
	case json.Number:
		return readNumber(v, f)
	case map[string]any:
		if f.Kind() == protoreflect.MessageKind {
			e := element()
			return e, readObject(v, e.Message())
		}
	}
	return none, fmt.Errorf("it is %T", value)
}

func readText(v string, f protoreflect.FieldDescriptor) (none protoreflect.Value, err error) {
	switch {
	case f.Kind() == protoreflect.StringKind:
		return protoreflect.ValueOfString(v), nil
	case f.Kind() == protoreflect.EnumKind:
		values := f.Enum().Values()
		for i := range values.Len() {
			if word(f.Enum(), values.Get(i).Number()) == v {
				return protoreflect.ValueOfEnum(values.Get(i).Number()), nil
			}
		}
		return none, fmt.Errorf("%q is not known", v)
	case isTime(f):
		at, err := time.Parse(time.RFC3339, v)
		return protoreflect.ValueOfInt64(at.UnixMilli()), err
	}
	return none, fmt.Errorf("%q is a text", v)
}

// isFloat reports whether the values of a field may be not a number, which is null in JSON.
func isFloat(f protoreflect.FieldDescriptor) bool {
	return f.Kind() == protoreflect.DoubleKind || f.Kind() == protoreflect.FloatKind
}

func floatOf(f protoreflect.FieldDescriptor, n float64) protoreflect.Value {
	if f.Kind() == protoreflect.FloatKind {
		return protoreflect.ValueOfFloat32(float32(n))
	}
	return protoreflect.ValueOfFloat64(n)
}

func readNumber(v json.Number, f protoreflect.FieldDescriptor) (none protoreflect.Value, err error) {
	if isFloat(f) {
		n, err := v.Float64()
		return floatOf(f, n), err
	}
	n, err := v.Int64()
	if err != nil {
		return none, err
	}
	switch f.Kind() {
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(n), nil
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(n)), nil
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(n)), nil
	}
	return none, fmt.Errorf("%s is a number", v)
}
