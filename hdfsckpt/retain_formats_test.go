package hdfsckpt_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/formats/pytorch"
	"holdfast/hdfsckpt/retain"
	"holdfast/hdfsckpt/store"
)

// filesBelow are the names of all files of a directory, or of the file itself.
func filesBelow(t *testing.T, s store.Store, name string) []string {
	t.Helper()
	i, err := s.Stat(context.Background(), name)
	must(t, err)
	if !i.IsDir() {
		return []string{name}
	}
	entries, err := s.List(context.Background(), name)
	must(t, err)
	var all []string
	for _, e := range entries {
		all = append(all, filesBelow(t, s, path.Join(name, e.Name))...)
	}
	return all
}

// unlink removes a file as a mount does.
func unlink(t *testing.T, s store.Store, name string) {
	t.Helper()
	if !retain.Concerns(name) {
		t.Errorf("%s is taken for nothing that is retained", name)
	}
	retained, err := retain.Removing(context.Background(), s, areaOf(s), name)
	must(t, err)
	if !retained {
		must(t, s.Remove(context.Background(), name))
	}
}

// publish puts a file in its place as a mount does.
func publish(t *testing.T, s store.Store, name string, content []byte) {
	t.Helper()
	must(t, store.MkdirAll(context.Background(), s, path.Dir(name), 0o755))
	if retain.Concerns(name) {
		must(t, retain.Replacing(context.Background(), s, areaOf(s), name))
	}
	put(t, s, name, content)
	must(t, retain.Replaced(context.Background(), s, name))
}

// series are forms of checkpoints of which a program keeps the newest only: how
// one of a step is written, and what it is called.
var series = map[string]struct {
	rule format.Rule
	put  func(t *testing.T, s store.Store, name string)
	name string // # stands for the step
	// vague: of one that was removed halfway, the marker does not tell that it is not whole.
	vague bool
}{
	"Trainer's": {name: "run/checkpoint-#", put: func(t *testing.T, s store.Store, name string) { putTrainer(t, s, name) }},
	"Trainer's, by a marker": {rule: format.Rule{Format: formats.Plain, Marker: "trainer_state.json"}, name: "checkpoint-#", vague: true,
		put: func(t *testing.T, s store.Store, name string) {
			putTrainer(t, s, name)
			put(t, s, name+"/deeper/x", []byte("x"))
		}},
	"distributed":                     {name: "step-#", put: func(t *testing.T, s store.Store, name string) { putDistributed(t, s, name, nil) }},
	"distributed, elsewhere":          {name: "at/ckpt_of_#_steps", put: func(t *testing.T, s store.Store, name string) { putDistributed(t, s, name, nil) }},
	"torch.save":                      {name: "model-#.pt", put: func(t *testing.T, s store.Store, name string) { put(t, s, name, torchFixture(t, "alone.pt")) }},
	"safetensors":                     {name: "model-#.safetensors", put: func(t *testing.T, s store.Store, name string) { put(t, s, name, safetensors(10)) }},
	"Keras":                           {name: "model-#.keras", put: func(t *testing.T, s store.Store, name string) { put(t, s, name, kerasFixture(t, "model.keras")) }},
	"Keras, weights":                  {name: "model-#.weights.h5", put: func(t *testing.T, s store.Store, name string) { put(t, s, name, kerasFixture(t, "model.weights.h5")) }},
	"XGBoost":                         {name: "model_#.ubj", put: func(t *testing.T, s store.Store, name string) { put(t, s, name, recorded(t, "xgboost/model.ubj")) }},
	"LightGBM":                        {name: "model_#.txt", put: func(t *testing.T, s store.Store, name string) { put(t, s, name, recorded(t, "lightgbm/model.txt")) }},
	"Orbax's":                         {name: "#", vague: true, put: func(t *testing.T, s store.Store, name string) { putOrbax(t, s, name, nil) }},
	"torch.save, each in a directory": {name: "run/checkpoint-#/model.pt", put: func(t *testing.T, s store.Store, name string) { put(t, s, name, torchFixture(t, "alone.pt")) }},
	"Keras's, each in a directory":    {name: "#/model.keras", put: func(t *testing.T, s store.Store, name string) { put(t, s, name, kerasFixture(t, "model.keras")) }},
	"step-N": {name: "step-#", put: func(t *testing.T, s store.Store, name string) {
		put(t, s, name+"/a", []byte("x"))
		put(t, s, name+"/COMMITTED", []byte(`{"shards":1}`))
	}},
}

