package hdfsckpt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"holdfast/hdfsckpt/store"
)

// Report says what MakeSafe has done.
type Report struct {
	Back    []string // checkpoints that were kept, and stand in their place again
	Aside   []Aside  // torn checkpoints, and parts of saves that did not end, that were moved aside
	Left    []error  // why torn checkpoints stay in their place
	Pointed []Pointed
}

// Pointed is a file `checkpoint` that was written anew.
type Pointed struct {
	Dir  string
	From string // what it named; "" if it was missing or not readable
	To   string // the checkpoint's name in the store; "" if none is whole
	Why  string
	// Aside is where the file lies now if none is whole.
	Aside string
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
			lines = append(lines, fmt.Sprintf("moved %s aside, to %s: %s, and no other checkpoint is complete", file, p.Aside, p.Why))
		} else {
			lines = append(lines, fmt.Sprintf("pointed %s at %s: %s", file, p.To, p.Why))
		}
	}
	for _, err := range r.Left {
		lines = append(lines, err.Error())
	}
	const most = 5
	for i, a := range r.Aside {
		if i == most {
			lines = append(lines, fmt.Sprintf("moved %d more aside, to %s", len(r.Aside)-most, asideDir))
			break
		}
		lines = append(lines, fmt.Sprintf("moved %s aside, to %s: %s; it stays there until %s", a.Name, a.Where, a.Why, a.until().Format(time.DateOnly)))
	}
	return lines
}

// MakeSafe makes a store safe to start from. What it takes out of the way lies
// under OwnDir (ListAside) for a while; nothing else outside of it is touched
// but TensorFlow's file `checkpoint`.
//
// In a directory for which a saver is known to have written it (savers), a file
// `checkpoint` that is missing, not readable, or names a checkpoint that is not
// whole, is pointed at the newest one that is, in one step; if none is, it is
// moved aside, for TensorFlow then begins at the beginning instead of failing. So
// is one that is older than a whole checkpoint: TensorFlow writes `checkpoint`
// last, and did not come to it. One that was written later and names an earlier
// step, as after Rollback, is left alone.
//
// Torn checkpoints of the other formats, from which programs choose by
// themselves, and parts of TensorFlow's saves, are moved aside if they were last
// written to more than age ago: 0 takes all, which is right only when nobody
// writes. Otherwise nothing is moved while anything is being written, however
// long that takes. A checkpoint that was kept comes back if what replaces it is
// not whole, or if `checkpoint` is there and no other is whole.
func MakeSafe(ctx context.Context, s store.Store, age time.Duration) (Report, error) {
	return makeSafe(ctx, s, age, true)
}

// LeaveSafe is MakeSafe at a job's end, when nobody of it writes: torn checkpoints
// stay where they are, for people to see, until a job starts.
func LeaveSafe(ctx context.Context, s store.Store, age time.Duration) (Report, error) {
	return makeSafe(ctx, s, age, false)
}

func makeSafe(ctx context.Context, s store.Store, age time.Duration, starts bool) (Report, error) {
	var report Report
	var err error
	if report.Back, err = mend(ctx, s, age > 0); err != nil {
		return report, fmt.Errorf("cannot make the checkpoint store %s safe: %w", s.URI(), err)
	}
	if age == 0 { // else somebody may be at it
		var back []string
		back, err = mendUnits(ctx, s)
		report.Back = append(report.Back, back...)
		if err != nil {
			return report, fmt.Errorf("cannot make the checkpoint store %s safe: %w", s.URI(), err)
		}
	}
	if starts {
		if report.Aside, report.Left, err = moveTorn(ctx, s, age); err != nil {
			return report, fmt.Errorf("cannot make the checkpoint store %s safe: %w", s.URI(), err)
		}
	}
	if report.Pointed, err = pointAll(ctx, s); err != nil {
		return report, fmt.Errorf("cannot make the checkpoint store %s safe: %w", s.URI(), err)
	}
	sw := &sweeper{s: s, all: age == 0, before: time.Now().Add(-age)}
	err = errors.Join(sw.sweep(ctx, ".", 0), removeTemporaries(ctx, s, ".", sw.dead), forgetWriters(ctx, s), forgetAside(ctx, s), forgetBegun(ctx, s))
	report.Aside = append(report.Aside, sw.aside...)
	if err != nil {
		return report, fmt.Errorf("cannot clear away what broken saves have left in %s: %w", s.URI(), err)
	}
	return report, nil
}

