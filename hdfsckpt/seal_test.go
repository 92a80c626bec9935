package hdfsckpt_test

import (
	"context"
	"errors"
	"fmt"
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
	"holdfast/hdfsckpt/manifest"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/tfbundle"
	"holdfast/hdfsckpt/writers"
)

// onBoth runs a test on a local store and on HDFS.
func onBoth(t *testing.T, test func(t *testing.T, s store.Store)) {
	t.Run("local", func(t *testing.T) {
		s := openLocal(t, t.TempDir())
		defer s.Close()
		test(t, s)
	})
	t.Run("hdfs", func(t *testing.T) {
		s := openHDFS(t)
		defer s.Close()
		test(t, s)
	})
}

func seal(t *testing.T, s store.Store, names ...string) {
	t.Helper()
	for _, c := range list(t, s) {
		for _, name := range names {
			if c.Name == name {
				if _, err := hdfsckpt.Seal(context.Background(), s, c, manifest.Meta{Job: "job_1", Generation: 3}, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func states(list []format.Checkpoint) string {
	var all []string
	for _, c := range list {
		text := fmt.Sprintf("%s %s", c.Name, c.State)
		if c.Current {
			text += " current"
		}
		all = append(all, text)
	}
	return strings.Join(all, "; ")
}

func TestSeal(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		ctx := context.Background()
		putCheckpoint(t, s, "a/model.ckpt-10", nil)
		putCheckpoint(t, s, "a/model.ckpt-20", nil)
		putCheckpoint(t, s, "a/model.ckpt-30", without(".index"))
		seal(t, s, "a/model.ckpt-10", "a/model.ckpt-20")
		found := list(t, s)
		if got, want := states(found), "a/model.ckpt-10 sealed; a/model.ckpt-20 sealed; a/model.ckpt-30 torn"; got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
		m := found[0].Manifest
		if m == nil || m.Job != "job_1" || m.Generation != 3 || m.Step != 10 || len(m.Files) != 5 || time.Since(m.Sealed).Abs() > time.Hour {
			t.Errorf("manifest: %+v", m)
		}
		if _, err := hdfsckpt.Seal(ctx, s, found[2], manifest.Meta{}, nil); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("a torn one was sealed: %v", err)
		}
		// Overwritten in place, by bytes of the same length.
		must(t, store.WriteFile(ctx, s, "a/model.ckpt-20.data-00001-of-00004", make([]byte, 40), 0o644))
		if got, want := states(list(t, s)[:2]), "a/model.ckpt-10 sealed; a/model.ckpt-20 complete"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		// A manifest that cannot be read says nothing.
		infos, err := s.List(ctx, ".holdfast/manifests")
		must(t, err)
		must(t, store.WriteFile(ctx, s, path.Join(".holdfast/manifests", infos[0].Name), []byte("{"), 0o644))
		if got, want := states(list(t, s)[:1]), "a/model.ckpt-10 complete"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func stateFile(current string, all ...string) []byte {
	return tfbundle.CheckpointState{Current: current, All: all}.Bytes()
}

// TestReplacedWhileItIsSealed: what has taken the name of a file since it was listed is
// not sealed for it, though it has as many bytes.
func TestReplacedWhileItIsSealed(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	put(t, s, "model-10.pt", torchFixture(t, "alone.pt"))
	listed := list(t, s)[0]
	put(t, s, "model-10.pt", torchFixture(t, "alone.pt"))
	if _, err := hdfsckpt.Seal(t.Context(), s, listed, manifest.Meta{}, nil); !errors.Is(err, syscall.ESTALE) {
		t.Errorf("sealing what was replaced: %v", err)
	}
	if got := states(list(t, s)); got != "model-10.pt complete" {
		t.Error(got)
	}
}

func TestRepair(t *testing.T) {
	ctx := context.Background()
	for _, x := range []struct {
		name   string
		state  []byte // of the file `checkpoint`; nil: missing
		change func(suffix string, content []byte) []byte
		want   string // model_checkpoint_path and the list; "": no file
	}{
		{"all is well", stateFile("model.ckpt-30", "model.ckpt-20", "model.ckpt-30"), nil, "model.ckpt-30 [model.ckpt-20 model.ckpt-30]"},
		{"missing", nil, nil, "model.ckpt-30 [model.ckpt-30]"},
		{"missing, newest torn", nil, without(".index"), "model.ckpt-20 [model.ckpt-20]"},
		{"cut off", []byte("model_checkpoint_pa"), nil, "model.ckpt-30 [model.ckpt-30]"},
		{"empty", []byte{}, nil, "model.ckpt-30 [model.ckpt-30]"},
		{"names a torn one", stateFile("model.ckpt-30", "model.ckpt-10", "model.ckpt-20", "model.ckpt-30"), without(".data-00001-of-00004"), "model.ckpt-20 [model.ckpt-10 model.ckpt-20]"},
		{"absolute", stateFile("/tmp/train_logs/model.ckpt-30", "/tmp/train_logs/model.ckpt-10"), without(".index"), "/tmp/train_logs/model.ckpt-20 [/tmp/train_logs/model.ckpt-10 /tmp/train_logs/model.ckpt-20]"},
		{"names one that is gone", stateFile("model.ckpt-40"), nil, "model.ckpt-30 [model.ckpt-30]"},
		{"an older one, which is whole", stateFile("model.ckpt-10"), nil, "model.ckpt-10 []"},
	} {
		t.Run(x.name, func(t *testing.T) {
			s := openLocal(t, t.TempDir())
			defer s.Close()
			putCheckpoint(t, s, "model.ckpt-10", nil)
			putCheckpoint(t, s, "model.ckpt-20", nil)
			putCheckpoint(t, s, "model.ckpt-30", x.change)
			must(t, store.WriteFile(ctx, s, "checkpoint", stateFile("model.ckpt-20"), 0o644))
			must(t, format.RememberPointers(ctx, s, list(t, s)))
			must(t, s.Remove(ctx, "checkpoint"))
			if x.state != nil {
				must(t, store.WriteFile(ctx, s, "checkpoint", x.state, 0o644))
			}
			before := len(list(t, s))
			report, err := hdfsckpt.Repair(ctx, s, 0)
			must(t, err)
			text, err := store.ReadFile(ctx, s, "checkpoint")
			must(t, err)
			st, err := tfbundle.ParseState(text)
			must(t, err)
			if got := fmt.Sprint(st.Current, " ", st.All); got != x.want {
				t.Errorf("it is %s, want %s\n%s", got, x.want, report)
			}
			if after := len(list(t, s)); after != before {
				t.Errorf("%d checkpoints of %d are left", after, before)
			}
			again, err := hdfsckpt.Repair(ctx, s, 0)
			if err != nil || again.String() != "" {
				t.Errorf("the second time: %v, %v", again, err)
			}
		})
	}
}

// TestRepairAfterAnUnsaidSave: the task that saves was lost between the last
// shard and the file `checkpoint`.
func TestRepairAfterAnUnsaidSave(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		ctx := context.Background()
		current := func() string {
			t.Helper()
			text, err := store.ReadFile(ctx, s, "checkpoint")
			must(t, err)
			st, err := tfbundle.ParseState(text)
			must(t, err)
			return fmt.Sprint(st.Current, " ", st.All)
		}
		putCheckpoint(t, s, "model.ckpt-10", nil)
		putCheckpoint(t, s, "model.ckpt-30", nil)
		must(t, store.WriteFile(ctx, s, "checkpoint", stateFile("model.ckpt-10", "model.ckpt-10"), 0o644))
		must(t, s.Chtimes(ctx, "checkpoint", old.Add(time.Second), old.Add(time.Second)))
		putCheckpoint(t, s, "model.ckpt-20", nil) // after a return to 10
		must(t, s.Chtimes(ctx, "model.ckpt-20.index", old.Add(2*time.Second), old.Add(2*time.Second)))
		putCheckpoint(t, s, "model.ckpt-25", without(".index"))
		report, err := hdfsckpt.Repair(ctx, s, time.Hour)
		must(t, err)
		if got, want := current(), "model.ckpt-20 [model.ckpt-10 model.ckpt-20]"; got != want {
			t.Errorf("it is %s, want %s\n%s", got, want, report)
		}
		report, err = hdfsckpt.Repair(ctx, s, time.Hour)
		if err != nil || report.String() != "" {
			t.Errorf("the second time: %v, %v", report, err)
		}
	})
}

// TestAnotherSaversCheckpoint: a program may have two savers in a directory, each with a file of its
// own that names what it has saved. Tasks go on from the file "checkpoint", which is never pointed
// at what the other has saved, whether that was named or not, as long as there is another.
func TestAnotherSaversCheckpoint(t *testing.T) {
	for name, c := range map[string]struct {
		build func(t *testing.T, s store.Store)
		names string // what it names then, if it was changed
	}{
		"saved later":                {func(t *testing.T, s store.Store) { put(t, s, "best_checkpoint", stateFile("best-450")) }, ""},
		"saved later, and not named": {func(t *testing.T, s store.Store) {}, ""},
		"called alike, and named": {func(t *testing.T, s store.Store) {
			putCheckpoint(t, s, "model.ckpt-440", nil)
			must(t, s.Chtimes(t.Context(), "model.ckpt-440.index", old.Add(time.Minute), old.Add(time.Minute)))
			put(t, s, "best_checkpoint", stateFile("best-450", "/x/model.ckpt-440", "best-450"))
		}, ""},
		"called alike, and named by a file of something else": {func(t *testing.T, s store.Store) {
			putCheckpoint(t, s, "model.ckpt-440", nil)
			must(t, s.Chtimes(t.Context(), "model.ckpt-440.index", old.Add(time.Minute), old.Add(time.Minute)))
			put(t, s, "notes", []byte("model_checkpoint_path: \"model.ckpt-440\"\nit was good\n"))
		}, "model.ckpt-440"},
		"the named one is torn": {func(t *testing.T, s store.Store) {
			must(t, s.Remove(t.Context(), "model.ckpt-400.index"))
		}, "model.ckpt-300"},
		"none is named": {func(t *testing.T, s store.Store) {
			put(t, s, "best_checkpoint", stateFile("best-450"))
			must(t, format.RememberPointerFile(t.Context(), s, "checkpoint"))
			must(t, s.Remove(t.Context(), "checkpoint"))
		}, "model.ckpt-400"},
		"none of its own is whole": {func(t *testing.T, s store.Store) {
			must(t, s.Remove(t.Context(), "model.ckpt-300.index"))
			must(t, s.Remove(t.Context(), "model.ckpt-400.index"))
		}, "best-450"},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, s store.Store) {
				putCheckpoint(t, s, "model.ckpt-300", nil)
				putCheckpoint(t, s, "model.ckpt-400", nil)
				put(t, s, "checkpoint", stateFile("model.ckpt-400", "model.ckpt-300", "model.ckpt-400"))
				must(t, s.Chtimes(t.Context(), "checkpoint", old.Add(time.Second), old.Add(time.Second)))
				putCheckpoint(t, s, "best-450", nil)
				must(t, s.Chtimes(t.Context(), "best-450.index", old.Add(time.Minute), old.Add(time.Minute)))
				c.build(t, s)
				report, err := hdfsckpt.Repair(t.Context(), s, 0)
				must(t, err)
				got := ""
				for _, p := range report.Pointed {
					got += p.To
				}
				if got != c.names {
					t.Errorf("it is pointed at %q, want %q: %s", got, c.names, report)
				}
			})
		})
	}
}

