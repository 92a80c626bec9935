package hdfsckpt_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
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
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
)

// tree is all that lies in a store outside of OwnDir, with times and contents.
func tree(t *testing.T, s store.Store, dir string) string {
	t.Helper()
	var b strings.Builder
	entries, err := s.List(context.Background(), dir)
	must(t, err)
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		switch {
		case name == store.OwnDir:
		case e.IsDir():
			fmt.Fprintf(&b, "%s/\n%s", name, tree(t, s, name))
		default:
			text, err := store.ReadFile(context.Background(), s, name)
			must(t, err)
			fmt.Fprintf(&b, "%s %v %x\n", name, e.ModTime, text)
		}
	}
	return b.String()
}

// TestUsersFileCheckpoint: what is called `checkpoint` and is not known to be
// TensorFlow's is the user's, whatever it is and whatever lies beside it.
func TestUsersFileCheckpoint(t *testing.T) {
	for name, build := range map[string]func(t *testing.T, s store.Store){
		"a text": func(t *testing.T, s store.Store) { put(t, s, "checkpoint", []byte("hello\n")) },
		"a text beside a whole one": func(t *testing.T, s store.Store) {
			put(t, s, "checkpoint", []byte("hello\n"))
			putCheckpoint(t, s, "model.ckpt-10", nil)
		},
		"empty":                func(t *testing.T, s store.Store) { put(t, s, "checkpoint", nil) },
		"a file of torch.save": func(t *testing.T, s store.Store) { put(t, s, "checkpoint", torchFixture(t, "alone.pt")) },
		"a directory": func(t *testing.T, s store.Store) {
			put(t, s, "checkpoint/model.bin", []byte("x"))
			put(t, s, "sub/checkpoint/model.bin", []byte("x"))
			putCheckpoint(t, s, "model.ckpt-10", nil)
			putCheckpoint(t, s, "sub/model.ckpt-10", nil)
		},
		"a SavedModel, which has none": func(t *testing.T, s store.Store) {
			put(t, s, "export/1700000000/saved_model.pb", []byte("x"))
			putCheckpoint(t, s, "export/1700000000/variables/variables", nil)
		},
		"an export that is whole": func(t *testing.T, s store.Store) {
			put(t, s, "export/1700000000/saved_model.pb", savedModelGraph)
			putCheckpoint(t, s, "export/1700000000/variables/variables", nil)
			putCheckpoint(t, s, "weights-10/variables/model.ckpt-10", nil)
			put(t, s, "weights-10/saved_model.pb", savedModelGraph)
		},
		"weights that no saver has named": func(t *testing.T, s store.Store) {
			putCheckpoint(t, s, "run/weights-10", nil)
		},
		"entries of what is retained that lead elsewhere": func(t *testing.T, s store.Store) {
			for _, crafted := range []string{"..%2F..%2Fetc", "%2Fetc", "a%2F%2Fb", ".", "%00", "%", ".holdfast%2Fretained", strings.Repeat("%C3%A4", 40), "a%2F..%2Fb"} {
				if crafted != "." {
					entry := path.Join(".holdfast/retained", crafted)
					put(t, s, entry+"/files/model.ckpt-1.index", []byte("x"))
					name, _ := url.PathUnescape(crafted)
					put(t, s, entry+"/record.json", fmt.Appendf(nil, `{"name":%q,"how":"replaced","files":["model.ckpt-1.index"]}`, name+"/model.ckpt-1"))
				}
			}
			put(t, s, ".holdfast/retained/file", []byte("x"))
			put(t, s, ".holdfast/retained/step-1/record.json", []byte(`{"name":"step-1","how":"replaced","files":["../../evil/step-1/a"],"directory":true}`))
			put(t, s, ".holdfast/retained/model.ckpt-1/record.json", []byte(`{"name":"model.ckpt-2","how":"replaced","files":["model.ckpt-2.index"]}`))
			put(t, s, ".holdfast/retained/model.ckpt-1/files/model.ckpt-2.index", []byte("x"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, s store.Store) {
				build(t, s)
				before := tree(t, s, ".")
				for _, age := range []time.Duration{0, time.Minute} {
					report, err := hdfsckpt.Repair(context.Background(), s, age)
					if err != nil || report.String() != "" {
						t.Errorf("it says %q, %v", report, err)
					}
				}
				if after := tree(t, s, "."); after != before {
					t.Errorf("it was\n%s, and is\n%s", before, after)
				}
			})
		})
	}
}

