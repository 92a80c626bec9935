package format

import (
	"cmp"
	"context"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/hdfsckpt/store"
)

const (
	MaxDepth     = 5   // levels of directories that are searched
	parallelism  = 16  // calls at a time
	HiddenPrefix = "." // of what is no checkpoint, nor a part of one
	// recent is how old the files of a save may be for it to count as in progress.
	recent = 2 * time.Minute
)

// Search says which checkpoints of a store are looked for.
type Search struct {
	Rule Rule
	// Root is the directory where the search begins; empty for the store's root.
	Root string
	// Chosen leaves out formats with a pointer, so that formats remain whose programs
	// choose a checkpoint by what is there.
	Chosen bool
}

// List lists checkpoints of some formats, in order of precedence, the newest last: by
// step, then by time. It looks into every index and the like, and reads no values.
func (q Search) List(ctx context.Context, s store.Store, formats []Format) ([]Checkpoint, error) {
	group, ctx := errgroup.WithContext(ctx)
	w := &walker{Search: q, s: s, ctx: ctx, formats: formats, group: group, calls: make(chan struct{}, parallelism), listed: map[string][]store.Info{}}
	group.Go(func() error { return w.directory(cmp.Or(q.Root, "."), 0) })
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, f := range formats {
		if r, ok := f.(Reviewer); ok {
			r.Review(q.Rule, w.found)
		}
	}
	Sort(w.found)
	return w.found, nil
}

// Sort sorts checkpoints, the newest last: by step, then by time.
func Sort(list []Checkpoint) {
	slices.SortFunc(list, func(a, b Checkpoint) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), a.Time.Compare(b.Time), strings.Compare(a.Name, b.Name))
	})
}

// NewestComplete returns the checkpoint to restore from: the complete one with the
// highest step, of several the youngest; nil if there is none.
func NewestComplete(list []Checkpoint) *Checkpoint {
	var best *Checkpoint
	for i := range list {
		c := &list[i]
		if !c.Whole() {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(c.Step, best.Step), c.Time.Compare(best.Time)) >= 0 {
			best = c
		}
	}
	return best
}

// RestartFrom returns the checkpoint that tasks continue from when they are started now: the
// newest complete one, or in its place the one that the pointer beside it names, if that is
// complete; nil if there is none.
func RestartFrom(list []Checkpoint) *Checkpoint {
	newest := NewestComplete(list)
	if newest == nil || newest.Pointer() == nil {
		return newest
	}
	for i := range list {
		if c := &list[i]; c.Current && c.Whole() && c.Kind == newest.Kind && path.Dir(c.Name) == path.Dir(newest.Name) {
			return c
		}
	}
	return newest
}

// Dir is a directory in which formats find their checkpoints.
type Dir struct {
	Store store.Store
	Rule  Rule
	Name  string // relative to the store's root
	// Depth is how many levels below the beginning of the search it lies.
	Depth int
	// Entries are those that no format of higher precedence has claimed.
	Entries []store.Info

	w *walker
}

// List lists a directory below, once in a search. Claim uses it instead of Store.
func (d *Dir) List(name string) ([]store.Info, error) { return d.w.list(name) }

// Do calls f, which uses the store, when its turn has come. Claim uses the store by it.
func (d *Dir) Do(f func() error) error { return d.w.limited(f) }

// walker carries out a search. Its goroutines end with its group; calls bounds how
// many of them use the store.
type walker struct {
	Search
	s       store.Store
	ctx     context.Context
	formats []Format
	group   *errgroup.Group
	calls   chan struct{}

	mu     sync.Mutex
	found  []Checkpoint
	listed map[string][]store.Info // by Dir.List, and not searched yet
}

// limited waits for a turn to use the store.
func (w *walker) limited(f func() error) error {
	select {
	case w.calls <- struct{}{}:
	case <-w.ctx.Done():
		return w.ctx.Err()
	}
	defer func() { <-w.calls }()
	return f()
}

