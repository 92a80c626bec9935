package hdfsckpt_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/formats/pytorch"
	"holdfast/hdfsckpt/store"
)

func planRollback(t *testing.T, s store.Store, dir string, step int64) hdfsckpt.RollbackPlan {
	t.Helper()
	plan, err := hdfsckpt.PlanRollback(context.Background(), s, dir, step)
	if err != nil {
		t.Fatalf("planning to roll back to %d: %v", step, err)
	}
	return plan
}

func rollBack(t *testing.T, s store.Store, step int64) hdfsckpt.RollbackPlan {
	t.Helper()
	plan := planRollback(t, s, "", step)
	if err := plan.Execute(context.Background(), s, "alice"); err != nil {
		t.Fatalf("rolling back to %d: %v", step, err)
	}
	return plan
}

func movedAside(t *testing.T, s store.Store) []hdfsckpt.Aside {
	t.Helper()
	aside, err := hdfsckpt.ListAside(context.Background(), s)
	must(t, err)
	return aside
}

// age gives all files of a store different times, the later the higher a step.
func age(t *testing.T, s store.Store, steps ...string) {
	t.Helper()
	at := old
	for _, step := range steps {
		for _, name := range allFiles(t, s, ".") {
			if strings.Contains(name, step) {
				at = at.Add(time.Second)
				must(t, s.Chtimes(context.Background(), name, at, at))
			}
		}
	}
}

// allFiles are those of a store, its own included.
func allFiles(t *testing.T, s store.Store, dir string) []string {
	t.Helper()
	entries, err := s.List(context.Background(), dir)
	must(t, err)
	var names []string
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		if e.IsDir() {
			names = append(names, allFiles(t, s, name)...)
		} else {
			names = append(names, name)
		}
	}
	return names
}