// TestSaversFileIsKnown: once a saver has written `checkpoint`, it is put right
// when it is lost, cut or empty; by what Repair has seen, or a sealer.
func TestSaversFileIsKnown(t *testing.T) {
	for _, by := range []string{"start", "seal"} {
		for name, spoil := range map[string]func(t *testing.T, s store.Store){
			"lost":  func(t *testing.T, s store.Store) { must(t, s.Remove(context.Background(), "sub/checkpoint")) },
			"cut":   func(t *testing.T, s store.Store) { put(t, s, "sub/checkpoint", []byte("model_checkpoint_pa")) },
			"empty": func(t *testing.T, s store.Store) { put(t, s, "sub/checkpoint", nil) },
		} {
			t.Run(by+", "+name, func(t *testing.T) {
				onBoth(t, func(t *testing.T, s store.Store) {
					ctx := context.Background()
					putCheckpoint(t, s, "sub/model.ckpt-10", nil)
					put(t, s, "sub/checkpoint", stateFile("model.ckpt-10"))
					if by == "seal" {
						must(t, format.RememberPointers(ctx, s, list(t, s)))
					} else if report, err := hdfsckpt.Repair(ctx, s, 0); err != nil || report.String() != "" {
						t.Fatalf("before: %s, %v", report, err)
					}
					spoil(t, s)
					report, err := hdfsckpt.Repair(ctx, s, 0)
					if err != nil || !strings.Contains(report.String(), "pointed sub/checkpoint at sub/model.ckpt-10") {
						t.Errorf("%q, %v", report, err)
					}
					if got := states(list(t, s)); got != "sub/model.ckpt-10 complete current" {
						t.Error(got)
					}
				})
			})
		}
	}
}

// safetensors is a file of one tensor of n bytes.
func safetensors(n int) []byte {
	header := fmt.Sprintf(`{"__metadata__":{"format":"pt"},"w":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}`, n, n)
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, n)...)
}

// putTrainer puts a checkpoint as Hugging Face's Trainer writes it on two ranks,
// but for some files.
func putTrainer(t testing.TB, s store.Store, dir string, but ...string) {
	t.Helper()
	whole := torchFixture(t, "alone.pt")
	files := map[string][]byte{
		"config.json": []byte("{}"), "generation_config.json": []byte("{}"), "model.safetensors": safetensors(100), "tokenizer.json": []byte("{}"),
		"training_args.bin": whole, "optimizer.pt": whole, "scheduler.pt": whole, "rng_state_0.pth": whole, "rng_state_1.pth": whole,
		"trainer_state.json": []byte("{\n  \"global_step\": 1\n}\n"),
	}
	for _, name := range but {
		delete(files, name)
	}
	for name, content := range files {
		put(t, s, path.Join(dir, name), content)
	}
}

