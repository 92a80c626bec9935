package hdfsckpt_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/formats/pytorch"
	"holdfast/hdfsckpt/manifest"
	"holdfast/hdfsckpt/retain"
	"holdfast/hdfsckpt/store"
)

// written is a file of a checkpoint. # in its name stands for the step.
type written struct {
	name    string
	content []byte
}

// contract is what users are promised of a format's checkpoints, and how one is written.
type contract struct {
	name  string    // of a checkpoint
	files []written // in the order in which a program writes them
	// beside writes what lies beside the checkpoints of some steps and names them.
	beside func(t *testing.T, s store.Store, steps []string)
	// tear has one of a step, which is complete, be as if its save had been broken off.
	tear func(t *testing.T, s store.Store, step string)

	shown  bool // tensors are
	summed bool // it has checksums of its own
	// inPlace: the one that a program saves over is retained.
	inPlace bool
	// stays: a torn one is not moved aside, as programs go on from what another file names.
	stays bool
	// unknown: nothing shows whether one is complete.
	unknown bool
}

// of is the content of the checkpoint of a step.
func (w written) of(step string) []byte {
	if path.Ext(w.name) == ".json" && strings.Contains(w.name, "index") {
		return []byte(strings.ReplaceAll(string(w.content), "#", step))
	}
	return w.content
}

func cutting(name string, bytes int) func(*testing.T, store.Store, string) {
	return func(t *testing.T, s store.Store, step string) {
		t.Helper()
		name := strings.ReplaceAll(name, "#", step)
		b, err := store.ReadFile(t.Context(), s, name)
		must(t, err)
		put(t, s, name, b[:len(b)-bytes])
	}
}

func leavingOut(name string) func(*testing.T, store.Store, string) {
	return func(t *testing.T, s store.Store, step string) {
		t.Helper()
		must(t, s.Remove(t.Context(), strings.ReplaceAll(name, "#", step)))
	}
}

// filesOf are the files of a directory of testdata, those that match one of the patterns last in
// this order.
func filesOf(t *testing.T, from, to string, last ...string) []written {
	t.Helper()
	var all []written
	must(t, fs.WalkDir(os.DirFS(from), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(from, name))
		all = append(all, written{path.Join(to, name), b})
		return err
	}))
	rank := func(w written) int { return slices.Index(last, path.Base(w.name)) }
	slices.SortStableFunc(all, func(a, b written) int { return rank(a) - rank(b) })
	return all
}