// rolledBackSeries are checkpoints of each format without a pointer: put saves one of a step, and whole
// says whether its save has ended.
var rolledBackSeries = map[string]struct {
	name string // of a checkpoint, with N in place of its step
	rule format.Rule
	put  func(t *testing.T, s store.Store, step int, whole bool)
	// torn is what an unfinished one is listed as, if not by the name of a whole one.
	torn string
}{
	"torch": {name: "sub/step-N.pt", put: func(t *testing.T, s store.Store, step int, whole bool) {
		putTorch(t, s, fmt.Sprintf("sub/step-%d.pt", step), whole)
	}},
	"torch, alone in directories": {name: "step_N/model.pt", put: func(t *testing.T, s store.Store, step int, whole bool) {
		putTorch(t, s, fmt.Sprintf("step_%d/model.pt", step), whole)
		must(t, store.MkdirAll(context.Background(), s, fmt.Sprintf("step_%d/empty", step), 0o755))
	}},
	"distributed": {name: "step_N", put: func(t *testing.T, s store.Store, step int, whole bool) {
		putDistributed(t, s, fmt.Sprintf("step_%d", step), func(name string, b []byte) []byte {
			if name == ".metadata" && !whole {
				return nil
			}
			return b
		})
	}},
	"Trainer's": {name: "checkpoint-N", put: func(t *testing.T, s store.Store, step int, whole bool) {
		but := []string{"trainer_state.json"}
		if whole {
			but = nil
		}
		putTrainer(t, s, fmt.Sprintf("checkpoint-%d", step), but...)
	}},
	"safetensors": {name: "model_N.safetensors", put: func(t *testing.T, s store.Store, step int, whole bool) {
		content := safetensors(100)
		if !whole {
			content = content[:len(content)-1]
		}
		put(t, s, fmt.Sprintf("model_%d.safetensors", step), content)
	}},
	"safetensors, cut": {name: "m-N.safetensors.index.json", put: func(t *testing.T, s store.Store, step int, whole bool) {
		shard := func(i int) string { return fmt.Sprintf("m-%d-0000%d-of-00002.safetensors", step, i) }
		put(t, s, shard(1), safetensors(10))
		if whole {
			put(t, s, shard(2), safetensors(20))
		}
		put(t, s, fmt.Sprintf("m-%d.safetensors.index.json", step), fmt.Appendf(nil, `{"weight_map":{"a":%q,"b":%q}}`, shard(1), shard(2)))
	}},
	"orbax": {name: "N", torn: "N.orbax-checkpoint-tmp-7", put: func(t *testing.T, s store.Store, step int, whole bool) {
		if whole {
			putOrbax(t, s, fmt.Sprint(step), nil)
		} else {
			putOrbax(t, s, fmt.Sprintf("%d.orbax-checkpoint-tmp-7", step), nil)
		}
	}},
	"keras": {name: "model_N.keras", put: func(t *testing.T, s store.Store, step int, whole bool) {
		content := kerasFixture(t, "model.keras")
		if !whole {
			content = content[:len(content)-9]
		}
		put(t, s, fmt.Sprintf("model_%d.keras", step), content)
	}},
	"xgboost": {name: "model_N.ubj", put: func(t *testing.T, s store.Store, step int, whole bool) {
		content := recorded(t, "xgboost/model.ubj")
		if !whole {
			content = content[:len(content)-1]
		}
		put(t, s, fmt.Sprintf("model_%d.ubj", step), content)
	}},
	"lightgbm": {name: "model.txt.snapshot_iter_N", put: func(t *testing.T, s store.Store, step int, whole bool) {
		content := recorded(t, "lightgbm/model.txt")
		if !whole {
			content = content[:len(content)/2]
		}
		put(t, s, fmt.Sprintf("model.txt.snapshot_iter_%d", step), content)
	}},
	"mxnet": {name: "net-N.params", put: func(t *testing.T, s store.Store, step int, whole bool) {
		put(t, s, fmt.Sprintf("net-%d.params", step), recorded(t, "mxnet/module-0002.params"))
		if whole {
			put(t, s, fmt.Sprintf("net-%d.states", step), recorded(t, "mxnet/module-0002.states"))
		}
	}},
	"plain": {name: "step-N", put: func(t *testing.T, s store.Store, step int, whole bool) {
		put(t, s, fmt.Sprintf("step-%d/weights", step), []byte("x"))
		put(t, s, fmt.Sprintf("step-%d/deep/er", step), []byte("x"))
		if whole {
			put(t, s, fmt.Sprintf("step-%d/COMMITTED", step), nil)
		}
	}},
	"plain, by a marker": {name: "runs/a/ckpt-N", rule: format.Rule{Format: formats.Plain, Marker: "_SUCCESS"}, put: func(t *testing.T, s store.Store, step int, whole bool) {
		put(t, s, fmt.Sprintf("runs/a/ckpt-%d/weights", step), []byte("x"))
		if whole {
			put(t, s, fmt.Sprintf("runs/a/ckpt-%d/_SUCCESS", step), nil)
		}
	}},
	"plain, by quiet": {name: "weights-N.npz", torn: "weights-N.npz.tmp", rule: format.Rule{Format: formats.Plain, Quiet: 30}, put: func(t *testing.T, s store.Store, step int, whole bool) {
		name := fmt.Sprintf("weights-%d.npz", step)
		if !whole {
			name += ".tmp"
		}
		put(t, s, name, []byte("x"))
	}},
	"ray": {name: "run/mine_N", put: func(t *testing.T, s store.Store, step int, whole bool) {
		name := fmt.Sprintf("mine_%d", step)
		if !whole {
			name = fmt.Sprintf("checkpoint_2026-11-25_15-38-%02d.901110", step)
		}
		put(t, s, "run/"+name+"/state.npz", []byte("x"))
		if whole {
			putRayList(t, s, "run", append(rayListed(t, s, "run"), step)...)
		}
	}, torn: "run/checkpoint_2026-11-25_15-38-N.901110"},
	"savedmodel": {name: "export/N", put: func(t *testing.T, s store.Store, step int, whole bool) {
		putContract(t, s, formats.SavedModel, step, whole)
	}},
	"lightning": {name: "epoch=1-step=N.ckpt", put: func(t *testing.T, s store.Store, step int, whole bool) {
		putContract(t, s, pytorch.Lightning, step, whole)
	}},
	"tensorflow, without a pointer": {name: "model.ckpt-N", put: func(t *testing.T, s store.Store, step int, whole bool) {
		if whole {
			putCheckpoint(t, s, fmt.Sprintf("model.ckpt-%d", step), nil)
		} else {
			putCheckpoint(t, s, fmt.Sprintf("model.ckpt-%d", step), without(".index"))
		}
	}},
}

// putContract puts one as the contract of its format says it is written.
func putContract(t *testing.T, s store.Store, kind format.Kind, step int, whole bool) {
	t.Helper()
	c := contracts(t)[string(kind)]
	c.save(t, s, putFile, fmt.Sprint(step))
	if !whole {
		c.tear(t, s, fmt.Sprint(step))
	}
}

