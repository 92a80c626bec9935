package proto_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	pb "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"holdfast/proto"
)

// filled returns a message in which every field is set.
func filled(m pb.Message) pb.Message {
	fill(m.ProtoReflect())
	return m
}

func fill(m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case f.IsMap():
			all := m.Mutable(f).Map()
			value := all.NewValue()
			if f.MapValue().Kind() == protoreflect.MessageKind {
				fill(value.Message())
			} else {
				value = sample(f.MapValue())
			}
			all.Set(protoreflect.ValueOfString("key").MapKey(), value)
		case f.IsList():
			list := m.Mutable(f).List()
			if f.Kind() == protoreflect.MessageKind {
				e := list.NewElement()
				fill(e.Message())
				list.Append(e)
			} else {
				list.Append(sample(f))
			}
		case f.Kind() == protoreflect.MessageKind:
			fill(m.Mutable(f).Message())
		default:
			m.Set(f, sample(f))
		}
	}
}

func sample(f protoreflect.FieldDescriptor) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.StringKind:
		return protoreflect.ValueOfString("a <text> \u0001")
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(2)
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(1.5)
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(0.1)
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(1795571056298)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(7)
	}
	return protoreflect.ValueOfInt32(-3)
}

// What is read again is what was written, and a message without anything has all fields.
func TestJSONIsReadAgain(t *testing.T) {
	for _, m := range []pb.Message{&proto.JobStatus{}, &proto.JobList{}, &proto.JobSpec{}, &proto.JobSamples{}} {
		for _, m := range []pb.Message{m, filled(pb.Clone(m))} {
			text, err := proto.JSON(m)
			if err != nil {
				t.Fatal(err)
			}
			got := m.ProtoReflect().New().Interface()
			if err := proto.FromJSON(text, got); err != nil || !pb.Equal(got, m) {
				t.Errorf("%s is read as %s (%v)", text, got, err)
			}
		}
	}
	text, err := proto.JSON(&proto.JobStatus{State: proto.JobState_JOB_STATE_RUNNING, StartedUnixMs: 1795571056298, Tasks: []*proto.TaskStatus{{}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`{"json_version":1,"id":"",`, `"state":"running"`, `"started":"2026-11-25T`, `"ended":null`, `"events":[]`, `"attempt":0`, `"exit_code":null`, `"step":0`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is missing in %s", want, text)
		}
	}
}

// What is not a finite number is null, and read as not a number.
func TestJSONOfWhatIsNotANumber(t *testing.T) {
	text, err := proto.JSON(&proto.Series{Name: "loss", Mean: []float32{0.1, float32(math.NaN()), float32(math.Inf(1))}})
	if err != nil || !strings.Contains(string(text), `"mean":[0.1,null,null]`) {
		t.Errorf("%s %v", text, err)
	}
	got := &proto.Series{}
	if err := proto.FromJSON(text, got); err != nil || len(got.Mean) != 3 || got.Mean[0] != 0.1 || got.Mean[1] == got.Mean[1] {
		t.Errorf("%s is read as %v, %v", text, got, err)
	}
	if text, err = proto.JSON(&proto.ScalarValue{Value: math.NaN()}); err != nil || !strings.Contains(string(text), `"value":null`) {
		t.Errorf("%s %v", text, err)
	}
	last := &proto.ScalarValue{}
	if err := proto.FromJSON(text, last); err != nil || last.Value == last.Value {
		t.Errorf("%s is read as %v, %v", text, last, err)
	}
}

func TestJSONOfOtherThings(t *testing.T) {
	for _, text := range []string{``, `[]`, `{"tasks":{}}`, `{"tasks":[1]}`, `{"state":"odd"}`, `{"state":1}`, `{"started":"yesterday"}`, `{"step":1.5}`, `{"name":true}`, `{"step":"7"}`} {
		if err := proto.FromJSON([]byte(text), &proto.JobStatus{}); err == nil {
			t.Errorf("%s is read", text)
		}
	}
	if _, err := proto.JSON(&proto.Tokens{}); err == nil {
		t.Error("secrets have JSON")
	}
}

var (
	section = regexp.MustCompile(`(?m)^## ` + "`" + `(\w+)` + "`" + `.*$`)
	row     = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| ([^|]+) \\|")
)

// TestDocsHaveTheJSON: docs/json.md has every field of what programs are given, with its
// type, and no other.
func TestDocsHaveTheJSON(t *testing.T) {
	text, err := os.ReadFile("../docs/json.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), fmt.Sprintf("version %d", proto.JSONVersion)) {
		t.Errorf("docs/json.md is not about version %d", proto.JSONVersion)
	}
	documented := map[string]map[string]string{}
	at := section.FindAllStringSubmatchIndex(string(text), -1)
	for i, m := range at {
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		fields := map[string]string{}
		for _, r := range row.FindAllStringSubmatch(string(text[m[1]:end]), -1) {
			fields[r[1]] = strings.TrimSpace(r[2])
		}
		documented[string(text[m[2]:m[3]])] = fields
	}
	shapes := map[string]pb.Message{
		"job": &proto.JobStatus{}, "task": &proto.TaskStatus{}, "spare": &proto.SpareStatus{}, "avoided": &proto.AvoidedNode{}, "stage": &proto.Stage{},
		"incident": &proto.Incident{}, "generation": &proto.Generation{}, "event": &proto.JobEvent{}, "directory": &proto.CheckpointSpec{},
		"list": &proto.JobList{}, "summary": &proto.JobSummary{}, "scalar": &proto.ScalarValue{},
		"notification": &proto.Notification{}, "samples": &proto.JobSamples{}, "series": &proto.Series{},
		"straggler": &proto.Straggler{}, "pressure": &proto.Pressure{},
	}
	described := map[protoreflect.FullName]bool{}
	for _, m := range shapes {
		described[m.ProtoReflect().Descriptor().FullName()] = true
	}
	for name, m := range shapes {
		fields := m.ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			if of := fields.Get(i).Message(); of != nil && !fields.Get(i).IsMap() && !described[of.FullName()] {
				t.Errorf("%s of %s is of %s, which has no place in docs/json.md", fields.Get(i).Name(), name, of.Name())
			}
		}
		unset, err := proto.JSON(m)
		if err != nil {
			t.Fatal(err)
		}
		var without map[string]any
		if err := json.Unmarshal(unset, &without); err != nil {
			t.Fatal(err)
		}
		for field, value := range without {
			if got, ok := documented[name][field]; ok && value == nil && !strings.HasSuffix(got, " or null") {
				t.Errorf("docs/json.md says that %s of %s is %s; it may be null", field, name, got)
			}
		}
		text, err := proto.JSON(filled(m))
		if err != nil {
			t.Fatal(err)
		}
		var real map[string]any
		if err := json.Unmarshal(text, &real); err != nil {
			t.Fatal(err)
		}
		delete(real, proto.VersionMember)
		for field, value := range real {
			want := kindOf(value)
			if got, ok := documented[name][field]; !ok {
				t.Errorf("docs/json.md does not have %s of %s, which is %s", field, name, want)
			} else if !slices.Contains(strings.Split(got, " or "), want) {
				t.Errorf("docs/json.md says that %s of %s is %s; it is %s", field, name, got, want)
			}
		}
		for field := range documented[name] {
			if _, ok := real[field]; !ok {
				t.Errorf("docs/json.md has a field %s of %s that is not there", field, name)
			}
		}
	}
}

// kindOf is the type of a value in words of docs/json.md.
func kindOf(value any) string {
	switch v := value.(type) {
	case string:
		if strings.HasPrefix(v, "20") && strings.HasSuffix(v, "Z") {
			return "time"
		}
		return "text"
	case float64:
		return "number"
	case bool:
		return "boolean"
	case []any:
		return "array"
	}
	return "object"
}
