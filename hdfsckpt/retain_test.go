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
	"holdfast/hdfsckpt/retain"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
)

// areaOf is that of a mount in a store (retain.Area).
func areaOf(s store.Store) retain.Area { return areaOfWriter(s, "test") }

func areaOfWriter(s store.Store, writer string) retain.Area {
	made := false
	return func(ctx context.Context) (string, error) {
		if made {
			return writers.Dir(writer), nil
		}
		made = true
		return writers.Dir(writer), store.MkdirAll(ctx, s, writers.Dir(writer), 0o755)
	}
}

// remove removes a checkpoint's files as a mount does.
func remove(t *testing.T, s store.Store, name string) {
	t.Helper()
	ctx := context.Background()
	for _, c := range list(t, s) {
		if c.Name != name {
			continue
		}
		for _, f := range c.Files {
			retained, err := retain.Removing(ctx, s, areaOf(s), f.Name)
			must(t, err)
			if !retained {
				must(t, s.Remove(ctx, f.Name))
			}
		}
	}
}

func listRetained(t *testing.T, s store.Store) []format.Checkpoint {
	t.Helper()
	retained, err := retain.List(context.Background(), s)
	must(t, err)
	return retained
}

// TestRollbackToWhatWasRemoved: with max_to_keep=1, the one before stays, and
// can be gone back to.
func TestRollbackToWhatWasRemoved(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		ctx := context.Background()
		putCheckpoint(t, s, "model.ckpt-10", nil)
		putCheckpoint(t, s, "model.ckpt-20", nil)
		seal(t, s, "model.ckpt-10")
		seal(t, s, "model.ckpt-20")
		must(t, store.WriteFile(ctx, s, "checkpoint", stateFile("model.ckpt-20", "model.ckpt-20"), 0o644))
		remove(t, s, "model.ckpt-10")
		if got, want := states(list(t, s)), "model.ckpt-20 sealed current"; got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
		retained := listRetained(t, s)
		if len(retained) != 1 || retained[0].State != format.Sealed || retained[0].Step != 10 {
			t.Fatalf("retained are %+v", retained)
		}
		if problems, err := hdfsckpt.Verify(ctx, s, retained[0], nil); err != nil || len(problems) > 0 {
			t.Errorf("what is retained has the problems %v, %v", problems, err)
		}
		plan, err := hdfsckpt.PlanRollback(ctx, s, "", 10)
		must(t, err)
		must(t, plan.Execute(ctx, s, "alice"))
		if got, want := states(list(t, s)), "model.ckpt-10 sealed current; model.ckpt-20 sealed"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if retained := listRetained(t, s); len(retained) != 0 {
			t.Errorf("still retained are %+v", retained)
		}
	})
}

// TestRemovedWhereOlderOnesStay: nothing is retained that is not needed, and no
// manifest stays of what is gone.
func TestRemovedWhereOlderOnesStay(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		for _, name := range []string{"model.ckpt-10", "model.ckpt-20", "model.ckpt-30"} {
			putCheckpoint(t, s, name, nil)
			seal(t, s, name)
		}
		remove(t, s, "model.ckpt-10")
		if retained := listRetained(t, s); len(retained) != 0 {
			t.Errorf("retained are %+v", retained)
		}
		manifests, err := s.List(context.Background(), path.Join(store.OwnDir, "manifests"))
		if err != nil || len(manifests) != 2 {
			t.Errorf("%d manifests, %v", len(manifests), err)
		}
	})
}

// TestFence: a writer that was fenced off completes nothing and begins nothing,
// whether it had begun before or not. Another is not concerned.
func TestFence(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		ctx := context.Background()
		dir := writers.Dir("job.container_1")
		must(t, store.MkdirAll(ctx, s, dir, 0o755))
		begun, err := s.Create(ctx, path.Join(dir, "file"), 0o644)
		must(t, err)
		if _, err := begun.Write([]byte("of the zombie")); err != nil {
			t.Fatal(err)
		}
		other := writers.Dir("job.container_2")
		must(t, store.MkdirAll(ctx, s, other, 0o755))
		for range 2 { // again makes no difference
			must(t, writers.Fence(ctx, s, "job.container_1"))
		}
		if err := begun.Close(); !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("completing what was begun: %v", err)
		}
		if _, err := s.Create(ctx, path.Join(dir, "new"), 0o644); err == nil {
			t.Error("something new was begun")
		}
		if err := store.MkdirAll(ctx, s, dir, 0o755); err == nil {
			t.Error("its directory was made again")
		}
		must(t, store.WriteFile(ctx, s, path.Join(other, "file"), []byte("x"), 0o644))

		must(t, writers.Fence(ctx, s, "job.container_3"))
		if err := store.MkdirAll(ctx, s, writers.Dir("job.container_3"), 0o755); err == nil {
			t.Error("one that had never written could begin")
		}
	})
}