// putTorch puts a file of torch.save, all of it or but for its end.
func putTorch(t *testing.T, s store.Store, name string, whole bool) {
	t.Helper()
	content := torchFixture(t, "alone.pt")
	if !whole {
		content = content[:len(content)-100]
	}
	put(t, s, name, content)
}

func inSeries(name string, step int) string { return strings.Replace(name, "N", fmt.Sprint(step), 1) }

// TestRollbackWithoutAPointer: programs that take what is newest take what was gone back to; all
// that is newer lies aside, and going back to a newer one restores it, and what lies between.
func TestRollbackWithoutAPointer(t *testing.T) {
	for name, f := range rolledBackSeries {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, s store.Store) {
				ctx := context.Background()
				must(t, format.SetRule(ctx, s, f.rule))
				var names []string
				torn := inSeries(cmp.Or(f.torn, f.name), 50)
				for i, step := range []int{10, 20, 30, 40, 50} {
					f.put(t, s, step, step < 50)
					if step < 50 {
						names = append(names, inSeries(f.name, step))
					}
					at := old.Add(time.Duration(i) * time.Second)
					for _, c := range list(t, s) {
						for _, file := range c.Files {
							if c.Name == append(names, torn)[i] {
								must(t, s.Chtimes(ctx, file.Name, at, at))
							}
						}
					}
				}
				if f.rule.Quiet == 0 { // otherwise it would be a checkpoint
					put(t, s, "notes/notes.md", []byte("of the program"))
				}
				seal(t, s, names...)
				before := tree(t, s, ".")

				plan := planRollback(t, s, "", 20)
				if tree(t, s, ".") != before || len(movedAside(t, s)) > 0 {
					t.Fatal("planning has changed something")
				}
				rollBack(t, s, 20)
				if got, want := states(list(t, s)), names[0]+" sealed; "+names[1]+" sealed"; got != want {
					t.Errorf("rolled back, there are %s, want %s", got, want)
				}
				var moved []string
				for _, m := range plan.Moves {
					moved = append(moved, m.Name)
				}
				if want := []string{names[2], names[3], torn}; !slices.Equal(slices.Sorted(slices.Values(moved)), slices.Sorted(slices.Values(want))) {
					t.Errorf("the plan was to move %v, want %v", moved, want)
				}
				aside := movedAside(t, s)
				if len(aside) != 3 {
					t.Errorf("aside are %+v", aside)
				}
				for _, a := range aside {
					if !strings.HasPrefix(a.Why, "rolled back to 20 by alice at 20") || time.Since(a.Moved) > time.Hour || !slices.Contains(moved, a.Name) || (a.Name != torn) != (a.Rollback.State == format.Sealed) {
						t.Errorf("aside is %+v", a)
					}
				}
				if there, err := store.Exists(ctx, s, "notes/notes.md"); err != nil || !there && f.rule.Quiet == 0 {
					t.Errorf("what is the program's own is gone: %v", err)
				}
				for _, file := range allFiles(t, s, ".") {
					if !strings.HasPrefix(file, store.OwnDir) && !strings.Contains(file, "snapshot.json") && !strings.HasPrefix(file, "notes") && !strings.Contains(file, "10") && !strings.Contains(file, "20") {
						t.Errorf("%s is left", file)
					}
				}
				if again := planRollback(t, s, "", 20); again.Needed() {
					t.Errorf("there is more to do: %+v", again)
				}
				if report, err := hdfsckpt.Repair(ctx, s, 0); err != nil || report.String() != "" || len(movedAside(t, s)) != 3 {
					t.Errorf("the next start: %s, %v", report, err)
				}

				if name == "ray" {
					if got := rayListed(t, s, "run"); !slices.Equal(got, []int{10, 20}) {
						t.Errorf("rolled back, the list has %v", got)
					}
				}

				plan = rollBack(t, s, 40)
				if len(plan.Restore) != 2 || len(plan.Moves) > 0 {
					t.Errorf("forward again, restored were %+v, moved %+v", plan.Restore, plan.Moves)
				}
				if got, want := states(list(t, s)), strings.Join(names, " sealed; ")+" sealed"; got != want {
					t.Errorf("forward again, there are %s, want %s", got, want)
				}
				if aside := movedAside(t, s); len(aside) != 1 || aside[0].Name != torn {
					t.Errorf("aside are %+v", aside)
				}
				after := tree(t, s, ".")
				for line := range strings.Lines(before) {
					if !strings.Contains(line, "50") && !strings.Contains(line, "snapshot.json") && !strings.Contains(after, line) {
						t.Errorf("lost is %.200s", line)
					}
				}
				if _, err := hdfsckpt.PlanRollback(ctx, s, "", 50); !hdfsckpt.IsImpossible(err) {
					t.Errorf("back to what was torn: %v", err)
				}
				if name == "ray" {
					if got := rayListed(t, s, "run"); !slices.Equal(got, []int{10, 20, 30, 40}) {
						t.Errorf("the list has %v", got)
					}
				}
			})
		})
	}
}