// contracts has a row for each format, by its name, and for other forms of some, with more behind
// the name. A format that is new has its own row here.
func contracts(t *testing.T) map[string]contract {
	t.Helper()
	whole := torchFixture(t, "train-40.pt")
	one := func(name string, content []byte, cut int) contract {
		return contract{name: name, files: []written{{name, content}}, tear: cutting(name, cut), inPlace: true}
	}
	with := func(c contract, change func(*contract)) contract { change(&c); return c }
	model := recorded(t, "lightgbm/model.txt")
	const rayName = "run/checkpoint_2026-11-25_15-38-#.901110"
	rayList := func(t *testing.T, s store.Store, steps []string) {
		var all []string
		for _, step := range steps {
			all = append(all, fmt.Sprintf(`{"checkpoint_dir_name":%q,"metrics":{"step":%s}}`, path.Base(strings.ReplaceAll(rayName, "#", step)), step))
		}
		put(t, s, "run/checkpoint_manager_snapshot.json", []byte(`{"checkpoint_results":[`+strings.Join(all, ",")+`]}`))
	}
	deepSpeed := func(dir string) []written { return filesOf(t, "testdata/deepspeed/global_step1", dir) }
	trainer := []written{
		{"checkpoint-#/config.json", []byte("{}")}, {"checkpoint-#/model.safetensors", safetensors(100)}, {"checkpoint-#/optimizer.pt", whole},
		{"checkpoint-#/rng_state_1.pth", whole}, {"checkpoint-#/rng_state_0.pth", whole}, {"checkpoint-#/trainer_state.json", []byte("{\n  \"global_step\": 1\n}\n")},
	}
	var bundle []written
	for _, f := range filesOf(t, "tfbundle/testdata", "", fixture+".index") {
		if suffix, ok := strings.CutPrefix(f.name, fixture); ok && (suffix == ".index" || strings.HasPrefix(suffix, ".data-")) {
			bundle = append(bundle, written{suffix, f.content})
		}
	}
	at := func(prefix string) (all []written) {
		for _, f := range bundle {
			all = append(all, written{prefix + f.name, f.content})
		}
		return all
	}
	saved := func(c *contract) { c.shown, c.summed = true, true }
	rows := map[format.Kind]contract{
		formats.TensorFlow: {name: "model.ckpt-#", files: at("model.ckpt-#"), tear: leavingOut("model.ckpt-#.index"), shown: true, summed: true, inPlace: true, stays: true},
		formats.SavedModel: {
			name: "export/#", tear: leavingOut("export/#/saved_model.pb"), shown: true, summed: true, inPlace: true,
			files: append(at("export/#/variables/variables"), written{"export/#/assets/words.txt", []byte("one")}, written{"export/#/saved_model.pb", savedModelGraph}, written{"export/#/fingerprint.pb", []byte("x")}),
		},
		pytorch.Torch:       with(one("model-#.pt", whole, 100), saved),
		pytorch.Safetensors: with(one("model-#.safetensors", safetensors(100), 9), func(c *contract) { c.shown = true }),
		formats.Keras:       with(one("model_#.keras", kerasFixture(t, "model.keras"), 9), saved),
		formats.XGBoost:     one("model_#.ubj", recorded(t, "xgboost/model.ubj"), 1),
		formats.LightGBM:    one("model_#.txt", model, len(model)-100),
		formats.MXNet: {
			name: "net-#.params", tear: cutting("net-#.params", 1), shown: true, inPlace: true,
			files: []written{{"net-#.params", recorded(t, "mxnet/module-0002.params")}, {"net-#.states", recorded(t, "mxnet/module-0002.states")}},
		},
		pytorch.Distributed: {name: "step_#", files: filesOf(t, "torchfile/testdata/dcp-300", "step_#", ".metadata"), tear: leavingOut("step_#/.metadata"), shown: true, summed: true, inPlace: true},
		formats.Orbax: {
			name: "#", files: filesOf(t, "testdata/orbax-10", "#", "_CHECKPOINT_METADATA", "commit_success.txt"), shown: true, summed: true,
			tear: cutting("#/default/d/3bad5fc3699d96189903bae8ccf8b48f", 1),
		},
		pytorch.HuggingFace: {name: "checkpoint-#", files: trainer, tear: leavingOut("checkpoint-#/trainer_state.json"), shown: true, summed: true},
		pytorch.DeepSpeed: {
			name: "run/global_step#", files: deepSpeed("run/global_step#"), shown: true, summed: true, stays: true,
			beside: func(t *testing.T, s store.Store, steps []string) {
				put(t, s, "run/latest", []byte("global_step"+steps[len(steps)-1]))
			},
			tear: cutting("run/global_step#/mp_rank_00_model_states.pt", 9),
		},
		pytorch.Lightning: {
			name: "epoch=1-step=#.ckpt", files: append(deepSpeed("epoch=1-step=#.ckpt/checkpoint"), written{"epoch=1-step=#.ckpt/latest", []byte("checkpoint")}),
			tear: leavingOut("epoch=1-step=#.ckpt/latest"), shown: true, summed: true, inPlace: true,
		},
		formats.Ray: {
			name: rayName, files: []written{{rayName + "/model.pt", whole}, {rayName + "/deeper/state.npz", []byte("x")}}, beside: rayList,
			tear: func(t *testing.T, s store.Store, step string) { rayList(t, s, []string{"10", "20"}) },
		},
		formats.Plain:     {name: "step-#", files: []written{{"step-#/a", []byte("xyz")}, {"step-#/COMMITTED", []byte(`{"shards":1}`)}}, tear: leavingOut("step-#/COMMITTED")},
		formats.Directory: {name: "checkpoint-#", files: []written{{"checkpoint-#/model.pt", whole}, {"checkpoint-#/optimizer.pt", whole}}, unknown: true},
	}
	index := []byte(`{"weight_map":{"w":"m-#-00001-of-00002.safetensors","v":"m-#-00002-of-00002.safetensors"}}`)
	all := map[string]contract{
		"torch, pth":     with(one("model_#.pth", whole, 100), saved),
		"torch, pth.tar": with(one("checkpoint_#.pth.tar", whole, 100), saved),
		"torch, ckpt":    with(one("epoch=1-step=#-val_loss=0.25.ckpt", whole, 100), saved),
		"safetensors, index": {
			name: "m-#.safetensors.index.json", shown: true, inPlace: true, tear: leavingOut("m-#-00001-of-00002.safetensors"),
			files: []written{{"m-#-00001-of-00002.safetensors", safetensors(100)}, {"m-#-00002-of-00002.safetensors", safetensors(100)}, {"m-#.safetensors.index.json", index}},
		},
		"dcp, Lightning's": {
			name: "epoch=1-step=#.ckpt", shown: true, summed: true, inPlace: true, tear: leavingOut("epoch=1-step=#.ckpt/meta.pt"),
			files: append(filesOf(t, "torchfile/testdata/dcp-300", "epoch=1-step=#.ckpt", ".metadata"), written{"epoch=1-step=#.ckpt/meta.pt", whole}),
		},
		"dcp, with directories": {
			name: "step_#", shown: true, summed: true, inPlace: true, tear: leavingOut("step_#/.metadata"),
			files: slices.Insert(filesOf(t, "torchfile/testdata/dcp-300", "step_#", ".metadata"), 1, written{"step_#/tokenizer/vocab.txt", []byte("words")}),
		},
		"plain, with directories": {
			name: "step-#", tear: leavingOut("step-#/COMMITTED"),
			files: []written{{"step-#/weights", []byte("xyz")}, {"step-#/params/decoder/layer_0", []byte("abc")}, {"step-#/params/decoder/layer_1", []byte("abc")}, {"step-#/COMMITTED", []byte(`{"shards":3}`)}},
		},
		"keras, weights": with(one("model_#.weights.h5", kerasFixture(t, "model.weights.h5"), 9), func(c *contract) { c.shown = true }),
		"keras, legacy":  with(one("model_#.h5", kerasFixture(t, "model.h5"), 9), func(c *contract) { c.shown = true }),
		"xgboost, json":  one("model_#.json", recorded(t, "xgboost/model.json"), 1),
		"lightgbm, lgb":  one("booster_#.lgb", model, len(model)-100),
	}
	for kind, c := range rows {
		all[string(kind)] = c
	}
	return all
}

