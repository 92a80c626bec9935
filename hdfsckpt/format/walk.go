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

	"holdfast/hdfsckpt/format/look"
	"holdfast/hdfsckpt/limit"
	"holdfast/hdfsckpt/store"
)

const (
	MaxDepth     = 5   // levels of directories that are searched
	parallelism  = 16  // goroutines of a search
	HiddenPrefix = "." // of what is no checkpoint, nor a part of one
	// recent is how old the files of a save may be for it to count as in progress.
	recent = 2 * time.Minute
)

// Search says which checkpoints of a store are looked for.
type Search struct {
	Rule Rule
	// Root is the directory where the search begins; empty for the store's root.
	Root string
	// Chosen leaves out checkpoints of formats with a pointer, so that those remain whose
	// programs choose a checkpoint by what is there.
	Chosen bool
	// Only is the name of the one checkpoint that is looked into, or of the directory in which
	// it is alone; empty for all.
	Only string
	// Judged has checkpoints that are not looked into again; nil for none.
	Judged *Judged
}

// List lists checkpoints of some formats, in order of precedence, the newest last: by
// step, then by time. It looks into every index and the like, and reads no values.
func (q Search) List(ctx context.Context, s store.Store, formats []Format) ([]Checkpoint, error) {
	group, ctx := errgroup.WithContext(ctx)
	w := &walker{Search: q, s: s, ctx: ctx, formats: formats, group: group, parts: map[string][]Checkpoint{}, listed: map[string][]store.Info{}}
	for _, f := range formats {
		if is := f.Traits().RankFile; is != nil {
			w.ofRank = append(w.ofRank, is)
		}
	}
	w.later(func() error { return w.directory(cmp.Or(q.Root, "."), 0, "") })
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, f := range formats {
		if r, ok := f.(Reviewer); ok {
			r.Review(q.Rule, w.found)
		}
	}
	for i := range w.found {
		w.found[i].tornBy(w.parts[w.found[i].Name])
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
	// Only is the name of the one checkpoint that is looked for; empty for all.
	Only string
	// Entries are those that no format of higher precedence has claimed.
	Entries []store.Info
	// Part: all in it is part of a checkpoint, in which a claim has others search (Claim.Inside).
	Part bool
	// Place is set by Claim of a format which finds that the directory, though named by a number,
	// holds checkpoints with steps of their own, and is none.
	Place bool

	w *walker
}

// List lists a directory below, once in a search. Claim uses it instead of Store.
func (d *Dir) List(name string) ([]store.Info, error) { return d.w.list(name) }

// walker carries out a search. Its goroutines end with its group. There are at most parallelism
// of them, each of which uses the store for one thing at a time.
type walker struct {
	Search
	s       store.Store
	ctx     context.Context
	formats []Format
	ofRank  []func(base string) bool // the formats' Traits.RankFile
	group   *errgroup.Group

	mu     sync.Mutex
	todo   []func() error
	takers int // goroutines that take from todo
	found  []Checkpoint
	parts  map[string][]Checkpoint // what was found inside of checkpoints, by their names
	listed map[string][]store.Info // by Dir.List, and not searched yet
}

// later has f called by one of the search's goroutines.
func (w *walker) later(f func() error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.todo = append(w.todo, f)
	if w.takers < parallelism {
		w.takers++
		w.group.Go(w.take)
	}
}

// take does what is to be done until nothing is left, the latest first, so that little is.
func (w *walker) take() error {
	for {
		w.mu.Lock()
		last := len(w.todo) - 1
		if last < 0 || w.ctx.Err() != nil {
			w.takers--
			w.mu.Unlock()
			return w.ctx.Err()
		}
		f := w.todo[last]
		w.todo = w.todo[:last]
		w.mu.Unlock()
		if err := f(); err != nil {
			return err // it ends ctx, and so the others
		}
	}
}

func (w *walker) list(name string) (entries []store.Info, err error) {
	w.mu.Lock()
	entries, listed := w.listed[name]
	w.mu.Unlock()
	if listed {
		return entries, nil
	}
	if entries, err = w.s.List(w.ctx, name); err == nil {
		w.mu.Lock()
		w.listed[name] = entries
		w.mu.Unlock()
	}
	return entries, err
}

// directory finds the checkpoints in one directory, and searches those below. partOf is the name of
// the checkpoint of which all that is found is a part; empty if it is none's.
func (w *walker) directory(name string, depth int, partOf string) error {
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
	d := &Dir{Store: w.s, Rule: w.Rule, Name: name, Depth: depth, Only: w.Only, Entries: slices.Clone(entries), Part: partOf != "", w: w}
	for _, f := range w.formats {
		if !w.Rule.Finds(f) {
			continue
		}
		claims, err := f.Claim(w.ctx, d)
		if err != nil {
			return err
		}
		for _, c := range claims {
			if d.Part && c.Loose {
				continue
			}
			inside := c.Inside && w.Only == ""
			in, place, was := partOf, d.Place, (*earlier)(nil)
			searchInside := func() {
				for _, base := range c.Take {
					if below := path.Join(name, base); inside {
						w.later(func() error { return w.directory(below, depth+1, cmp.Or(in, below)) })
					}
				}
			}
			if left := w.Chosen && partOf == "" && hasPointer(f); !left && w.concerns(name, c) {
				if partOf == "" {
					was = w.judgedBefore(f, c, d)
				}
				if c.Whole {
					if unchanged, err := w.addUnchanged(f, c, was, name, place); unchanged || err != nil {
						return err
					}
					was = nil
				}
				w.later(func() error {
					if unchanged, err := w.addUnchanged(f, c, was, name, place); unchanged || err != nil {
						return err
					}
					if was != nil {
						searchInside()
					}
					return w.check(f, c, name, place, in)
				})
			}
			if c.Whole && inside {
				in := *d // its Check may still look at d
				in.Entries, in.Part = slices.Clone(d.Entries), true
				d, partOf = &in, cmp.Or(partOf, name)
				continue
			}
			if c.Whole {
				return nil
			}
			if was == nil {
				searchInside()
			}
			d.Entries = slices.DeleteFunc(d.Entries, func(e store.Info) bool { return slices.Contains(c.Take, e.Name) })
		}
	}
	if depth >= w.Rule.depth() {
		return nil
	}
	for _, e := range d.Entries {
		if e.IsDir() && !strings.HasPrefix(e.Name, HiddenPrefix) && !IsDiscarded(e.Name) && (w.Rule.Own() || !IsPartsDir(e.Name)) && w.leads(path.Join(name, e.Name)) {
			w.later(func() error { return w.directory(path.Join(name, e.Name), depth+1, partOf) })
		}
	}
	return nil
}

// concerns reports whether a claim of what is in a directory may be of the checkpoint that is
// looked for.
func (w *walker) concerns(dir string, c Claim) bool {
	return w.Only == "" || len(c.Take) == 0 || dir != path.Dir(w.Only) || slices.Contains(c.Take, path.Base(w.Only))
}

// leads reports whether the checkpoint that is looked for may lie in a directory, or be it.
func (w *walker) leads(dir string) bool {
	return w.Only == "" || dir == w.Only || strings.HasPrefix(w.Only, dir+"/")
}

func hasPointer(f Format) bool {
	_, ok := f.(Pointer)
	return ok
}

// check adds the checkpoint of a format's claim, in a directory, to those that were found, or to the
// parts of one. place is that of the Dir.
func (w *walker) check(f Format, claim Claim, dir string, place bool, partOf string) error {
	ctx, note := look.Noting(w.ctx)
	c, err := claim.Check(ctx)
	if store.Vanished(err) { // removed while it was looked at
		return nil
	}
	if exceeded := note.Exceeded(); exceeded != nil && c != nil && (err == nil || limit.IsExceeded(err)) {
		// Whatever the format makes of it: nothing is known of what was not looked into.
		c.State, c.Why, c.Certain, err = Unchecked, exceeded.Error(), false, nil
	}
	if err != nil || c == nil {
		return err
	}
	w.add(f, claim, c, dir, place, partOf)
	return nil
}

// add is check of what is judged.
func (w *walker) add(f Format, claim Claim, c *Checkpoint, dir string, place bool, partOf string) {
	if w.Judged != nil && partOf == "" {
		c.judged = asJudged{claimedBy(f, claim, dir), c.copy()}
	}
	c.format = f
	if c.inPlace = place && path.Dir(c.Name) == dir; c.inPlace && c.Traits().AloneInStepDir && !HasStep(path.Base(c.Name)) && c.NamedStep() == StepAtEnd(path.Base(dir)) {
		c.Step = NoStep
	}
	slices.SortFunc(c.Files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	if len(c.Files) > 0 {
		c.Time = time.Time{} // that of the directory counts only where nothing is in it
	}
	for _, x := range c.Files {
		c.FixedWorld = c.FixedWorld || w.isOfRank(path.Base(x.Name))
		c.Size += x.Size
		if x.ModTime.After(c.Time) {
			c.Time = x.ModTime
		}
	}
	if c.State == Torn {
		c.MarkTorn()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if partOf != "" {
		w.parts[partOf] = append(w.parts[partOf], *c)
	} else {
		w.found = append(w.found, *c)
	}
}

// tornBy has a checkpoint be torn if one of some parts of it is, unless that belongs to a step of its
// own.
func (c *Checkpoint) tornBy(parts []Checkpoint) {
	var torn *Checkpoint
	for i := range parts {
		p := &parts[i]
		if p.State != Torn && p.State != InProgress || p.hasOwnStepIn(c) {
			continue
		}
		if torn == nil || p.Certain && !torn.Certain || p.Certain == torn.Certain && p.Name < torn.Name {
			torn = p
		}
	}
	if torn == nil || c.Certain && !c.Whole() {
		return
	}
	c.Why, c.Certain = strings.TrimPrefix(torn.Name, c.Name+"/")+": "+torn.Why, torn.Certain
	c.MarkTorn()
}

// hasOwnStepIn reports whether a word says that a part of a checkpoint, or a directory on the way to
// it, is of another step.
func (c *Checkpoint) hasOwnStepIn(whole *Checkpoint) bool {
	for name := range strings.SplitSeq(strings.TrimPrefix(c.Name, whole.Name+"/"), "/") {
		if step, word := OwnStep(name); word && step != whole.Step {
			return true
		}
	}
	return false
}

// isOfRank reports whether only the rank that wrote a file can read it.
func (w *walker) isOfRank(base string) bool {
	return slices.ContainsFunc(w.ofRank, func(is func(string) bool) bool { return is(base) })
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