// removeDirs removes a directory in which no files are any more.
func removeDirs(t *testing.T, s store.Store, dir string) {
	t.Helper()
	entries, err := s.List(t.Context(), dir)
	if store.Vanished(err) {
		return
	}
	must(t, err)
	for _, e := range entries {
		removeDirs(t, s, path.Join(dir, e.Name))
	}
	must(t, s.Remove(t.Context(), dir))
}

// TestRetainedOfEachFormat: of a program that keeps the newest only, the one before can
// be read, in whatever order its files went; older ones are gone.
func TestRetainedOfEachFormat(t *testing.T) {
	for name, x := range series {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, s store.Store) {
				ctx := context.Background()
				must(t, format.SetRule(ctx, s, x.rule))
				of := func(step string) string { return strings.ReplaceAll(x.name, "#", step) }
				x.put(t, s, of("10"))
				for i, step := range []string{"20", "30"} {
					x.put(t, s, of(step))
					if got := list(t, s); len(got) != 2 || !got[0].Whole() || !got[1].Whole() {
						t.Fatalf("before: %s", states(got))
					}
					for _, c := range list(t, s) {
						seal(t, s, c.Name)
					}
					before := of([]string{"10", "20"}[i])
					names := filesBelow(t, s, before)
					if i == 1 {
						slices.Reverse(names)
					}
					for n, f := range names {
						if n == len(names)/2 && n > 0 && !x.vague { // lost halfway: it comes back, and goes again
							report, err := hdfsckpt.Repair(ctx, s, 0)
							if err != nil || !slices.Contains(report.Restored, before) || len(report.Aside) > 0 {
								t.Errorf("halfway: %s, %v", report, err)
							}
							if len(filesBelow(t, s, before)) != len(names) {
								t.Errorf("it came back as %v", filesBelow(t, s, before))
							}
							for _, f := range names[:n] {
								unlink(t, s, f)
							}
						}
						unlink(t, s, f)
					}
					removeDirs(t, s, before)
					retained := listRetained(t, s)
					former := ""
					if len(retained) == 1 {
						former, _ = retained[0].Original()
					}
					if former != before || retained[0].State != format.Sealed || len(retained[0].Files) != len(names) {
						t.Fatalf("retained are %+v", retained)
					}
					if problems, err := hdfsckpt.Verify(ctx, s, retained[0], nil); err != nil || len(problems) > 0 {
						t.Errorf("what is retained has the problems %v, %v", problems, err)
					}
					if report, err := hdfsckpt.Repair(ctx, s, 0); err != nil || report.String() != "" {
						t.Errorf("a start after it says %s, %v", report, err)
					}
				}
			})
		})
	}
}