// stateDirs are the directories in which a file `checkpoint` may stand: those
// with checkpoints, those where one is known to have stood, and the root, where
// it may be all that is left.
func stateDirs(list []Checkpoint, known map[string]bool) []string {
	dirs := append(slices.Collect(maps.Keys(known)), ".")
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
func lookAround(ctx context.Context, s store.Store, dirs []string) (map[string]look, error) {
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
func pointAll(ctx context.Context, s store.Store) ([]Pointed, error) {
	known, err := savers(ctx, s)
	if err != nil {
		return nil, err
	}
	looks, err := lookAround(ctx, s, []string{"."})
	if err != nil {
		return nil, err
	}
	dirs := stateDirs(looks["."].list, known)
	if len(dirs) > 1 {
		if looks, err = lookAround(ctx, s, dirs); err != nil {
			return nil, err
		}
	}
	var all []Pointed
	for _, dir := range dirs {
		p, err := pointSafely(ctx, s, dir, looks[dir], known[dir])
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
// program that runs may write it meanwhile; then its word is the newer one. known:
// that the file is TensorFlow's is recorded.
func pointSafely(ctx context.Context, s store.Store, dir string, l look, known bool) (*Pointed, error) {
	for try := 1; ; try++ {
		p, changed, err := point(ctx, s, dir, l, known)
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

func (a saved) same(b saved) bool {
	return a.missing == b.missing && a.foreign == b.foreign && a.written.Equal(b.written) && bytes.Equal(a.text, b.text)
}

// point is one try of pointSafely. changed: somebody else has written
// `checkpoint` meanwhile, so nothing was done.
func point(ctx context.Context, s store.Store, dir string, l look, known bool) (_ *Pointed, changed bool, err error) {
	before := l.before
	var list []Checkpoint
	for _, c := range l.list {
		if path.Dir(c.Name) == dir {
			list = append(list, c)
		}
	}
	p := &Pointed{Dir: dir}
	state, parseErr := ParseState(before.text)
	if !before.missing && !before.foreign && parseErr == nil && !known {
		if err := rememberSaver(ctx, s, dir); err != nil {
			return nil, false, err
		}
		known = true
	}
	best := NewestComplete(list)
	switch {
	case !known || before.foreign || before.missing && best == nil:
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
// is moved aside.
func pointAtKept(ctx context.Context, s store.Store, p *Pointed, state SavedState) error {
	name, err := bringBackNewest(ctx, s, p.Dir)
	if err != nil {
		return err
	}
	if name == "" {
		a, err := moveAside(ctx, s, Aside{Name: path.Join(p.Dir, StateFile), Step: NoStep, Why: p.Why})
		if vanished(err) {
			err = nil
		}
		p.Aside = a.Where
		return err
	}
	p.To = name
	to := Checkpoint{Name: name, State: Complete}
	return pointAt(ctx, s, p.Dir, state, []Checkpoint{to}, &to)
}

// restorable tells whether what `checkpoint` names can be restored.
func restorable(ctx context.Context, s store.Store, dir string, state SavedState, list []Checkpoint) (bool, string, error) {
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
func pointAt(ctx context.Context, s store.Store, dir string, old SavedState, list []Checkpoint, to *Checkpoint) error {
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
	return store.WriteFile(ctx, s, path.Join(dir, StateFile), state.Bytes(), 0o644)
}
