package format

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"

	"holdfast/hdfsckpt/store"
)

// Plain is files of the program's own: a directory step-N, complete when it has a file
// COMMITTED, which is written last; or what the store's Rule says (marker.go).
const Plain Kind = "plain"

// Committed is the file that makes a plain checkpoint complete where the store's rule
// says nothing else. If it is JSON with a number "shards", as many other files must be
// there.
const Committed = "COMMITTED"

type plain struct{}

var _ Reviewer = plain{}

func (plain) Traits() Traits {
	return Traits{Kind: Plain, Last: []string{Committed}, Steady: true, CompleteWhen: "the directory step-N has a file COMMITTED"}
}

func isPlainDir(base string) bool {
	return strings.HasPrefix(base, "step-") && StepAfterDash(base) != NoStep
}

func (plain) Owner(file string) (Owner, bool) {
	dir, ok := stepDirOf(file)
	return Owner{Checkpoint: dir, Series: SeriesOf(dir)}, ok && isPlainDir(path.Base(dir))
}

func (plain) Claim(_ context.Context, d *Dir) ([]Claim, error) {
	if d.Rule.Own() {
		return claimByRule(d), nil
	}
	if !isPlainDir(path.Base(d.Name)) || holdsOthers(d.Entries) {
		return nil, nil
	}
	return []Claim{{Whole: true, Check: func(ctx context.Context) (*Checkpoint, error) { return checkPlain(ctx, d) }}}, nil
}

// holdsOthers reports whether a directory step-N is only where a program keeps
// checkpoints that are known by themselves.
func holdsOthers(entries []store.Info) bool {
	others := false
	for _, e := range entries {
		if e.Name == Committed {
			return false
		}
		others = others || tfFile.MatchString(e.Name) || torchSuffixes[suffixOf(e.Name)] || path.Ext(e.Name) == safetensorsSuffix
	}
	return others
}

func checkPlain(ctx context.Context, d *Dir) (*Checkpoint, error) {
	c := &Checkpoint{Name: d.Name, Kind: Plain, Step: StepAfterDash(d.Name), State: Torn}
	committed := false
	for _, e := range d.Entries {
		if e.IsDir() {
			continue
		}
		c.Files = append(c.Files, FileOf(d.Name, e))
		switch {
		case e.Name == Committed:
			committed = true
		case !strings.HasSuffix(e.Name, ".tmp"):
			c.Shards++
		}
	}
	if len(c.Files) == 0 {
		return nil, nil // only a directory
	}
	if !committed {
		c.Why = "it has no file " + Committed + ": the save did not get that far"
		return c, nil
	}
	c.Marker = path.Join(d.Name, Committed)
	text, err := store.ReadFile(ctx, d.Store, c.Marker)
	if errors.Is(err, syscall.EFBIG) {
		c.State, c.Why = Unchecked, err.Error()
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	if n := markedShards(text); n > c.Shards {
		c.Why = fmt.Sprintf("it has %d shards, %s says %d", c.Shards, Committed, n)
	} else {
		c.State = Complete
	}
	return c, nil
}

// markedShards is how many shards the marker says there are; 0 if it says nothing:
// whatever else is in it, it is there.
func markedShards(text []byte) int {
	var marker struct {
		Shards int `json:"shards"`
	}
	_ = json.Unmarshal(text, &marker)
	return marker.Shards
}

// Review has directories step-N without a marker count as torn only where directories
// beside them show that the program writes one; elsewhere they are of another form,
// which nothing shows.
func (plain) Review(r Rule, found []Checkpoint) {
	if r.Own() {
		reviewByRule(r, found)
		return
	}
	marks := map[string]bool{}
	for _, c := range found {
		if c.Kind == Plain && c.Marker != "" {
			marks[path.Dir(c.Name)] = true
		}
	}
	for i := range found {
		switch c := &found[i]; {
		case c.Kind != Plain || c.Marker != "":
		case r.Format == Plain || marks[path.Dir(c.Name)]:
			c.Certain = true
		case c.State == Torn:
			c.State, c.Why = Unchecked, "it has no file "+Committed+", nor has a directory beside it; the spec can say which file is written last: format=plain,marker=FILE"
		}
	}
}