// TestTheFirstSaveOfAllIsGoneOnFrom: a program that was killed after its first save, and before it
// wrote the first `checkpoint`, goes on from that save. One that writes no `checkpoint`, and what
// somebody has put there, get none.
func TestTheFirstSaveOfAllIsGoneOnFrom(t *testing.T) {
	for name, c := range map[string]struct {
		build func(t *testing.T, s store.Store, save func(prefix string))
		names string
	}{
		"saved by a task": {func(t *testing.T, s store.Store, save func(string)) { save("logs/model.ckpt-10") }, "logs/model.ckpt-10"},
		"put there by a user": {func(t *testing.T, s store.Store, _ func(string)) {
			putCheckpoint(t, s, "logs/model.ckpt-10", nil)
		}, ""},
		"without a step": {func(t *testing.T, s store.Store, save func(string)) { save("logs/model.ckpt") }, ""},
		"saved twice": {func(t *testing.T, s store.Store, save func(string)) {
			save("logs/model.ckpt-10")
			save("logs/model.ckpt-10")
		}, "logs/model.ckpt-10"},
		"named by a file of the program's": {func(t *testing.T, s store.Store, save func(string)) {
			save("logs/model.ckpt-10")
			put(t, s, "logs/best", stateFile("model.ckpt-10"))
		}, ""},
		"followed by a torn one": {func(t *testing.T, s store.Store, save func(string)) {
			save("logs/model.ckpt-10")
			putCheckpoint(t, s, "logs/model.ckpt-20", without(".index"))
		}, "logs/model.ckpt-10"},
		"beside one that a user has put there": {func(t *testing.T, s store.Store, save func(string)) {
			putCheckpoint(t, s, "logs/model.ckpt-20", nil)
			save("logs/model.ckpt-10")
		}, ""},
		"followed by another, instead of a pointer": {func(t *testing.T, s store.Store, save func(string)) {
			save("logs/model.ckpt-10")
			save("logs/model.ckpt-20")
			for _, c := range list(t, s) {
				if c.Step == 10 {
					for _, f := range c.Files {
						must(t, s.Remove(t.Context(), f.Name))
					}
				}
			}
		}, ""},
		"by a program that has ended by itself": {func(t *testing.T, s store.Store, save func(string)) {
			save("logs/model.ckpt-10")
			must(t, formats.SavesEnded(t.Context(), s))
		}, ""},
		"after an earlier one that is gone": {func(t *testing.T, s store.Store, save func(string)) {
			save("logs/model.ckpt-5")
			for _, f := range list(t, s)[0].Files {
				must(t, s.Remove(t.Context(), f.Name))
			}
			must(t, formats.ForgetSaves(t.Context(), s))
			save("logs/model.ckpt-10")
		}, "logs/model.ckpt-10"},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, s store.Store) {
				c.build(t, s, func(prefix string) {
					must(t, formats.BeginSave(t.Context(), s, prefix+".index", false))
					putCheckpoint(t, s, prefix, nil)
				})
				report, err := hdfsckpt.Repair(t.Context(), s, 0)
				must(t, err)
				got := ""
				for _, p := range report.Pointed {
					got += p.To
				}
				there, err := store.Exists(t.Context(), s, "logs/checkpoint")
				must(t, err)
				if got != c.names || there != (c.names != "") {
					t.Errorf("it is pointed at %q, want %q; `checkpoint` is there: %v: %s", got, c.names, there, report)
				}
			})
		})
	}
}

