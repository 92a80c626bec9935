package hdfsckpt_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/formats/pytorch"
)

// TestAFileAmongOthersBelongsToItsDirectory: of whatever format a file is, in a directory named
// after a step it is a checkpoint of its own only if it lies there alone.
func TestAFileAmongOthersBelongsToItsDirectory(t *testing.T) {
	models := map[string][]byte{
		"model.pt": torchFixture(t, "alone.pt"), "model.pth.tar": torchFixture(t, "alone.pt"), "pytorch_model.bin": torchFixture(t, "alone.pt"),
		"best.ckpt": torchFixture(t, "alone.pt"), "model.safetensors": safetensors(10),
		"model.keras": kerasFixture(t, "model.keras"), "model.weights.h5": kerasFixture(t, "model.weights.h5"), "model.h5": kerasFixture(t, "model.h5"),
		"booster.ubj": recorded(t, "xgboost/model.ubj"), "model.json": recorded(t, "xgboost/model.json"),
		"model.txt": recorded(t, "lightgbm/model.txt"), "booster.lgb": recorded(t, "lightgbm/model.txt"),
		"net.params": recorded(t, "mxnet/list.params"),
	}
	for model, content := range models {
		t.Run(model, func(t *testing.T) {
			s := openLocal(t, t.TempDir())
			defer s.Close()
			put(t, s, "alone/40/"+model, content)
			alone := list(t, s)
			if got := states(alone); got != "alone/40/"+model+" complete" || alone[0].Step != 40 {
				t.Fatalf("alone it is %s", got)
			}
			for _, dir := range []string{"checkpoint-10", "step_20", "30"} {
				put(t, s, "run/"+dir+"/"+model, content)
				put(t, s, "run/"+dir+"/optimizer.npz", []byte("x"))
			}
			for _, rule := range []format.Rule{{}, {Format: alone[0].Kind}} {
				must(t, format.SetRule(t.Context(), s, rule))
				found := list(t, s)
				got := strings.ReplaceAll(states(found), "; alone/40/"+model+" complete", "")
				if got != "run/checkpoint-10 unchecked; run/step_20 unchecked; run/30 unchecked" || found[0].Kind != formats.Directory || len(found[0].Files) != 2 {
					t.Errorf("by the rule %+v found are %s", rule, got)
				}
				if plan := hdfsckpt.PlanPrune(found, 1, 0); len(plan.Remove) > 0 {
					t.Errorf("by the rule %+v a prune removes %s", rule, states(plan.Remove))
				}
			}
		})
	}
}