// TestReplacementThatNeverCame: all files of the checkpoint that is named have
// made room for a save, of which nothing came. It may still come if something is
// being written.
func TestReplacementThatNeverCame(t *testing.T) {
	for name, c := range map[string]struct {
		age     time.Duration
		writing bool
		back    bool
	}{
		"nobody runs":          {back: true},
		"others run":           {age: time.Hour, back: true},
		"something is written": {age: time.Hour, writing: true},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, s := context.Background(), openLocal(t, t.TempDir())
			defer s.Close()
			putCheckpoint(t, s, "model.ckpt-10", nil)
			putCheckpoint(t, s, "model.ckpt-20", nil)
			seal(t, s, "model.ckpt-10", "model.ckpt-20")
			must(t, store.WriteFile(ctx, s, "checkpoint", stateFile("model.ckpt-20", "model.ckpt-20"), 0o644))
			for _, f := range list(t, s)[1].Files {
				must(t, retain.Replacing(ctx, s, areaOf(s), f.Name))
			}
			if got, want := states(list(t, s)), "model.ckpt-10 sealed"; got != want {
				t.Fatalf("before: got %s, want %s", got, want)
			}
			if c.writing {
				dir := writers.Dir("job.container_1")
				must(t, store.MkdirAll(ctx, s, dir, 0o755))
				w, err := s.Create(ctx, dir+"/data", 0o644)
				must(t, err)
				defer w.Abort()
			}
			report, err := hdfsckpt.Repair(ctx, s, c.age)
			must(t, err)
			if told := strings.Contains(report.String(), "restored model.ckpt-20"); len(report.Restored) > 0 != c.back || told != c.back {
				t.Errorf("the report says %q", report)
			}
			want := "model.ckpt-10 sealed; model.ckpt-20 sealed current"
			if !c.back {
				want = "model.ckpt-10 sealed current"
			}
			if got := states(list(t, s)); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// lateChanges are those of a task that was stopped in the middle of them, and fenced off meanwhile.
var lateChanges = map[string]func(ctx context.Context, s store.Store, area retain.Area) error{
	"removal": func(ctx context.Context, s store.Store, area retain.Area) error {
		_, err := retain.Removing(ctx, s, area, "last.ckpt")
		return err
	},
	"replacement": func(ctx context.Context, s store.Store, area retain.Area) error {
		return retain.Replacing(ctx, s, area, "last.ckpt")
	},
	"removal of an older one": func(ctx context.Context, s store.Store, area retain.Area) error {
		_, err := retain.Removing(ctx, s, area, "model-10.pt")
		return err
	},
}

// TestFencedRetainsNothing: what a task that was fenced off goes on to remove or to replace is
// nobody's wish. It stays where it is, sealed, and so does what was retained before.
func TestFencedRetainsNothing(t *testing.T) {
	for name, change := range lateChanges {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, s store.Store) {
				for _, file := range []string{"model-10.pt", "model-20.pt", "last.ckpt"} {
					publish(t, s, file, torchFixture(t, "alone.pt"))
				}
				publish(t, s, "last.ckpt", torchFixture(t, "train-40.pt")) // and one is retained
				putWhole(t, s, "model-5.pt")
				unlink(t, s, "model-5.pt")
				unlink(t, s, "model-20.pt")
				for _, c := range list(t, s) {
					seal(t, s, c.Name)
				}
				before := withRecords(t, s)
				own := areaOfWriter(s, "zombie")
				dir, err := own(t.Context())
				must(t, err)
				must(t, writers.Fence(t.Context(), s, "zombie"))
				if err := change(t.Context(), s, own); err == nil {
					t.Error("it was told that it may")
				}
				if after := withRecords(t, s); after != before {
					t.Errorf("there was\n%s\nand there is\n%s", before, after)
				}
				if i, err := s.Stat(t.Context(), dir); err != nil || i.IsDir() {
					t.Errorf("its directory is made again: %+v, %v", i, err)
				}
			})
		})
	}
}

// withRecords is the tree of a store, with what is retained and sealed.
func withRecords(t *testing.T, s store.Store) string {
	t.Helper()
	text := tree(t, s, ".")
	for _, dir := range []string{"retained", "manifests"} {
		text += tree(t, s, path.Join(store.OwnDir, dir))
	}
	return text
}

// stopping is a store in which something happens before a file gets another name, unless that fails.
type stopping struct {
	*store.Local
	from string
	do   func() error
}

func (s *stopping) RenameNew(ctx context.Context, from, to string) error {
	if do := s.do; from == s.from && do != nil {
		s.do = nil
		if err := do(); err != nil {
			return err
		}
	}
	return s.Local.RenameNew(ctx, from, to)
}