func (c contract) at(step string) string { return strings.ReplaceAll(c.name, "#", step) }

// save writes the checkpoints of some steps, as put or publish does.
func (c contract) save(t *testing.T, s store.Store, write func(*testing.T, store.Store, string, []byte), steps ...string) {
	t.Helper()
	for _, step := range steps {
		for _, f := range c.files {
			write(t, s, strings.ReplaceAll(f.name, "#", step), f.of(step))
		}
	}
	c.note(t, s, steps...)
}

// note has what lies beside the checkpoints name those of some steps.
func (c contract) note(t *testing.T, s store.Store, steps ...string) {
	t.Helper()
	if c.beside != nil {
		c.beside(t, s, steps)
	}
}

// of returns the listed checkpoint of a step; nil if there is none.
func (c contract) of(t *testing.T, s store.Store, step string) *format.Checkpoint {
	t.Helper()
	found := list(t, s)
	if i := slices.IndexFunc(found, func(x format.Checkpoint) bool { return x.Name == c.at(step) }); i >= 0 {
		return &found[i]
	}
	return nil
}

func putFile(t *testing.T, s store.Store, name string, content []byte) { put(t, s, name, content) }

// TestContract: what users are promised of checkpoints holds for those of each format.
func TestContract(t *testing.T) {
	kinds := map[string]bool{}
	rows := contracts(t)
	for _, f := range formats.All {
		kind := string(f.Traits().Kind)
		if kinds[kind] = true; rows[kind].name == "" {
			t.Errorf("the format %s has no row", kind)
		}
	}
	for name, c := range rows {
		kind, _, _ := strings.Cut(name, ",")
		if !kinds[kind] {
			t.Errorf("there is no format for the row %q", name)
		}
		for promise, holds := range map[string]func(*testing.T, store.Store){
			"list": func(t *testing.T, s store.Store) { c.listed(t, s, format.Kind(kind)) },
			"show": c.tensors, "seal": c.sealed, "verify": c.verified, "retain removed": c.removed,
			"retain saved over": c.savedOver, "prune": c.pruned, "torn": c.torn, "below numbers": c.below,
		} {
			t.Run(name+"/"+promise, func(t *testing.T) {
				s := openLocal(t, t.TempDir())
				defer s.Close()
				holds(t, s)
			})
		}
	}
}

