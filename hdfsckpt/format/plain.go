package hdfsckpt

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"holdfast/hdfsckpt/store"
)

// Committed is the file that makes a plain checkpoint complete where the
// store's rule says nothing else. If it is JSON with a number "shards", as many
// other files must be there.
const Committed = "COMMITTED"

const plainPrefix = "step-"

func isPlainName(name string) bool {
	return strings.HasPrefix(name, plainPrefix) && stepOf(name) != NoStep
}

// plain looks at a directory step-N.
func (l *lister) plain(dir string, entries []store.Info) error {
	c := Checkpoint{Name: dir, Kind: Plain, Step: stepOf(dir), State: Torn}
	committed := false
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		c.Files = append(c.Files, fileOf(dir, e))
		switch {
		case e.Name == Committed:
			committed = true
		case !strings.HasSuffix(e.Name, ".tmp"):
			c.Shards++
		}
	}
	if len(c.Files) == 0 {
		return nil // only a directory
	}
	if !committed {
		c.Why = "it has no file " + Committed + ": the save did not get that far"
		l.add(c)
		return nil
	}
	c.last = path.Join(dir, Committed)
	text, err := store.ReadFile(l.ctx, l.s, c.last)
	if vanished(err) {
		return nil
	}
	if errors.Is(err, syscall.EFBIG) {
		c.State, c.Why = Unchecked, err.Error()
		l.add(c)
		return nil
	}
	if err != nil {
		return err
	}
	if n := markedShards(text); n > c.Shards {
		c.Why = fmt.Sprintf("it has %d shards, %s says %d", c.Shards, Committed, n)
	} else {
		c.State = Complete
	}
	l.add(c)
	return nil
}

// doubtPlain has directories step-N without a marker count as torn only where
// directories beside them show that the program writes one; elsewhere they are
// of another form, which nothing tells.
func (l *lister) doubtPlain() {
	if l.rule.own() {
		return
	}
	marks := map[string]bool{}
	for _, c := range l.found {
		if c.Kind == Plain && c.last != "" {
			marks[path.Dir(c.Name)] = true
		}
	}
	for i := range l.found {
		switch c := &l.found[i]; {
		case c.Kind != Plain || c.last != "":
		case l.rule.Format == Plain || marks[path.Dir(c.Name)]:
			c.surely = true
		case c.State == Torn:
			c.State, c.Why = Unchecked, "it has no file "+Committed+", nor has a directory beside it; the spec can say which file is written last: format=plain,marker=FILE"
		}
	}
}

// doubtRule has directories without the rule's marker count as torn only where
// their name is that of a checkpoint: it says so, or is like that of a complete
// one beside them. Others that end in a number (run_2, with logs) are not known.
func (l *lister) doubtRule() {
	if l.rule.Marker == "" {
		return
	}
	whole := map[string]bool{}
	for _, c := range l.found {
		if c.last != "" {
			whole[shape(c.Name)] = true
		}
	}
	for i := range l.found {
		c := &l.found[i]
		base := path.Base(c.Name)
		if c.last != "" || saysStep.MatchString(base) || whole[shape(c.Name)] || isHalfDone(base) && calledAfterStep(halfDoneOf(base)) {
			continue
		}
		c.surely = false
		if c.State == Torn {
			c.State, c.Why = Unchecked, "it has no file "+l.rule.Marker+", and does not look like one of the checkpoints that have"
		}
	}
}

// saysStep is the name of a directory that says it is of a step, and whose.
var saysStep = regexp.MustCompile(`^((global_?)?step|checkpoint|ckpt|epoch|iter)[-_=]?\d+$`)

var digits = regexp.MustCompile(`\d+`)

// shape is a name but for its numbers.
func shape(name string) string { return digits.ReplaceAllString(name, "#") }

// byRule finds the checkpoints of a rule with a marker or a time of quiet among
// the entries of a directory. With a marker they may lie at any depth.
func (l *lister) byRule(dir string, entries []store.Info, depth int) error {
	for _, e := range entries {
		name := path.Join(dir, e.Name)
		switch {
		case strings.HasPrefix(e.Name, hiddenPrefix):
		case e.IsDir():
			l.group.Go(func() error { return l.dirByRule(name, e, depth) })
		case l.rule.Quiet > 0:
			c := Checkpoint{Name: name, Kind: Plain, Files: []File{fileOf(dir, e)}, Shards: 1}
			c.Step = numberAtEnd(strings.TrimSuffix(e.Name, path.Ext(e.Name)))
			l.judge(c)
		}
	}
	return nil
}