// TestReplacedIsRetained: what a program writes over can be read once more, and comes
// back if its replacement did not come.
func TestReplacedIsRetained(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		ctx := context.Background()
		first, second := torchFixture(t, "alone.pt"), torchFixture(t, "train-40.pt")
		publish(t, s, "last.pt", first)
		publish(t, s, "last.pt", second)
		retained := listRetained(t, s)
		if len(retained) != 1 || retained[0].State != format.Complete || retained[0].Size != int64(len(first)) {
			t.Fatalf("retained are %+v", retained)
		}
		if report, err := hdfsckpt.Repair(ctx, s, 0); err != nil || report.String() != "" {
			t.Errorf("nothing is amiss: %s, %v", report, err)
		}
		must(t, retain.Replacing(ctx, s, areaOf(s), "last.pt"))
		must(t, retain.NotReplaced(ctx, s, "last.pt"))
		if b, err := store.ReadFile(ctx, s, "last.pt"); err != nil || string(b) != string(second) {
			t.Errorf("after a failure last.pt has %d bytes, %v", len(b), err)
		}
		must(t, retain.Replacing(ctx, s, areaOf(s), "last.pt")) // and its program is lost
		report, err := hdfsckpt.Repair(ctx, s, 0)
		must(t, err)
		if b, err := store.ReadFile(ctx, s, "last.pt"); err != nil || string(b) != string(second) {
			t.Errorf("last.pt has %d bytes, %v: %s", len(b), err, report)
		}

		putDistributed(t, s, "dcp", nil)
		publish(t, s, "dcp/__0_0.distcp", torchFixture(t, "dcp-300/__0_0.distcp"))
		if got := list(t, s); got[0].Name != "dcp" || got[0].Whole() {
			t.Errorf("while it is replaced: %s", states(got))
		}
		if _, err := hdfsckpt.Repair(ctx, s, 0); err != nil || !list(t, s)[0].Whole() {
			t.Errorf("after a loss halfway: %s, %v", states(list(t, s)), err)
		}
		for _, name := range []string{"__0_0.distcp", "__1_0.distcp", ".metadata"} {
			publish(t, s, "dcp/"+name, torchFixture(t, "dcp-300/"+name))
		}
		if got := list(t, s); !got[0].Whole() {
			t.Errorf("after it was replaced: %s", states(got))
		}
		if retained := listRetained(t, s); !slices.ContainsFunc(retained, func(c format.Checkpoint) bool { return c.Kind == pytorch.Distributed && c.Whole() }) {
			t.Errorf("retained are %+v", retained)
		}
		// What goes from the new one is no part of the old.
		publish(t, s, "dcp/__9_0.distcp", []byte("x"))
		unlink(t, s, "dcp/__9_0.distcp")
		for _, c := range listRetained(t, s) {
			if c.Kind == pytorch.Distributed && len(c.Files) != 3 {
				t.Errorf("retained is %+v", c)
			}
		}
		// Only one of the files that each have a name of their own stays.
		for _, name := range []string{"tmp_ab.pt", "tmp_cd.pt", "tmp_ef.pt"} {
			publish(t, s, name, first)
			unlink(t, s, name)
		}
		retained = slices.DeleteFunc(listRetained(t, s), func(c format.Checkpoint) bool { return c.Kind == pytorch.Distributed })
		if len(retained) != 1 {
			t.Errorf("retained are %+v", retained)
		}
	})
}

// TestSavedOverWithOtherShards: a program that is started again with another number of
// parameter servers saves over the step that it has restored. The new shards have other
// names than the old, and both checkpoints are whole.
func TestSavedOverWithOtherShards(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		ctx := context.Background()
		putCheckpoint(t, s, "model.ckpt-10", nil)
		for _, suffix := range []string{".data-00000-of-00001", ".index"} {
			b, err := os.ReadFile("tfbundle/testdata/objects-24" + suffix)
			must(t, err)
			publish(t, s, "model.ckpt-10"+suffix, b)
		}
		if found := list(t, s); len(found) != 1 || found[0].State != format.Complete || found[0].Shards != 1 {
			t.Errorf("visible are %s", describe(found))
		}
		if retained := listRetained(t, s); len(retained) != 1 || retained[0].Shards != 4 || len(retained[0].Files) != 5 {
			t.Errorf("retained are %+v", retained)
		}
		if report, err := hdfsckpt.Repair(ctx, s, 0); err != nil || report.String() != "" {
			t.Errorf("nothing is amiss: %s, %v", report, err)
		}
		// The old shards that a save leaves beside the new are not its own, and go with it.
		put(t, s, "model.ckpt-10.data-00001-of-00007", []byte("x"))
		seal(t, s, "model.ckpt-10")
		if c := list(t, s)[0]; len(c.Files) != 2 || len(c.Extra) != 1 || len(c.Manifest.Files) != 2 {
			t.Errorf("listed is %+v", c)
		}
		putCheckpoint(t, s, "model.ckpt-20", nil)
		seal(t, s, "model.ckpt-20")
		must(t, hdfsckpt.PlanPrune(list(t, s), 1, 0).Execute(ctx, s))
		if got := filesBelow(t, s, "."); slices.ContainsFunc(got, func(f string) bool { return strings.HasPrefix(f, "model.ckpt-10") }) {
			t.Errorf("left are %v", got)
		}
	})
}

