package inspect_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/hdfsckpt/inspect"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
)

// closed is a store with a directory that this user may not write in; empty: none of them.
type closed struct {
	store.Store
	dir string
}

func (c closed) Access(_ context.Context, dir string, _ uint32) error {
	if c.dir == "" || c.dir == dir {
		return syscall.EACCES
	}
	return nil
}

// TestChangesBeginTogether: where one of several directories may not be written in, none is
// changed.
func TestChangesBeginTogether(t *testing.T) {
	prune, rollback := inspect.PlanPrune(1, 0), inspect.PlanRollback("", 7, "somebody", func(string) string { return "" })
	for change, c := range map[string]struct {
		planner inspect.Planner
		closed  string
	}{
		"prune": {planner: prune}, "rollback": {planner: rollback},
		"prune, in a checkpoint of somebody else's": {prune, "step-7/deeper"},
	} {
		t.Run(change, func(t *testing.T) {
			var changes []inspect.Planned
			for _, refuses := range []bool{false, true} {
				dir := t.TempDir()
				for _, step := range []string{"step-7", "step-8"} {
					if err := os.MkdirAll(filepath.Join(dir, step, "deeper"), 0o755); err != nil {
						t.Fatal(err)
					}
					for _, file := range []string{"COMMITTED", "deeper/values"} {
						if err := os.WriteFile(filepath.Join(dir, step, file), nil, 0o644); err != nil {
							t.Fatal(err)
						}
					}
				}
				s, err := store.OpenExisting(t.Context(), dir, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				if refuses {
					s = closed{s, c.closed}
				}
				plan, err := c.planner(t.Context(), s)
				if err != nil {
					t.Fatal(err)
				}
				if plan.Question() == "" {
					t.Fatalf("there is nothing to do: %+v", plan)
				}
				changes = append(changes, inspect.Planned{Plan: plan, Store: s})
			}
			if err := inspect.Execute(t.Context(), changes, inspect.Watch{}); !errors.Is(err, syscall.EACCES) {
				t.Errorf("with a directory that may not be written in: %v", err)
			}
			for _, c := range changes {
				for _, step := range []string{"step-7", "step-8"} {
					if _, err := c.Store.Stat(t.Context(), step); err != nil || c.Plan.IsDone() {
						t.Errorf("%s was changed: %v", c.Store.URI(), err)
					}
				}
			}
			if err := inspect.Execute(t.Context(), changes[:1], inspect.Watch{}); err != nil || !changes[0].Plan.IsDone() {
				t.Errorf("the one that may be: %v", err)
			}
		})
	}
}

// TestAJobBeginsWhileARollbackWaits: for a sign of life from a job that writes to another one of the
// directories. What it begins to save is not gone back behind, in any of them.
func TestAJobBeginsWhileARollbackWaits(t *testing.T) {
	planner := inspect.PlanRollback("", 7, "somebody", func(writer string) string { return writer })
	writing := func(s store.Store, job string) {
		t.Helper()
		if err := store.MkdirAll(t.Context(), s, writers.Dir(job), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var changes []inspect.Planned
	for _, job := range []string{"", "old-job"} {
		dir := t.TempDir()
		s, err := store.NewLocal(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for _, step := range []string{"step-7", "step-8"} {
			if err := store.MkdirAll(t.Context(), s, step, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := store.WriteFile(t.Context(), s, step+"/COMMITTED", nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if job != "" {
			writing(s, job)
		}
		plan, err := planner(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		changes = append(changes, inspect.Planned{Plan: plan, Store: s})
	}
	waited := false
	wait := func(string, time.Duration) func() {
		waited = true
		writing(changes[0].Store, "new-job")
		if err := store.RemoveDir(t.Context(), changes[1].Store, writers.Dir("old-job")); err != nil { // it has ended
			t.Error(err)
		}
		return func() {}
	}
	if err := inspect.Execute(t.Context(), changes, inspect.Watch{Wait: wait}); err == nil || !strings.Contains(err.Error(), "new-job") || !strings.Contains(err.Error(), changes[0].Store.URI()) {
		t.Errorf("rolled back under a job that has begun: %v", err)
	}
	if !waited {
		t.Error("nothing waited for the job")
	}
	for _, c := range changes {
		if _, err := c.Store.Stat(t.Context(), "step-8"); err != nil || c.Plan.IsDone() {
			t.Errorf("%s was changed: %v", c.Store.URI(), err)
		}
	}
}