// TestFirstSavesAreFewRecords: what is only a part of a save, or is thrown away, is not recorded as the
// first of its directory, and no record outlives that.
func TestFirstSavesAreFewRecords(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	ctx := t.Context()
	records := func() int {
		entries, err := s.List(ctx, ".holdfast/first")
		if err != nil && !store.Vanished(err) {
			t.Fatal(err)
		}
		return len(entries)
	}
	for _, name := range []string{
		"model.ckpt-10_temp/part-00000-of-00002.index", "logs/ckpt-10_temp_0af3/part-00001-of-00002.index",
		"workertemp_1/ckpt-10.index", "logs/workertemp_2/ckpt-10.index", "model.ckpt-10.data-00000-of-00001", "model.ckpt.index",
	} {
		must(t, formats.BeginSave(ctx, s, name, false))
		if records() != 0 {
			t.Fatalf("%s is recorded as a first save", name)
		}
	}
	putCheckpoint(t, s, "run/ckpt-10", nil)
	must(t, formats.BeginSave(ctx, s, "run/ckpt-10.index", false))
	must(t, formats.BeginSave(ctx, s, "gone/ckpt-10.index", false))
	must(t, formats.SavesEnded(ctx, s))
	must(t, formats.ForgetSaves(ctx, s))
	if n := records(); n != 1 {
		t.Errorf("%d records, want that of the directory that is still there", n)
	}
}

