package hdfsckpt

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"time"

	"holdfast/hdfsckpt/store"
)

// Rule says how the checkpoints in a store are known to be complete. The zero
// Rule finds what can be told from the files themselves: TensorFlow's and
// PyTorch's checkpoints, and directories step-N with a file COMMITTED.
//
// It is kept in the store, so that whoever looks at the store later, without
// the job, sees the same checkpoints.
type Rule struct {
	Format Kind `json:"format,omitempty"` // only checkpoints of this kind; "": of all
	// Marker and Quiet are for Plain, and exclude each other. Each directory in
	// the store's root is a checkpoint then; with Quiet each file there too.
	Marker string  `json:"marker,omitempty"` // pattern (path.Match) of the file that is written last
	Quiet  float64 `json:"quiet,omitempty"`  // seconds without a change
}

// ruleName is where a store's rule lies.
const ruleName = ".holdfast/rule.json"

// SetRule writes a store's rule.
func SetRule(ctx context.Context, s store.Store, r Rule) error {
	if old, err := readRule(ctx, s); err == nil && old == r {
		return nil
	}
	text, err := json.Marshal(r)
	if err == nil {
		err = store.MkdirAll(ctx, s, path.Dir(ruleName), 0o755)
	}
	if err == nil {
		err = store.WriteFile(ctx, s, ruleName, append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("cannot keep in %s how its checkpoints are known to be complete: %w", s.URI(), err)
	}
	return nil
}

// readRule is the zero Rule where none was written.
func readRule(ctx context.Context, s store.Store) (Rule, error) {
	var r Rule
	text, err := store.ReadFile(ctx, s, ruleName)
	if vanished(err) {
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

// finds tells whether checkpoints of a kind are looked for.
func (r Rule) finds(k Kind) bool { return r.Format == "" || r.Format == k }

// own tells whether the rule is of the user's making.
func (r Rule) own() bool { return r.Marker != "" || r.Quiet > 0 }

// quiet is the time without a change.
func (r Rule) quiet() time.Duration { return time.Duration(r.Quiet * float64(time.Second)) }