// TestTrainersDirectories: a directory of Hugging Face's Trainer is one
// checkpoint, complete by its last file and its weights.
func TestTrainersDirectories(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	putTrainer(t, s, "checkpoint-100")
	putTrainer(t, s, "checkpoint-200", "trainer_state.json")
	putTrainer(t, s, "checkpoint-300", "model.safetensors")
	put(t, s, "checkpoint-300/model.safetensors.index.json", []byte(`{"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"}}`))
	put(t, s, "checkpoint-300/model-00001-of-00002.safetensors", safetensors(10))
	putTrainer(t, s, "checkpoint-400", "rng_state_0.pth")
	putTrainer(t, s, "checkpoint-500")
	put(t, s, "checkpoint-500/model.safetensors", safetensors(100)[:150])
	put(t, s, "checkpoint-600/config.json", []byte("{}"))
	putTrainer(t, s, "checkpoint-700")
	put(t, s, "checkpoint-700/trainer_state.json", []byte("{\n  \"glo"))
	putTrainer(t, s, "other/checkpoint-50", "model.safetensors")
	put(t, s, "training_args.bin", torchFixture(t, "alone.pt"))
	want := `other/checkpoint-50 huggingface 9 unchecked (it has no file of weights by a name that is known)
checkpoint-100 huggingface 10 complete
checkpoint-200 huggingface 9 torn (it has no file trainer_state.json: the save did not get that far)
checkpoint-300 huggingface 11 torn (model-00002-of-00002.safetensors is missing)
checkpoint-400 huggingface 9 torn (rng_state_0.pth is missing)
checkpoint-500 huggingface 10 torn (model.safetensors: it has 150 bytes, 196 are needed)
checkpoint-600 huggingface 1 torn (it has no file trainer_state.json: the save did not get that far)
checkpoint-700 huggingface 10 torn (trainer_state.json is cut off)
`
	if got := describe(list(t, s)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestTornIsMovedAside: what a program that goes on from the highest number would
// die on is out of its way before it starts, and can be got back; what is whole,
// or may be somebody's own, stays.
func TestTornIsMovedAside(t *testing.T) {
	lacks := func(file string) func(string, []byte) []byte {
		return func(name string, b []byte) []byte {
			if name == file {
				return nil
			}
			return b
		}
	}
	marker := format.Rule{Format: formats.Plain, Marker: "trainer_state.json"}
	for name, c := range map[string]struct {
		rule  format.Rule
		build func(t *testing.T, s store.Store)
		moved string
	}{
		"Trainer's": {build: func(t *testing.T, s store.Store) {
			putTrainer(t, s, "checkpoint-10")
			putTrainer(t, s, "checkpoint-20", "trainer_state.json", "rng_state_1.pth")
			must(t, s.Mkdir(context.Background(), "checkpoint-30", 0o755))
			put(t, s, "runs/host/events.out.tfevents.1", []byte("x"))
			putTrainer(t, s, "sub/checkpoint-5", "trainer_state.json")
		}, moved: "checkpoint-20 checkpoint-30 sub/checkpoint-5"},
		"Trainer's, by a marker": {rule: marker, build: func(t *testing.T, s store.Store) {
			putTrainer(t, s, "checkpoint-10")
			putTrainer(t, s, "checkpoint-20", "trainer_state.json")
			putTrainer(t, s, "run_1/checkpoint-10")
			putTrainer(t, s, "run_1/checkpoint-20", "trainer_state.json")
			put(t, s, "runs/host/events.out.tfevents.1", []byte("x"))
			put(t, s, "version_0/hparams.yaml", []byte("x"))
		}, moved: "checkpoint-20 run_1/checkpoint-20"},
		"by a marker of one's own": {rule: format.Rule{Format: formats.Plain, Marker: "_SUCCESS"}, build: func(t *testing.T, s store.Store) {
			put(t, s, "ckpt-10/weights", []byte("x"))
			put(t, s, "ckpt-10/_SUCCESS", nil)
			put(t, s, "ckpt-20/weights", []byte("x"))
		}, moved: "ckpt-20"},
		"a program's own checkpoint-N": {build: func(t *testing.T, s store.Store) {
			put(t, s, "checkpoint-10/model.pt", torchFixture(t, "alone.pt"))
			put(t, s, "checkpoint-10/optimizer.pt", torchFixture(t, "alone.pt"))
			put(t, s, "checkpoint-20/model.safetensors", safetensors(10))
			put(t, s, "checkpoint-20/config.json", []byte("{}"))
			put(t, s, "checkpoint-30/notes", []byte("x"))
			put(t, s, "checkpoint-40/README.md", []byte("x"))
			must(t, s.Mkdir(context.Background(), "checkpoint-50", 0o755))
		}},
		"Trainer's first": {build: func(t *testing.T, s store.Store) {
			put(t, s, "checkpoint-10/config.json", []byte("{}"))
		}, moved: "checkpoint-10"},
		"Trainer's first, with its model": {build: func(t *testing.T, s store.Store) {
			must(t, formats.BeginSave(context.Background(), s, "sub/checkpoint-10", true))
			putTrainer(t, s, "sub/checkpoint-10", "training_args.bin", "optimizer.pt", "scheduler.pt", "rng_state_0.pth", "rng_state_1.pth", "trainer_state.json")
		}, moved: "sub/checkpoint-10"},
		"Trainer's first, another rank's file": {build: func(t *testing.T, s store.Store) {
			must(t, formats.BeginSave(context.Background(), s, "checkpoint-10", true))
			must(t, formats.BeginSave(context.Background(), s, "checkpoint-10", true)) // by each rank
			put(t, s, "checkpoint-10/rng_state_1.pth", torchFixture(t, "alone.pt"))
		}, moved: "checkpoint-10"},
		"Trainer's first, its optimizer alone": {build: func(t *testing.T, s store.Store) {
			must(t, formats.BeginSave(context.Background(), s, "checkpoint-10", true))
			put(t, s, "checkpoint-10/optimizer.pt", torchFixture(t, "alone.pt"))
		}, moved: "checkpoint-10"},
		"Trainer's second, the first of which is gone": {build: func(t *testing.T, s store.Store) {
			ctx := context.Background()
			must(t, formats.BeginSave(ctx, s, "checkpoint-10", true))
			putTrainer(t, s, "checkpoint-10")
			must(t, formats.BeginSave(ctx, s, "checkpoint-20", true))
			for _, name := range filesBelow(t, s, "checkpoint-10") {
				must(t, s.Remove(ctx, name))
			}
			must(t, s.Remove(ctx, "checkpoint-10"))
			put(t, s, "checkpoint-20/model.safetensors", safetensors(10))
		}, moved: "checkpoint-20"},
		"a model that somebody put there": {build: func(t *testing.T, s store.Store) {
			putTrainer(t, s, "checkpoint-10", "training_args.bin", "optimizer.pt", "scheduler.pt", "rng_state_0.pth", "rng_state_1.pth", "trainer_state.json")
			put(t, s, "sub/checkpoint-10/optimizer.pt", torchFixture(t, "alone.pt"))
		}},
		"a program's own first": {build: func(t *testing.T, s store.Store) {
			for i, alien := range []string{"model.pt", "random_states_0.pkl", "progress.json", "unet/model.safetensors"} {
				dir := fmt.Sprintf("%d/checkpoint-10", i)
				must(t, formats.BeginSave(context.Background(), s, dir, true))
				put(t, s, dir+"/model.safetensors", safetensors(10))
				put(t, s, path.Join(dir, alien), []byte("x"))
			}
		}},
		"a program's own, of which it keeps the last": {build: func(t *testing.T, s store.Store) {
			ctx := context.Background()
			must(t, formats.BeginSave(ctx, s, "checkpoint-10", true))
			must(t, formats.BeginSave(ctx, s, "checkpoint-20", true))
			must(t, formats.BeginSave(ctx, s, "checkpoint-30", true))
			put(t, s, "checkpoint-30/config.json", []byte("{}"))
			put(t, s, "checkpoint-30/model.safetensors", safetensors(10))
		}},
		"a program's own, which has ended": {build: func(t *testing.T, s store.Store) {
			ctx := context.Background()
			for _, dir := range []string{".", strings.Repeat("learning_rate=0.001,", 11)} { // as Hydra calls a job's
				must(t, formats.BeginSave(ctx, s, path.Join(dir, "checkpoint-10"), true))
				put(t, s, path.Join(dir, "checkpoint-10/config.json"), []byte("{}"))
				put(t, s, path.Join(dir, "checkpoint-10/model.safetensors"), safetensors(10))
			}
			must(t, formats.SavesEnded(ctx, s))
		}},
		"nobody's": {build: func(t *testing.T, s store.Store) {
			put(t, s, "checkpoint-20", []byte("a file by that name"))
		}},
		"distributed": {build: func(t *testing.T, s store.Store) {
			putDistributed(t, s, "step-10", nil)
			putDistributed(t, s, "step-20", lacks(".metadata"))
			putDistributed(t, s, "deep/er/30", lacks("__1_0.distcp"))
			put(t, s, "mine/.metadata", []byte("my own"))
		}, moved: "deep/er/30 step-20"},
		"step-N": {build: func(t *testing.T, s store.Store) {
			put(t, s, "step-10/a", []byte("x"))
			put(t, s, "step-10/COMMITTED", []byte(`{"shards":1}`))
			put(t, s, "step-20/a", []byte("x"))
			put(t, s, "step-30/COMMITTED", []byte(`{"shards":1}`))
			put(t, s, "own/step-40/weights.npz", []byte("x"))
		}, moved: "step-20"},
		"step-N, as the spec says": {rule: format.Rule{Format: formats.Plain}, build: func(t *testing.T, s store.Store) {
			put(t, s, "step-20/a", []byte("x"))
		}, moved: "step-20"},
		"by a time of quiet": {rule: format.Rule{Format: formats.Plain, Quiet: 3600}, build: func(t *testing.T, s store.Store) {
			put(t, s, "model-10.npz", []byte("x"))
			put(t, s, "model-20.npz.tmp", []byte("x"))
			put(t, s, "dir-10/weights", []byte("x"))
			put(t, s, "dir-20.tmp/weights", []byte("x"))
			must(t, store.WriteFile(context.Background(), s, "model-30.npz", []byte("is being written"), 0o644))
		}, moved: "dir-20.tmp model-20.npz.tmp"},
		"Orbax's": {build: func(t *testing.T, s store.Store) {
			const data = "default/d/3bad5fc3699d96189903bae8ccf8b48f"
			putOrbax(t, s, "10", nil)
			putOrbax(t, s, "20", lacks(data))
			putOrbax(t, s, "30", func(name string, b []byte) []byte {
				if name == data {
					return b[:len(b)-1]
				}
				return b
			})
			putOrbax(t, s, "mine", lacks(data)) // it has no step
		}, moved: "20 30"},
		"files of torch.save": {build: func(t *testing.T, s store.Store) {
			whole := torchFixture(t, "train-40.pt")
			put(t, s, "model-10.pt", whole)
			put(t, s, "model-20.pt", whole[:len(whole)-100])
			put(t, s, "labels-30.pt", []byte("a,b"))
			put(t, s, "archive.bin", whole[:len(whole)-100])
		}, moved: "model-20.pt"},
		"safetensors of several files": {build: func(t *testing.T, s store.Store) {
			for _, name := range []string{"sub/at-10", "sub/at-20", "sub/at-30", "mine"} {
				base := path.Base(name)
				put(t, s, name+".safetensors.index.json", fmt.Appendf(nil, `{"weight_map":{"a":"%[1]s-00001-of-00002.safetensors","b":"%[1]s-00002-of-00002.safetensors"}}`, base))
				put(t, s, name+"-00001-of-00002.safetensors", safetensors(10))
			}
			put(t, s, "sub/at-10-00002-of-00002.safetensors", safetensors(10))
			put(t, s, "sub/at-30-00002-of-00002.safetensors", safetensors(10)[:90])
			put(t, s, "sub/at-50-00001-of-00002.safetensors", safetensors(10)) // nothing says what it lacks
		}, moved: "sub/at-20.safetensors.index.json sub/at-30.safetensors.index.json"},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, s store.Store) {
				ctx := context.Background()
				must(t, format.SetRule(ctx, s, c.rule))
				c.build(t, s)
				before := tree(t, s, ".")
				report, err := hdfsckpt.Repair(ctx, s, 0)
				must(t, err)
				aside, err := hdfsckpt.ListAside(ctx, s)
				must(t, err)
				var names []string
				for _, a := range aside {
					names = append(names, a.Name)
					if !strings.Contains(report.String(), "moved "+a.Name+" aside") || !strings.Contains(report.String(), a.Where) {
						t.Errorf("of %s the report says %q", a.Name, report)
					}
					if _, err := s.Stat(ctx, a.Name); err == nil {
						t.Errorf("%s is still there", a.Name)
					}
				}
				slices.Sort(names) // those of one second are listed by their names
				if got := strings.Join(names, " "); got != c.moved {
					t.Errorf("moved aside were %q, want %q", got, c.moved)
				}
				if again, err := hdfsckpt.Repair(ctx, s, 0); err != nil || again.String() != "" {
					t.Errorf("the second time: %s, %v", again, err)
				}
				for _, a := range aside { // a person gets them back
					entries, err := s.List(ctx, path.Dir(a.Where))
					must(t, err)
					for _, e := range entries {
						must(t, s.Rename(ctx, path.Join(path.Dir(a.Where), e.Name), path.Join(path.Dir(a.Name), e.Name)))
					}
				}
				if after := tree(t, s, "."); after != before {
					t.Errorf("it was\n%s, and is\n%s", before, after)
				}
			})
		})
	}
}