// TestEveryFormatCanBeRolledBack: a format that has no pointer is in rolledBackSeries.
func TestEveryFormatCanBeRolledBack(t *testing.T) {
	tried := map[format.Kind]bool{formats.Directory: true, pytorch.DeepSpeed: true} // never whole; by its pointer
	for _, f := range rolledBackSeries {
		s := openLocal(t, t.TempDir())
		must(t, format.SetRule(t.Context(), s, f.rule))
		f.put(t, s, 10, true)
		for _, c := range list(t, s) {
			tried[c.Kind] = true
		}
		s.Close()
	}
	for _, f := range formats.All {
		if k := f.Traits().Kind; !tried[k] {
			t.Errorf("nobody has rolled %s back", k)
		}
	}
}

// TestRollbackOfLightnings: what is called the last is what programs go on from, so it becomes a
// copy of the one that was gone back to; what else has no step and is younger lies aside.
func TestRollbackOfLightnings(t *testing.T) {
	for _, kind := range []string{"files", "directories"} {
		t.Run(kind, func(t *testing.T) {
			onBoth(t, func(t *testing.T, s store.Store) {
				ctx := context.Background()
				at := old
				save := func(name string) {
					at = at.Add(time.Second)
					if kind == "files" {
						putTorch(t, s, name, true)
						must(t, s.Chtimes(ctx, name, at, at))
						return
					}
					putDistributed(t, s, name, nil)
					for _, f := range []string{"__0_0.distcp", "__1_0.distcp", ".metadata"} {
						must(t, s.Chtimes(ctx, path.Join(name, f), at, at))
					}
				}
				step := func(n int) string { return fmt.Sprintf("run/epoch=%d-step=%d.ckpt", n/10, n) }
				save("run/oldest.ckpt")
				for _, n := range []int{10, 20, 30} {
					save(step(n))
				}
				save("run/best.ckpt")
				save("run/last.ckpt")
				seal(t, s, step(10), step(20), step(30), "run/best.ckpt", "run/last.ckpt")
				plan := rollBack(t, s, 20)
				var moved []string
				for _, m := range plan.Moves {
					moved = append(moved, m.Name)
				}
				if want := []string{step(30), "run/best.ckpt", "run/last.ckpt"}; !slices.Equal(moved, want) || !slices.Equal(plan.Copies, []string{"run/last.ckpt"}) {
					t.Errorf("moved are %v, want %v; copied to %v", moved, want, plan.Copies)
				}
				if got, want := states(list(t, s)), "run/oldest.ckpt complete; run/last.ckpt complete; "+step(10)+" sealed; "+step(20)+" sealed"; got != want {
					t.Errorf("rolled back, there are %s, want %s", got, want)
				}
				if text := tree(t, s, "run"); !sameBut(text, "run/last.ckpt", step(20)) {
					t.Errorf("what is called the last is no copy:\n%.2000s", text)
				}
				if again := planRollback(t, s, "", 20); again.Needed() {
					t.Errorf("there is more to do: %+v", again)
				}
				rollBack(t, s, 30)
				if text := tree(t, s, "run"); !sameBut(text, "run/last.ckpt", step(30)) || strings.Contains(text, "best") {
					t.Errorf("forward again, what is called the last is no copy:\n%.2000s", text)
				}
				if left := allFiles(t, s, store.OwnDir); slices.ContainsFunc(left, func(n string) bool { return strings.HasPrefix(n, store.OwnDir+"/rollback") }) {
					t.Errorf("left is %v", left)
				}
			})
		})
	}
}

