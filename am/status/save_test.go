package status_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

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