// TestAsideGoesAfterItsTime: what was moved aside is removed by a start after 30 days, with its
// space, and not before.
func TestAsideGoesAfterItsTime(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		ctx := t.Context()
		for i, days := range []int{29, 31} {
			name := fmt.Sprintf("step-%d", i)
			putDistributed(t, s, name, func(file string, b []byte) []byte {
				if file == ".metadata" {
					return nil
				}
				return b
			})
			report, err := hdfsckpt.Repair(ctx, s, 0)
			must(t, err)
			if len(report.Aside) != 1 {
				t.Fatalf("%s was not moved: %s", name, report)
			}
			a := report.Aside[0]
			entry := strings.TrimSuffix(a.Where, "/files/"+name)
			a.Moved = a.Moved.Add(-time.Duration(days) * 24 * time.Hour)
			text, err := json.Marshal(a)
			must(t, err)
			must(t, store.WriteFile(ctx, s, path.Join(entry, "aside.json"), text, 0o644))
		}
		_, err := hdfsckpt.Repair(ctx, s, 0)
		must(t, err)
		left, err := hdfsckpt.ListAside(ctx, s)
		must(t, err)
		if len(left) != 1 || left[0].Name != "step-0" {
			t.Errorf("aside are %+v", left)
		}
		if entries, err := s.List(ctx, ".holdfast/aside"); err != nil || len(entries) != 1 {
			t.Errorf("there are %v, %v", entries, err)
		}
	})
}

