package inspect

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/store"
)

// Plan is a change of the checkpoints in a directory, for commands and pages: it is planned,
// shown, agreed to, and executed.
type Plan interface {
	// Question asks a person to agree; empty if there is nothing to do.
	Question() string
	// IsDone reports whether the plan was carried out.
	IsDone() bool
	// ID is the same for two plans that do the same to the same checkpoints.
	ID() string
	// await waits for what has to be known before a check. It changes nothing.
	await(ctx context.Context, s store.Store, w Watch) error
	// check returns why the plan cannot be carried out. It changes nothing, and does not wait.
	check(ctx context.Context, s store.Store) error
	// execute carries the plan out.
	execute(ctx context.Context, s store.Store, w Watch) error
}

// Planned is a plan with the store that it was made for.
type Planned struct {
	Plan  Plan
	Store store.Store
}

// Execute carries changes out, one after another. None is begun unless all can be carried out, as
// is found out once nothing more is to be waited for.
func Execute(ctx context.Context, changes []Planned, w Watch) error {
	for _, may := range []func(Planned) error{
		func(c Planned) error { return c.Plan.await(ctx, c.Store, w) },
		func(c Planned) error { return c.Plan.check(ctx, c.Store) },
	} {
		for _, c := range changes {
			if err := may(c); err != nil {
				if len(changes) > 1 {
					err = fmt.Errorf("%w; nothing was changed in any of the %d directories", err, len(changes))
				}
				return err
			}
		}
	}
	for _, c := range changes {
		if err := c.Plan.execute(ctx, c.Store, w); err != nil {
			return err
		}
	}
	return nil
}

// Watch is told how the execution of a plan goes. The zero value is told nothing.
type Watch struct {
	// Wait is told why the execution waits, and for how long at most; it returns what is called
	// when it goes on. nil: nobody is told.
	Wait func(why string, most time.Duration) (over func())
	// Progress is told how many checkpoints have been changed, of how many. It may be nil.
	Progress func(done, total int64)
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

// IsDone implements Plan.
func (p *Pruning) IsDone() bool { return p.Done }

// ID implements Plan.
func (p *Pruning) ID() string { return identify("prune", p.Directory, p.plan.Remove) }

func (p *Pruning) await(context.Context, store.Store, Watch) error { return nil }

func (p *Pruning) check(ctx context.Context, s store.Store) error {
	return p.plan.Check(ctx, s)
}

func (p *Pruning) execute(ctx context.Context, s store.Store, w Watch) error {
	p.plan.Progress = w.Progress
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
	Beside    []Checkpoint `json:"beside"` // the others of its step, which go with it
	Newer     []Checkpoint `json:"newer"`  // stay, and are not restored from
	// Moved are moved aside, as programs would take them. Bytes is how many these have.
	Moved []Checkpoint `json:"moved"`
	Bytes int64        `json:"bytes"`
	// Restored were moved aside, and are restored.
	Restored []Checkpoint `json:"restored"`
	// Copied are names under which programs look for the last checkpoint, and that get a copy
	// of To.
	Copied []string `json:"copied"`
	// Writers are the jobs that have not ended their writing to the directory: they run, or
	// were lost.
	Writers []string `json:"writers"`
	plan    hdfsckpt.RollbackPlan
	jobOf   func(writer string) string
	by      string
	lost    []string // of Writers, as await has found
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
// several have one. by is who asks for it, which is recorded. jobOf returns the job of a writer.
func PlanRollback(dir string, step int64, by string, jobOf func(writer string) string) Planner {
	return func(ctx context.Context, s store.Store) (Plan, error) {
		list, err := hdfsckpt.List(ctx, s)
		if err != nil {
			return nil, err
		}
		plan, err := hdfsckpt.PlanRollback(ctx, s, dir, step)
		if hdfsckpt.IsImpossible(err) {
			return nil, unplannable{fmt.Errorf("%s: %w", s.URI(), err)}
		}
		if err != nil {
			return nil, err
		}
		r := &Rollback{
			Directory: s.URI(), To: Describe(s.URI(), []format.Checkpoint{plan.To}, list)[0], Beside: Describe(s.URI(), plan.Beside, list),
			Newer: Describe(s.URI(), plan.Newer, list), Bytes: plan.Bytes(), Restored: DescribeAside(s.URI(), plan.Restore), Copied: append([]string{}, plan.Copies...),
			plan: plan, jobOf: jobOf, by: by,
		}
		r.Moved = Describe(s.URI(), moved(plan), list)
		r.Writers, err = hdfsckpt.JobsWriting(ctx, s, jobOf)
		return r, err
	}
}

func moved(p hdfsckpt.RollbackPlan) []format.Checkpoint {
	var all []format.Checkpoint
	for _, m := range p.Moves {
		all = append(all, m.Checkpoint)
	}
	return all
}

// Question implements Plan.
func (r *Rollback) Question() string {
	if !r.plan.Needed() {
		return ""
	}
	return "Roll back?"
}

// IsDone implements Plan.
func (r *Rollback) IsDone() bool { return r.Done }

// ID implements Plan.
func (r *Rollback) ID() string {
	about := slices.Concat([]format.Checkpoint{r.plan.To}, r.plan.Beside, moved(r.plan))
	for _, a := range r.plan.Restore {
		about = append(about, format.Checkpoint{Name: a.Where})
	}
	return identify("rollback", r.Directory, about)
}

// await implements Plan. It fails while a job that writes to the directory is alive
// (hdfsckpt.NobodyWrites).
func (r *Rollback) await(ctx context.Context, s store.Store, w Watch) error {
	over := func() {}
	if len(r.Writers) > 0 && w.Wait != nil {
		over = w.Wait(fmt.Sprintf("%s has not ended its writing to %s: it runs, or was lost; waiting up to %v for a sign of its life", strings.Join(r.Writers, ", "), r.Directory, hdfsckpt.WaitForWriters), hdfsckpt.WaitForWriters)
	}
	defer over()
	var err error
	r.lost, err = hdfsckpt.NobodyWrites(ctx, s, r.jobOf)
	return err
}

func (r *Rollback) check(ctx context.Context, s store.Store) error {
	if err := hdfsckpt.NobodyElseWrites(ctx, s, r.jobOf, r.lost); err != nil {
		return err
	}
	return r.plan.Check(ctx, s)
}

func (r *Rollback) execute(ctx context.Context, s store.Store, _ Watch) error {
	if err := r.plan.Execute(ctx, s, r.by); err != nil {
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
