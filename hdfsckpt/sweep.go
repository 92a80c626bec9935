package hdfsckpt

import (
	"context"
	"errors"
	"path"
	"strings"
	"time"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
)

// sweepDepth is how many levels of directories are swept.
const sweepDepth = 5

// sweeper moves aside the files of broken saves that are part of no checkpoint, as far as
// formats know them.
type sweeper struct {
	s      store.Store
	nested func(name string) bool // of another store
	all    bool
	before time.Time
	aside  []Aside
}

// aged reports whether a complete file is old enough to be moved.
func (w *sweeper) aged(i store.Info) bool { return w.all || i.ModTime.Before(w.before) }

// dead reports whether a temporary file is so old that nobody is writing it.
func (w *sweeper) dead(i store.Info) bool {
	return w.all || time.Since(i.ModTime) > writers.LongestWrite
}

func (w *sweeper) sweep(ctx context.Context, dir string, depth int) error {
	entries, err := w.s.List(ctx, dir)
	if store.Vanished(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		switch f, what := leftover(e); {
		case w.nested(name):
		case what == format.PartsDir:
			errs = append(errs, w.moveParts(ctx, f, name, e))
		case what == format.TemporaryFile && w.aged(e):
			errs = append(errs, w.move(ctx, f, name, e.Size))
		case e.IsDir() && !strings.HasPrefix(e.Name, ".") && depth < sweepDepth:
			errs = append(errs, w.sweep(ctx, name, depth+1))
		}
	}
	return errors.Join(errs...)
}

// leftover returns what an entry is, and of which format.
func leftover(e store.Info) (format.Sweeper, format.Leftover) {
	for _, f := range formats.Sweepers() {
		if what := f.Leftover(e); what != format.NoLeftover {
			return f, what
		}
	}
	return nil, format.NoLeftover
}

// moveParts moves a directory of parts aside, unless it holds anything else, or parts may
// still be added. An empty one may have been made just now, by a task that is about to
// write its part.
func (w *sweeper) moveParts(ctx context.Context, f format.Sweeper, dir string, i store.Info) error {
	parts, err := w.s.List(ctx, dir)
	if store.Vanished(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(parts) == 0 && !w.aged(i) {
		return nil
	}
	var size int64
	for _, p := range parts {
		if !f.Part(p) || !w.aged(p) {
			return nil
		}
		size += p.Size
	}
	if !w.all {
		if writing, err := writers.Writing(ctx, w.s); err != nil || writing {
			return err
		}
	}
	// Temporary files of dead writers are removed first; if any other is left, the directory stays.
	if err := removeTemporaries(ctx, w.s, dir, w.dead); err != nil {
		return err
	}
	if left, err := store.ListTemporary(ctx, w.s, dir); err != nil || len(left) > 0 {
		if store.Vanished(err) {
			err = nil
		}
		return err
	}
	return w.move(ctx, f, dir, size)
}

func (w *sweeper) move(ctx context.Context, f format.Sweeper, name string, size int64) error {
	a, err := moveAside(ctx, w.s, Aside{Name: name, Kind: f.Traits().Kind, Step: format.NoStep, Size: size, Why: "it is a part of a save that did not end"})
	if store.Vanished(err) {
		return nil
	}
	if err == nil {
		w.aside = append(w.aside, a)
	}
	return err
}
