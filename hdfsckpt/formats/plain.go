package formats

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/format/look"
	"holdfast/hdfsckpt/formats/pytorch"
	"holdfast/hdfsckpt/store"
)

// Plain is files of the program's own: a directory step-N, complete when it has a file
// COMMITTED, which is written last; or what the store's Rule says.
const Plain format.Kind = "plain"

// Committed is the file that makes a plain checkpoint complete where the store's rule
// says nothing else. If it is JSON with a number "shards", as many other files must be
// there.
const Committed = "COMMITTED"

// namedStepDir is a directory whose name says that the number in it is a step.
var namedStepDir = regexp.MustCompile(`^((global_?)?step|checkpoint|ckpt|epoch|iter)[-_=]?\d+$`)

type plain struct{}

var _ format.Reviewer = plain{}

func (plain) Traits() format.Traits {
	return format.Traits{Kind: Plain, Last: []string{Committed}, Steady: true, OwnRule: true, CompleteWhen: "the directory step-N has a file COMMITTED"}
}

func (plain) Owners(file string) []format.Owner {
	return format.OwnedByStep(file, format.IsPlainDir)
}

func (plain) Claim(_ context.Context, d *format.Dir) ([]format.Claim, error) {
	if d.Rule.Own() {
		return claimByRule(d), nil
	}
	if !format.IsPlainDir(path.Base(d.Name)) || holdsOthers(d.Entries) {
		return nil, nil
	}
	return []format.Claim{{Whole: true, Inside: true, Loose: true, Check: func(ctx context.Context) (*format.Checkpoint, error) { return checkPlain(ctx, d) }}}, nil
}

// holdsOthers reports whether a directory step-N is only where a program keeps
// checkpoints that are known by themselves.
func holdsOthers(entries []store.Info) bool {
	others := false
	for _, e := range entries {
		if e.Name == Committed {
			return false
		}
		_, certain := pytorch.SuffixOf(e.Name)
		others = others || certain || tfFile.MatchString(e.Name) || isMXNetName(e.Name) || e.Name == savedModelFile
	}
	return others
}

func checkPlain(ctx context.Context, d *format.Dir) (*format.Checkpoint, error) {
	c := &format.Checkpoint{Name: d.Name, Kind: Plain, Step: format.StepAfterDash(d.Name), State: format.Torn}
	if err := c.AddEntries(ctx, d.Store, d.Name, d.Entries); err != nil {
		return nil, err
	}
	if len(c.Files) == 0 {
		return nil, nil // only a directory
	}
	c.Shards = 0
	for _, f := range c.Files {
		switch {
		case f.Name == path.Join(d.Name, Committed):
			c.Marker = f.Name
		case !strings.HasSuffix(f.Name, ".tmp"):
			c.Shards++
		}
	}
	if c.Marker == "" {
		c.Why = "it has no file " + Committed + ": the save did not get that far"
		return c, nil
	}
	if c.TooDeep() != "" {
		c.State, c.Why = format.Unchecked, c.TooDeep()
		return c, nil
	}
	n, err := markedShards(ctx, d.Store, c.Marker)
	if err != nil {
		return c, err
	}
	if n > c.Shards {
		c.Why = fmt.Sprintf("it has %d shards, %s says %d", c.Shards, Committed, n)
	} else {
		c.State = format.Complete
	}
	return c, nil
}

// markedShards returns the number of shards that the marker gives; 0 if it gives none, since
// a marker with any content counts.
func markedShards(ctx context.Context, s store.Store, name string) (int, error) {
	var marker struct {
		Shards int `json:"shards"`
	}
	err := look.JSON(ctx, s, name, &marker)
	if look.IsDamaged(err) {
		err = nil
	}
	return marker.Shards, err
}

// Review has directories step-N without a marker count as torn only where directories
// beside them show that the program writes one; elsewhere they are of another form,
// which nothing shows.
func (plain) Review(r format.Rule, found []format.Checkpoint) {
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
		case c.Kind != Plain && inUnmarked(c, marks):
			c.Why, c.Certain = "its directory has no file "+Committed+", as those beside it have: the save did not get that far", true
			c.MarkTorn()
		case c.Kind != Plain || c.Marker != "":
		case r.Format == Plain || marks[path.Dir(c.Name)]:
			c.Certain = true
		case c.State == format.Torn:
			c.State, c.Why = format.Unchecked, "it has no file "+Committed+", nor has a directory beside it; the spec can say which file is written last: format=plain,marker=FILE"
		}
	}
}

// inUnmarked reports whether a checkpoint is what lies in a directory step-N, beside others that
// have a marker: there it is not complete by what is in its files alone.
func inUnmarked(c *format.Checkpoint, marks map[string]bool) bool {
	dir := c.Name
	if c.Traits().AloneInStepDir {
		dir = path.Dir(dir)
	} else if c.Kind != Directory {
		return false
	}
	return format.IsPlainDir(path.Base(dir)) && marks[path.Dir(dir)]
}

// Plain checkpoints by a store's own rule.
//
// With a marker they may lie at any depth: a directory is one if it has the marker, or
// if it is named as checkpoints are: its name ends in a number, or says that the save
// has not ended. Otherwise, and where directories in it are named so, those are looked
// at. With a time of quiet each directory and each file in the root is one.

