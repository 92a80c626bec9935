package runtime_test

import (
	"math"
	"strings"
	"testing"

	"holdfast/proto"
	"holdfast/runtime"
)

func TestMayComplete(t *testing.T) {
	for _, x := range []struct {
		spec *proto.CheckpointSpec
		yes  string
		no   string
	}{
		{&proto.CheckpointSpec{}, "a/model.ckpt-1.index checkpoint step-4.pt b/x.pth pytorch_model.bin step-1/.metadata step-1/COMMITTED", "model.ckpt-1.data-00000-of-00001 step-1/__0_0.distcp events.out.tfevents.1 step-4.pt.tmp"},
		{&proto.CheckpointSpec{Format: "tensorflow"}, "model.ckpt-1.index", "step-4.pt step-1/COMMITTED"},
		{&proto.CheckpointSpec{Format: "plain"}, "step-1/COMMITTED", "model.ckpt-1.index"},
		{&proto.CheckpointSpec{Format: "plain", Marker: "done-*"}, "7/done-3", "7/COMMITTED 7/done"},
		{&proto.CheckpointSpec{Format: "plain", QuietSeconds: 5}, "anything", ""},
	} {
		for _, name := range strings.Fields(x.yes) {
			if !runtime.MayComplete(x.spec, name) {
				t.Errorf("%v: %s completes nothing", x.spec, name)
			}
		}
		for _, name := range strings.Fields(x.no) {
			if runtime.MayComplete(x.spec, name) {
				t.Errorf("%v: %s may complete something", x.spec, name)
			}
		}
	}
}

func TestCheckpointRulesAreChecked(t *testing.T) {
	for _, x := range []struct {
		spec *proto.CheckpointSpec
		want string // in the error; "": none
	}{
		{&proto.CheckpointSpec{}, ""},
		{&proto.CheckpointSpec{Format: "dcp"}, ""},
		{&proto.CheckpointSpec{Format: "plain", Marker: "_SUCCESS"}, ""},
		{&proto.CheckpointSpec{Format: "plain", QuietSeconds: 0.5}, ""},
		{&proto.CheckpointSpec{Format: "keras"}, "tensorflow, torch, dcp, plain"},
		{&proto.CheckpointSpec{Marker: "_SUCCESS"}, "format=plain"},
		{&proto.CheckpointSpec{Format: "torch", QuietSeconds: 5}, "format=plain"},
		{&proto.CheckpointSpec{Format: "plain", Marker: "a", QuietSeconds: 5}, "choose one"},
		{&proto.CheckpointSpec{Format: "plain", Marker: "[a"}, "no pattern"},
		{&proto.CheckpointSpec{Format: "plain", Marker: "a/b"}, "no pattern"},
		{&proto.CheckpointSpec{Format: "plain", QuietSeconds: -1}, "at most a day"},
		{&proto.CheckpointSpec{Format: "plain", QuietSeconds: math.NaN()}, "at most a day"},
	} {
		x.spec.Path = "./logs"
		spec := &proto.JobSpec{Command: []string{"true"}, Roles: []*proto.RoleSpec{{Name: "worker", Count: 1}}, Checkpoints: []*proto.CheckpointSpec{x.spec}}
		err := runtime.Complete(spec)
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want) || !strings.Contains(err.Error(), "./logs")) {
			t.Errorf("%v: %v, want %q", x.spec, err, x.want)
		}
	}
}

func TestCompleteWhen(t *testing.T) {
	for want, spec := range map[string]*proto.CheckpointSpec{
		"":                              {},
		"a file _SUCCESS is there":      {Format: "plain", Marker: "_SUCCESS"},
		"nothing has changed for 2.5 s": {Format: "plain", QuietSeconds: 2.5},
		"the directory step-N has a file COMMITTED": {Format: "plain"},
	} {
		if got := runtime.CompleteWhen(spec); got != want {
			t.Errorf("%v: %q, want %q", spec, got, want)
		}
	}
}