func (w *walker) list(name string) (entries []store.Info, err error) {
	w.mu.Lock()
	entries, listed := w.listed[name]
	w.mu.Unlock()
	if listed {
		return entries, nil
	}
	err = w.limited(func() (err error) {
		entries, err = w.s.List(w.ctx, name)
		return err
	})
	if err == nil {
		w.mu.Lock()
		w.listed[name] = entries
		w.mu.Unlock()
	}
	return entries, err
}

// directory finds the checkpoints in one directory, and searches those below.
func (w *walker) directory(name string, depth int) error {
	entries, err := w.list(name)
	w.mu.Lock()
	delete(w.listed, name)
	w.mu.Unlock()
	if store.Vanished(err) {
		return nil
	}
	if err != nil {
		return err
	}
	d := &Dir{Store: w.s, Rule: w.Rule, Name: name, Depth: depth, Entries: slices.Clone(entries), w: w}
	for _, f := range w.formats {
		if !w.Rule.Finds(f) || w.Chosen && hasPointer(f) {
			continue
		}
		claims, err := f.Claim(w.ctx, d)
		if err != nil {
			return err
		}
		for _, c := range claims {
			w.group.Go(func() error { return w.check(f, c) })
			if c.Whole {
				return nil
			}
			d.Entries = slices.DeleteFunc(d.Entries, func(e store.Info) bool { return slices.Contains(c.Take, e.Name) })
		}
	}
	if depth >= w.Rule.depth() {
		return nil
	}
	for _, e := range d.Entries {
		if e.IsDir() && !strings.HasPrefix(e.Name, HiddenPrefix) && !IsDiscarded(e.Name) && (w.Rule.Own() || !IsPartsDir(e.Name)) {
			w.group.Go(func() error { return w.directory(path.Join(name, e.Name), depth+1) })
		}
	}
	return nil
}

func hasPointer(f Format) bool {
	_, ok := f.(Pointer)
	return ok
}

// check adds the checkpoint of a format's claim to those that were found.
func (w *walker) check(f Format, claim Claim) error {
	var c *Checkpoint
	err := w.limited(func() (err error) {
		c, err = claim.Check(w.ctx)
		return err
	})
	if store.Vanished(err) { // removed while it was looked at
		return nil
	}
	if err != nil || c == nil {
		return err
	}
	c.format = f
	slices.SortFunc(c.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	if len(c.Files) > 0 {
		c.Time = time.Time{} // that of the directory counts only where nothing is in it
	}
	for _, x := range c.Files {
		c.Size += x.Size
		if x.ModTime.After(c.Time) {
			c.Time = x.ModTime
		}
	}
	if c.State == Torn && time.Since(c.Time) < recent {
		c.State = InProgress
	}
	w.mu.Lock()
	w.found = append(w.found, *c)
	w.mu.Unlock()
	return nil
}

// AddDir adds all files of a directory, and of those below it, to a checkpoint. One that
// has directories which lie too deep cannot be checked (TooDeep).
func (c *Checkpoint) AddDir(ctx context.Context, s store.Store, dir string) error {
	return c.below(ctx, s, dir, 0)
}

// AddEntries is AddDir where the directory is listed already.
func (c *Checkpoint) AddEntries(ctx context.Context, s store.Store, dir string, entries []store.Info) error {
	return c.addBelow(ctx, s, dir, entries, 0)
}

// TooDeep says, for a person, why a checkpoint that was not listed completely cannot be
// checked; empty for others.
func (c *Checkpoint) TooDeep() string {
	if c.unlisted == "" {
		return ""
	}
	return c.unlisted + " lies too deep to be looked at"
}

func (c *Checkpoint) below(ctx context.Context, s store.Store, dir string, depth int) error {
	entries, err := s.List(ctx, dir)
	if store.Vanished(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.addBelow(ctx, s, dir, entries, depth)
}

func (c *Checkpoint) addBelow(ctx context.Context, s store.Store, dir string, entries []store.Info, depth int) error {
	for _, e := range entries {
		switch {
		case !e.IsDir():
			c.Files = append(c.Files, FileOf(dir, e))
			c.Shards++
		case depth < MaxDepth:
			if err := c.below(ctx, s, path.Join(dir, e.Name), depth+1); err != nil {
				return err
			}
		default:
			c.unlisted = path.Join(dir, e.Name)
		}
	}
	return nil
}