// metadataNaming is a .metadata of torch.distributed.checkpoint of a save by so many
// ranks, each of which has put nothing but a number into its file.
func metadataNaming(ranks int) []byte {
	text := func(s string) string { return "X" + string(binary.LittleEndian.AppendUint32(nil, uint32(len(s)))) + s }
	object := func(class string, state ...string) string {
		return "ctorch.distributed.checkpoint.metadata\n" + class + "\n)\x81}(" + strings.Join(state, "") + "ub"
	}
	described, stored := "", ""
	for i := range ranks {
		item := text(fmt.Sprint("item-", i))
		described += item + object("BytesStorageMetadata")
		stored += object("MetadataIndex", text("fqn"), item, text("offset"), "N") +
			object("_StorageInfo", text("relative_path"), text(fmt.Sprintf("__%d_0.distcp", i)), text("offset"), "K\x00", text("length"), "K\x01")
	}
	return []byte("\x80\x02" + object("Metadata", text("state_dict_metadata"), "}("+described+"u", text("storage_data"), "}("+stored+"u") + ".")
}

// TestSavedOverByFewerRanks: a program that is started again with fewer ranks saves over
// its checkpoint. What the new one does not need of the old is no part of it, and the old
// one can be read.
func TestSavedOverByFewerRanks(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		for _, ranks := range []int{3, 2} {
			for i := range ranks {
				publish(t, s, fmt.Sprintf("dcp/__%d_0.distcp", i), []byte(fmt.Sprint(ranks)))
			}
			publish(t, s, "dcp/.metadata", metadataNaming(ranks))
			if got := list(t, s); len(got) != 1 || !got[0].Whole() || got[0].Shards != ranks || len(got[0].Files) != ranks+1 {
				t.Errorf("saved by %d ranks is %+v", ranks, got)
			}
		}
		kept := listRetained(t, s)
		if len(kept) != 1 || kept[0].Shards != 3 || len(kept[0].Files) != 4 {
			t.Fatalf("retained are %+v", kept)
		}
		for _, f := range kept[0].Files {
			if b, err := store.ReadFile(t.Context(), s, f.Name); err != nil || path.Ext(f.Name) == ".distcp" && string(b) != "3" {
				t.Errorf("%s holds %q, %v", f.Name, b, err)
			}
		}
		if report, err := hdfsckpt.Repair(t.Context(), s, 0); err != nil || report.String() != "" {
			t.Errorf("nothing is amiss: %s, %v", report, err)
		}
	})
}

// TestRestoredWhileOthersRun: while other tasks run, what is being saved over in place is
// restored only if its format's saves never pause: another program may still go on.
func TestRestoredWhileOthersRun(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	ctx := t.Context()
	publish(t, s, "last.pt", torchFixture(t, "alone.pt"))
	putDistributed(t, s, "dcp", nil)
	must(t, retain.Replacing(ctx, s, areaOf(s), "last.pt"))
	must(t, retain.Replacing(ctx, s, areaOf(s), "dcp/__0_0.distcp"))
	report, err := hdfsckpt.Repair(ctx, s, time.Hour)
	if got := fmt.Sprint(report.Restored); err != nil || got != "[last.pt]" {
		t.Errorf("while others run: %s, %v", got, err)
	}
	report, err = hdfsckpt.RepairObserved(ctx, s, time.Hour)
	if got := fmt.Sprint(report.Restored); err != nil || got != "[dcp]" {
		t.Errorf("while observers run: %s, %v", got, err)
	}
	must(t, retain.Replacing(ctx, s, areaOf(s), "dcp/__0_0.distcp"))
	report, err = hdfsckpt.Repair(ctx, s, 0)
	if got := fmt.Sprint(report.Restored); err != nil || got != "[dcp]" {
		t.Errorf("when nobody runs: %s, %v", got, err)
	}
}

