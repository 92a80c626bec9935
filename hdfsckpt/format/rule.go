package format

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"holdfast/hdfsckpt/store"
)

// Rule says how the checkpoints in a store are known to be complete. The zero Rule
// finds those of all formats that show it themselves.
//
// It is written to the store, so that those who list the store later, without the job, see
// the same checkpoints.
type Rule struct {
	Format Kind `json:"format,omitempty"` // only checkpoints of this format; "": of all
	// Marker and Quiet are for Plain, and exclude each other. Each directory in the
	// store's root is a checkpoint then; with Quiet each file there too.
	Marker string  `json:"marker,omitempty"` // pattern (path.Match) of the file that is written last
	Quiet  float64 `json:"quiet,omitempty"`  // seconds without a change
}

// ruleName is where a store's rule lies.
const ruleName = store.OwnDir + "/rule.json"

// SetRule writes a store's rule.
func SetRule(ctx context.Context, s store.Store, r Rule) error {
	if old, err := ReadRule(ctx, s); err == nil && old == r {
		return nil
	}
	if err := store.WriteRecord(ctx, s, ruleName, r); err != nil {
		return fmt.Errorf("cannot record in %s how its checkpoints are known to be complete: %w", s.URI(), err)
	}
	return nil
}

// ReadRule returns a store's rule; the zero Rule where none was written.
func ReadRule(ctx context.Context, s store.Store) (Rule, error) {
	var r Rule
	text, err := store.ReadFile(ctx, s, ruleName)
	if store.Vanished(err) {
		return r, nil
	}
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%s in %s is not readable: %w; remove it, and start the job again", ruleName, s.URI(), err)
	}
	return r, nil
}

// Finds reports whether checkpoints of a format are looked for.
func (r Rule) Finds(f Format) bool {
	t := f.Traits()
	if r.Own() {
		return t.Kind == Plain
	}
	return r.Format == "" || r.Format == t.Kind || slices.Contains(t.FoundBy, r.Format)
}

// Own reports whether the rule is of the user's making.
func (r Rule) Own() bool { return r.Marker != "" || r.Quiet > 0 }

// quiet is the time without a change.
func (r Rule) quiet() time.Duration { return time.Duration(r.Quiet * float64(time.Second)) }

// depth is how many levels are searched.
func (r Rule) depth() int {
	if r.Own() {
		return maxDepth + 1
	}
	return maxDepth
}

// isMarker reports whether a file is the rule's marker.
func (r Rule) isMarker(base string) bool {
	ok, err := path.Match(r.Marker, base) // an empty pattern matches no name
	return ok && err == nil
}

// MayComplete reports whether a file that was written may be the last of a save, so
// that it is worth while to look for complete checkpoints.
func (r Rule) MayComplete(file string) bool {
	base := path.Base(file)
	if r.Quiet > 0 {
		return true
	}
	if r.Marker != "" {
		return r.isMarker(base)
	}
	for _, f := range All {
		if r.Finds(f) && matchesAny(f.Traits().Last, base) {
			return true
		}
	}
	return false
}

// CompleteWhen says, for a person, when checkpoints count as complete; empty where the
// rule leaves it to the files.
func (r Rule) CompleteWhen() string {
	switch {
	case r.Marker != "":
		return "a file " + r.Marker + " is there"
	case r.Quiet != 0:
		return fmt.Sprintf("nothing has changed for %g s", r.Quiet)
	}
	if f := Of(r.Format); f != nil {
		return f.Traits().CompleteWhen
	}
	return ""
}

// Check returns what is wrong with a rule for the checkpoints of a path.
func (r Rule) Check(checkpoints string) error {
	var names []string
	for _, f := range All {
		if t := f.Traits(); !t.Unnamed {
			names = append(names, string(t.Kind))
		}
	}
	if r.Format != "" && !slices.Contains(names, string(r.Format)) {
		return fmt.Errorf("the checkpoints of %s have the format %q, which is not known; there are %s", checkpoints, r.Format, strings.Join(names, ", "))
	}
	switch _, err := path.Match(r.Marker, ""); {
	case (r.Marker != "" || r.Quiet != 0) && r.Format != Plain:
		return fmt.Errorf("the checkpoints of %s have a marker or a time of quiet, which plain ones only can have; the others are known to be complete by themselves: add format=plain, or leave them out", checkpoints)
	case r.Marker != "" && r.Quiet != 0:
		return fmt.Errorf("the checkpoints of %s are complete by a marker and by quiet: choose one of the two", checkpoints)
	case err != nil || strings.Contains(r.Marker, "/"):
		return fmt.Errorf("the marker %q of the checkpoints of %s is no pattern of a file's name: write a name such as _SUCCESS, with * and ? where it varies", r.Marker, checkpoints)
	case !(r.Quiet >= 0 && r.Quiet <= 24*3600):
		return fmt.Errorf("the checkpoints of %s are complete after %g s without a change: write a time of at most a day, such as 30s", checkpoints, r.Quiet)
	}
	return nil
}
