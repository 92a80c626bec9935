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
	q := format.Search{Rule: rule, Root: path.Dir(b.Name), Chosen: ofStore}
	found, err := q.List(ctx, &view{Store: b.s, b: b, scope: w}, formats.All)
	if err != nil {
		return nil, err
	}
	for i := range found {
		if found[i].Name == b.Name {
			return &found[i], nil
		}
	}
	return nil, nil
}

// view is a store in which there is nothing but some files of one checkpoint.
type view struct {
	store.Store
	b     *backup
	scope scope
}

func (v *view) List(ctx context.Context, dir string) ([]store.Info, error) {
	root := dir == path.Dir(v.b.Name)
	if !root && !v.inside(dir) {
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
	slices.SortFunc(all, func(a, b store.Info) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
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
		of, owned := formats.OwnerOf(path.Join(dir, e.Name))
		if e.Name == path.Base(v.b.Name) || owned && !e.IsDir() && of.Checkpoint == v.b.Name {
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
