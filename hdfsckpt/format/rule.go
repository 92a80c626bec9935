package format

import (
	"context"
	"fmt"
	"path"
	"slices"

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
	if err := store.ParseRecord(text, &r); err != nil {
		return r, fmt.Errorf("%s in %s is not readable: %w; remove it, and start the job again", ruleName, s.URI(), err)
	}
	return r, nil
}

// Finds reports whether checkpoints of a format are looked for.
func (r Rule) Finds(f Format) bool {
	t := f.Traits()
	if r.Own() {
		return t.OwnRule
	}
	return r.Format == "" || r.Format == t.Kind || slices.Contains(t.FoundBy, r.Format)
}

// Own reports whether the rule is of the user's making.
func (r Rule) Own() bool { return r.Marker != "" || r.Quiet > 0 }

// depth is how many levels are searched.
func (r Rule) depth() int {
	if r.Own() {
		return MaxDepth + 1
	}
	return MaxDepth
}

// IsMarker reports whether a file is the rule's marker.
func (r Rule) IsMarker(base string) bool {
	ok, err := path.Match(r.Marker, base) // an empty pattern matches no name
	return ok && err == nil
}
