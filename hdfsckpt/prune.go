package hdfsckpt

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/manifest"
	"holdfast/hdfsckpt/retain"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
)

// PrunePlan is what a prune removes, and why each of the others stays; both in the order
// in which checkpoints are listed.
type PrunePlan struct {
	Remove []format.Checkpoint
	Keep   []Kept
	Bytes  int64 // freed
	// Progress is told how many have been removed or have failed, of how many. It may be nil.
	Progress func(done, total int64)
}

// Kept is a checkpoint that stays.
type Kept struct {
	format.Checkpoint
	Reason string
}

// PlanPrune keeps the whole checkpoints of the newest keep steps of each series
// (Checkpoint.Series) of a format, and of the others those whose step is a multiple of every (0:
// none). A step may have several: what each rank has saved. Those of a step that stays for one
// series stay in all series of the directory, as a program may have saved them together, and
// have been lost before the last. Torn ones that are older than a whole one of the format in their
// directory are removed. What is in progress, cannot be checked or has no step in its name, what
// a pointer names, and the newest sealed one of each series stay in any case.
func PlanPrune(list []format.Checkpoint, keep int, every int64) PrunePlan {
	reasons, with := reasonsToKeep(list, keep, every), map[savedAt]string{}
	for i, c := range list {
		if reasons[i] != "" && c.Whole() && c.NamedStep() != format.NoStep {
			with[savedAt{c.SeriesDir(), c.Step}] = c.Name
		}
	}
	var plan PrunePlan
	for i, c := range list {
		reason := reasons[i]
		if name := with[savedAt{c.SeriesDir(), c.Step}]; reason == "" && c.Whole() && name != "" {
			reason = "of the step of " + name
		}
		if reason != "" {
			plan.Keep = append(plan.Keep, Kept{c, reason})
			continue
		}
		plan.Remove = append(plan.Remove, c)
		plan.Bytes += c.Size
	}
	return plan
}

// savedAt is what a program may have saved together.
type savedAt struct {
	dir  string
	step int64
}

// reasonsToKeep returns why each checkpoint stays by itself; "" for one that does not.
func reasonsToKeep(list []format.Checkpoint, keep int, every int64) []string {
	reasons := make([]string, len(list))
	seen := map[string]int{}   // steps with whole ones of the series, from the newest on
	step := map[string]int64{} // the last of these
	sealed := map[string]bool{}
	whole := map[string]bool{}   // directories, by format
	several := map[string]bool{} // series with steps in their names
	for _, c := range list {
		if c.NamedStep() != format.NoStep {
			several[seriesOf(c)] = true
		}
	}
	for i := len(list) - 1; i >= 0; i-- {
		c := list[i]
		series, dir, of := seriesOf(c), string(c.Kind)+" "+c.SeriesDir(), ""
		whole[dir] = whole[dir] || c.Whole() && c.NamedStep() != format.NoStep
		if len(several) > 1 {
			of = " of " + c.Series()
		}
		if c.Whole() && c.NamedStep() != format.NoStep && (seen[series] == 0 || c.Step != step[series]) {
			seen[series]++
			step[series] = c.Step
		}
		reason := ""
		switch {
		case c.State == format.InProgress:
			reason = "in progress"
		case c.State == format.Unchecked:
			reason = "cannot be checked"
		case c.NamedStep() == format.NoStep:
			reason = "has no step in its name"
		case c.Current:
			reason = "named by " + c.Pointer().PointerFile()
		case c.State == format.Sealed && !sealed[series]:
			reason = "the newest sealed" + of
		case c.Whole() && seen[series] <= keep:
			reason = fmt.Sprintf("one of the newest %d%s", keep, of)
		case c.Whole() && seen[series] == 1:
			reason = "the newest complete" + of
		case c.Whole() && every > 0 && c.Step >= 0 && c.Step%every == 0:
			reason = fmt.Sprintf("a multiple of %d", every)
		case !c.Whole() && !whole[dir]:
			reason = "newer than every complete one"
		}
		reasons[i] = reason
		sealed[series] = sealed[series] || c.State == format.Sealed
	}
	return reasons
}

func seriesOf(c format.Checkpoint) string { return string(c.Kind) + " " + c.Series() }

// Check returns why nothing can be removed from the store. It changes nothing.
func (p PrunePlan) Check(ctx context.Context, s store.Store) error {
	_, err := writers.Nested(ctx, s)
	var within []string
	for i := 0; i < len(p.Remove) && err == nil; i++ {
		var dirs, links []string
		dirs, links, err = directories(ctx, s, p.Remove[i])
		within = append(within, slices.DeleteFunc(dirs, func(d string) bool { return slices.Contains(links, d) })...)
	}
	if err == nil {
		err = mayChange(ctx, s, p.Remove, within...)
	}
	if err != nil {
		return fmt.Errorf("cannot prune %s: %w", s.URI(), err)
	}
	return nil
}