func claimByRule(d *format.Dir) []format.Claim {
	if d.Depth > 0 && !onlyHolds(d) {
		return []format.Claim{{Whole: true, Check: func(ctx context.Context) (*format.Checkpoint, error) { return checkDirByRule(ctx, d) }}}
	}
	if d.Rule.Quiet <= 0 {
		return nil
	}
	var claims []format.Claim
	for _, e := range d.Entries {
		if e.IsDir() || strings.HasPrefix(e.Name, format.HiddenPrefix) {
			continue
		}
		claims = append(claims, format.Claim{Check: func(context.Context) (*format.Checkpoint, error) {
			step := format.StepAtEnd(strings.TrimSuffix(e.Name, path.Ext(e.Name)))
			return judgeByRule(d.Rule, format.Checkpoint{Name: path.Join(d.Name, e.Name), Kind: Plain, Step: step, Files: []format.File{format.FileOf(d.Name, e)}, Shards: 1}), nil
		}})
	}
	return claims
}

// onlyHolds reports whether a directory is no checkpoint by its marker, but may hold some.
func onlyHolds(d *format.Dir) bool {
	if d.Rule.Marker == "" || d.Depth > format.MaxDepth ||
		slices.ContainsFunc(d.Entries, func(e store.Info) bool { return !e.IsDir() && d.Rule.IsMarker(e.Name) }) {
		return false
	}
	return !namedAsCheckpoint(path.Base(d.Name)) ||
		slices.ContainsFunc(d.Entries, func(e store.Info) bool { return e.IsDir() && namedAsCheckpoint(e.Name) })
}

func checkDirByRule(ctx context.Context, d *format.Dir) (*format.Checkpoint, error) {
	c := format.Checkpoint{Name: d.Name, Kind: Plain, Step: format.StepAtEnd(path.Base(d.Name))}
	if err := c.AddEntries(ctx, d.Store, d.Name, d.Entries); err != nil {
		return nil, err
	}
	if len(c.Files) == 0 {
		if d.Rule.Marker == "" {
			return nil, nil
		}
		i, err := d.Store.Stat(ctx, d.Name)
		if err != nil {
			return nil, err
		}
		c.Time = i.ModTime
	}
	return judgeByRule(d.Rule, c), nil
}

// namedAsCheckpoint reports whether a directory is named as checkpoints are.
func namedAsCheckpoint(base string) bool {
	return !strings.HasPrefix(base, format.HiddenPrefix) && (format.StepAtEnd(base) != format.NoStep || isUnfinished(base))
}

// judgeByRule decides by the store's rule.
func judgeByRule(r format.Rule, c format.Checkpoint) *format.Checkpoint {
	c.State = format.Torn
	var last time.Time
	for _, f := range c.Files {
		if f.ModTime.After(last) {
			last = f.ModTime
		}
		if r.IsMarker(path.Base(f.Name)) {
			c.Marker = f.Name
		}
	}
	quiet, wait := time.Since(last), time.Duration(r.Quiet*float64(time.Second))
	switch {
	case isUnfinished(c.Name):
		c.Why, c.Certain = "its name is that of a save that has not ended", true
	case c.TooDeep() != "":
		c.State, c.Why = format.Unchecked, c.TooDeep()
	case r.Marker != "" && c.Marker == "":
		c.Why, c.Certain = fmt.Sprintf("it has no file %s: the save did not get that far", r.Marker), true
	case r.Marker == "" && quiet < wait:
		c.State = format.InProgress
		c.Why = fmt.Sprintf("it was written to %v ago, and counts as complete after %v", max(0, quiet).Round(time.Second), wait)
	default:
		c.State = format.Complete
	}
	return &c
}

// reviewByRule lets directories without the rule's marker count as torn only if they are
// named as checkpoints are: by a word such as step, or as a complete one beside them. Whether
// others that end in a number (run_2, with logs) are checkpoints is not known.
func reviewByRule(r format.Rule, found []format.Checkpoint) {
	if r.Marker == "" {
		return
	}
	whole := map[string]bool{}
	for _, c := range found {
		if c.Marker != "" {
			whole[format.Shape(c.Name)] = true
		}
	}
	for i := range found {
		c := &found[i]
		base := path.Base(c.Name)
		if c.Marker != "" || namedStepDir.MatchString(base) || whole[format.Shape(c.Name)] || isUnfinished(base) && namedAsCheckpoint(finishedName(base)) {
			continue
		}
		c.Certain = false
		if c.State == format.Torn {
			c.State, c.Why = format.Unchecked, "it has no file "+r.Marker+", and does not look like one of the checkpoints that have"
		}
	}
}

// isUnfinished knows names that programs give to what they rename at the end: NAME.tmp,
// and Orbax's NAME.orbax-checkpoint-tmp-N.
func isUnfinished(name string) bool {
	return strings.HasSuffix(name, ".tmp") || strings.Contains(name, orbaxTmp)
}

// finishedName is the name that it is to get.
func finishedName(name string) string {
	name, _, _ = strings.Cut(name, orbaxTmp)
	return strings.TrimSuffix(name, ".tmp")
}