// unremovable lets nobody remove one file.
type unremovable struct {
	*store.Local
	name string
}

func (s *unremovable) Remove(ctx context.Context, name string) error {
	if name == s.name {
		return &fs.PathError{Op: "remove", Path: name, Err: syscall.EIO}
	}
	return s.Local.Remove(ctx, name)
}

// TestAsideGoesThoughARemovalFailed: the start after one that could not remove all that was moved
// aside long ago removes the rest.
func TestAsideGoesThoughARemovalFailed(t *testing.T) {
	local, err := store.NewLocal(t.TempDir())
	must(t, err)
	defer local.Close()
	putDistributed(t, local, "step_20", nil)
	putDistributed(t, local, "step_30", without(".metadata"))
	_, err = hdfsckpt.Repair(t.Context(), local, 0)
	must(t, err)
	a := movedAside(t, local)[0]
	a.Moved = a.Moved.Add(-31 * 24 * time.Hour)
	must(t, store.WriteRecord(t.Context(), local, path.Join(strings.TrimSuffix(a.Where, "/files/step_30"), "aside.json"), a))
	if _, err := hdfsckpt.Repair(t.Context(), &unremovable{local, a.Where + "/__1_0.distcp"}, 0); err == nil {
		t.Errorf("what cannot be removed is not told")
	}
	_, err = hdfsckpt.Repair(t.Context(), local, 0)
	must(t, err)
	if entries, err := local.List(t.Context(), ".holdfast/aside"); err != nil || len(entries) > 0 {
		t.Errorf("there are %v, %v", entries, err)
	}
}

// TestLinksAsideGoAfterTheirTime: what was moved aside goes with the links in it, whose targets
// are no longer where they lead to, and no start fails for them.
func TestLinksAsideGoAfterTheirTime(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	s := openLocal(t, dir)
	defer s.Close()
	putDistributed(t, s, "step_20", nil)
	putDistributed(t, s, "step_30", without(".metadata"))
	put(t, s, "tokenizer/vocab.txt", []byte("x"))
	must(t, os.Symlink("../tokenizer", path.Join(dir, "step_30", "tokenizer")))
	_, err := hdfsckpt.Repair(ctx, s, 0)
	must(t, err)
	moved := movedAside(t, s)
	if len(moved) != 1 {
		t.Fatalf("moved are %+v", moved)
	}
	a := moved[0]
	a.Moved = a.Moved.Add(-31 * 24 * time.Hour)
	must(t, store.WriteRecord(ctx, s, path.Join(strings.TrimSuffix(a.Where, "/files/step_30"), "aside.json"), a))
	for range 2 {
		if _, err := hdfsckpt.Repair(ctx, s, 0); err != nil {
			t.Errorf("a start after a month: %v", err)
		}
	}
	if entries, err := s.List(ctx, ".holdfast/aside"); err != nil || len(entries) > 0 {
		t.Errorf("there are %v, %v", entries, err)
	}
	if _, err := store.ReadFile(ctx, s, "tokenizer/vocab.txt"); err != nil {
		t.Errorf("what the link led to: %v", err)
	}
}