// TestABundleAmongOthersBelongsToItsDirectory: so does a checkpoint of TensorFlow's, unless it is
// a run's, which the directory's number counts.
func TestABundleAmongOthersBelongsToItsDirectory(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	for _, step := range []string{"100", "200"} {
		putCheckpoint(t, s, "saver/step_"+step+"/model.ckpt-"+step, nil)
		put(t, s, "saver/step_"+step+"/optimizer.npz", []byte("x"))
		putCheckpoint(t, s, "weights/checkpoint-"+step+"/weights", nil)
		put(t, s, "weights/checkpoint-"+step+"/checkpoint", []byte("model_checkpoint_path: \"weights\"\nall_model_checkpoint_paths: \"weights\"\n"))
		put(t, s, "weights/checkpoint-"+step+"/optimizer.npz", []byte("x"))
		putCheckpoint(t, s, "alone/step_"+step+"/weights", nil)
		put(t, s, "alone/step_"+step+"/events.out.tfevents.1700000000.host", []byte("x"))
		put(t, s, "alone/step_"+step+"/weights.meta", []byte("x"))
		putCheckpoint(t, s, "runs/1/model.ckpt-"+step, nil)
		putCheckpoint(t, s, "runs/checkpoint-2/model.ckpt-"+step, nil)
	}
	put(t, s, "runs/1/config.json", []byte("{}"))
	put(t, s, "runs/checkpoint-2/config.json", []byte("{}"))
	found := list(t, s)
	var got []string
	for _, c := range found {
		got = append(got, fmt.Sprintf("%s %s %d", c.Name, c.State, c.Step))
	}
	slices.Sort(got)
	want := []string{
		"alone/step_100/weights complete 100", "alone/step_200/weights complete 200",
		"runs/1/model.ckpt-100 complete 100", "runs/1/model.ckpt-200 complete 200",
		"runs/checkpoint-2/model.ckpt-100 complete 100", "runs/checkpoint-2/model.ckpt-200 complete 200",
		"saver/step_100 unchecked 100", "saver/step_200 unchecked 200",
		"weights/checkpoint-100 unchecked 100", "weights/checkpoint-200 unchecked 200",
	}
	if !slices.Equal(got, want) {
		t.Errorf("found are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, c := range hdfsckpt.PlanPrune(found, 1, 0).Remove {
		if strings.HasPrefix(c.Name, "saver/") || strings.HasPrefix(c.Name, "weights/") {
			t.Errorf("a prune removes %s", c.Name)
		}
	}
	before := tree(t, s, ".")
	report, err := hdfsckpt.Repair(t.Context(), s, 0)
	if err != nil || len(report.Aside) > 0 {
		t.Errorf("a start moves aside: %s, %v", report, err)
	}
	if after := tree(t, s, "."); after != before {
		t.Errorf("a start changes\n%s\nto\n%s", before, after)
	}
	putCheckpoint(t, s, "saver/step_300/model.ckpt-300", without(".index"))
	put(t, s, "saver/step_300/optimizer.npz", []byte("x"))
	report, err = hdfsckpt.Repair(t.Context(), s, 0)
	if err != nil || len(report.Aside) != 1 || report.Aside[0].Name != "saver/step_300" {
		t.Errorf("of one without its index, moved aside is: %s, %v", report, err)
	}
	must(t, format.SetRule(t.Context(), s, format.Rule{Format: formats.TensorFlow}))
	if n := len(list(t, s)); n != 10 { // and step_300 was moved
		t.Errorf("%d checkpoints are TensorFlow's, want 10", n)
	}
}

// TestAnIndexOfAnotherKind: programs that search by vectors call theirs so, too (FAISS). TensorFlow
// writes its index after what that is of.
func TestAnIndexOfAnotherKind(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	for _, dir := range []string{"model/step_100", "none/step_100", "plain/step-100", "bundle/step_100"} {
		put(t, s, dir+"/faiss.index", []byte("IxF2, and so on"))
		put(t, s, dir+"/config.json", []byte("{}"))
	}
	put(t, s, "model/step_100/model.pt", torchFixture(t, "alone.pt"))
	put(t, s, "plain/step-100/COMMITTED", nil)
	putCheckpoint(t, s, "bundle/step_100/weights", nil)
	got := strings.Split(states(list(t, s)), "; ")
	slices.Sort(got)
	want := []string{"bundle/step_100 unchecked", "model/step_100 unchecked", "none/step_100/faiss torn", "plain/step-100 complete"}
	if !slices.Equal(got, want) {
		t.Errorf("found are %q, want %q", got, want)
	}
	report, err := hdfsckpt.Repair(t.Context(), s, 0)
	if err != nil || len(report.Aside) > 0 {
		t.Errorf("a start moves aside: %s, %v", report, err)
	}
}

// TestABundleIsNotOfAnotherFormat: a directory in which only TensorFlow's files are a checkpoint is
// none of another format.
func TestABundleIsNotOfAnotherFormat(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	putCheckpoint(t, s, "bundle/step_100/weights", nil)
	put(t, s, "bundle/step_100/notes.txt", []byte("x"))
	putCheckpoint(t, s, "both/step_100/weights", nil)
	put(t, s, "both/step_100/model.pt", torchFixture(t, "alone.pt"))
	must(t, format.SetRule(t.Context(), s, format.Rule{Format: pytorch.Torch}))
	if got := states(list(t, s)); got != "both/step_100 unchecked" {
		t.Errorf("PyTorch's are %s", got)
	}
}

// TestABundleInADirectoryOfARun: the number of a directory that holds checkpoints with steps of their
// own is no step of one that has none, whatever format is named.
func TestABundleInADirectoryOfARun(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	for _, name := range []string{"model.ckpt-100", "model.ckpt-200", "best"} {
		putCheckpoint(t, s, "1234/"+name, nil) // a seed
	}
	for _, rule := range []format.Rule{{}, {Format: formats.TensorFlow}} {
		must(t, format.SetRule(t.Context(), s, rule))
		found := list(t, s)
		if c := format.NewestComplete(found); c == nil || c.Name != "1234/model.ckpt-200" {
			t.Errorf("by the rule %+v the newest is %+v", rule, c)
		}
	}
}

// TestOthersFilesInStepDirectories: files that only have such names make no checkpoint of a
// directory.
func TestOthersFilesInStepDirectories(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	for _, name := range []string{"model_config.json", "shard_0.json", "model_card.txt", "data_1.txt", "images.h5", "x.model"} {
		put(t, s, "trial/3/"+name, []byte("{}"))
	}
	put(t, s, "trial/3/deeper/model-5.pt", torchFixture(t, "alone.pt"))
	if got := states(list(t, s)); got != "trial/3/deeper/model-5.pt complete" {
		t.Errorf("found are %s", got)
	}
}

// TestMarkedBesideUnmarked: where a program writes COMMITTED last, a directory step-N without it is
// torn, however whole the files in it are.
func TestMarkedBesideUnmarked(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	whole := torchFixture(t, "alone.pt")
	put(t, s, "run/step-10/model.pt", whole)
	put(t, s, "run/step-10/COMMITTED", nil)
	put(t, s, "run/step-20/model.pt", whole)
	put(t, s, "run/step-30/model.pt", whole)
	put(t, s, "run/step-30/optimizer.pt", whole)
	put(t, s, "run/step-40/model.safetensors", safetensors(10))
	put(t, s, "other/step-50/model.pt", whole)
	const why = "torn (its directory has no file COMMITTED, as those beside it have: the save did not get that far)"
	want := "run/step-10 plain 1 complete\nrun/step-20/model.pt torch 1 " + why + "\nrun/step-30 directory 2 " + why +
		"\nrun/step-40/model.safetensors safetensors 1 " + why + "\nother/step-50/model.pt torch 1 complete\n"
	if got := describe(list(t, s)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	report, err := hdfsckpt.Repair(t.Context(), s, 0)
	if err != nil || len(report.Aside) != 3 {
		t.Errorf("moved aside: %s, %v", report, err)
	}
	if left, err := s.List(t.Context(), "run"); err != nil || len(left) != 1 {
		t.Errorf("a program that goes on from the highest number finds %v, %v", left, err)
	}
}