// TestRecordsGoWithTheirDirectories: a program that saves into a new directory each time, and removes
// the old ones, leaves no more records than directories.
func TestRecordsGoWithTheirDirectories(t *testing.T) {
	s := openLocal(t, t.TempDir())
	defer s.Close()
	ctx := t.Context()
	for _, dir := range []string{"stays", "goes"} {
		must(t, format.RememberPointerFile(ctx, s, path.Join(dir, "checkpoint")))
		for _, step := range []string{"checkpoint-10", "checkpoint-20"} { // the program's own: Trainer would have ended the first
			must(t, formats.BeginSave(ctx, s, path.Join(dir, step), true))
		}
	}
	put(t, s, "stays/notes.txt", []byte("of the user"))
	_, err := hdfsckpt.Repair(ctx, s, 0)
	must(t, err)
	for _, kind := range []string{"savers", "begun"} {
		entries, err := s.List(ctx, path.Join(".holdfast", kind))
		if err != nil || len(entries) != 1 || !strings.HasPrefix(entries[0].Name, "stays") {
			t.Errorf("records of %s: %v, %v; want that of the directory that is still there", kind, entries, err)
		}
	}
}

// TestAChoiceByHandStays: who writes an earlier step into `checkpoint` after the last save goes on
// from that; and one that is put beside it, whatever its time, is no save of the program's.
func TestAChoiceByHandStays(t *testing.T) {
	for name, build := range map[string]func(t *testing.T, s store.Store){
		"an earlier step, by hand": func(t *testing.T, s store.Store) {
			must(t, store.WriteFile(t.Context(), s, "checkpoint", []byte("model_checkpoint_path: \"model.ckpt-10\"\n"), 0o644))
			must(t, s.Chtimes(t.Context(), "checkpoint", old.Add(time.Second), old.Add(time.Second)))
		},
		"an earlier step, put there later": func(t *testing.T, s store.Store) {
			put(t, s, "checkpoint", stateFile("model.ckpt-20"))
			must(t, s.Chtimes(t.Context(), "model.ckpt-10.index", old.Add(time.Hour), old.Add(time.Hour)))
		},
		"a later step that is torn": func(t *testing.T, s store.Store) {
			put(t, s, "checkpoint", stateFile("model.ckpt-20"))
			putCheckpoint(t, s, "model.ckpt-30", without(".data-00001-of-00004"))
			must(t, s.Chtimes(t.Context(), "model.ckpt-30.index", old.Add(time.Hour), old.Add(time.Hour)))
		},
		"one whose name has no step": func(t *testing.T, s store.Store) {
			put(t, s, "checkpoint", stateFile("best"))
			putCheckpoint(t, s, "best", nil)
			must(t, s.Chtimes(t.Context(), "model.ckpt-20.index", old.Add(time.Hour), old.Add(time.Hour)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, s store.Store) {
				putCheckpoint(t, s, "model.ckpt-10", nil)
				putCheckpoint(t, s, "model.ckpt-20", nil)
				build(t, s)
				before := tree(t, s, ".")
				for _, age := range []time.Duration{0, time.Minute} {
					report, err := hdfsckpt.Repair(t.Context(), s, age)
					if err != nil || report.String() != "" {
						t.Errorf("a repair did this: %v, %v", report, err)
					}
				}
				if after := tree(t, s, "."); after != before {
					t.Errorf("there was\n%s\nand there is\n%s", before, after)
				}
			})
		})
	}
}

