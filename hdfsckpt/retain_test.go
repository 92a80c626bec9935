package hdfsckpt_test

import (
	"context"
	"errors"
	"os"
	"path"
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

// remove removes a checkpoint's files as a mount does.
func remove(t *testing.T, s store.Store, name string) {
	t.Helper()
	ctx := context.Background()
	for _, c := range list(t, s) {
		if c.Name != name {
			continue
		}
		for _, f := range c.Files {
			retained, err := retain.Removing(ctx, s, f.Name)
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
				must(t, retain.Replacing(ctx, s, f.Name))
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

// TestALinkThatWasNotReplaced: a link that was to be saved over gets its name back when that fails,
// though it leads nowhere from where it is retained.
func TestALinkThatWasNotReplaced(t *testing.T) {
	dir := t.TempDir()
	s := openLocal(t, dir)
	defer s.Close()
	putTorch(t, s, "epoch=1-step=20.ckpt", true)
	must(t, os.Symlink("epoch=1-step=20.ckpt", path.Join(dir, "last.ckpt")))
	must(t, retain.Replacing(t.Context(), s, "last.ckpt"))
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