// removedTogether are forms of checkpoints, # for the step, and how one is written.
var removedTogether = map[string]func(t *testing.T, s store.Store, name string){
	"run/step-#.pt":    func(t *testing.T, s store.Store, name string) { putTorch(t, s, name, true) },
	"run/checkpoint-#": func(t *testing.T, s store.Store, name string) { putTrainer(t, s, name) },
	"run/step_#/model": func(t *testing.T, s store.Store, name string) { putDistributed(t, s, name, nil) },
}

// saveAt writes a checkpoint as it is at a time.
func saveAt(t *testing.T, s store.Store, name string, at time.Time, put func(t *testing.T, s store.Store, name string)) {
	t.Helper()
	put(t, s, name)
	for _, f := range filesBelow(t, s, name) {
		must(t, s.Chtimes(t.Context(), f, at, at))
	}
	seal(t, s, name)
}

// TestOfAllThatIsRemovedTheNewestStays: in whatever order a program removes all of a series, as
// rm -rf and shutil.rmtree do by their names, checkpoint-1000 before checkpoint-900.
func TestOfAllThatIsRemovedTheNewestStays(t *testing.T) {
	for form, put := range removedTogether {
		for _, order := range [][]string{{"1000", "900"}, {"900", "1000"}, {"1000", "700", "800", "900"}, {"700", "1000", "800", "900"}, {"900", "800", "1000", "700"}} {
			t.Run(form+" "+strings.Join(order, " "), func(t *testing.T) {
				s := openLocal(t, t.TempDir())
				defer s.Close()
				of := func(step string) string { return strings.ReplaceAll(form, "#", step) }
				for i, step := range []string{"700", "800", "900", "1000"} {
					if slices.Contains(order, step) {
						saveAt(t, s, of(step), old.Add(time.Duration(i)*time.Minute), put)
					}
				}
				files := len(filesBelow(t, s, of("1000")))
				for _, step := range order {
					for _, f := range filesBelow(t, s, of(step)) {
						unlink(t, s, f)
					}
				}
				if kept := listRetained(t, s); len(kept) != 1 || kept[0].Former != of("1000") || kept[0].State != format.Sealed || len(kept[0].Files) != files {
					t.Errorf("retained are %s", describe(kept))
				}
			})
		}
	}
}

// TestRemovingALongSeries: how many checkpoints are looked into does not grow with the series,
// whichever goes first.
func TestRemovingALongSeries(t *testing.T) {
	const steps = 30
	for _, newestFirst := range []bool{false, true} {
		local, err := store.NewLocal(t.TempDir())
		must(t, err)
		defer local.Close()
		s := &counting{Local: local, indices: map[string]int{}}
		files := make([][]string, steps)
		for step := range steps {
			putCheckpoint(t, local, fmt.Sprintf("model.ckpt-%d", step), nil)
			at := old.Add(time.Duration(step) * time.Second)
			for _, f := range list(t, local)[step].Files {
				must(t, local.Chtimes(t.Context(), f.Name, at, at))
				files[step] = append(files[step], f.Name)
			}
		}
		if newestFirst {
			slices.Reverse(files)
		}
		for _, names := range files {
			for _, f := range names {
				unlink(t, s, f)
			}
		}
		looks := 0
		for _, n := range s.indices {
			looks += n
		}
		if looks > 10*steps {
			t.Errorf("newest first: %v; to remove %d checkpoints, %d were looked into", newestFirst, steps, looks)
		}
		if kept := listRetained(t, local); len(kept) != 1 || kept[0].Former != fmt.Sprintf("model.ckpt-%d", steps-1) {
			t.Errorf("newest first: %v; retained are %s", newestFirst, describe(kept))
		}
	}
}