// TestFirstSaveOfTheLivingStays: what is only supposed to be Trainer's is let be while
// others run, and what is not a model is no checkpoint by itself.
func TestFirstSaveOfTheLivingStays(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	ctx := context.Background()
	for i, part := range []string{"optimizer.pt", "scheduler.pt", "rng_state_1.pth", "model.safetensors"} {
		name := fmt.Sprintf("%d/checkpoint-10", i)
		put(t, s, path.Join(name, part), torchFixture(t, "alone.pt"))
		for _, c := range list(t, s) {
			if c.Whole() {
				t.Errorf("with nothing but %s, %s is %s", part, c.Name, c.State)
			}
		}
		must(t, formats.BeginSave(ctx, s, name, true))
	}
	if report, err := hdfsckpt.Repair(ctx, s, time.Minute); err != nil || report.String() != "" {
		t.Errorf("while others run: %s, %v", report, err)
	}
	if report, err := hdfsckpt.Repair(ctx, s, 0); err != nil || len(report.Aside) != 4 {
		t.Errorf("before a start: %s, %v", report, err)
	}
	if left, err := s.List(ctx, ".holdfast/begun"); err != nil || len(left) > 0 {
		t.Errorf("of what was moved aside, it is still recorded that it began: %v, %v", left, err)
	}
}

// TestTornOfTheLivingStays: while others run, what was written to lately stays,
// and so does all while anything is being written.
func TestTornOfTheLivingStays(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		ctx := context.Background()
		putTrainer(t, s, "checkpoint-10")
		putTrainer(t, s, "checkpoint-20", "trainer_state.json")
		moved := func(age time.Duration) int {
			t.Helper()
			report, err := hdfsckpt.Repair(ctx, s, age)
			must(t, err)
			return len(report.Aside)
		}
		if n := moved(2 * time.Hour); n != 0 {
			t.Errorf("%d that are younger were moved", n)
		}
		dir := writers.Dir("job.container_1")
		must(t, store.MkdirAll(ctx, s, dir, 0o755))
		w, err := s.Create(ctx, dir+"/trainer_state.json", 0o644)
		must(t, err)
		if n := moved(time.Minute); n != 0 {
			t.Errorf("%d were moved while something was written", n)
		}
		must(t, w.Abort())
		if n := moved(time.Minute); n != 1 {
			t.Errorf("%d were moved", n)
		}
	})
}

// TestTornWhileObserversRun: of the tasks that start again, none is alive to complete what is
// torn, however young it is.
func TestTornWhileObserversRun(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		putTrainer(t, s, "checkpoint-10")
		putTrainer(t, s, "checkpoint-20", "trainer_state.json")
		report, err := hdfsckpt.RepairObserved(context.Background(), s, 365*24*time.Hour)
		if err != nil || len(report.Aside) != 1 || report.Aside[0].Name != "checkpoint-20" {
			t.Errorf("it says %s, %v", report, err)
		}
	})
}

// TestAnObserverSaves: what a task that goes on running completes meanwhile is not torn.
func TestAnObserverSaves(t *testing.T) {
	local, err := store.NewLocal(t.TempDir())
	must(t, err)
	defer local.Close()
	putTrainer(t, local, "checkpoint-30", "trainer_state.json")
	s := &completing{Local: local, lists: 3, dir: "checkpoint-30", complete: func() {
		put(t, local, "checkpoint-30/trainer_state.json", []byte("{\n  \"global_step\": 1\n}\n"))
	}}
	report, err := hdfsckpt.RepairObserved(context.Background(), s, 365*24*time.Hour)
	if err != nil || len(report.Aside) != 0 || s.lists > 0 {
		t.Errorf("it says %s, %v", report, err)
	}
}

// completing is a store in which a checkpoint is completed after its directory was listed some
// times.
type completing struct {
	*store.Local
	lists    int
	dir      string
	complete func()
}

func (c *completing) List(ctx context.Context, dir string) ([]store.Info, error) {
	list, err := c.Local.List(ctx, dir)
	if dir == c.dir {
		if c.lists--; c.lists == 0 {
			c.complete()
		}
	}
	return list, err
}

