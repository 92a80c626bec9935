package inspect_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"holdfast/hdfsckpt/inspect"
	"holdfast/hdfsckpt/store"
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