// TestRetainedOfAProgramThatHasGoneBack: once a program has saved a lower step than one that was
// removed, that is not the last of the series any longer.
func TestRetainedOfAProgramThatHasGoneBack(t *testing.T) {
	for form, put := range removedTogether {
		t.Run(form, func(t *testing.T) {
			s := openLocal(t, t.TempDir())
			defer s.Close()
			at := old
			save := func(step string) {
				at = at.Add(time.Minute)
				saveAt(t, s, strings.ReplaceAll(form, "#", step), at, put)
			}
			remove := func(step, kept string) {
				t.Helper()
				for _, f := range filesBelow(t, s, strings.ReplaceAll(form, "#", step)) {
					unlink(t, s, f)
				}
				if got := listRetained(t, s); len(got) != 1 || got[0].Former != strings.ReplaceAll(form, "#", kept) {
					t.Errorf("%s is removed, and retained are %s", step, describe(got))
				}
			}
			save("500")
			save("1000")
			remove("1000", "1000") // and restores 500
			save("600")
			remove("500", "500")
			save("700")
			remove("600", "600")
			remove("700", "700") // and begins anew
			save("100")
			save("200")
			remove("100", "100")
		})
	}
}

// TestRetainedOfDirectoriesOfSteps: one of a series stays where each lies in a directory that is named
// after its step, and one of each run where a directory is the number of a run.
func TestRetainedOfDirectoriesOfSteps(t *testing.T) {
	for form, put := range map[string]func(t *testing.T, s store.Store, name string){
		"step_#/model":            func(t *testing.T, s store.Store, name string) { putDistributed(t, s, name, nil) },
		"#/model":                 func(t *testing.T, s store.Store, name string) { putDistributed(t, s, name, nil) },
		"run/#/a/state_rank_0.pt": func(t *testing.T, s store.Store, name string) { putTorch(t, s, name, true) },
		"ckpt-#/model.ckpt":       func(t *testing.T, s store.Store, name string) { putCheckpoint(t, s, name, nil) },
		"step-#/model.ckpt":       func(t *testing.T, s store.Store, name string) { putCheckpoint(t, s, name, nil) },
		"3/checkpoints/m-#.pt":    func(t *testing.T, s store.Store, name string) { putTorch(t, s, name, true) },
	} {
		t.Run(form, func(t *testing.T) {
			s := openLocal(t, t.TempDir())
			defer s.Close()
			of := func(step int) string { return strings.ReplaceAll(form, "#", fmt.Sprint(step)) }
			put(t, s, of(10))
			for step := 20; step <= 50; step += 10 {
				put(t, s, of(step))
				remove(t, s, of(step-10))
				if kept := listRetained(t, s); len(kept) != 1 || kept[0].Former != of(step-10) {
					t.Fatalf("after step %d, retained are %s", step, describe(kept))
				}
			}
		})
	}
	s := openLocal(t, t.TempDir())
	defer s.Close()
	for run := range 3 {
		for _, step := range []int{10, 20} {
			putTorch(t, s, fmt.Sprintf("%d/checkpoints/epoch=1-step=%d.ckpt", run, step), true)
		}
	}
	for run := range 3 {
		remove(t, s, fmt.Sprintf("%d/checkpoints/epoch=1-step=10.ckpt", run))
	}
	if kept := listRetained(t, s); len(kept) != 3 {
		t.Errorf("of three runs, retained are %s", describe(kept))
	}
}

// TestSealedWithoutItsDirectories: one that a former version has sealed without what is in
// directories of it is complete, is not moved, and is sealed again.
func TestSealedWithoutItsDirectories(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	for _, step := range []string{"step-10", "step-20"} {
		put(t, s, step+"/weights", []byte("w"))
		put(t, s, step+"/COMMITTED", nil)
		seal(t, s, step) // as the former version saw it
		put(t, s, step+"/params/layer_0", []byte("x"))
	}
	if got := states(list(t, s)); got != "step-10 complete; step-20 complete" {
		t.Errorf("there are %s", got)
	}
	before := tree(t, s, ".")
	if report, err := hdfsckpt.Repair(t.Context(), s, 0); err != nil || report.String() != "" || tree(t, s, ".") != before {
		t.Errorf("a start: %s, %v", report, err)
	}
	seal(t, s, "step-10", "step-20")
	if got := states(list(t, s)); got != "step-10 sealed; step-20 sealed" {
		t.Errorf("there are %s", got)
	}
	for _, f := range filesBelow(t, s, "step-10") {
		unlink(t, s, f)
	}
	removeDirs(t, s, "step-10")
	rollBack(t, s, 10)
	if got := states(list(t, s)); got != "step-10 sealed" {
		t.Errorf("gone back to it, there are %s", got)
	}
}