// TestAnotherStoreWithin: while somebody writes to a checkpoint directory that lies in this
// one, what is unfinished there is not this store's to judge, though nobody writes to this.
func TestAnotherStoreWithin(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		ctx := context.Background()
		putTrainer(t, s, "checkpoint-20", "trainer_state.json")
		putTrainer(t, s, "runs/2/checkpoint-20", "trainer_state.json")
		put(t, s, "runs/2/eval/model.ckpt-5_temp/part-00000-of-00002.index", []byte("x"))
		putCheckpoint(t, s, "runs/2/eval/model.ckpt-10", nil)
		put(t, s, "runs/2/eval/checkpoint", stateFile("model.ckpt-20"))
		other := path.Join("runs/2", writers.Dir("other.container_1"))
		must(t, store.MkdirAll(ctx, s, other, 0o755))
		w, err := s.Create(ctx, other+"/trainer_state.json", 0o644)
		must(t, err)
		_, err = w.Write([]byte("{}"))
		must(t, err)
		before := tree(t, s, "runs")
		report, err := hdfsckpt.Repair(ctx, s, 0)
		if got := fmt.Sprint(report.Nested); err != nil || len(report.Aside) != 1 || len(report.Pointed) != 0 || got != "map[runs/2:[other.container_1]]" {
			t.Errorf("it says %s; of others %s; %v", report, got, err)
		}
		if after := tree(t, s, "runs"); after != before {
			t.Errorf("it was\n%s, and is\n%s", before, after)
		}
		if err := w.Close(); err != nil {
			t.Errorf("the other's file cannot be completed: %v", err)
		}
		// Once it has ended, this store's tasks may be those that go on there.
		must(t, s.Remove(ctx, other+"/trainer_state.json"))
		must(t, s.Remove(ctx, other))
		report, err = hdfsckpt.Repair(ctx, s, 0)
		if err != nil || len(report.Aside) != 2 || len(report.Pointed) != 1 || len(report.Nested) != 0 {
			t.Errorf("after its end: %s, %v", report, err)
		}
	})
}

// TestTornAroundAnotherStore: a torn checkpoint in which somebody's checkpoint directory lies stays
// while that is written to.
func TestTornAroundAnotherStore(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		ctx := t.Context()
		putDistributed(t, s, "step_20", without(".metadata"))
		putCheckpoint(t, s, "step_20/logs/model.ckpt-10", nil)
		other := path.Join("step_20/logs", writers.Dir("other.container_1"))
		must(t, store.MkdirAll(ctx, s, other, 0o755))
		before := tree(t, s, "step_20")
		report, err := hdfsckpt.Repair(ctx, s, 0)
		if err != nil || len(report.Aside) != 0 || tree(t, s, "step_20") != before || !strings.Contains(report.String(), "step_20/logs") {
			t.Errorf("a start says %s, %v", report, err)
		}
	})
}

// TestPruneAroundAnotherStore: a checkpoint in which somebody's checkpoint directory lies is neither
// pruned nor moved aside by a rollback, whether that is written to or was, and the error names it.
func TestPruneAroundAnotherStore(t *testing.T) {
	for name, build := range map[string]func(t *testing.T, s store.Store){
		"written to": func(t *testing.T, s store.Store) {
			must(t, store.MkdirAll(t.Context(), s, path.Join("step_10/logs", writers.Dir("other.container_1")), 0o755))
		},
		"of a job that has ended": func(t *testing.T, s store.Store) { put(t, s, "step_10/logs/.holdfast/rule.json", []byte("{}")) },
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, s store.Store) {
				for _, step := range []string{"step_10", "step_20"} {
					putDistributed(t, s, step, nil)
				}
				putCheckpoint(t, s, "step_10/logs/model.ckpt-10", nil)
				putWhole(t, s, "model-5.pt")
				build(t, s)
				before := tree(t, s, ".")
				if _, err := hdfsckpt.PlanRollback(t.Context(), s, "", 5); !hdfsckpt.IsImpossible(err) || !strings.Contains(err.Error(), "step_10/logs") {
					t.Errorf("rolling back to what is older: %v", err)
				}
				plan := hdfsckpt.PlanPrune(list(t, s), 1, 0)
				if err := plan.Execute(t.Context(), s); len(plan.Remove) != 1 || !errors.Is(err, syscall.EBUSY) || !strings.Contains(err.Error(), "step_10/logs") || tree(t, s, ".") != before {
					t.Errorf("pruning %s: %v, and there is\n%s", states(plan.Remove), err, tree(t, s, "."))
				}
			})
		})
	}
}