// TestRollbackOfALinkedLast: what is called the last may be a link to the youngest, as Lightning's
// save_last="link" makes one. It leads nowhere once that is moved aside, and becomes a copy all
// the same.
func TestRollbackOfALinkedLast(t *testing.T) {
	dir := t.TempDir()
	s := openLocal(t, dir)
	defer s.Close()
	step := func(n int) string { return fmt.Sprintf("epoch=1-step=%d.ckpt", n) }
	for i, n := range []int{10, 20} {
		putTorch(t, s, step(n), true)
		at := old.Add(time.Duration(i) * time.Second)
		must(t, s.Chtimes(t.Context(), step(n), at, at))
	}
	must(t, os.Symlink(step(20), path.Join(dir, "last.ckpt")))
	for _, n := range []int{10, 20} {
		rollBack(t, s, int64(n))
		if text := tree(t, s, "."); !sameBut(text, "last.ckpt", step(n)) {
			t.Errorf("rolled back to %d, what is called the last is no copy of it:\n%s", n, text)
		}
		if again := planRollback(t, s, "", int64(n)); again.Needed() {
			t.Errorf("there is more to do: %+v", again)
		}
	}
}

// sameBut reports whether what a tree says of two names differs in these only.
func sameBut(tree, a, b string) bool {
	of := func(name string) (lines []string) {
		for line := range strings.Lines(tree) {
			if rest, ok := strings.CutPrefix(line, name); ok {
				lines = append(lines, rest)
			}
		}
		return lines
	}
	return len(of(a)) > 0 && slices.Equal(of(a), of(b))
}

// TestRollbackOfSeveralOfAStep: a model and its optimizer of one step are gone back to together,
// but not if one of them is not whole.
func TestRollbackOfSeveralOfAStep(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	for _, step := range []int{10, 20, 30} {
		put(t, s, fmt.Sprintf("model-%d.safetensors", step), safetensors(10))
		putTorch(t, s, fmt.Sprintf("optimizer-%d.pt", step), step != 10)
	}
	put(t, s, "last.pt", torchFixture(t, "train-40.pt"))
	must(t, s.Chtimes(t.Context(), "last.pt", old.Add(time.Minute), old.Add(time.Minute)))
	putCheckpoint(t, s, "other.ckpt-40", nil) // what a pointer decides about
	put(t, s, "checkpoint", stateFile("other.ckpt-40"))
	if _, err := hdfsckpt.PlanRollback(t.Context(), s, "", 10); !hdfsckpt.IsImpossible(err) || !strings.Contains(err.Error(), "optimizer-10.pt is torn") {
		t.Errorf("with a torn one beside it: %v", err)
	}
	plan := rollBack(t, s, 20)
	if got := states(list(t, s)); got != "model-10.safetensors complete; optimizer-10.pt torn; model-20.safetensors complete; optimizer-20.pt complete; other.ckpt-40 complete current" ||
		len(plan.Beside) != 1 || len(plan.Copies) != 0 {
		t.Errorf("there are %s; beside are %+v", got, plan.Beside)
	}
	rollBack(t, s, 30)
	if got := states(list(t, s)); !strings.Contains(got, "model-30.safetensors complete; optimizer-30.pt complete") {
		t.Errorf("forward again, there are %s", got)
	}
}

// TestRollbackAfterTheProgramWentOn: what was saved since is gone back to before what lies aside,
// and what is not whole by the name of what is restored is moved aside, and not replaced.
func TestRollbackAfterTheProgramWentOn(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		for _, step := range []int{10, 20, 30} {
			putTorch(t, s, fmt.Sprintf("step-%d.pt", step), true)
		}
		rollBack(t, s, 10)
		put(t, s, "step-20.pt", torchFixture(t, "train-40.pt"))
		putTorch(t, s, "step-30.pt", false)
		putTorch(t, s, "step-40.pt", true)
		rollBack(t, s, 20)
		if text := tree(t, s, "."); !strings.Contains(text, fmt.Sprintf("%x", torchFixture(t, "train-40.pt"))) {
			t.Errorf("what was saved last of step 20 is not there: %.2000s", text)
		}
		rollBack(t, s, 10)
		putTorch(t, s, "step-30.pt", false)
		rollBack(t, s, 30)
		if got := states(list(t, s)); got != "step-10.pt complete; step-20.pt complete; step-30.pt complete" {
			t.Errorf("there are %s", got)
		}
		names := map[string]int{}
		for _, a := range movedAside(t, s) {
			names[a.Name]++
		}
		if want := map[string]int{"step-20.pt": 1, "step-30.pt": 2, "step-40.pt": 1}; !maps.Equal(names, want) {
			t.Errorf("aside are %v, want %v", names, want)
		}
	})
}