// TestSeriesAreToldApart: checkpoints whose names differ in a digit of a word are of two series, and
// those that differ in what was measured are of one, for what is retained, pruned and pointed at.
func TestSeriesAreToldApart(t *testing.T) {
	for name, c := range map[string]struct {
		saved          []string // in this order
		retained, left string   // once all were removed, and once all but the newest of each were pruned
	}{
		"two networks": {[]string{"G1-50.pt", "G2-50.pt", "G1-100.pt", "G2-100.pt", "G2-150.pt"}, "G1-100.pt G2-150.pt", "G1-100.pt G2-100.pt G2-150.pt"},
		"three folds": {[]string{"fold1-epoch=1.ckpt", "fold2-epoch=1.ckpt", "fold3-epoch=1.ckpt", "fold1-epoch=2.ckpt", "fold2-epoch=2.ckpt", "fold3-epoch=2.ckpt"},
			"fold1-epoch=2.ckpt fold2-epoch=2.ckpt fold3-epoch=2.ckpt", "fold1-epoch=2.ckpt fold2-epoch=2.ckpt fold3-epoch=2.ckpt"},
		"a loss that falls below 0": {[]string{"epoch=1-step=10-val_loss=0.20.ckpt", "epoch=2-step=20-val_loss=-0.20.ckpt", "epoch=3-step=30-val_loss=-1e-05.ckpt", "epoch=4-step=40-val_loss=nan.ckpt"},
			"epoch=4-step=40-val_loss=nan.ckpt", "epoch=4-step=40-val_loss=nan.ckpt"},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, s store.Store) {
				for i, file := range c.saved {
					putWhole(t, s, file)
					at := old.Add(time.Duration(i) * time.Minute)
					must(t, s.Chtimes(t.Context(), file, at, at))
				}
				removed := hdfsckpt.PlanPrune(list(t, s), 1, 0).Remove
				left := slices.DeleteFunc(slices.Clone(c.saved), func(file string) bool {
					return slices.ContainsFunc(removed, func(c format.Checkpoint) bool { return c.Name == file })
				})
				slices.Sort(left)
				if got := strings.Join(left, " "); got != c.left {
					t.Errorf("a prune leaves %s, want %s", got, c.left)
				}
				for _, file := range c.saved {
					unlink(t, s, file)
				}
				var kept []string
				for _, c := range listRetained(t, s) {
					kept = append(kept, c.Former)
				}
				slices.Sort(kept)
				if got := strings.Join(kept, " "); got != c.retained {
					t.Errorf("retained are %s, want %s", got, c.retained)
				}
			})
		})
	}
	t.Run("pointed at", func(t *testing.T) {
		onBoth(t, func(t *testing.T, s store.Store) {
			putCheckpoint(t, s, "G1-100", nil)
			put(t, s, "checkpoint", stateFile("G1-100"))
			saveBundleAt(t, s, "G2-200", old.Add(time.Hour))
			if report, err := hdfsckpt.Repair(t.Context(), s, 0); err != nil || report.String() != "" {
				t.Errorf("beside what another network has saved later, a start says %s, %v", report, err)
			}
			putCheckpoint(t, s, "G1-90", nil)
			must(t, s.Remove(t.Context(), "G1-100.index"))
			if report, err := hdfsckpt.Repair(t.Context(), s, 0); err != nil || len(report.Pointed) != 1 || report.Pointed[0].To != "G1-90" {
				t.Errorf("once what it names is torn, a start says %s, %v", report, err)
			}
		})
	})
}

// saveBundleAt writes a checkpoint of TensorFlow as it is at a time.
func saveBundleAt(t *testing.T, s store.Store, name string, at time.Time) {
	t.Helper()
	putCheckpoint(t, s, name, nil)
	for _, c := range list(t, s) {
		for _, f := range c.Files {
			if c.Name == name {
				must(t, s.Chtimes(t.Context(), f.Name, at, at))
			}
		}
	}
}
