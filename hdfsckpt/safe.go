package hdfsckpt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Report says what MakeSafe has done.
type Report struct {
	Back    []string // checkpoints that were kept, and stand in their place again
	Pointed []Pointed
	Removed []string // leftovers of saves that did not end
}

// Pointed is a file `checkpoint` that was written anew.
type Pointed struct {
	Dir  string
	From string // what it named; "" if it was missing or not readable
	To   string // the checkpoint's name in the store; "" if none is whole
	Why  string
}

// String has the lines together.
func (r Report) String() string { return strings.Join(r.Lines(), "\n") }

// Lines says each thing that was done.
func (r Report) Lines() []string {
	var lines []string
	for _, name := range r.Back {
		lines = append(lines, fmt.Sprintf("brought %s back, whose replacement was not completed", name))
	}
	for _, p := range r.Pointed {
		file := path.Join(p.Dir, StateFile)
		if p.To == "" {
			lines = append(lines, fmt.Sprintf("removed %s: %s, and no other checkpoint is complete", file, p.Why))
		} else {
			lines = append(lines, fmt.Sprintf("pointed %s at %s: %s", file, p.To, p.Why))
		}
	}
	if n := len(r.Removed); n > 0 {
		lines = append(lines, fmt.Sprintf("removed %d leftovers of saves that did not end: %s", n, strings.Join(r.Removed[:min(n, 5)], ", ")))
	}
	return lines
}

// MakeSafe makes a store safe to start from. A file `checkpoint` that is
// missing, not readable, or names a checkpoint that is not whole, is pointed at
// the newest one that is, in one step; if none is, it is removed, for
// TensorFlow then begins at the beginning instead of failing. So is one that is
// older than a whole checkpoint: TensorFlow writes `checkpoint` last, and did
// not come to it. One that was written later and names an earlier step, as
// after Rollback, is left alone. Leftovers of broken saves that were last
// written to more than age ago are removed: 0 takes all, which is right only
// when nobody writes. Otherwise no part of a save goes while another may still
// be written, however long that takes. No checkpoint is removed; one that was
// kept comes back if what replaces it is not whole, or if `checkpoint` is there
// and no other is whole.
func MakeSafe(ctx context.Context, s Store, age time.Duration) (Report, error) {
	var report Report
	var err error
	if report.Back, err = mend(ctx, s, age > 0); err != nil {
		return report, fmt.Errorf("cannot make the checkpoint store %s safe: %w", s.URI(), err)
	}
	if report.Pointed, err = pointAll(ctx, s); err != nil {
		return report, fmt.Errorf("cannot make the checkpoint store %s safe: %w", s.URI(), err)
	}
	sw := &sweeper{s: s, all: age == 0, before: time.Now().Add(-age)}
	err = errors.Join(sw.sweep(ctx, ".", 0), removeTemporaries(ctx, s, ".", sw.dead), forgetWriters(ctx, s))
	report.Removed = sw.removed
	if err != nil {
		return report, fmt.Errorf("cannot remove the leftovers of broken saves in %s: %w", s.URI(), err)
	}
	return report, nil
}

