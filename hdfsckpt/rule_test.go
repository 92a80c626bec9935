package hdfsckpt_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/formats/pytorch"
)

// TestRules looks at the same files by several rules.
func TestRules(t *testing.T) {
	ctx := context.Background()
	s := openLocal(t, t.TempDir())
	defer s.Close()
	put(t, s, "100/params/a", []byte("a"))
	put(t, s, "100/_SUCCESS", nil)
	put(t, s, "200/params/a", []byte("a"))
	put(t, s, "300.orbax-checkpoint-tmp-7/a", []byte("a"))
	put(t, s, "model_40.npz", []byte("a"))
	put(t, s, "model_50.pt", torchFixture(t, "alone.pt"))
	put(t, s, "step-60/COMMITTED", []byte("{}"))
	const halfDone = "300.orbax-checkpoint-tmp-7 plain 1 torn (its name is that of a save that has not ended)\n"
	for _, x := range []struct {
		rule format.Rule
		want string
	}{
		{format.Rule{}, "model_50.pt torch 1 complete\nstep-60 plain 0 complete\n" + strings.Replace(halfDone, "plain", "orbax", 1)},
		{format.Rule{Format: formats.Plain}, "step-60 plain 0 complete\n"},
		{format.Rule{Format: pytorch.Torch}, "model_50.pt torch 1 complete\n"},
		{format.Rule{Format: formats.Plain, Marker: "_SUCCESS"}, halfDone +
			"step-60 plain 1 torn (it has no file _SUCCESS: the save did not get that far)\n" +
			"100 plain 2 complete\n200 plain 1 torn (it has no file _SUCCESS: the save did not get that far)\n"},
		{format.Rule{Format: formats.Plain, Marker: "_SUC*"}, halfDone +
			"step-60 plain 1 torn (it has no file _SUC*: the save did not get that far)\n" +
			"100 plain 2 complete\n200 plain 1 torn (it has no file _SUC*: the save did not get that far)\n"},
		{format.Rule{Format: formats.Plain, Quiet: 60}, halfDone +
			"model_40.npz plain 1 complete\nmodel_50.pt plain 1 complete\nstep-60 plain 1 complete\n100 plain 2 complete\n200 plain 1 complete\n"},
	} {
		must(t, format.SetRule(ctx, s, x.rule))
		if got := describe(list(t, s)); got != x.want {
			t.Errorf("%+v: got\n%s\nwant\n%s", x.rule, got, x.want)
		}
	}
	must(t, s.Chtimes(ctx, "200/params/a", time.Now(), time.Now()))
	for _, c := range list(t, s) {
		if c.Name == "200" && (c.State != format.InProgress || !strings.Contains(c.Why, "after 1m0s")) {
			t.Errorf("one that is being written is %s: %s", c.State, c.Why)
		}
	}
	must(t, s.Chtimes(ctx, "200/params/a", old, old))
	// What is removed goes with its directories, the marker first.
	must(t, format.SetRule(ctx, s, format.Rule{Format: formats.Plain, Marker: "_SUCCESS"}))
	put(t, s, "400/params/deep/a", nil)
	put(t, s, "400/_SUCCESS", nil)
	must(t, hdfsckpt.PlanPrune(list(t, s), 1, 0).Execute(ctx, s))
	if got := describe(list(t, s)); got != "400 plain 2 complete\n" {
		t.Errorf("after the prune:\n%s", got)
	}
	if infos, err := s.List(ctx, "."); err != nil || len(infos) != 4 { // .holdfast, 400, the two files
		t.Errorf("left are %v, %v", infos, err)
	}
}

// TestRulesLeaveTensorFlowAlone: what a rule leaves out is not taken for lost
// when the store is made safe.
func TestRulesLeaveTensorFlowAlone(t *testing.T) {
	ctx := context.Background()
	s := openLocal(t, t.TempDir())
	defer s.Close()
	putCheckpoint(t, s, "model.ckpt-10", nil)
	put(t, s, "checkpoint", stateFile("model.ckpt-10"))
	must(t, format.SetRule(ctx, s, format.Rule{Format: formats.Plain, Marker: "_SUCCESS"}))
	report, err := hdfsckpt.Repair(ctx, s, 0)
	if err != nil || len(report.Pointed) != 0 {
		t.Errorf("%v, %v", report, err)
	}
	if _, err := s.Stat(ctx, "checkpoint"); err != nil {
		t.Error(err)
	}
}
