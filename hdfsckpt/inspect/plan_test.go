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

// closed is a store whose directory this user may not write in.
type closed struct{ store.Store }

func (closed) Access(context.Context, string, uint32) error { return syscall.EACCES }

// TestChangesBeginTogether: where one of several directories may not be written in, none is
// changed.
func TestChangesBeginTogether(t *testing.T) {
	for change, planner := range map[string]inspect.Planner{
		"prune":    inspect.PlanPrune(1, 0),
		"rollback": inspect.PlanRollback("", 7, "somebody", func(string) string { return "" }),
	} {
		t.Run(change, func(t *testing.T) {
			var changes []inspect.Planned
			for _, refuses := range []bool{false, true} {
				dir := t.TempDir()
				for _, step := range []string{"step-7", "step-8"} {
					if err := os.MkdirAll(filepath.Join(dir, step), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(dir, step, "COMMITTED"), nil, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				s, err := store.OpenExisting(t.Context(), dir, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				if refuses {
					s = closed{s}
				}
				plan, err := planner(t.Context(), s)
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
