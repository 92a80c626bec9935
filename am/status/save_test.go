package status_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"holdfast/am/core"
	"holdfast/am/core/event"
	"holdfast/am/core/journal"
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
			"role", "index", "state", "failures", "container", "node", "port", "real_address", "pid", "rss_bytes", "agent_pid",
			"agent_rss_bytes", "warm_rss_bytes", "warm_status", "cpu_cores", "vcores",
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

// TestTheLastLossIsTakenOver: why a task was lost last is told until core knows of another loss, or
// has set the task aside, or it has succeeded.
func TestTheLastLossIsTakenOver(t *testing.T) {
	role := &proto.RoleSpec{Name: "worker", Count: 1, MemoryMb: 256, Vcores: 1, Completion: proto.CompletionRule_COMPLETION_RULE_REQUIRED}
	code := int32(3)
	for name, c := range map[string]struct {
		event event.Event
		why   string
		tail  string
		code  int32
	}{
		"it runs on":       {event.Tick{}, "ValueError: no", "Traceback", 3},
		"it is lost":       {event.TaskExited{Container: "c1", Attempt: 1, Code: 7, Tail: []string{"later"}}, "exit code 7", "later", 7},
		"it has succeeded": {event.TaskExited{Container: "c1", Attempt: 1}, "", "Traceback", 3},
	} {
		t.Run(name, func(t *testing.T) {
			job := core.New([]core.Task{{Name: "worker-0", Role: role}}, 3, 0, core.Limits{})
			job.Resume(journal.Journal{Tasks: []journal.TaskRecord{{Name: "worker-0", State: proto.TaskState_TASK_STATE_RUNNING, Attempt: 1, Container: "c1", Port: 1, PID: 8}}})
			begun := &proto.JobStatus{}
			status.TakeOver(begun, &proto.JobStatus{Tasks: []*proto.TaskStatus{{
				Task: "worker-0", Attempt: 1, Why: "ValueError: no", Tail: []string{"Traceback"}, ExitCode: &code,
			}}})
			s := status.New(begun, nil, nil, 0)
			now := time.Unix(1000, 0)
			for _, e := range []event.Event{
				event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1"}},
				event.AgentConnected{Container: "c1", Host: "h", PID: 7, Task: "worker-0", Port: 1, PeerPort: 1, Attempt: 1, TaskPID: 8},
				c.event,
			} {
				job.Step(now, e)
				s.Apply(job, nil, nil)
			}
			is, _ := s.Snapshot()
			if w := is.Tasks[0]; w.Why != c.why || strings.Join(w.Tail, "") != c.tail || w.GetExitCode() != c.code {
				t.Errorf("it is told: %s, exit code %d, %q", w.Why, w.GetExitCode(), w.Tail)
			}
		})
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
