package hdfsckpt

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"
	"time"
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
func (l *lister) plain(dir string, entries []Info) error {
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
	text, err := ReadFile(l.ctx, l.s, c.last)
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

// byRule finds the checkpoints of a rule with a marker or a time of quiet among
// the entries of the store's root.
func (l *lister) byRule(entries []Info) error {
	for _, e := range entries {
		switch {
		case strings.HasPrefix(e.Name, hiddenPrefix):
		case e.IsDir():
			l.group.Go(func() error {
				return l.limited(func() error {
					c := Checkpoint{Name: e.Name, Kind: Plain, Step: numberAtEnd(e.Name)}
					if err := l.below(e.Name, 0, &c); err != nil || len(c.Files) == 0 {
						return err
					}
					l.judge(c)
					return nil
				})
			})
		case l.rule.Quiet > 0:
			c := Checkpoint{Name: e.Name, Kind: Plain, Files: []File{fileOf(".", e)}, Shards: 1}
			c.Step = numberAtEnd(strings.TrimSuffix(e.Name, path.Ext(e.Name)))
			l.judge(c)
		}
	}
	return nil
}

// below collects all files of a directory.
func (l *lister) below(dir string, depth int, c *Checkpoint) error {
	entries, err := l.s.List(l.ctx, dir)
	if vanished(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch {
		case !e.IsDir():
			c.Files = append(c.Files, fileOf(dir, e))
			c.Shards++
		case depth < maxDepth:
			if err := l.below(path.Join(dir, e.Name), depth+1, c); err != nil {
				return err
			}
		default:
			return fmt.Errorf("cannot look at the checkpoint %s: %s lies too deep", c.Name, path.Join(dir, e.Name))
		}
	}
	return nil
}

// judge decides by the store's rule.
func (l *lister) judge(c Checkpoint) {
	c.State = Torn
	var last time.Time
	for _, f := range c.Files {
		if f.ModTime.After(last) {
			last = f.ModTime
		}
		// An empty pattern matches no name; a bad one was refused with the job.
		if ok, err := path.Match(l.rule.Marker, path.Base(f.Name)); ok && err == nil {
			c.last = f.Name
		}
	}
	quiet := time.Since(last)
	switch {
	case isHalfDone(c.Name):
		c.Why = "its name is that of a save that has not ended"
	case l.rule.Marker != "" && c.last == "":
		c.Why = fmt.Sprintf("it has no file %s: the save did not get that far", l.rule.Marker)
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

// markedShards is how many shards the marker says there are; 0 if it says
// nothing: whatever else is in it, it is there.
func markedShards(text []byte) int {
	var marker struct {
		Shards int `json:"shards"`
	}
	_ = json.Unmarshal(text, &marker)
	return marker.Shards
}
