package hdfsckpt

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/retain"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
)

// Report is what Repair has done.
type Report struct {
	Restored []string // checkpoints that were retained, and are in their place again
	Aside    []Aside  // torn checkpoints, and parts of saves that did not end, that were moved aside
	Left     []error  // why torn checkpoints stay in their place
	Pointed  []Pointed
	Named    []string // checkpoints that were removed, and are in their place again as a pointer names them
	Lost     []Lost
	// Nested are the directories that are stores of their own, with their writers. Nothing
	// in them was changed.
	Nested map[string][]string
}

// isNested reports whether a name is in a store of its own that has writers.
func (r *Report) isNested(name string) bool {
	for ; name != "."; name = path.Dir(name) {
		if _, is := r.Nested[name]; is {
			return true
		}
	}
	return false
}

// storeWithin returns a directory in a checkpoint's that is a store of its own, whether it has writers
// (nested, by directory) or only had some; empty if there is none.
func storeWithin(c *format.Checkpoint, nested map[string][]string) string {
	for dir := range nested {
		if strings.HasPrefix(dir, c.Name+"/") {
			return dir
		}
	}
	for _, f := range c.Files {
		if dir, _, ok := strings.Cut(f.Name, "/"+store.OwnDir+"/"); ok {
			return dir
		}
	}
	return ""
}

// Pointed is a pointer that was written anew.
type Pointed struct {
	File string // its name
	From string // what it named; empty if it was missing or not readable
	To   string // the checkpoint's name in the store; empty if none is whole
	Why  string
	// Aside is where the file lies now if none is whole.
	Aside string
}

// Lost is a checkpoint that a program is going to restore and that is not whole. Its pointer
// is the program's own, and was not changed.
type Lost struct {
	Pointer string // the file that names it
	Name    string // as it is written there
	Why     string
	Other   *format.Checkpoint // the newest that is complete beside it, or retained; nil if none is
	URI     string             // the store's
}

func (l Lost) String() string {
	text := fmt.Sprintf("%s names %s, which %s. A program that goes on from there fails. ", l.Pointer, l.Name, l.Why)
	if l.Other == nil {
		return text + "No other one is complete: to begin at the beginning, remove " + l.Pointer
	}
	name, _ := l.Other.Original()
	return text + fmt.Sprintf("%s is complete: to go back to it, end the job, and: yarn-submit ckpt rollback %s %d", name, l.URI, l.Other.Step)
}