// TestRollbackToWhatIsRetained: of any format, what the program has removed can be gone back to.
func TestRollbackToWhatIsRetained(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		for _, step := range []int{10, 20} {
			putTrainer(t, s, fmt.Sprintf("checkpoint-%d", step))
		}
		seal(t, s, "checkpoint-10", "checkpoint-20")
		remove(t, s, "checkpoint-10")
		removeDirs(t, s, "checkpoint-10")
		rollBack(t, s, 10)
		if got := states(list(t, s)); got != "checkpoint-10 sealed" || len(listRetained(t, s)) > 0 {
			t.Errorf("there are %s, retained %+v", got, listRetained(t, s))
		}
		rollBack(t, s, 20)
		if got := states(list(t, s)); got != "checkpoint-10 sealed; checkpoint-20 sealed" {
			t.Errorf("forward again, there are %s", got)
		}
	})
}

// underTorn are checkpoints of which a whole one is retained, and one by its name is torn; of the
// steps 10 to 30 it is that of the last.
var underTorn = map[string]func(t *testing.T, s store.Store) (name string){
	"a file that was saved over": func(t *testing.T, s store.Store) string {
		for _, step := range []int{10, 20, 30} {
			putTorch(t, s, fmt.Sprintf("step-%d.pt", step), true)
		}
		whole := torchFixture(t, "alone.pt")
		publish(t, s, "step-30.pt", whole[:len(whole)-100])
		return "step-30.pt"
	},
	"a directory that was saved over": func(t *testing.T, s store.Store) string {
		for _, step := range []int{10, 20, 30} {
			putDistributed(t, s, fmt.Sprintf("step_%d", step), nil)
		}
		for _, file := range []string{"__0_0.distcp", "__1_0.distcp"} {
			publish(t, s, "step_30/"+file, torchFixture(t, "dcp-300/"+file))
		}
		return "step_30"
	},
	"a directory that was removed": func(t *testing.T, s store.Store) string {
		for _, step := range []int{10, 20, 30} {
			putTrainer(t, s, fmt.Sprintf("checkpoint-%d", step))
		}
		remove(t, s, "checkpoint-30")
		removeDirs(t, s, "checkpoint-30")
		putTrainer(t, s, "checkpoint-30", "trainer_state.json")
		return "checkpoint-30"
	},
	"a file that was removed with its directory": func(t *testing.T, s store.Store) string {
		for _, step := range []int{10, 20, 30} {
			putTorch(t, s, fmt.Sprintf("checkpoint-%d/model.pt", step), true)
		}
		seal(t, s, "checkpoint-30/model.pt")
		remove(t, s, "checkpoint-30/model.pt")
		putTorch(t, s, "checkpoint-30/model.pt", false)
		return "checkpoint-30/model.pt"
	},
}

// TestRollbackToWhatIsRetainedUnderWhatIsTorn: what is torn is moved aside, and what is retained takes
// its place; also of a rollback that dies on the way and is executed again, or after which a job
// starts.
func TestRollbackToWhatIsRetainedUnderWhatIsTorn(t *testing.T) {
	for name, build := range underTorn {
		t.Run(name, func(t *testing.T) {
			for die, starts, died := 0, false, true; died; die, starts = die+1, !starts {
				local, err := store.NewLocal(t.TempDir())
				must(t, err)
				defer local.Close()
				back := build(t, local)
				if got := states(list(t, local)); !strings.Contains(got, back+" torn") || len(listRetained(t, local)) != 1 {
					t.Fatalf("before, there are %s, and retained %+v", got, listRetained(t, local))
				}
				plan := planRollback(t, local, "", 30)
				m := &mortal{local, 1000, false}
				if die > 0 {
					m.n = die
				}
				err = plan.Execute(t.Context(), m, "alice")
				if died = die == 0 || m.n <= 0; died != (err != nil || die == 0) {
					t.Fatalf("dead at change %d: %v", die, err)
				}
				if die > 0 && died {
					if starts {
						_, err := hdfsckpt.Repair(t.Context(), local, 0)
						must(t, err)
					}
					rollBack(t, local, 30)
				}
				if got := states(list(t, local)); !strings.HasSuffix(got, back+" complete") && !strings.HasSuffix(got, back+" sealed") || len(listRetained(t, local)) > 0 {
					t.Fatalf("dead at change %d, rolled back there are %s, retained %+v", die, got, listRetained(t, local))
				}
			}
		})
	}
}

