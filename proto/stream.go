package proto

import (
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// ExecWindow is how many messages with output of one command an agent sends ahead of what the
// client has taken: ExecOutput, ExecTaken.
const ExecWindow = 16

// Text returns a text with U+FFFD in place of what is not UTF-8, as fields of messages must be.
func Text(s string) string { return strings.ToValidUTF8(s, string(utf8.RuneError)) }

// MakeText applies Text to all strings of a message, so that it can be encoded whatever a
// program has named or printed. A message without such a string is not written to.
func MakeText(m proto.Message) { makeText(m.ProtoReflect()) }

func makeText(m protoreflect.Message) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
			makeMapText(f, v.Map())
		case f.IsList():
			for i := range v.List().Len() {
				if valid, changed := textOf(f, v.List().Get(i)); changed {
					v.List().Set(i, valid)
				}
			}
		default:
			if valid, changed := textOf(f, v); changed {
				m.Set(f, valid)
			}
		}
		return true
	})
}

func makeMapText(f protoreflect.FieldDescriptor, m protoreflect.Map) {
	var invalid []protoreflect.MapKey
	m.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
		if valid, changed := textOf(f.MapValue(), v); changed {
			m.Set(k, valid)
		}
		if _, changed := textOf(f.MapKey(), k.Value()); changed {
			invalid = append(invalid, k)
		}
		return true
	})
	for _, k := range invalid {
		valid, _ := textOf(f.MapKey(), k.Value())
		v := m.Get(k)
		m.Clear(k)
		m.Set(valid.MapKey(), v)
	}
}

// textOf returns what a string, alone or in a list or map, is to be replaced by, if it is. It
// edits a message in its place.
func textOf(f protoreflect.FieldDescriptor, v protoreflect.Value) (valid protoreflect.Value, changed bool) {
	switch f.Kind() {
	case protoreflect.StringKind:
		if s := v.String(); !utf8.ValidString(s) {
			return protoreflect.ValueOfString(Text(s)), true
		}
	case protoreflect.MessageKind:
		makeText(v.Message())
	}
	return v, false
}