// Lines describes each thing that was done, for people.
func (r Report) Lines() []string {
	var lines []string
	for _, name := range r.Restored {
		lines = append(lines, fmt.Sprintf("restored %s, whose replacement was not completed", name))
	}
	for _, p := range r.Pointed {
		if p.To == "" {
			lines = append(lines, fmt.Sprintf("moved %s aside, to %s: %s, and no other checkpoint is complete", p.File, p.Aside, p.Why))
		} else {
			lines = append(lines, fmt.Sprintf("pointed %s at %s: %s", p.File, p.To, p.Why))
		}
	}
	for _, name := range r.Named {
		lines = append(lines, fmt.Sprintf("restored %s, which the program had removed: it goes on from there, by the file beside it", name))
	}
	for _, l := range r.Lost {
		lines = append(lines, l.String())
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

// Repair makes a store safe to start from. What it takes out of the way lies under
// store.OwnDir (ListAside) for a while; nothing else outside of it is changed but
// pointers.
//
// A pointer, in a directory for which its format is known to have written it, that is
// missing, not readable, or names a checkpoint that is not whole, is pointed at the
// newest one that is, in one step; if none is, it is moved aside, for the program then
// begins at the beginning instead of failing. One that is older than the last file of a whole
// checkpoint of a later step is pointed at that, if it is of the same series and no other pointer
// names it: a pointer is written last, and the program was killed before it came to it. One that
// was written later and names an earlier step, as after a rollback or by hand, is left alone, and
// so is one beside which an earlier step was put.
//
// Torn checkpoints of formats without a pointer, from which programs choose by
// themselves, and parts of broken saves, are moved aside if they were last written to
// more than age ago: 0 takes all, which is right only when nobody writes. Otherwise
// nothing is moved while anything is being written, however long that takes. A
// checkpoint that was retained is restored if what replaces it is not whole, or if a
// pointer is there and no other is whole.
//
// Pointers of other formats are the program's own. A checkpoint that one of them names and
// that is gone is restored if it is retained; otherwise the report says what is lost.
//
// A directory that is a store of its own stays as it is while that has writers: who
// prepares that store knows which of them are alive.
func Repair(ctx context.Context, s store.Store, age time.Duration) (Report, error) {
	return repair(ctx, s, age, writing(age), true)
}

// RepairObserved is Repair while only tasks run that are not those which start from the
// store: what these have left broken is put right as if nobody wrote, but once nothing has
// happened to it for some seconds, and not while anything is being written. Other leftovers
// stay until they are older than age.
func RepairObserved(ctx context.Context, s store.Store, age time.Duration) (Report, error) {
	return repair(ctx, s, age, writers.Observers, true)
}

// RepairAtEnd is Repair at a job's end, when nobody of it writes: torn checkpoints stay
// where they are, for people to see, until a job starts.
func RepairAtEnd(ctx context.Context, s store.Store, age time.Duration) (Report, error) {
	return repair(ctx, s, age, writing(age), false)
}

// writing is who may be writing where what is younger than age is left alone.
func writing(age time.Duration) writers.Activity {
	if age == 0 {
		return writers.Nobody
	}
	return writers.Tasks
}

func repair(ctx context.Context, s store.Store, age time.Duration, by writers.Activity, starts bool) (report Report, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot make the checkpoint store %s safe: %w", s.URI(), err)
		}
	}()
	if report.Nested, err = writers.Nested(ctx, s); err != nil {
		return report, err
	}
	if starts && by != writers.Tasks {
		aside, err := asideEntries(ctx, s)
		if err == nil {
			err = giveBackRetained(ctx, s, aside)
		}
		if err != nil {
			return report, err
		}
	}
	if report.Restored, err = retain.Repair(ctx, s, by); err != nil {
		return report, err
	}
	if starts {
		if report.Aside, report.Left, err = moveTorn(ctx, s, age, by, &report); err != nil {
			return report, err
		}
	}
	for _, p := range formats.Pointers() {
		if !p.Traits().RepairsPointer {
			if starts && by != writers.Tasks {
				err = (&pointing{s, p, report.isNested}).restoreNamed(ctx, &report)
			}
			if err != nil {
				return report, err
			}
			continue
		}
		pointed, err := (&pointing{s, p, report.isNested}).all(ctx)
		report.Pointed = append(report.Pointed, pointed...)
		if err != nil {
			return report, err
		}
	}
	aside, err := clearAway(ctx, s, age, report.isNested)
	report.Aside = append(report.Aside, aside...)
	return report, err
}

// clearAway removes or moves aside what broken saves and lost writers have left, and
// drops what was recorded of them long ago.
func clearAway(ctx context.Context, s store.Store, age time.Duration, nested func(string) bool) ([]Aside, error) {
	sw := &sweeper{s: s, nested: nested, all: age == 0, before: time.Now().Add(-age)}
	if age == 0 {
		if err := store.RemoveOwn(ctx, s, stagingDir); err != nil {
			return nil, fmt.Errorf("what a rollback that was broken off has left: %w", err)
		}
	}
	err := errors.Join(sw.sweep(ctx, ".", 0), removeTemporaries(ctx, s, ".", sw.dead), writers.Forget(ctx, s), forgetAside(ctx, s), formats.ForgetSaves(ctx, s), format.ForgetPointerFiles(ctx, s))
	if err != nil {
		err = fmt.Errorf("what broken saves have left: %w", err)
	}
	return sw.aside, err
}