// TestFilesThatBelongTogether: a file in a directory that holds others is a part
// of that, and nothing removes or goes back to what is not known to be whole.
func TestFilesThatBelongTogether(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	whole := torchFixture(t, "alone.pt")
	for _, step := range []string{"10", "20", "30"} {
		for _, name := range []string{"model.pt", "optimizer.pt", "sub/extra.json"} {
			put(t, s, "checkpoint-"+step+"/"+name, whole)
		}
	}
	put(t, s, "final/pytorch_model-00001-of-00002.bin", whole)
	put(t, s, "final/config.json", []byte("{}"))
	put(t, s, "series/model-10.pt", whole)
	put(t, s, "series/best.pt", whole)
	want := []string{
		"final directory 2 unchecked", "series/best.pt torch 1 complete", "checkpoint-10 directory 3 unchecked", "series/model-10.pt torch 1 complete",
		"checkpoint-20 directory 3 unchecked", "checkpoint-30 directory 3 unchecked",
	}
	found := list(t, s)
	for i, c := range found {
		if got := fmt.Sprintf("%s %s %d %s", c.Name, c.Kind, c.Shards, c.State); i >= len(want) || got != want[i] {
			t.Errorf("%d is %s", i, got)
		}
	}
	plan := hdfsckpt.PlanPrune(found, 1, 0)
	if len(plan.Remove) != 0 {
		t.Errorf("a prune would remove %s", states(plan.Remove))
	}
	if _, err := hdfsckpt.PlanRollback(t.Context(), s, "", 20); err == nil || !strings.Contains(err.Error(), "checkpoint-20") {
		t.Errorf("a rollback: %v", err)
	}
}

// TestPruneLeavesWhatCannotBeChecked: of what nothing shows to be whole, prune removes
// nothing, however many newer ones are whole.
func TestPruneLeavesWhatCannotBeChecked(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	putTrainer(t, s, "checkpoint-10", "model.safetensors") // its weights may have any name
	putTrainer(t, s, "checkpoint-20")
	putTrainer(t, s, "checkpoint-30")
	found := list(t, s)
	if got := states(found); got != "checkpoint-10 unchecked; checkpoint-20 complete; checkpoint-30 complete" {
		t.Fatal(got)
	}
	plan := hdfsckpt.PlanPrune(found, 1, 0)
	if got := states(plan.Remove); got != "checkpoint-20 complete" {
		t.Errorf("a prune would remove %s", got)
	}
}

// TestSealedWhenComplete: more that comes to a directory is sealed with it.
func TestSealedWhenComplete(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	putTrainer(t, s, "checkpoint-10", "rng_state_1.pth")
	seal(t, s, "checkpoint-10")
	if got := states(list(t, s)); got != "checkpoint-10 sealed" {
		t.Fatal(got)
	}
	put(t, s, "checkpoint-10/rng_state_1.pth", torchFixture(t, "alone.pt"))
	if got := states(list(t, s)); got != "checkpoint-10 complete" {
		t.Errorf("after another rank has written: %s", got)
	}
}

// TestCopyOfATrainersDirectory copies all of it.
func TestCopyOfATrainersDirectory(t *testing.T) {
	s, to := openLocal(t, t.TempDir()), openLocal(t, t.TempDir())
	defer s.Close()
	defer to.Close()
	putTrainer(t, s, "checkpoint-10")
	done, err := hdfsckpt.Copy(context.Background(), s, to, list(t, s)[0], nil)
	if err != nil || done.Files != 10 {
		t.Errorf("%+v, %v", done, err)
	}
	if got := states(list(t, to)); got != "checkpoint-10 complete" {
		t.Errorf("the copy has %s", got)
	}
}

// TestNamesOfManyBytes: names of many bytes that are not ASCII are sealed.
func TestNamesOfManyBytes(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		for _, name := range []string{strings.Repeat("模", 70) + "-10", strings.Repeat("ä", 60) + "/" + strings.Repeat("ö", 60) + "-20"} {
			putCheckpoint(t, s, name, nil)
			put(t, s, path.Join(path.Dir(name), "checkpoint"), stateFile(path.Base(name)))
			seal(t, s, name)
		}
		for _, c := range list(t, s) {
			if c.State != format.Sealed {
				t.Errorf("%s is %s", c.Name, c.State)
			}
		}
		must(t, format.RememberPointers(context.Background(), s, list(t, s)))
		if _, err := hdfsckpt.Repair(context.Background(), s, 0); err != nil {
			t.Error(err)
		}
	})
}

// immovable lets nobody move one directory.
type immovable struct {
	*store.Local
	name string
}

func (s immovable) Rename(ctx context.Context, from, to string) error {
	if from == s.name {
		return &fs.PathError{Op: "rename", Path: from, Err: syscall.EACCES}
	}
	return s.Local.Rename(ctx, from, to)
}

// TestTornOfAnotherUser: what may not be moved is told, and the others are moved.
func TestTornOfAnotherUser(t *testing.T) {
	local, err := store.NewLocal(t.TempDir())
	must(t, err)
	defer local.Close()
	for _, name := range []string{"checkpoint-20", "checkpoint-30"} {
		putTrainer(t, local, name, "trainer_state.json")
	}
	report, err := hdfsckpt.Repair(context.Background(), immovable{local, "checkpoint-20"}, 0)
	if err != nil || len(report.Aside) != 1 || report.Aside[0].Name != "checkpoint-30" || !strings.Contains(report.String(), "cannot move checkpoint-20 aside") {
		t.Errorf("%s, %v", report, err)
	}
}
