package inspect

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/retain"
	"holdfast/hdfsckpt/store"
)

// Plan is a change of the checkpoints in a directory, for commands and pages: it is planned,
// shown, agreed to, and executed.
type Plan interface {
	// Question asks a person to agree; empty if there is nothing to do.
	Question() string
	// ID is the same for two plans that do the same to the same checkpoints.
	ID() string
	// Execute carries the plan out. wait is told why, if it takes long.
	Execute(ctx context.Context, s store.Store, wait func(why string)) error
}

var (
	_ Plan = (*Pruning)(nil)
	_ Plan = (*Rollback)(nil)
)

// Planner plans a change of the checkpoints in a store.
type Planner func(ctx context.Context, s store.Store) (Plan, error)

// Pruning is what a prune does, as JSON.
type Pruning struct {
	Directory string       `json:"directory"`
	Done      bool         `json:"done"`
	Bytes     int64        `json:"bytes"` // freed
	Remove    []Checkpoint `json:"remove"`
	Keep      []Kept       `json:"keep"`
	plan      hdfsckpt.PrunePlan
}

// Kept is a checkpoint that a prune leaves.
type Kept struct {
	Checkpoint
	Reason string `json:"reason"`
}

// PlanPrune plans to keep the newest checkpoints, and those whose step is a multiple of every.
func PlanPrune(keep int, every int64) Planner {
	return func(ctx context.Context, s store.Store) (Plan, error) {
		list, err := hdfsckpt.List(ctx, s)
		if err != nil {
			return nil, err
		}
		plan := hdfsckpt.PlanPrune(list, keep, every)
		p := &Pruning{Directory: s.URI(), Bytes: plan.Bytes, Remove: Describe(s.URI(), plan.Remove, list), Keep: []Kept{}, plan: plan}
		for _, k := range plan.Keep {
			p.Keep = append(p.Keep, Kept{Describe(s.URI(), []format.Checkpoint{k.Checkpoint}, list)[0], k.Reason})
		}
		return p, nil
	}
}

// Question implements Plan.
func (p *Pruning) Question() string {
	switch n := len(p.Remove); n {
	case 0:
		return ""
	case 1:
		return "Remove 1 checkpoint?"
	default:
		return fmt.Sprintf("Remove %d checkpoints?", n)
	}
}

// ID implements Plan.
func (p *Pruning) ID() string { return identify("prune", p.Directory, p.plan.Remove) }

// Execute implements Plan.
func (p *Pruning) Execute(ctx context.Context, s store.Store, _ func(string)) error {
	if err := p.plan.Execute(ctx, s); err != nil {
		return err
	}
	p.Done = true
	return nil
}

// Rollback is what a rollback does, as JSON.
type Rollback struct {
	Directory string       `json:"directory"`
	Done      bool         `json:"done"`
	To        Checkpoint   `json:"to"`
	Newer     []Checkpoint `json:"newer"` // stay, and are not restored from
	// Writers are the jobs that have not ended their writing to the directory: they run, or
	// were lost.
	Writers []string `json:"writers"`
	plan    hdfsckpt.RollbackPlan
	jobOf   func(writer string) string
}

// unplannable is why there is no plan that does as was asked for.
type unplannable struct{ error }

func (u unplannable) Unwrap() error { return u.error }

// IsUnplannable reports whether an error says that what was asked for cannot be planned with
// the checkpoints that there are.
func IsUnplannable(err error) bool {
	_, ok := err.(unplannable)
	return ok
}

// PlanRollback plans to go back to the checkpoint of a step; dir says in which directory, where
// several have one. jobOf returns the job of a writer.
func PlanRollback(dir string, step int64, jobOf func(writer string) string) Planner {
	return func(ctx context.Context, s store.Store) (Plan, error) {
		list, err := hdfsckpt.List(ctx, s)
		if err != nil {
			return nil, err
		}
		retained, err := retain.List(ctx, s)
		if err != nil {
			return nil, err
		}
		plan, err := hdfsckpt.PlanRollback(slices.Concat(list, retained), dir, step)
		if err != nil {
			return nil, unplannable{fmt.Errorf("%s: %w", s.URI(), err)}
		}
		r := &Rollback{Directory: s.URI(), To: Describe(s.URI(), []format.Checkpoint{plan.To}, list)[0], Newer: Describe(s.URI(), plan.Newer, list), plan: plan, jobOf: jobOf}
		r.Writers, err = hdfsckpt.JobsWriting(ctx, s, jobOf)
		return r, err
	}
}

// Question implements Plan.
func (r *Rollback) Question() string { return "Roll back?" }

// ID implements Plan.
func (r *Rollback) ID() string {
	return identify("rollback", r.Directory, []format.Checkpoint{r.plan.To})
}

// Execute implements Plan. It fails while a job that writes to the directory is alive
// (hdfsckpt.NobodyWrites).
func (r *Rollback) Execute(ctx context.Context, s store.Store, wait func(why string)) error {
	if len(r.Writers) > 0 {
		wait(fmt.Sprintf("%s has not ended its writing to %s: it runs, or was lost; waiting up to %v for a sign of its life", strings.Join(r.Writers, ", "), r.Directory, hdfsckpt.WaitForWriters))
	}
	if err := hdfsckpt.NobodyWrites(ctx, s, r.jobOf); err != nil {
		return err
	}
	if err := r.plan.Execute(ctx, s); err != nil {
		return err
	}
	r.Done = true
	return nil
}

// identify returns a digest of a change and of the checkpoints that it is about, as they were
// listed.
func identify(change, uri string, list []format.Checkpoint) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %q\n", change, uri)
	for _, c := range list {
		fmt.Fprintf(h, "%q %s %s\n", c.Name, c.Kind, c.State)
		for _, f := range slices.Concat(c.Files, c.Extra) {
			fmt.Fprintf(h, "%q %d %d\n", f.Name, f.Size, f.ModTime.UnixNano())
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
