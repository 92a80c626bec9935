package formats_test

import (
	"math"
	"strings"
	"testing"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
)

func TestMayComplete(t *testing.T) {
	for _, x := range []struct {
		rule format.Rule
		yes  string
		no   string
	}{
		{format.Rule{}, "a/model.ckpt-1.index checkpoint step-4.pt b/x.pth pytorch_model.bin step-1/.metadata step-1/COMMITTED 7.ubj xgb_model.json m_7.txt", "metrics.json log.txt model.ckpt-1.data-00000-of-00001 step-1/__0_0.distcp events.out.tfevents.1 step-4.pt.tmp"},
		{format.Rule{Format: "tensorflow"}, "model.ckpt-1.index", "step-4.pt step-1/COMMITTED"},
		{format.Rule{Format: "plain"}, "step-1/COMMITTED", "model.ckpt-1.index"},
		{format.Rule{Format: "plain", Marker: "done-*"}, "7/done-3", "7/COMMITTED 7/done"},
		{format.Rule{Format: "plain", Quiet: 5}, "anything", ""},
	} {
		for _, name := range strings.Fields(x.yes) {
			if !formats.MayComplete(x.rule, name) {
				t.Errorf("%v: %s completes nothing", x.rule, name)
			}
		}
		for _, name := range strings.Fields(x.no) {
			if formats.MayComplete(x.rule, name) {
				t.Errorf("%v: %s may complete something", x.rule, name)
			}
		}
	}
}

func TestCheckpointRulesAreChecked(t *testing.T) {
	for _, x := range []struct {
		rule format.Rule
		want string // in the error; "": none
	}{
		{format.Rule{}, ""},
		{format.Rule{Format: "dcp"}, ""},
		{format.Rule{Format: "plain", Marker: "_SUCCESS"}, ""},
		{format.Rule{Format: "plain", Quiet: 0.5}, ""},
		{format.Rule{Format: "caffe"}, "lightning, dcp, orbax, plain, savedmodel, deepspeed, ray, huggingface, safetensors, keras, xgboost, lightgbm, mxnet, torch, tensorflow"},
		{format.Rule{Marker: "_SUCCESS"}, "format=plain"},
		{format.Rule{Format: "torch", Quiet: 5}, "format=plain"},
		{format.Rule{Format: "plain", Marker: "a", Quiet: 5}, "choose one"},
		{format.Rule{Format: "plain", Marker: "[a"}, "no pattern"},
		{format.Rule{Format: "plain", Marker: "a/b"}, "no pattern"},
		{format.Rule{Format: "plain", Quiet: -1}, "at most a day"},
		{format.Rule{Format: "plain", Quiet: math.NaN()}, "at most a day"},
	} {
		err := formats.CheckRule(x.rule, "./logs")
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want) || !strings.Contains(err.Error(), "./logs")) {
			t.Errorf("%v: %v, want %q", x.rule, err, x.want)
		}
	}
}

func TestCompleteWhen(t *testing.T) {
	for want, rule := range map[string]format.Rule{
		"":                              {},
		"a file _SUCCESS is there":      {Format: "plain", Marker: "_SUCCESS"},
		"nothing has changed for 2.5 s": {Format: "plain", Quiet: 2.5},
		"the directory step-N has a file COMMITTED": {Format: "plain"},
	} {
		if got := formats.CompleteWhen(rule); got != want {
			t.Errorf("%v: %q, want %q", rule, got, want)
		}
	}
}