// listed: each has its format, its step and all of its files, and is complete.
func (c contract) listed(t *testing.T, s store.Store, kind format.Kind) {
	c.save(t, s, putFile, "10", "20")
	found := list(t, s)
	if len(found) != 2 {
		t.Fatalf("found are %s", states(found))
	}
	for i, step := range []int64{10, 20} {
		x := found[i]
		if x.Name != c.at(fmt.Sprint(step)) || x.Kind != kind || x.Step != step || x.Whole() == c.unknown || len(x.Files) != len(c.files) {
			t.Errorf("found is %s, of step %d", describe(found[i:i+1]), x.Step)
		}
		if c.unknown && x.State != format.Unchecked {
			t.Errorf("%s is %s", x.Name, x.State)
		}
	}
}

// tensors: they are shown, or why they cannot be.
func (c contract) tensors(t *testing.T, s store.Store) {
	c.save(t, s, putFile, "10")
	all, err := format.OpenTensors(t.Context(), s, c.of(t, s, "10"))
	if !c.shown {
		if !errors.Is(err, syscall.EINVAL) {
			t.Errorf("tensors are shown: %v", err)
		}
		return
	}
	must(t, err)
	defer all.Close()
	read := 0
	for _, x := range all.All() {
		if b, err := x.Read(); err == nil && len(b) > 0 {
			read++
		}
	}
	if read == 0 {
		t.Errorf("none of %d tensors is read", len(all.All()))
	}
}

// sealed: a complete one is, and only such a one.
func (c contract) sealed(t *testing.T, s store.Store) {
	c.save(t, s, putFile, "10")
	if c.unknown {
		if _, err := hdfsckpt.Seal(t.Context(), s, *c.of(t, s, "10"), manifest.Meta{}, nil); err == nil {
			t.Error("it is sealed")
		}
		return
	}
	seal(t, s, c.at("10"))
	if x := c.of(t, s, "10"); x.State != format.Sealed || len(x.Manifest.Files) != len(c.files) {
		t.Errorf("it is %s", x.State)
	}
}

// verified: a byte that was changed is found, by the manifest, and by the format's checksums.
func (c contract) verified(t *testing.T, s store.Store) {
	if c.unknown {
		return
	}
	c.save(t, s, putFile, "10")
	if problems := verify(t, s, *c.of(t, s, "10")); len(problems) > 0 {
		t.Fatalf("it has the problems %v", problems)
	}
	if c.summed {
		x := c.of(t, s, "10")
		parts, _, err := x.Contents().Parts(t.Context(), s, x)
		must(t, err)
		if len(parts) == 0 {
			t.Fatal("no part of it has a checksum")
		}
		largest := slices.MaxFunc(parts, func(a, b format.Part) int { return int(a.Size - b.Size) })
		b, err := store.ReadFile(t.Context(), s, largest.File)
		must(t, err)
		change := slices.Clone(b)
		change[largest.Offset+largest.Size/2] ^= 1
		put(t, s, largest.File, change)
		if problems := verify(t, s, *c.of(t, s, "10")); len(problems) == 0 {
			t.Errorf("byte %d of %s was changed, which nobody sees", largest.Offset+largest.Size/2, largest.File)
		}
		put(t, s, largest.File, b)
	}
	seal(t, s, c.at("10"))
	for _, f := range c.files {
		name := strings.ReplaceAll(f.name, "#", "10")
		change := slices.Clone(f.of("10"))
		change[len(change)/2] ^= 1
		put(t, s, name, change)
		if x := c.of(t, s, "10"); x != nil && len(verify(t, s, *x)) == 0 {
			t.Errorf("of the sealed one, %s was changed, which nobody sees", name)
		}
		put(t, s, name, f.of("10")[:len(f.of("10"))-1])
		if x := c.of(t, s, "10"); x != nil && x.State == format.Sealed {
			t.Errorf("the last byte of %s was cut off, and it is sealed", name)
		}
		put(t, s, name, f.of("10"))
	}
	if x := c.of(t, s, "10"); x.State != format.Sealed {
		t.Errorf("as it was, it is %s", x.State)
	}
}

