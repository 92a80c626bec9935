package hdfsckpt_test

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/store"
)

// putShards puts an index of safetensors that names two shards, and these but for some.
func putShards(t *testing.T, s store.Store, stem string, but ...string) {
	t.Helper()
	base := path.Base(stem)
	one, two := base+"-00001-of-00002.safetensors", base+"-00002-of-00002.safetensors"
	put(t, s, stem+".safetensors.index.json", []byte(`{"weight_map":{"a":"`+one+`","b":"`+two+`"}}`))
	for _, shard := range []string{one, two} {
		if !slices.Contains(but, shard) {
			put(t, s, path.Join(path.Dir(stem), shard), safetensors(10))
		}
	}
}

// heldParts are parts of checkpoints that a directory called after a step may hold, which their own
// formats know to be complete or torn: how one is put into it, whole or torn.
var heldParts = map[string]func(t *testing.T, s store.Store, dir string, whole bool){
	"safetensors of several files": func(t *testing.T, s store.Store, dir string, whole bool) {
		putShards(t, s, dir+"/model", cutOff(whole, "model-00002-of-00002.safetensors"))
	},
	"safetensors of several files, below": func(t *testing.T, s store.Store, dir string, whole bool) {
		putShards(t, s, dir+"/unet/model", cutOff(whole, "model-00002-of-00002.safetensors"))
	},
	"torch.save of several files": func(t *testing.T, s store.Store, dir string, whole bool) {
		put(t, s, dir+"/pytorch_model.bin.index.json", []byte(`{"weight_map":{"a":"pytorch_model-00001-of-00002.bin","b":"pytorch_model-00002-of-00002.bin"}}`))
		putWhole(t, s, dir+"/pytorch_model-00001-of-00002.bin")
		if whole {
			putWhole(t, s, dir+"/pytorch_model-00002-of-00002.bin")
		}
	},
	"a file of torch.save": func(t *testing.T, s store.Store, dir string, whole bool) { putTorch(t, s, dir+"/second.pt", whole) },
	"dcp": func(t *testing.T, s store.Store, dir string, whole bool) {
		putDistributed(t, s, dir+"/optim", without(cutOff(whole, ".metadata")))
	},
	"orbax": func(t *testing.T, s store.Store, dir string, whole bool) {
		putOrbax(t, s, dir+"/state", without(cutOff(whole, "default/d/3bad5fc3699d96189903bae8ccf8b48f")))
	},
	"savedmodel": func(t *testing.T, s store.Store, dir string, whole bool) {
		put(t, s, dir+"/export/saved_model.pb", savedModelGraph)
		putCheckpoint(t, s, dir+"/export/variables/variables", nil)
		if !whole {
			must(t, s.Remove(t.Context(), dir+"/export/variables/variables.data-00000-of-00004"))
		}
	},
	"keras": func(t *testing.T, s store.Store, dir string, whole bool) {
		b := kerasFixture(t, "model.keras")
		if !whole {
			b = b[:len(b)-9]
		}
		put(t, s, dir+"/net.keras", b)
	},
}

// cutOff is a file that is left out unless the part is whole.
func cutOff(whole bool, file string) string {
	if whole {
		return "nothing"
	}
	return file
}

// TestTornByWhatItHolds: a directory that is called after a step is torn if anything in it is by
// the rules of its own format, whichever format has claimed the directory, and is out of the way at
// the next start. With whole parts, nothing shows whether all of them are there.
func TestTornByWhatItHolds(t *testing.T) {
	for part, putPart := range heldParts {
		for _, dir := range []string{"93", "checkpoint-93", "step-93"} {
			holds := func(t *testing.T, s store.Store) {
				for _, whole := range []bool{true, false} {
					in := path.Join("torn", dir)
					if whole {
						in = path.Join("whole", dir)
					}
					if !strings.HasPrefix(dir, "step-") { // of which one of a known format is no plain directory
						putWhole(t, s, in+"/first.pt")
					}
					put(t, s, in+"/config.json", []byte("{}"))
					putPart(t, s, in, whole)
				}
				if got := states(list(t, s)); got != "torn/"+dir+" torn; whole/"+dir+" unchecked" {
					t.Errorf("there are %s", describe(list(t, s)))
				}
				report, err := hdfsckpt.Repair(t.Context(), s, 0)
				if err != nil || len(report.Aside) != 1 || report.Aside[0].Name != "torn/"+dir {
					t.Errorf("a start says %s, %v", report, err)
				}
			}
			t.Run(part+" in "+dir, func(t *testing.T) {
				if dir == "93" {
					onBoth(t, holds)
					return
				}
				s := openLocal(t, t.TempDir())
				defer s.Close()
				holds(t, s)
			})
		}
	}
}