func TestRepairWithNothingWhole(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		ctx := context.Background()
		if report, err := hdfsckpt.Repair(ctx, s, 0); err != nil || report.String() != "" {
			t.Errorf("an empty store: %v, %v", report, err)
		}
		putCheckpoint(t, s, "model.ckpt-0", without(".index"))
		must(t, store.WriteFile(ctx, s, "checkpoint", stateFile("model.ckpt-0"), 0o644))
		report, err := hdfsckpt.Repair(ctx, s, 0)
		if err != nil || !strings.Contains(report.String(), "moved checkpoint aside") {
			t.Errorf("%s, %v", report, err)
		}
		if _, err := s.Stat(ctx, "checkpoint"); !errors.Is(err, syscall.ENOENT) {
			t.Errorf("checkpoint: %v", err)
		}
	})
}

func TestLeftovers(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		ctx := context.Background()
		for _, name := range []string{
			"model.ckpt-5_temp/part-00000-of-00002.data-00000-of-00001", "model.ckpt-5_temp/part-00000-of-00002.index",
			"model.ckpt-6_temp_0af3/part-00001-of-00002.data-00000-of-00001.tempstate123", "checkpoint.tmp12ab",
			"model.ckpt-7.index.tempstate99", "step-8/ps-0.json", "my_temp/notes.txt", "events.out.tfevents.1",
		} {
			put(t, s, name, []byte("x"))
		}
		putCheckpoint(t, s, "sub/model.ckpt-5", nil)
		must(t, s.Mkdir(ctx, "model.ckpt-4_temp", 0o755))
		long := time.Now().Add(-time.Hour)
		must(t, s.Chtimes(ctx, "model.ckpt-4_temp", long, long))
		must(t, s.Mkdir(ctx, "model.ckpt-9_temp", 0o755)) // a part is about to be put there
		young, err := s.Create(ctx, "model.ckpt-9.index", 0o644)
		must(t, err)
		_, err = young.Write([]byte("x"))
		must(t, err)
		report, err := hdfsckpt.Repair(ctx, s, 10*time.Minute)
		if err != nil || len(report.Aside) != 5 {
			t.Errorf("%s, %v", report, err)
		}
		var names []string
		infos, err := s.List(ctx, ".")
		must(t, err)
		for _, i := range infos {
			names = append(names, i.Name)
		}
		if got, want := strings.Join(names, " "), ".holdfast events.out.tfevents.1 model.ckpt-9_temp my_temp step-8 sub"; got != want {
			t.Errorf("left are %s, want %s", got, want)
		}
		must(t, young.Close()) // it was not touched
		if _, err := s.Stat(ctx, "my_temp/notes.txt"); err != nil {
			t.Error(err)
		}
	})
}