// removed: of a program that keeps the newest only, the one before stays, in whatever order its
// files go; and the older one does not.
func (c contract) removed(t *testing.T, s store.Store) {
	c.save(t, s, putFile, "10", "20", "30")
	for i, step := range []string{"10", "20"} {
		if !c.unknown {
			seal(t, s, c.at(step))
		}
		c.note(t, s, []string{"20", "30"}[i:]...) // a program forgets it before it removes it
		var names []string
		for _, f := range c.files {
			names = append(names, strings.ReplaceAll(f.name, "#", step))
		}
		if i == 1 {
			slices.Reverse(names)
		}
		for _, name := range names {
			unlink(t, s, name)
		}
		if strings.HasPrefix(names[0], c.at(step)+"/") {
			removeDirs(t, s, c.at(step))
		}
		kept := listRetained(t, s)
		switch {
		case c.unknown:
			if len(kept) > 0 {
				t.Errorf("retained are %+v", kept)
			}
			continue
		case i == 0: // two newer ones are there
			if len(kept) != 0 {
				t.Errorf("retained though two are left: %+v", kept)
			}
			continue
		case len(kept) != 1 || kept[0].Former != c.at(step) || kept[0].State != format.Sealed || len(kept[0].Files) != len(c.files) || fmt.Sprint(kept[0].Step) != step:
			t.Fatalf("retained are %+v", kept)
		}
		if problems, err := hdfsckpt.Verify(t.Context(), s, kept[0], nil); err != nil || len(problems) > 0 {
			t.Errorf("what is retained has the problems %v, %v", problems, err)
		}
	}
	if report, err := hdfsckpt.Repair(t.Context(), s, 0); err != nil || report.String() != "" {
		t.Errorf("a start after it says %s, %v", report, err)
	}
}

// savedOver: the one before stays where that is promised, and comes back if the new one does not
// get complete.
func (c contract) savedOver(t *testing.T, s store.Store) {
	c.save(t, s, publish, "10")
	if c.inPlace {
		must(t, retain.Replacing(t.Context(), s, areaOf(s), strings.ReplaceAll(c.files[0].name, "#", "10")))
		if x := c.of(t, s, "10"); x != nil && x.Whole() {
			t.Errorf("while its first file is replaced, it is %s", x.State)
		}
		report, err := hdfsckpt.Repair(t.Context(), s, 0)
		if x := c.of(t, s, "10"); err != nil || x == nil || !x.Whole() || !slices.Equal(report.Restored, []string{c.at("10")}) {
			t.Errorf("its program was lost: %s, %v", report, err)
		}
	}
	c.save(t, s, publish, "10")
	if x := c.of(t, s, "10"); x == nil || x.Whole() == c.unknown {
		t.Errorf("saved over, it is %+v", x)
	}
	kept := listRetained(t, s)
	if whole := len(kept) == 1 && kept[0].Former == c.at("10") && kept[0].Whole() && len(kept[0].Files) == len(c.files); whole != c.inPlace || !whole && len(kept) > 0 {
		t.Errorf("retained are %+v", kept)
	}
}