// TestSavedOverAfterABrokenRemoval: a checkpoint whose removal was broken off before anything was moved is
// saved over as any other, and comes back if its replacement does not follow.
func TestSavedOverAfterABrokenRemoval(t *testing.T) {
	local, err := store.NewLocal(t.TempDir())
	must(t, err)
	defer local.Close()
	putWhole(t, local, "last.ckpt")
	before := tree(t, local, ".")
	_, err = retain.Removing(t.Context(), &stopping{local, "last.ckpt", func() error { return syscall.EIO }}, areaOf(local), "last.ckpt")
	if !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	must(t, retain.Replacing(t.Context(), local, areaOf(local), "last.ckpt")) // and its program is lost
	report, err := hdfsckpt.Repair(t.Context(), local, 0)
	if after := tree(t, local, "."); err != nil || after != before || !slices.Equal(report.Restored, []string{"last.ckpt"}) {
		t.Errorf("a start says %s, %v, and there is %s", report, err, after)
	}
}

// TestStoppedWhileItRetains: a task that is stopped right before it moves a file, and is fenced off, moves
// nothing when it goes on: neither what it was about to move, nor what its replacement has saved
// by that name.
func TestStoppedWhileItRetains(t *testing.T) {
	for name, change := range lateChanges {
		for _, saves := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, its replacement saves %v", name, saves), func(t *testing.T) {
				local, err := store.NewLocal(t.TempDir())
				must(t, err)
				defer local.Close()
				file := "last.ckpt"
				if name == "removal of an older one" {
					file = "model-10.pt"
				}
				first, second := torchFixture(t, "alone.pt"), torchFixture(t, "train-40.pt")
				publish(t, local, file, first)
				want := first
				err = change(t.Context(), &stopping{local, file, func() error {
					must(t, writers.Fence(t.Context(), local, "zombie"))
					if report, err := hdfsckpt.Repair(t.Context(), local, 0); err != nil || report.String() != "" {
						t.Errorf("a start says %s, %v", report, err)
					}
					if saves {
						publish(t, local, file, second)
						want = second
					}
					return nil
				}}, areaOfWriter(local, "zombie"))
				if err == nil {
					t.Error("it was told that it has moved the file")
				}
				if got, err := store.ReadFile(t.Context(), local, file); err != nil || string(got) != string(want) {
					t.Errorf("%s has %d bytes, want %d: %v", file, len(got), len(want), err)
				}
				kept := listRetained(t, local)
				if saves != (len(kept) == 1) || saves && kept[0].Size != int64(len(first)) {
					t.Errorf("retained are %s", describe(kept))
				}
			})
		}
	}
}

// meanwhile is a store in which something happens once a file is opened for the first time.
type meanwhile struct {
	*store.Local
	name string
	do   func()
}

func (m *meanwhile) Open(ctx context.Context, name string) (store.Reader, error) {
	r, err := m.Local.Open(ctx, name)
	if do := m.do; name == m.name && do != nil {
		m.do = nil
		do()
	}
	return r, err
}

// TestTwoRanksSaveOver: ranks whose mounts begin at the same time to retain the checkpoint that they save over
// retain it together, and what one has moved is not lost by the other, whether another
// checkpoint was retained by that name before or not.
func TestTwoRanksSaveOver(t *testing.T) {
	for _, before := range []bool{false, true} {
		for name, change := range map[string]func(t *testing.T, s store.Store, name string){
			"saved over": func(t *testing.T, s store.Store, name string) {
				must(t, retain.Replacing(t.Context(), s, areaOf(s), name))
			},
			"removed": unlink,
		} {
			t.Run(fmt.Sprintf("%s, one before %v", name, before), func(t *testing.T) {
				local, err := store.NewLocal(t.TempDir())
				must(t, err)
				defer local.Close()
				for range 2 {
					for _, file := range []string{"__0_0.distcp", "__1_0.distcp", ".metadata"} {
						publish(t, local, "dcp/"+file, torchFixture(t, "dcp-300/"+file))
					}
					if !before {
						break
					}
				}
				change(t, &meanwhile{local, "dcp/.metadata", func() { change(t, local, "dcp/__1_0.distcp") }}, "dcp/__0_0.distcp")
				if name == "removed" {
					unlink(t, local, "dcp/.metadata")
				}
				if kept := listRetained(t, local); len(kept) != 1 || len(kept[0].Files) != 3 {
					t.Errorf("retained are %s, and left is %v", describe(kept), filesBelow(t, local, "dcp"))
				}
			})
		}
	}
}