// TestSlowSave: a part that takes an hour to write does not lose those that were
// written before it, nor itself, though all that is seen of it is when it began.
func TestSlowSave(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		ctx := context.Background()
		first := "model.ckpt-5_temp/part-00000-of-00002.data-00000-of-00001"
		put(t, s, first, []byte("x"))
		dir := writers.Dir("job.container_1")
		must(t, store.MkdirAll(ctx, s, dir, 0o755))
		slow, err := s.Create(ctx, dir+"/part", 0o644)
		must(t, err)
		_, err = slow.Write([]byte("x"))
		must(t, err)
		begun := func(ago time.Duration) {
			t.Helper()
			open, err := store.ListTemporary(ctx, s, dir)
			if err != nil || len(open) != 1 {
				t.Fatalf("being written are %v, %v", open, err)
			}
			at := time.Now().Add(-ago)
			must(t, s.Chtimes(ctx, path.Join(dir, open[0].Name), at, at))
		}
		safe := func(left bool) {
			t.Helper()
			report, err := hdfsckpt.Repair(ctx, s, 10*time.Minute)
			must(t, err)
			if _, err := s.Stat(ctx, first); (err == nil) != left {
				t.Errorf("the part that was written first: %v; %s", err, report)
			}
		}
		begun(time.Hour)
		safe(true)
		must(t, slow.Close())
		must(t, s.Remove(ctx, dir+"/part"))
		safe(false)

		put(t, s, first, []byte("x"))
		slow, err = s.Create(ctx, dir+"/part", 0o644)
		must(t, err)
		_, err = slow.Write([]byte("x"))
		must(t, err)
		begun(25 * time.Hour) // its writer was lost without a word
		safe(false)
		if open, err := store.ListTemporary(ctx, s, dir); err != nil || len(open) > 0 {
			t.Errorf("of a lost writer stay %v, %v", open, err)
		}
	})
}

func TestPrune(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		ctx := context.Background()
		for i := range 6 {
			putCheckpoint(t, s, fmt.Sprintf("model.ckpt-%d", i*50), nil)
		}
		putCheckpoint(t, s, "model.ckpt-60", without(".index"))
		putCheckpoint(t, s, "model.ckpt-300", without(".index"))
		must(t, store.WriteFile(ctx, s, "checkpoint", stateFile("model.ckpt-50"), 0o644))
		seal(t, s, "model.ckpt-0", "model.ckpt-150")
		plan := hdfsckpt.PlanPrune(list(t, s), 1, 100)
		var kept []string
		for _, k := range plan.Keep {
			kept = append(kept, k.Name+": "+k.Reason)
		}
		want := "model.ckpt-0: a multiple of 100; model.ckpt-50: named by checkpoint; model.ckpt-100: a multiple of 100; model.ckpt-150: the newest sealed; model.ckpt-200: a multiple of 100; model.ckpt-250: one of the newest 1; model.ckpt-300: newer than every complete one"
		if got := strings.Join(kept, "; "); got != want {
			t.Errorf("kept are\n%s, want\n%s", got, want)
		}
		plan = hdfsckpt.PlanPrune(list(t, s), 0, 0)
		must(t, plan.Execute(ctx, s))
		if got, want := states(list(t, s)), "model.ckpt-50 complete current; model.ckpt-150 sealed; model.ckpt-250 complete; model.ckpt-300 torn"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		infos, err := s.List(ctx, ".holdfast/manifests")
		if err != nil || len(infos) != 1 {
			t.Errorf("manifests: %v, %v", infos, err)
		}
	})
}