// TestRollbackOfAFormerVersion: what a former version had moved away with what is torn, though it
// was to go back to it, is gone back to.
func TestRollbackOfAFormerVersion(t *testing.T) {
	for name, build := range underTorn {
		for _, starts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, a job starts: %v", name, starts), func(t *testing.T) {
				local, err := store.NewLocal(t.TempDir())
				must(t, err)
				defer local.Close()
				back := build(t, local)
				plan := planRollback(t, local, "", 30)
				for n := 1; len(movedAside(t, local)) == 0; n++ { // and no further
					if err := plan.Execute(t.Context(), &mortal{local, n, false}, "alice"); err == nil {
						t.Fatal("it has not died")
					}
				}
				aside := movedAside(t, local)[0]
				entry := strings.TrimSuffix(aside.Where, "/files/"+back)
				retained, err := local.List(t.Context(), store.OwnDir+"/retained")
				must(t, err)
				must(t, local.Rename(t.Context(), path.Join(store.OwnDir, "retained", retained[0].Name), path.Join(entry, "retained")))
				if starts {
					report, err := hdfsckpt.Repair(t.Context(), local, 0)
					must(t, err)
					t.Log(report)
				}
				rollBack(t, local, 30)
				if got := states(list(t, local)); !strings.HasSuffix(got, back+" complete") && !strings.HasSuffix(got, back+" sealed") {
					t.Errorf("there are %s", got)
				}
			})
		}
	}
}

// TestRollbackBesideSomethingForeign: what has the pointer's name and is none stays, and is told.
func TestRollbackBesideSomethingForeign(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	putCheckpoint(t, s, "model.ckpt-10", nil)
	putCheckpoint(t, s, "model.ckpt-20", nil)
	put(t, s, "checkpoint/notes.txt", []byte("x"))
	plan := planRollback(t, s, "", 10)
	if err := plan.Execute(t.Context(), s, "alice"); err == nil || !strings.Contains(err.Error(), "checkpoint at model.ckpt-10: there is something by that name") || strings.Contains(err.Error(), "%!") {
		t.Errorf("the rollback says %v", err)
	}
}

// TestRollbackOfWhatWasSavedOver: what was replaced by a checkpoint that lies aside is not restored
// in its place by the next start, and is retained again when that one is restored.
func TestRollbackOfWhatWasSavedOver(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		for _, step := range []int{10, 20, 30} {
			putTorch(t, s, fmt.Sprintf("step-%d.pt", step), true)
		}
		publish(t, s, "step-30.pt", torchFixture(t, "train-40.pt"))
		if got := listRetained(t, s); len(got) != 1 || got[0].Former != "step-30.pt" {
			t.Fatalf("retained are %+v", got)
		}
		rollBack(t, s, 20)
		report, err := hdfsckpt.Repair(context.Background(), s, 0)
		if got := states(list(t, s)); err != nil || got != "step-10.pt complete; step-20.pt complete" || report.String() != "" {
			t.Errorf("after the next start there are %s: %s, %v", got, report, err)
		}
		rollBack(t, s, 30)
		if text, err := store.ReadFile(context.Background(), s, "step-30.pt"); err != nil || !bytes.Equal(text, torchFixture(t, "train-40.pt")) {
			t.Errorf("restored is something else: %d bytes, %v", len(text), err)
		}
		if got := listRetained(t, s); len(got) != 1 || got[0].Former != "step-30.pt" {
			t.Errorf("retained are %+v", got)
		}
	})
}