// mayChange returns an error if this user may not write in a directory that some checkpoints lie
// in, in the store's own, or in one of some others.
func mayChange(ctx context.Context, s store.Store, list []format.Checkpoint, others ...string) error {
	dirs := map[string]bool{".": true, store.OwnDir: true}
	for _, dir := range others {
		dirs[dir] = true
	}
	for _, c := range list {
		name, _ := c.Original()
		dirs[path.Dir(name)] = true
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		if err := store.MayWrite(ctx, s, dir); err != nil && !store.Vanished(err) {
			return err
		}
	}
	return nil
}

// Execute removes what the plan says, the oldest first, with what is retained that it had
// replaced. Of each checkpoint the marker is removed first, so that it never looks whole while it
// is being removed; of links, what they lead to stays. A checkpoint that has changed since it was
// listed stays (EBUSY), and so do a torn one that is whole together with what is retained of it,
// which the next start restores, and one in which another store lies.
func (p PrunePlan) Execute(ctx context.Context, s store.Store) error {
	nested, err := writers.Nested(ctx, s)
	if err != nil {
		return fmt.Errorf("cannot prune %s: %w", s.URI(), err)
	}
	var errs []error
	for i, c := range p.Remove {
		if err := ctx.Err(); err != nil {
			errs = append(errs, fmt.Errorf("cannot remove the other %d checkpoints: %w", len(p.Remove)-i, err))
			break
		}
		if err := removeCheckpoint(ctx, s, c, nested); err != nil {
			errs = append(errs, fmt.Errorf("cannot remove the checkpoint %s: %w", c.Name, err))
		}
		if p.Progress != nil {
			p.Progress(int64(i+1), int64(len(p.Remove)))
		}
	}
	return errors.Join(errs...)
}

func removeCheckpoint(ctx context.Context, s store.Store, c format.Checkpoint, nested map[string][]string) error {
	if within := storeWithin(&c, nested); within != "" {
		return fmt.Errorf("%s in it is a checkpoint directory of its own: move one of the two away, and prune again: %w", within, syscall.EBUSY)
	}
	files := slices.Concat(c.Files, c.Extra)
	for _, f := range files {
		i, err := s.Stat(ctx, f.Name)
		if store.Vanished(err) {
			continue
		}
		if err != nil {
			return err
		}
		if i.Size != f.Size || !i.ModTime.Equal(f.ModTime) {
			return fmt.Errorf("%s was changed meanwhile: %w", f.Name, syscall.EBUSY)
		}
	}
	if !c.Whole() {
		if whole, err := retain.IsWhole(ctx, s, c.Name); err != nil {
			return err
		} else if whole {
			return fmt.Errorf("it was being replaced or removed when its program was lost, and what it was is retained and restored when tasks start: prune again after that: %w", syscall.EBUSY)
		}
	}
	// Otherwise the next start would take it for one that was not replaced in the end.
	if err := retain.Forget(ctx, s, c.Name); err != nil {
		return err
	}
	dirs, links, err := directories(ctx, s, c)
	if err != nil {
		return err
	}
	var names []string
	if c.Marker != "" {
		names = append(names, c.Marker)
	}
	for _, f := range files {
		names = append(names, f.Name)
	}
	for _, name := range names {
		if below(links, name) {
			continue
		}
		if err := s.Remove(ctx, name); err != nil && !store.Vanished(err) {
			return err
		}
	}
	for _, dir := range dirs {
		if err := store.RemoveDir(ctx, s, dir); err != nil && !store.Vanished(err) {
			return err
		}
	}
	return manifest.Remove(ctx, s, c.Name)
}

// below reports whether a name lies below one of some directories.
func below(dirs []string, name string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return strings.HasPrefix(name, d+"/") })
}

// directories returns those that are removed with a checkpoint, the deepest first, and which of them
// are symbolic links: what is in these is not removed.
func directories(ctx context.Context, s store.Store, c format.Checkpoint) (dirs, links []string, err error) {
	if !c.IsDir() {
		return nil, nil, nil
	}
	seen := map[string]bool{}
	for _, f := range c.Files {
		for d := path.Dir(f.Name); d != "." && (d == c.Name || strings.HasPrefix(d, c.Name+"/")); d = path.Dir(d) {
			seen[d] = true
		}
	}
	dirs = slices.SortedFunc(maps.Keys(seen), func(a, b string) int { return strings.Compare(b, a) })
	for _, dir := range dirs {
		i, err := store.Lstat(ctx, s, dir)
		if err != nil && !store.Vanished(err) {
			return nil, nil, err
		}
		if err == nil && i.Link {
			links = append(links, dir)
		}
	}
	return slices.DeleteFunc(dirs, func(d string) bool { return below(links, d) }), links, nil
}