// TestPruneKeepsOfEachSeries: checkpoints whose names differ in more than their numbers are
// different models, or the best of one and the latest, and of each the newest stay. What is torn
// and has no step may be younger than all that have one.
func TestPruneKeepsOfEachSeries(t *testing.T) {
	for name, c := range map[string]struct {
		put  map[string]func(t *testing.T, s store.Store, name string)
		keep string
	}{
		"two models": {map[string]func(t *testing.T, s store.Store, name string){
			"G-100.pt": putWhole, "G-200.pt": putWhole, "G-300.pt": putWhole, "D-10.pt": putWhole, "D-20.pt": putWhole, "D-30.pt": putWhole,
		}, "D-20.pt: one of the newest 2 of D-#.pt; D-30.pt: one of the newest 2 of D-#.pt; G-200.pt: one of the newest 2 of G-#.pt; G-300.pt: one of the newest 2 of G-#.pt"},
		"the best one": {map[string]func(t *testing.T, s store.Store, name string){
			"best-epoch=1-step=100.ckpt": putWhole, "epoch=3-step=200.ckpt": putWhole, "epoch=3-step=300.ckpt": putWhole, "epoch=3-step=400.ckpt": putWhole,
		}, "best-epoch=1-step=100.ckpt: one of the newest 2 of best-epoch=#-step=#.ckpt; epoch=3-step=300.ckpt: one of the newest 2 of epoch=#-step=#.ckpt; epoch=3-step=400.ckpt: one of the newest 2 of epoch=#-step=#.ckpt"},
		"two savers": {map[string]func(t *testing.T, s store.Store, name string){
			"best-10": putBundle, "model.ckpt-20": putBundle, "model.ckpt-30": putBundle, "model.ckpt-40": putBundle,
		}, "best-10: one of the newest 2 of best-#; model.ckpt-30: one of the newest 2 of model.ckpt-#; model.ckpt-40: one of the newest 2 of model.ckpt-#"},
		"directories of each step": {map[string]func(t *testing.T, s store.Store, name string){
			"a/step_10/model.pt": putWhole, "a/step_20/model.pt": putWhole, "a/step_30/model.pt": putWhole,
		}, "a/step_20/model.pt: one of the newest 2; a/step_30/model.pt: one of the newest 2"},
		"torn, without a step": {map[string]func(t *testing.T, s store.Store, name string){
			"last.ckpt": func(t *testing.T, s store.Store, name string) { putTorch(t, s, name, false) }, "step=10.ckpt": putWhole,
		}, "last.ckpt: has no step in its name; step=10.ckpt: one of the newest 2"},
	} {
		t.Run(name, func(t *testing.T) {
			s := openLocal(t, t.TempDir())
			defer s.Close()
			for name, put := range c.put {
				put(t, s, name)
			}
			var kept []string
			for _, k := range hdfsckpt.PlanPrune(list(t, s), 2, 0).Keep {
				kept = append(kept, k.Name+": "+k.Reason)
			}
			slices.Sort(kept)
			if got := strings.Join(kept, "; "); got != c.keep {
				t.Errorf("kept are\n%s, want\n%s", got, c.keep)
			}
		})
	}
}

func putWhole(t *testing.T, s store.Store, name string)  { putTorch(t, s, name, true) }
func putBundle(t *testing.T, s store.Store, name string) { putCheckpoint(t, s, name, nil) }

// TestPrunedStaysRemoved: what a checkpoint had replaced goes with it, and is not restored at the
// next start as if its replacement had failed. What a torn one was to replace stays.
func TestPrunedStaysRemoved(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		ctx := t.Context()
		whole := torchFixture(t, "alone.pt")
		for _, step := range []int{10, 20, 30} {
			putTorch(t, s, fmt.Sprintf("step-%d.pt", step), true)
			putTorch(t, s, fmt.Sprintf("each/step_%d/model.pt", step), true)
			seal(t, s, fmt.Sprintf("each/step_%d/model.pt", step))
		}
		for _, name := range []string{"step-10.pt", "each/step_10/model.pt"} {
			publish(t, s, name, torchFixture(t, "train-40.pt"))
		}
		publish(t, s, "step-20.pt", whole[:len(whole)-100])
		must(t, s.Chtimes(ctx, "step-20.pt", old, old))
		if n := len(listRetained(t, s)); n < 2 {
			t.Fatalf("%d are retained", n)
		}
		err := hdfsckpt.PlanPrune(list(t, s), 1, 0).Execute(ctx, s)
		if !errors.Is(err, syscall.EBUSY) || !strings.Contains(err.Error(), "step-20.pt") || strings.Contains(err.Error(), "step-10") {
			t.Errorf("a prune says %v", err)
		}
		_, err = hdfsckpt.Repair(ctx, s, 0)
		must(t, err)
		if got, want := states(list(t, s)), "step-20.pt complete; each/step_30/model.pt sealed; step-30.pt complete"; got != want {
			t.Errorf("after the next start there are %s, want %s", got, want)
		}
	})
}

