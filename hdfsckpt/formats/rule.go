package formats

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"holdfast/hdfsckpt/format"
)

// MayComplete reports, by a store's rule, whether a file that was written may be the last of
// a save, so that it is worth while to look for complete checkpoints.
func MayComplete(r format.Rule, file string) bool {
	base := path.Base(file)
	if r.Quiet > 0 {
		return true
	}
	if r.Marker != "" {
		return r.IsMarker(base)
	}
	for _, f := range All {
		if r.Finds(f) && matchesAny(f.Traits().Last, base) {
			return true
		}
	}
	return false
}

// CompleteWhen says, for a person, when checkpoints count as complete by a rule; empty where
// the rule leaves it to the files.
func CompleteWhen(r format.Rule) string {
	switch {
	case r.Marker != "":
		return "a file " + r.Marker + " is there"
	case r.Quiet != 0:
		return fmt.Sprintf("nothing has changed for %g s", r.Quiet)
	}
	if f := of(r.Format); f != nil {
		return f.Traits().CompleteWhen
	}
	return ""
}

// CheckRule returns what is wrong with a rule for the checkpoints of a path.
func CheckRule(r format.Rule, checkpoints string) error {
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

// matchesAny reports whether one of some patterns (path.Match) matches a file's name.
func matchesAny(patterns []string, base string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { ok, err := path.Match(p, base); return ok && err == nil })
}