// below: the same is found, and retained, in directories whose names are numbers of runs, or steps.
func (c contract) below(t *testing.T, _ store.Store) {
	for _, above := range []string{"0/checkpoints", "step_3/models"} {
		dir := t.TempDir()
		s, inner := openLocal(t, dir), openLocal(t, filepath.Join(dir, above))
		c.save(t, inner, putFile, "10", "20")
		var names []string
		for _, x := range list(t, inner) {
			names = append(names, path.Join(above, x.Name))
		}
		for _, x := range list(t, s) {
			if i := slices.Index(names, x.Name); i < 0 {
				t.Errorf("found is %s, which is none where no number is above it", x.Name)
			} else {
				names = slices.Delete(names, i, i+1)
			}
		}
		if len(names) > 0 {
			t.Errorf("not found are %v", names)
		}
		former := path.Join(above, c.at("10"))
		if !c.unknown {
			seal(t, s, former)
		}
		c.note(t, inner, "20")
		for _, f := range c.files {
			unlink(t, s, path.Join(above, strings.ReplaceAll(f.name, "#", "10")))
		}
		kept := listRetained(t, s)
		if whole := len(kept) == 1 && kept[0].Former == former && kept[0].State == format.Sealed && len(kept[0].Files) == len(c.files); whole == c.unknown || c.unknown && len(kept) > 0 {
			t.Errorf("below %s, retained are %+v", above, kept)
		}
		c.save(t, s, func(t *testing.T, _ store.Store, name string, content []byte) {
			publish(t, s, path.Join(above, name), content)
		}, "20")
		replaced := slices.ContainsFunc(listRetained(t, s), func(x format.Checkpoint) bool {
			return x.Former == path.Join(above, c.at("20")) && len(x.Files) == len(c.files)
		})
		if replaced != c.inPlace {
			t.Errorf("below %s, what was saved over is retained: %v", above, replaced)
		}
		inner.Close()
		s.Close()
	}
}

// pruned: the newest stays, with all of its files; of older ones nothing is left.
func (c contract) pruned(t *testing.T, s store.Store) {
	c.save(t, s, putFile, "10", "20", "30")
	plan := hdfsckpt.PlanPrune(list(t, s), 1, 0)
	must(t, plan.Execute(t.Context(), s))
	left := list(t, s)
	if c.unknown {
		if len(left) != 3 {
			t.Errorf("left are %s", states(left))
		}
		return
	}
	if len(left) != 1 || left[0].Name != c.at("30") || len(left[0].Files) != len(c.files) {
		t.Errorf("left are %s", states(left))
	}
	for _, f := range c.files {
		if there, err := store.Exists(t.Context(), s, strings.ReplaceAll(f.name, "#", "20")); err != nil || there {
			t.Errorf("%s is left: %v", f.name, err)
		}
	}
}

// torn: one whose save was broken off never counts as complete, and is out of the way at the next
// start if programs go on from what has the highest step.
func (c contract) torn(t *testing.T, s store.Store) {
	if c.unknown {
		return
	}
	c.save(t, s, putFile, "10", "20", "30")
	c.note(t, s, "10", "20")
	c.tear(t, s, "30")
	if x := c.of(t, s, "30"); x == nil || x.State != format.Torn || x.Why == "" {
		t.Fatalf("it is %+v", x)
	}
	report, err := hdfsckpt.Repair(t.Context(), s, 0)
	must(t, err)
	moved := len(report.Aside) == 1 && report.Aside[0].Name == c.at("30") && c.of(t, s, "30") == nil
	if moved == c.stays || !moved && len(report.Aside) > 0 {
		t.Errorf("moved aside: %s", report)
	}
	for _, f := range c.files {
		name := strings.ReplaceAll(f.name, "#", "30")
		if there, err := store.Exists(t.Context(), s, name); err != nil || there && moved {
			t.Errorf("%s is left: %v", name, err)
		}
	}
	if newest := format.NewestComplete(list(t, s)); newest == nil || newest.Name != c.at("20") {
		t.Errorf("the newest complete is %+v", newest)
	}
}