// TestPruneLeavesWhatLinksLeadTo: of a checkpoint with links in it these are removed, and not the
// files that it shares with others by them.
func TestPruneLeavesWhatLinksLeadTo(t *testing.T) {
	dir := t.TempDir()
	s := openLocal(t, dir)
	defer s.Close()
	put(t, s, "tokenizer/vocab.txt", []byte("x"))
	for _, name := range []string{"checkpoint-10", "checkpoint-20"} {
		putTrainer(t, s, name)
		must(t, os.Symlink("../tokenizer", path.Join(dir, name, "tokenizer")))
		must(t, os.Symlink("../tokenizer/vocab.txt", path.Join(dir, name, "vocab.txt")))
	}
	putTrainer(t, s, "archive/checkpoint-5")
	must(t, os.Symlink("archive/checkpoint-5", path.Join(dir, "checkpoint-5")))
	must(t, hdfsckpt.PlanPrune(list(t, s), 1, 0).Execute(t.Context(), s))
	if got := states(list(t, s)); got != "archive/checkpoint-5 complete; checkpoint-20 complete" {
		t.Errorf("left are %s", got)
	}
	for _, name := range []string{"checkpoint-5", "checkpoint-10"} {
		if there, err := store.Exists(t.Context(), s, name); err != nil || there {
			t.Errorf("%s is there: %v", name, err)
		}
	}
	if b, err := store.ReadFile(t.Context(), s, "tokenizer/vocab.txt"); err != nil || string(b) != "x" {
		t.Errorf("what its links led to: %q, %v", b, err)
	}
}

func TestPruneLeavesWhatChanged(t *testing.T) {
	ctx, s := context.Background(), openLocal(t, t.TempDir())
	defer s.Close()
	putCheckpoint(t, s, "model.ckpt-1", nil)
	putCheckpoint(t, s, "model.ckpt-2", nil)
	plan := hdfsckpt.PlanPrune(list(t, s), 1, 0)
	must(t, s.Chtimes(ctx, "model.ckpt-1.data-00002-of-00004", time.Now(), time.Now()))
	if err := plan.Execute(ctx, s); !errors.Is(err, syscall.EBUSY) || len(list(t, s)) != 2 {
		t.Errorf("%v, %s", err, states(list(t, s)))
	}
}

func TestRollback(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		ctx := context.Background()
		for _, step := range []int{10, 20, 30} {
			putCheckpoint(t, s, fmt.Sprintf("model.ckpt-%d", step), nil)
		}
		putCheckpoint(t, s, "model.ckpt-40", without(".index"))
		putCheckpoint(t, s, "other/model.ckpt-20", nil)
		must(t, store.WriteFile(ctx, s, "checkpoint", stateFile("/x/model.ckpt-30", "/x/model.ckpt-20", "/x/model.ckpt-30"), 0o644))
		for _, x := range []struct {
			dir  string
			step int64
			text string
		}{{"", 11, "no checkpoint of step 11"}, {"", 20, "several"}, {"", 40, "torn"}} {
			if _, err := hdfsckpt.PlanRollback(ctx, s, x.dir, x.step); err == nil || !strings.Contains(err.Error(), x.text) {
				t.Errorf("to %d: %v", x.step, err)
			}
		}
		plan, err := hdfsckpt.PlanRollback(ctx, s, ".", 20)
		must(t, err)
		if len(plan.Newer) != 2 || len(plan.Moves) != 0 {
			t.Errorf("newer are %s, moved would be %+v", states(plan.Newer), plan.Moves)
		}
		must(t, plan.Execute(ctx, s, "alice"))
		if got, want := states(list(t, s)), "model.ckpt-10 complete; model.ckpt-20 complete current; other/model.ckpt-20 complete; model.ckpt-30 complete; model.ckpt-40 torn"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		text, err := store.ReadFile(ctx, s, "checkpoint")
		must(t, err)
		if st, err := tfbundle.ParseState(text); err != nil || st.Current != "/x/model.ckpt-20" {
			t.Errorf("%+v, %v", st, err)
		}
	})
}