// TestALinkThatWasNotReplaced: a link that was to be saved over gets its name back when that fails,
// though it leads nowhere from where it is retained.
func TestALinkThatWasNotReplaced(t *testing.T) {
	dir := t.TempDir()
	s := openLocal(t, dir)
	defer s.Close()
	putTorch(t, s, "epoch=1-step=20.ckpt", true)
	must(t, os.Symlink("epoch=1-step=20.ckpt", path.Join(dir, "last.ckpt")))
	must(t, retain.Replacing(t.Context(), s, areaOf(s), "last.ckpt"))
	must(t, retain.NotReplaced(t.Context(), s, "last.ckpt"))
	if to, err := os.Readlink(path.Join(dir, "last.ckpt")); err != nil || to != "epoch=1-step=20.ckpt" {
		t.Errorf("it leads to %q, %v", to, err)
	}
}

// TestRetainedWhateverItsName: a checkpoint is retained, listed and restored also where
// its name is long in the escaped form, and where the program calls a file of it as
// the store calls one of its own.
func TestRetainedWhateverItsName(t *testing.T) {
	onBoth(t, func(t *testing.T, s store.Store) {
		for _, prefix := range []string{strings.Repeat("模", 70), strings.Repeat("ä", 60) + "/" + strings.Repeat("ö", 60)} {
			var names []string
			for _, step := range []string{"-10", "-20"} {
				names = append(names, prefix+step)
				putCheckpoint(t, s, prefix+step, nil)
				seal(t, s, prefix+step)
			}
			remove(t, s, names[0])
			restoreTheRetained(t, s, names[0])
		}
	})
	onBoth(t, func(t *testing.T, s store.Store) {
		for _, name := range []string{"step-10", "step-20"} {
			for _, file := range []string{"manifest.json", "name.json", "weights", formats.Committed} {
				put(t, s, path.Join(name, file), []byte(file))
			}
			seal(t, s, name)
		}
		remove(t, s, "step-10")
		restoreTheRetained(t, s, "step-10")
		if got, err := store.ReadFile(context.Background(), s, "step-10/manifest.json"); err != nil || string(got) != "manifest.json" {
			t.Errorf("the program's manifest.json holds %q, %v", got, err)
		}
	})
}

// TestRetainedWhateverItsBytes: names on a local file system need not be UTF-8. What is recorded
// of such a checkpoint has its name as it is, so that it is sealed, retained, moved aside and
// restored as any other.
func TestRetainedWhateverItsBytes(t *testing.T) {
	for kind, c := range map[string]struct {
		put    func(t *testing.T, s store.Store, name string)
		suffix string
	}{"tensorflow": {putBundle, ""}, "torch": {putWhole, ".pt"}, "Trainer's": {func(t *testing.T, s store.Store, name string) { putTrainer(t, s, name) }, "/checkpoint-7"}} {
		t.Run(kind, func(t *testing.T) {
			s := openLocal(t, t.TempDir())
			defer s.Close()
			first, second := "mod\xe8le-10"+c.suffix, "mod\xe8le-20"+c.suffix
			c.put(t, s, first)
			c.put(t, s, second)
			seal(t, s, first, second)
			before := tree(t, s, ".")
			if got := states(list(t, s)); strings.Count(got, "sealed") != 2 {
				t.Errorf("there are %q", got)
			}
			remove(t, s, first)
			restoreTheRetained(t, s, first)
			if kind == "Trainer's" { // of one directory each
				return
			}
			planned := planRollback(t, s, "", 10)
			must(t, planned.Execute(t.Context(), s, "al\xe8ne"))
			if aside := movedAside(t, s); len(aside) != 1 || aside[0].Name != second || aside[0].Rollback.By != "al\xe8ne" {
				t.Errorf("aside are %+v", aside)
			}
			rollBack(t, s, 20)
			if after := tree(t, s, "."); after != before {
				t.Errorf("there was\n%q\nand there is\n%q", before, after)
			}
			if kind == "tensorflow" {
				put(t, s, "r\xe9sultats/checkpoint", stateFile("x"))
				must(t, format.RememberPointerFile(t.Context(), s, "r\xe9sultats/checkpoint"))
				if known, err := format.KnownPointerFiles(t.Context(), s, "checkpoint"); err != nil || !known["r\xe9sultats"] {
					t.Errorf("known are %v, %v", known, err)
				}
			}
		})
	}
}

// restoreTheRetained restores the one checkpoint that is retained, which had that name.
func restoreTheRetained(t *testing.T, s store.Store, name string) {
	t.Helper()
	retained := listRetained(t, s)
	if len(retained) != 1 || retained[0].State != format.Sealed {
		t.Fatalf("of %s is retained: %+v", name, retained)
	}
	if former, isRetained := retained[0].Original(); former != name || !isRetained {
		t.Errorf("its former name is %s, %v; want %s", former, isRetained, name)
	}
	must(t, retain.Restore(context.Background(), s, retained[0]))
	for _, c := range list(t, s) {
		if c.State != format.Sealed {
			t.Errorf("%s is %s", c.Name, c.State)
		}
	}
	if retained := listRetained(t, s); len(retained) != 0 {
		t.Errorf("still retained are %+v", retained)
	}
}