// TestWhatARollbackMovedGoesAfterAWhile: by the rule of all that is moved aside.
func TestWhatARollbackMovedGoesAfterAWhile(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	putTorch(t, s, "step-10.pt", true)
	putTorch(t, s, "step-20.pt", true)
	rollBack(t, s, 10)
	for _, days := range []int{29, 31} {
		for _, name := range allFiles(t, s, store.OwnDir) {
			if path.Base(name) != "aside.json" {
				continue
			}
			text, err := store.ReadFile(t.Context(), s, name)
			must(t, err)
			a := movedAside(t, s)[0]
			text = []byte(strings.Replace(string(text), a.Moved.Format(time.RFC3339), time.Now().Add(-time.Duration(days)*24*time.Hour).UTC().Format(time.RFC3339), 1))
			must(t, store.WriteFile(t.Context(), s, name, text, 0o644))
		}
		_, err := hdfsckpt.Repair(t.Context(), s, 0)
		must(t, err)
		if n := len(movedAside(t, s)); (n == 1) != (days == 29) {
			t.Errorf("after %d days, %d are aside", days, n)
		}
	}
	if _, err := hdfsckpt.PlanRollback(t.Context(), s, "", 20); !hdfsckpt.IsImpossible(err) {
		t.Errorf("to what is gone: %v", err)
	}
}

// TestRollbackOfWhatHasChanged: nothing is moved if what is gone back to is not what was planned.
func TestRollbackOfWhatHasChanged(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	putTorch(t, s, "step-10.pt", true)
	putTorch(t, s, "step-20.pt", true)
	plan := planRollback(t, s, "", 10)
	must(t, s.Chtimes(t.Context(), "step-10.pt", time.Now(), time.Now()))
	if err := plan.Execute(t.Context(), s, "alice"); !errors.Is(err, syscall.EBUSY) || len(movedAside(t, s)) > 0 {
		t.Errorf("%v; aside are %+v", err, movedAside(t, s))
	}
	plan = planRollback(t, s, "", 10)
	putTorch(t, s, "step-30.pt", true) // by a job that the plan has not seen
	if err := plan.Execute(t.Context(), s, "alice"); err == nil || !strings.Contains(err.Error(), "roll back again") {
		t.Errorf("with another one by then: %v", err)
	}
	rollBack(t, s, 10)
	if got := states(list(t, s)); got != "step-10.pt complete" {
		t.Errorf("there are %s", got)
	}
}

// lossy is a store whose answers are lost: it renames, and says that it has not.
type lossy struct{ *store.Local }

func (s lossy) Rename(ctx context.Context, from, to string) error {
	if err := s.Local.Rename(ctx, from, to); err != nil || !strings.HasPrefix(to, store.OwnDir+"/aside/") {
		return err
	}
	return syscall.ETIMEDOUT
}

// TestAMoveFailsHalfway: what was moved of a checkpoint of several files stays, and the rest follows.
func TestAMoveFailsHalfway(t *testing.T) {
	local, err := store.NewLocal(t.TempDir())
	must(t, err)
	defer local.Close()
	for _, step := range []int{10, 20} {
		rolledBackSeries["safetensors, cut"].put(t, local, step, true)
	}
	const stays = "m-20-00002-of-00002.safetensors"
	plan := planRollback(t, local, "", 10)
	if err := plan.Execute(t.Context(), immovable{local, stays}, "alice"); !errors.Is(err, syscall.EACCES) {
		t.Fatalf("a file that may not be moved: %v", err)
	}
	aside := movedAside(t, local)
	if files := allFiles(t, local, store.OwnDir+"/aside"); len(aside) != 1 || len(files) != 3 {
		t.Fatalf("aside are %+v, in %v", aside, files)
	}
	rollBack(t, local, 10)
	if aside := movedAside(t, local); len(aside) != 1 || len(list(t, local)) != 1 {
		t.Errorf("aside are %+v; there are %s", aside, states(list(t, local)))
	}
	rollBack(t, local, 20)
	if got := states(list(t, local)); got != "m-10.safetensors.index.json complete; m-20.safetensors.index.json complete" {
		t.Errorf("there are %s", got)
	}
}

// TestAnAnswerIsLost: what was moved aside though the store did not say so is not removed.
func TestAnAnswerIsLost(t *testing.T) {
	local, err := store.NewLocal(t.TempDir())
	must(t, err)
	defer local.Close()
	putTorch(t, local, "step-10.pt", true)
	putTorch(t, local, "step-20.pt", true)
	putTorch(t, local, "step-30.pt", false)
	_, err = hdfsckpt.Repair(t.Context(), lossy{local}, 0)
	must(t, err)
	plan := planRollback(t, local, "", 10)
	must(t, plan.Execute(t.Context(), lossy{local}, "alice"))
	if got := states(list(t, local)); got != "step-10.pt complete" {
		t.Errorf("there are %s", got)
	}
	if aside := movedAside(t, local); len(aside) != 2 {
		t.Errorf("aside are %+v", aside)
	}
}
