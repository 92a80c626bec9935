package hdfsckpt

import (
	"context"
	"errors"
	"path"
	"strings"
	"time"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
)

// sweepDepth is how many levels of directories are swept.
const sweepDepth = 5

// sweeper moves aside what saves that did not end have left, as far as a format knows it.
type sweeper struct {
	s      store.Store
	all    bool
	before time.Time
	aside  []Aside
}

// aged is asked of files that are complete.
func (w *sweeper) aged(i store.Info) bool { return w.all || i.ModTime.Before(w.before) }

// dead is asked of temporary files.
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

// leftover asks the formats what an entry is.
func leftover(e store.Info) (format.Sweeper, format.Leftover) {
	for _, f := range format.Sweepers() {
		if what := f.Leftover(e); what != format.NoLeftover {
			return f, what
		}
	}
	return nil, format.NoLeftover
}

// moveParts moves a directory of parts, unless something else is in it, or other
// parts may still come. One without any may have been made just now, by a task
// that is about to put one there.
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
	// Hidden temporary files of parts go first; one that lives keeps the directory.
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
