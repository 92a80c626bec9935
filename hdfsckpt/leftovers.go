package hdfsckpt

import (
	"context"
	"errors"
	"path"
	"regexp"
	"strings"
	"time"

	"holdfast/hdfsckpt/store"
)

var (
	// PREFIX_temp/ and PREFIX_temp_UUID/ hold part-00000-of-00002... of a save.
	tempDir  = regexp.MustCompile(`^.+_temp(_[0-9a-f]+)?$`)
	tempPart = regexp.MustCompile(`^part-\d{5}-of-\d{5}\.`)
	// checkpoint.tmpUUID becomes checkpoint; FILE.tempstateNNN becomes FILE.
	tempFile = regexp.MustCompile(`^checkpoint\.tmp[0-9a-f]+$|\.(index|data-\d{5}-of-\d{5})\.tempstate\d+$`)
)

// sweeper moves aside what TensorFlow's saves that did not end have left.
type sweeper struct {
	s      store.Store
	all    bool
	before time.Time
	aside  []Aside
}

// aged is asked of files that are complete.
func (w *sweeper) aged(i store.Info) bool { return w.all || i.ModTime.Before(w.before) }

// dead is asked of temporary files.
func (w *sweeper) dead(i store.Info) bool { return w.all || time.Since(i.ModTime) > longestWrite }

func (w *sweeper) sweep(ctx context.Context, dir string, depth int) error {
	entries, err := w.s.List(ctx, dir)
	if vanished(err) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		switch {
		case e.IsDir() && tempDir.MatchString(e.Name):
			errs = append(errs, w.moveParts(ctx, name, e))
		case e.IsDir() && !strings.HasPrefix(e.Name, hiddenPrefix) && depth < maxDepth:
			errs = append(errs, w.sweep(ctx, name, depth+1))
		case !e.IsDir() && tempFile.MatchString(e.Name) && w.aged(e):
			errs = append(errs, w.move(ctx, name, e.Size))
		}
	}
	return errors.Join(errs...)
}

// moveParts moves a directory of parts, unless something else is in it, or other
// parts may still come. One without any may have been made just now, by a task
// that is about to put one there.
func (w *sweeper) moveParts(ctx context.Context, dir string, i store.Info) error {
	parts, err := w.s.List(ctx, dir)
	if vanished(err) {
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
		if p.IsDir() || !tempPart.MatchString(p.Name) || !w.aged(p) {
			return nil
		}
		size += p.Size
	}
	if !w.all {
		if writing, err := anyWriting(ctx, w.s); err != nil || writing {
			return err
		}
	}
	// Hidden temporary files of parts go first; one that lives keeps the directory.
	if err := removeTemporaries(ctx, w.s, dir, w.dead); err != nil {
		return err
	}
	if left, err := store.ListTemporary(ctx, w.s, dir); err != nil || len(left) > 0 {
		if vanished(err) {
			err = nil
		}
		return err
	}
	return w.move(ctx, dir, size)
}

func (w *sweeper) move(ctx context.Context, name string, size int64) error {
	a, err := moveAside(ctx, w.s, Aside{Name: name, Kind: TensorFlow, Step: NoStep, Size: size, Why: "it is a part of a save that did not end"})
	if vanished(err) {
		return nil
	}
	if err == nil {
		w.aside = append(w.aside, a)
	}
	return err
}