// TestWholeButForWhatItHolds: a directory that its own format finds complete is torn, too, if anything in
// it is.
func TestWholeButForWhatItHolds(t *testing.T) {
	const rayName = "checkpoint_2026-11-25_15-38-52.901110"
	for name, c := range map[string]struct {
		dir string
		put func(t *testing.T, s store.Store, dir string)
	}{
		"dcp":       {"step_93", func(t *testing.T, s store.Store, dir string) { putDistributed(t, s, dir, nil) }},
		"Trainer's": {"checkpoint-93", func(t *testing.T, s store.Store, dir string) { putTrainer(t, s, dir) }},
		"Ray's": {rayName, func(t *testing.T, s store.Store, dir string) {
			putWhole(t, s, dir+"/model.pt")
			put(t, s, path.Dir(dir)+"/checkpoint_manager_snapshot.json", []byte(`{"checkpoint_results":[{"checkpoint_dir_name":"`+rayName+`","metrics":{"step":93}}]}`))
		}},
		"marked": {"step-93", func(t *testing.T, s store.Store, dir string) {
			put(t, s, dir+"/weights", []byte("x"))
			put(t, s, dir+"/COMMITTED", nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, s store.Store) {
				for _, in := range []string{"whole/", "torn/"} {
					c.put(t, s, in+c.dir)
					heldParts["dcp"](t, s, in+c.dir, in == "whole/")
				}
				if got := states(list(t, s)); got != "torn/"+c.dir+" torn; whole/"+c.dir+" complete" {
					t.Errorf("there are %s", describe(list(t, s)))
				}
				report, err := hdfsckpt.Repair(t.Context(), s, 0)
				if err != nil || len(report.Aside) != 1 || report.Aside[0].Name != "torn/"+c.dir {
					t.Errorf("a start says %s, %v", report, err)
				}
			})
		})
	}
}

// TestStepsOfTheirOwnStayApart: a directory that is called after a step is not torn, and not moved, as
// something of another step that lies in it is.
func TestStepsOfTheirOwnStayApart(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		put(t, s, "epoch_3/model.safetensors", safetensors(10))
		put(t, s, "epoch_3/config.json", []byte("{}"))
		putTrainer(t, s, "epoch_3/checkpoint-500", "trainer_state.json")
		putShards(t, s, "epoch_3/step_7/unet/model", "model-00002-of-00002.safetensors")
		putWhole(t, s, "step-4/nested/step_100/first.pt")
		putTorch(t, s, "step-4/nested/step_100/second.pt", false)
		if got := states(list(t, s)); got != "epoch_3 unchecked; step-4 unchecked" {
			t.Errorf("there are %s", got)
		}
		if report, err := hdfsckpt.Repair(t.Context(), s, 0); err != nil || report.String() != "" {
			t.Errorf("a start says %s, %v", report, err)
		}
	})
}

// numberedDirs are directories that are called by a number, what lies in them, and what that is: runs,
// of which each has checkpoints with steps of their own, or checkpoints, whose step the number is.
var numberedDirs = map[string]struct {
	whole, other []string // files of torch.save, and files that are no checkpoints
	build        func(t *testing.T, s store.Store)
	want         string // names, kinds and steps, -1 for none
}{
	"a seed":                  {whole: []string{"0/model-10.pt", "0/model-20.pt"}, want: "0/model-10.pt torch 10; 0/model-20.pt torch 20"},
	"its first save":          {whole: []string{"0/model-10.pt"}, want: "0/model-10.pt torch 10"},
	"its first save, and log": {whole: []string{"0/model-10.pt"}, other: []string{"0/train.log"}, want: "0/model-10.pt torch 10"},
	"Hydra's": {whole: []string{"outputs/2026-01-01/12-00-00/0/model_10.pt", "outputs/2026-01-01/12-00-00/0/model_20.pt", "outputs/2026-01-01/12-00-00/0/best.pt"},
		other: []string{"outputs/2026-01-01/12-00-00/0/.hydra/config.yaml", "outputs/2026-01-01/12-00-00/0/train.log"},
		want:  "outputs/2026-01-01/12-00-00/0/best.pt torch -1; outputs/2026-01-01/12-00-00/0/model_10.pt torch 10; outputs/2026-01-01/12-00-00/0/model_20.pt torch 20"},
	"with the optimizer's": {whole: []string{"3/model-10.pt", "3/optim-10.pt", "3/model-20.pt", "3/optim-20.pt"},
		want: "3/model-10.pt torch 10; 3/optim-10.pt torch 10; 3/model-20.pt torch 20; 3/optim-20.pt torch 20"},
	"epochs": {whole: []string{"0/epoch=0.ckpt", "0/epoch=1.ckpt"}, other: []string{"0/hparams.yaml"}, want: "0/epoch=0.ckpt torch 0; 0/epoch=1.ckpt torch 1"},
	"with checkpoints below": {whole: []string{"0/checkpoints/epoch=1-step=10.ckpt", "0/final.pt"}, other: []string{"0/train.log"},
		want: "0/final.pt torch -1; 0/checkpoints/epoch=1-step=10.ckpt torch 10"},
	"Trainer's": {other: []string{"0/config.json", "0/train.log"}, build: func(t *testing.T, s store.Store) {
		put(t, s, "0/model.safetensors", safetensors(10))
		putTrainer(t, s, "0/checkpoint-10")
		putTrainer(t, s, "0/checkpoint-20", "trainer_state.json")
	}, want: "0/model.safetensors safetensors -1; 0/checkpoint-10 huggingface 10; 0/checkpoint-20 huggingface 20"},
	"DeepSpeed's": {other: []string{"0/zero_to_fp32.py"}, build: func(t *testing.T, s store.Store) {
		putDeepSpeed(t, s, "0/global_step1")
		put(t, s, "0/latest", []byte("global_step1"))
	}, want: "0/global_step1 deepspeed 1"},

	"a checkpoint":                  {whole: []string{"40/model.pt", "40/optimizer.pt"}, want: "40 directory 40"},
	"with its number in each name":  {whole: []string{"40/model-40.pt", "40/optimizer-40.pt"}, want: "40 directory 40"},
	"with parts that have numbers":  {whole: []string{"40/model_0.pt", "40/model_1.pt", "40/model_2.pt"}, want: "40 directory 40"},
	"with layers that have numbers": {whole: []string{"40/layer_3.pt", "40/layer_5.pt"}, want: "40 directory 40"},
	"with a file that has none":     {whole: []string{"40/model.pt", "40/table_128.pt", "40/table_256.pt"}, want: "40 directory 40"},
	"with DeepSpeed's files": {whole: []string{"40/model.pt"}, build: func(t *testing.T, s store.Store) {
		put(t, s, "40/config.json", []byte("{}"))
		putDeepSpeed(t, s, "40/global_step40")
		put(t, s, "40/latest", []byte("global_step40"))
	}, want: "40 directory 40"},
	"called by a word":          {whole: []string{"epoch_3/model-1000.pt", "epoch_3/optim-1000.pt"}, want: "epoch_3 directory 3"},
	"step-N with directories":   {other: []string{"step-40/params/layer0", "step-40/COMMITTED"}, want: "step-40 plain 40"},
	"checkpoint-N":              {whole: []string{"checkpoint-40/model.pt", "checkpoint-40/ema-10.pt"}, want: "checkpoint-40 directory 40"},
	"orbax":                     {build: func(t *testing.T, s store.Store) { putOrbax(t, s, "40", nil) }, want: "40 orbax 40"},
	"dcp":                       {build: func(t *testing.T, s store.Store) { putDistributed(t, s, "40", nil) }, want: "40 dcp 40"},
	"a model that is alone":     {whole: []string{"40/model.pt"}, want: "40/model.pt torch 40"},
	"all shards, and no others": {build: func(t *testing.T, s store.Store) { putShards(t, s, "40/model") }, want: "40/model.safetensors.index.json safetensors 40"},
}

