package retain

import (
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/store"
)

// lookup remembers what several looks of one call need.
type lookup struct {
	s      store.Store
	area   Area // of who changes the store; nil for Repair and those who are asked by a person
	rule   *format.Rule
	listed map[string][]store.Info
}

// list lists a directory, once in a call: what the call itself changes since does not
// matter to it.
func (l *lookup) list(ctx context.Context, dir string) ([]store.Info, error) {
	if entries, ok := l.listed[dir]; ok {
		return entries, nil
	}
	entries, err := l.s.List(ctx, dir)
	if err != nil && !store.Vanished(err) {
		return nil, err
	}
	if l.listed == nil {
		l.listed = map[string][]store.Info{}
	}
	l.listed[dir] = entries
	return entries, nil
}

func (l *lookup) storeRule(ctx context.Context) (format.Rule, error) {
	if l.rule == nil {
		r, err := format.ReadRule(ctx, l.s)
		if err != nil {
			return r, err
		}
		l.rule = &r
	}
	return *l.rule, nil
}

// scope is which files of a checkpoint are looked at; of both, what is retained counts.
type scope int

const (
	visible scope = 1 << iota
	retained
)

// look returns the checkpoint as a list would that has only these files; nil if they
// are none.
func (b *backup) look(ctx context.Context, w scope) (*format.Checkpoint, error) {
	rule := b.owner.Rule
	ofStore := rule == format.Rule{}
	if ofStore {
		var err error
		if rule, err = b.storeRule(ctx); err != nil {
			return nil, err
		}
	}
	q := format.Search{Rule: rule, Root: path.Dir(b.Name), Only: b.Name, Chosen: ofStore && len(b.owner.Beside) == 0}
	found, err := q.List(ctx, &view{Store: b.s, b: b, scope: w}, formats.All)
	if err != nil {
		return nil, err
	}
	var alone *format.Checkpoint // a file that lies alone in a directory named after its step
	several := false
	for i := range found {
		c := &found[i]
		if c.Name == b.Name {
			return c, b.remember(ctx, c, w)
		}
		if path.Dir(c.Name) == b.Name && c.Traits().AloneInStepDir && !c.IsInPlace() {
			alone, several = c, alone != nil
		}
	}
	if alone == nil || several {
		return nil, nil
	}
	return alone, b.remember(ctx, alone, w)
}

// holding returns the visible checkpoint if a file is a part of it; nil if it is not.
func (b *backup) holding(ctx context.Context, file string) (*format.Checkpoint, error) {
	c, err := b.look(ctx, visible)
	if err != nil || c == nil || !slices.ContainsFunc(c.Files, func(f format.File) bool { return f.Name == file }) {
		return nil, err
	}
	return c, nil
}

// remember lets a checkpoint that is judged by what lies beside it count as complete if it
// was so: when its removal began, or when it was sealed.
func (b *backup) remember(ctx context.Context, c *format.Checkpoint, w scope) error {
	if c.Whole() || len(c.Traits().Beside) == 0 {
		return nil
	}
	was := false
	if w&retained != 0 && b.How != "" {
		have := map[string]bool{}
		for _, f := range c.Files {
			pos, _ := b.position(f.Name)
			have[pos] = true
		}
		was = !slices.ContainsFunc(b.Files, func(f string) bool { return !have[f] })
	} else if w == visible {
		var err error
		if was, _, err = c.WasSealed(ctx, b.s); err != nil {
			return err
		}
	}
	if was {
		c.State, c.Why = format.Complete, ""
	}
	return nil
}

// view is a store in which there is nothing but some files of one checkpoint, and what shows
// beside it whether it is complete.
type view struct {
	store.Store
	b     *backup
	scope scope
}

func (v *view) List(ctx context.Context, dir string) ([]store.Info, error) {
	root := dir == path.Dir(v.b.Name)
	if !root && !v.inside(dir) {
		if path.Dir(dir) == path.Dir(v.b.Name) && v.beside(path.Base(dir)) {
			return v.b.list(ctx, dir)
		}
		return nil, nil
	}
	var all []store.Info
	if v.scope&retained != 0 && v.b.How != "" {
		from := path.Join(v.b.entry, filesDir)
		if !root && dir != v.b.Name {
			from = v.b.at(dir)
		}
		moved, err := v.Store.List(ctx, from)
		if err != nil && !store.Vanished(err) {
			return nil, err
		}
		if root && v.b.Dir && len(moved) > 0 {
			moved = []store.Info{{Name: path.Base(v.b.Name), Mode: fs.ModeDir | 0o755}}
		}
		all = moved
	}
	if v.scope&visible != 0 {
		left, err := v.visible(ctx, dir, root)
		if err != nil {
			return nil, err
		}
		for _, e := range left {
			if !slices.ContainsFunc(all, func(o store.Info) bool { return o.Name == e.Name }) {
				all = append(all, e)
			}
		}
	}
	if root && len(v.b.owner.Beside) > 0 {
		entries, err := v.b.list(ctx, dir)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if v.beside(e.Name) {
				all = append(all, e)
			}
		}
	}
	slices.SortFunc(all, func(a, b store.Info) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// beside reports whether an entry lies beside the checkpoint and shows whether that is
// complete.
func (v *view) beside(base string) bool {
	return base != path.Base(v.b.Name) && slices.ContainsFunc(v.b.owner.Beside, func(p string) bool { ok, err := path.Match(p, base); return ok && err == nil })
}

// visible lists what of the checkpoint is visible in a directory.
func (v *view) visible(ctx context.Context, dir string, root bool) ([]store.Info, error) {
	if !root {
		entries, err := v.Store.List(ctx, dir)
		if store.Vanished(err) {
			err = nil
		}
		return entries, err
	}
	entries, err := v.b.list(ctx, dir)
	if err != nil {
		return nil, err
	}
	var ours []store.Info
	for _, e := range entries {
		_, owned := ownerNamed(path.Join(dir, e.Name), v.b.Name)
		if e.Name == path.Base(v.b.Name) || owned && !e.IsDir() {
			ours = append(ours, e)
		}
	}
	return ours, nil
}

func (v *view) inside(name string) bool {
	return name == v.b.Name || strings.HasPrefix(name, v.b.Name+"/")
}

var _ store.Store = (*view)(nil)

func (v *view) Open(ctx context.Context, name string) (store.Reader, error) {
	if _, ours := v.b.position(name); ours && v.scope&retained != 0 && v.b.How != "" {
		r, err := v.Store.Open(ctx, v.b.at(name))
		if !store.Vanished(err) || v.scope&visible == 0 {
			return r, err
		}
	}
	return v.Store.Open(ctx, name)
}