// stateDirs are the directories in which a file `checkpoint` may stand: those
// with checkpoints, and the root, where it may be all that is left.
func stateDirs(list []Checkpoint) []string {
	dirs := []string{"."}
	for _, c := range list {
		dirs = append(dirs, path.Dir(c.Name))
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// look is what a directory is judged by: its file `checkpoint`, and the
// checkpoints of the store as they were after that was read.
type look struct {
	before saved
	list   []Checkpoint
}

// lookAround looks at directories for which that is to be done at once.
func lookAround(ctx context.Context, s Store, dirs []string) (map[string]look, error) {
	looks := map[string]look{}
	for _, dir := range dirs {
		before, err := readSaved(ctx, s, dir)
		if err != nil {
			return nil, err
		}
		looks[dir] = look{before: before}
	}
	list, err := checkpoints(ctx, s, Rule{Format: TensorFlow}) // whatever the store's own rule leaves out
	for dir, l := range looks {
		l.list = list
		looks[dir] = l
	}
	return looks, err
}

// pointAll sees that every file `checkpoint` names what it should. The store is
// listed once where all checkpoints are in its root, as most often, and twice
// where there are more directories, however many: each list costs a look into
// every index, and somebody waits to start.
func pointAll(ctx context.Context, s Store) ([]Pointed, error) {
	looks, err := lookAround(ctx, s, []string{"."})
	if err != nil {
		return nil, err
	}
	dirs := stateDirs(looks["."].list)
	if len(dirs) > 1 {
		if looks, err = lookAround(ctx, s, dirs); err != nil {
			return nil, err
		}
	}
	var all []Pointed
	for _, dir := range dirs {
		p, err := pointSafely(ctx, s, dir, looks[dir])
		if err != nil {
			return all, err
		}
		if p != nil {
			all = append(all, *p)
		}
	}
	return all, nil
}

// pointTries bounds how often a directory is judged that a running program
// goes on saving to.
const pointTries = 5

// pointSafely sees that `checkpoint` in a directory names what it should. A
// program that runs may write it meanwhile; then its word is the newer one.
func pointSafely(ctx context.Context, s Store, dir string, l look) (*Pointed, error) {
	for try := 1; ; try++ {
		p, changed, err := point(ctx, s, dir, l)
		if err != nil || !changed || try == pointTries {
			return p, err
		}
		looks, err := lookAround(ctx, s, []string{dir})
		if err != nil {
			return nil, err
		}
		l = looks[dir]
	}
}

// saved is the file `checkpoint` of a directory.
type saved struct {
	text    []byte
	written time.Time
	missing bool
}

func readSaved(ctx context.Context, s Store, dir string) (saved, error) {
	name := path.Join(dir, StateFile)
	info, err := s.Stat(ctx, name)
	var text []byte
	if err == nil {
		text, err = ReadFile(ctx, s, name)
	}
	if errors.Is(err, syscall.EFBIG) { // a text that says nothing
		text, err = []byte{0}, nil
	}
	if vanished(err) {
		return saved{missing: true}, nil
	}
	return saved{text: text, written: info.ModTime}, err
}

func (a saved) same(b saved) bool {
	return a.missing == b.missing && a.written.Equal(b.written) && bytes.Equal(a.text, b.text)
}

// point is one try of pointSafely. changed: somebody else has written
// `checkpoint` meanwhile, so nothing was done.
func point(ctx context.Context, s Store, dir string, l look) (_ *Pointed, changed bool, err error) {
	before := l.before
	var list []Checkpoint
	for _, c := range l.list {
		if path.Dir(c.Name) == dir {
			list = append(list, c)
		}
	}
	p := &Pointed{Dir: dir}
	state, parseErr := ParseState(before.text)
	best := NewestComplete(list)
	switch {
	case before.missing && best == nil:
		return nil, false, nil
	case before.missing:
		p.Why = "it was missing"
	case parseErr != nil:
		p.Why = parseErr.Error()
	default:
		p.From = state.Current
		ok, why, err := restorable(ctx, s, dir, state, list)
		if err != nil {
			return nil, false, err
		}
		if ok {
			best = savedSince(list, before.written)
			if best == nil || path.Base(best.Name) == path.Base(state.Current) {
				return nil, false, nil
			}
			why = fmt.Sprintf("it named %s, and %s was saved after it was written", path.Base(state.Current), path.Base(best.Name))
		}
		p.Why = why
	}
	now, err := readSaved(ctx, s, dir)
	if err != nil || !now.same(before) {
		return nil, err == nil, err
	}
	if best == nil {
		return p, false, pointAtKept(ctx, s, p, state)
	}
	p.To = best.Name
	return p, false, pointAt(ctx, s, dir, state, list, best)
}

// savedSince is the youngest whole checkpoint that is younger than a moment;
// nil if none is.
func savedSince(list []Checkpoint, t time.Time) *Checkpoint {
	var best *Checkpoint
	for i := range list {
		if c := &list[i]; c.Whole() && c.Time.After(t) && (best == nil || c.Time.After(best.Time)) {
			best = c
		}
	}
	return best
}

// pointAtKept brings the newest back that is kept; if there is none, `checkpoint`
// goes.
func pointAtKept(ctx context.Context, s Store, p *Pointed, state SavedState) error {
	name, err := bringBackNewest(ctx, s, p.Dir)
	if err != nil {
		return err
	}
	if name == "" {
		err := s.Remove(ctx, path.Join(p.Dir, StateFile))
		if vanished(err) {
			err = nil
		}
		return err
	}
	p.To = name
	to := Checkpoint{Name: name, State: Complete}
	return pointAt(ctx, s, p.Dir, state, []Checkpoint{to}, &to)
}

// restorable tells whether what `checkpoint` names can be restored.
func restorable(ctx context.Context, s Store, dir string, state SavedState, list []Checkpoint) (bool, string, error) {
	base := path.Base(state.Current)
	for _, c := range list {
		if path.Base(c.Name) == base {
			return c.Whole(), fmt.Sprintf("it named %s, which is %s: %s", base, c.State, c.Why), nil
		}
	}
	// A checkpoint of the old form, V1, is one file, which we cannot judge.
	_, err := s.Stat(ctx, path.Join(dir, base))
	if err == nil {
		return true, "", nil
	}
	if !vanished(err) {
		return false, "", err
	}
	return false, fmt.Sprintf("it named %s, which is not there", base), nil
}

// pointAt writes `checkpoint`, in the form that the program's own had: absolute
// paths stay absolute, and the list keeps what is whole.
func pointAt(ctx context.Context, s Store, dir string, old SavedState, list []Checkpoint, to *Checkpoint) error {
	whole := map[string]bool{}
	for _, c := range list {
		if c.Whole() {
			whole[path.Base(c.Name)] = true
		}
	}
	state := SavedState{Current: path.Base(to.Name)}
	if d := path.Dir(old.Current); old.Current != "" && d != "." {
		state.Current = path.Join(d, state.Current)
	}
	for _, p := range old.All {
		if whole[path.Base(p)] && path.Base(p) != path.Base(to.Name) {
			state.All = append(state.All, p)
		}
	}
	state.All = append(state.All, state.Current)
	return WriteFile(ctx, s, path.Join(dir, StateFile), state.Bytes(), 0o644)
}

var (
	// PREFIX_temp/ and PREFIX_temp_UUID/ hold part-00000-of-00002... of a save.
	tempDir  = regexp.MustCompile(`^.+_temp(_[0-9a-f]+)?$`)
	tempPart = regexp.MustCompile(`^part-\d{5}-of-\d{5}\.`)
	// checkpoint.tmpUUID becomes checkpoint; FILE.tempstateNNN becomes FILE.
	tempFile = regexp.MustCompile(`^checkpoint\.tmp[0-9a-f]+$|\.(index|data-\d{5}-of-\d{5})\.tempstate\d+$`)
)

// sweeper removes leftovers of TensorFlow's saves.
type sweeper struct {
	s       Store
	all     bool
	before  time.Time
	removed []string
}

// aged is asked of files that are complete.
func (w *sweeper) aged(i Info) bool { return w.all || i.ModTime.Before(w.before) }

// dead is asked of temporary files.
func (w *sweeper) dead(i Info) bool { return w.all || time.Since(i.ModTime) > longestWrite }

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
			errs = append(errs, w.removeParts(ctx, name, e))
		case e.IsDir() && !strings.HasPrefix(e.Name, hiddenPrefix) && depth < maxDepth:
			errs = append(errs, w.sweep(ctx, name, depth+1))
		case !e.IsDir() && tempFile.MatchString(e.Name) && w.aged(e):
			errs = append(errs, w.remove(ctx, name))
		}
	}
	return errors.Join(errs...)
}

// removeParts removes a directory of parts, unless something else is in it, or
// other parts may still come. One without any may have been made just now, by a
// task that is about to put one there.
func (w *sweeper) removeParts(ctx context.Context, dir string, i Info) error {
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
	for _, p := range parts {
		if p.IsDir() || !tempPart.MatchString(p.Name) || !w.aged(p) {
			return nil
		}
	}
	if !w.all {
		if writing, err := anyWriting(ctx, w.s); err != nil || writing {
			return err
		}
	}
	for _, p := range parts {
		if err := w.s.Remove(ctx, path.Join(dir, p.Name)); err != nil && !vanished(err) {
			return err
		}
	}
	// Hidden temporary files of parts go first; one that lives keeps the directory.
	if err := removeTemporaries(ctx, w.s, dir, w.dead); err != nil {
		return err
	}
	err = w.remove(ctx, dir)
	if errors.Is(err, syscall.ENOTEMPTY) {
		return nil
	}
	return err
}

func (w *sweeper) remove(ctx context.Context, name string) error {
	err := w.s.Remove(ctx, name)
	if vanished(err) {
		return nil
	}
	if err == nil {
		w.removed = append(w.removed, name)
	}
	return err
}