// TestNumberedDirectories: a directory that is called by a number alone is a checkpoint or holds
// some, by what lies in it.
func TestNumberedDirectories(t *testing.T) {
	for name, c := range numberedDirs {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, s store.Store) {
				for _, f := range c.whole {
					putWhole(t, s, f)
				}
				for _, f := range c.other {
					put(t, s, f, []byte("x"))
				}
				if c.build != nil {
					c.build(t, s)
				}
				var all []string
				for _, x := range list(t, s) {
					all = append(all, fmt.Sprintf("%s %s %d", x.Name, x.Kind, x.Step))
				}
				if got := strings.Join(all, "; "); got != c.want {
					t.Errorf("there are %s, want %s", got, c.want)
				}
			})
		})
	}
}

// TestRunsAreCountedApart: of runs in directories that are called by numbers, each keeps checkpoints of
// its own when a program removes all but the newest, when they are pruned, and when one run is
// rolled back.
func TestRunsAreCountedApart(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		of := func(run, step int) string { return fmt.Sprintf("%d/model-%d.pt", run, step) }
		for run := range 3 {
			put(t, s, fmt.Sprintf("%d/train.log", run), []byte("x"))
			for step := 10; step <= 30; step += 10 {
				putWhole(t, s, of(run, step))
				seal(t, s, of(run, step))
			}
		}
		for run := range 3 {
			unlink(t, s, of(run, 10))
			unlink(t, s, of(run, 20))
		}
		var kept []string
		for _, c := range listRetained(t, s) {
			kept = append(kept, c.Former)
		}
		slices.Sort(kept)
		if got := strings.Join(kept, " "); got != "0/model-20.pt 1/model-20.pt 2/model-20.pt" {
			t.Errorf("retained are %s", got)
		}
		for run := range 3 {
			putWhole(t, s, of(run, 40))
		}
		putWhole(t, s, of(0, 35)) // neither the newest, nor the newest that is sealed
		if got := states(hdfsckpt.PlanPrune(list(t, s), 1, 0).Remove); got != "0/model-35.pt complete" {
			t.Errorf("a prune removes %s", got)
		}
		must(t, s.Remove(t.Context(), of(0, 35)))
		planned := planRollback(t, s, "1", 30)
		must(t, planned.Execute(t.Context(), s, "alice"))
		if got := states(list(t, s)); got != "0/model-30.pt sealed; 1/model-30.pt sealed; 2/model-30.pt sealed; 0/model-40.pt complete; 2/model-40.pt complete" {
			t.Errorf("after a rollback of one run there are %s", got)
		}
	})
}