// dirByRule looks at one directory. By a marker it is a checkpoint if it has the
// marker, or if it is called as checkpoints are: its name ends in a number, or
// says that the save has not ended. Otherwise, and where directories in it are
// called so, those are looked at.
func (l *lister) dirByRule(name string, e store.Info, depth int) error {
	var entries []store.Info
	err := l.limited(func() (err error) {
		entries, err = l.s.List(l.ctx, name)
		return err
	})
	if vanished(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if l.rule.Marker != "" && !l.marked(entries) {
		inner := slices.ContainsFunc(entries, func(e store.Info) bool { return e.IsDir() && calledAfterStep(e.Name) })
		if (inner || !calledAfterStep(e.Name)) && depth < maxDepth {
			return l.byRule(name, entries, depth+1)
		}
	}
	return l.limited(func() error {
		c := Checkpoint{Name: name, Kind: Plain, Step: numberAtEnd(e.Name), Time: e.ModTime}
		if err := l.belowEntries(name, entries, 0, &c); err != nil || len(c.Files) == 0 && l.rule.Marker == "" {
			return err
		}
		l.judge(c)
		return nil
	})
}

// marked tells whether the marker is among the entries of a directory.
func (l *lister) marked(entries []store.Info) bool {
	return slices.ContainsFunc(entries, func(e store.Info) bool { return !e.IsDir() && l.isMarker(e.Name) })
}

// isMarker tells whether a file is the marker. An empty pattern matches no name;
// a bad one was refused with the job.
func (l *lister) isMarker(base string) bool {
	ok, err := path.Match(l.rule.Marker, base)
	return ok && err == nil
}

// calledAfterStep tells whether a directory is called as checkpoints are.
func calledAfterStep(name string) bool {
	return !strings.HasPrefix(name, hiddenPrefix) && (numberAtEnd(name) != NoStep || isHalfDone(name))
}

// judge decides by the store's rule.
func (l *lister) judge(c Checkpoint) {
	c.State = Torn
	var last time.Time
	for _, f := range c.Files {
		if f.ModTime.After(last) {
			last = f.ModTime
		}
		if l.isMarker(path.Base(f.Name)) {
			c.last = f.Name
		}
	}
	quiet := time.Since(last)
	switch {
	case isHalfDone(c.Name):
		c.Why, c.surely = "its name is that of a save that has not ended", true
	case c.tooDeep != "":
		c.State, c.Why = Unchecked, tooDeepToTell(c.tooDeep)
	case l.rule.Marker != "" && c.last == "":
		c.Why, c.surely = fmt.Sprintf("it has no file %s: the save did not get that far", l.rule.Marker), true
	case l.rule.Marker == "" && quiet < l.rule.quiet():
		c.State = InProgress
		c.Why = fmt.Sprintf("it was written to %v ago, and counts as complete after %v", max(0, quiet).Round(time.Second), l.rule.quiet())
	default:
		c.State = Complete
	}
	l.add(c)
}

// isHalfDone knows names that programs give to what they rename at the end:
// NAME.tmp, and Orbax's NAME.orbax-checkpoint-tmp-N.
func isHalfDone(name string) bool {
	return strings.HasSuffix(name, ".tmp") || strings.Contains(name, ".orbax-checkpoint-tmp")
}

// halfDoneOf is the name that it is to get.
func halfDoneOf(name string) string {
	name, _, _ = strings.Cut(name, ".orbax-checkpoint-tmp")
	return strings.TrimSuffix(name, ".tmp")
}

// markedShards is how many shards the marker says there are; 0 if it says
// nothing: whatever else is in it, it is there.
func markedShards(text []byte) int {
	var marker struct {
		Shards int `json:"shards"`
	}
	_ = json.Unmarshal(text, &marker)
	return marker.Shards
}
