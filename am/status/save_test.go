package status_test

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"holdfast/am/status"
	"holdfast/am/status/samples"
	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// TestSave: clients find the status and what was measured, of all tasks, in the job's
// directory.
func TestSave(t *testing.T) {
	dir, err := store.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	begin := time.Unix(1000, 0)
	measured := samples.New("j", begin, []samples.Task{{Name: "worker-0", Role: "worker"}})
	measured.AddUsage(begin, "worker-0", &proto.Heartbeat{CpuMs: (time.Second).Milliseconds(), RssBytes: 1e6})
	status.New(&proto.JobStatus{Id: "j", Step: 7}, measured, nil, 0).Save(t.Context(), dir, nil)
	text, err := store.ReadFile(t.Context(), dir, proto.StatusFile)
	saved := &proto.JobStatus{}
	if err != nil || protojson.Unmarshal(text, saved) != nil || saved.Step != 7 {
		t.Errorf("the status is %s (%v)", text, err)
	}
	if text, err = store.ReadFile(t.Context(), dir, proto.SamplesFile); err != nil {
		t.Fatal(err)
	}
	all, err := proto.UnmarshalSamples(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all.Series {
		if s.Task == "worker-0" && s.Name == proto.SeriesMemory && len(s.Mean) == 1 && s.Mean[0] == 1e6 {
			return
		}
	}
	t.Errorf("the samples are %v", all)
}

// TestTakeOver: whoever adds a field to the status decides whether the next master goes on from
// what was saved of it, or knows it otherwise: from the spec, core's journal, the driver or
// agents, or as its own.
func TestTakeOver(t *testing.T) {
	saved := &proto.JobStatus{Tasks: []*proto.TaskStatus{{}}}
	fill(saved.ProtoReflect())
	fill(saved.Tasks[0].ProtoReflect())
	begun := &proto.JobStatus{}
	status.TakeOver(begun, saved)
	for _, c := range []struct {
		message  protoreflect.Message
		replaced []string
	}{
		{begun.ProtoReflect(), []string{
			"id", "name", "user", "framework", "state", "why", "ended_unix_ms", "tracking_url", "spares", "checkpoints", "generation",
			"steps_per_second", "am_rss_bytes", "am_host", "stages", "total_steps", "avoided_nodes", "queue", "am_logs_url",
		}},
		{begun.Tasks[0].ProtoReflect(), []string{
			"role", "index", "state", "why", "failures", "container", "node", "port", "real_address", "pid", "rss_bytes", "agent_pid",
			"agent_rss_bytes", "warm_rss_bytes", "warm_status", "tail", "stages", "exit_code", "exit_signal", "cpu_cores", "vcores",
			"memory_limit_bytes", "gpus", "web_url", "sent_bytes_per_second", "received_bytes_per_second", "gpu_percent",
			"gpu_memory_bytes", "gpu_memory_limit_bytes", "resources", "step_seconds", "shared_steps", "work_share", "straggler",
			"pressure", "parked_since_unix_ms", "parked_cause", "container_logs_url",
		}},
	} {
		fields := c.message.Descriptor().Fields()
		for i := range fields.Len() {
			f := fields.Get(i)
			if c.message.Has(f) == slices.Contains(c.replaced, string(f.Name())) {
				t.Errorf("%s is taken over: %v", f.FullName(), c.message.Has(f))
			}
		}
	}
}

// fill sets all fields of a message that are not set.
func fill(m protoreflect.Message) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case m.Has(f):
		case f.IsMap():
			v := m.Mutable(f).Map()
			v.Set(protoreflect.ValueOfString("x").MapKey(), v.NewValue())
		case f.IsList() && f.Message() != nil:
			m.Mutable(f).List().AppendMutable()
		case f.IsList():
			m.Mutable(f).List().Append(one[f.Kind()])
		case f.Message() != nil:
			m.Set(f, m.NewField(f))
		default:
			m.Set(f, one[f.Kind()])
		}
	}
}

// one has a value of each kind of scalar.
var one = map[protoreflect.Kind]protoreflect.Value{
	protoreflect.StringKind: protoreflect.ValueOfString("x"),
	protoreflect.BoolKind:   protoreflect.ValueOfBool(true),
	protoreflect.Int32Kind:  protoreflect.ValueOfInt32(1),
	protoreflect.Int64Kind:  protoreflect.ValueOfInt64(1),
	protoreflect.DoubleKind: protoreflect.ValueOfFloat64(1),
	protoreflect.EnumKind:   protoreflect.ValueOfEnum(1),
}
