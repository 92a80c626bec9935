package format

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"holdfast/hdfsckpt/store"
)

var (
	stepDir = regexp.MustCompile(`^((global_?)?step|checkpoint|ckpt|epoch|iter)?[-_=]?\d+$`)
	endsIn  = regexp.MustCompile(`(?:^|[-_=.]|step|checkpoint|ckpt|epoch|iter)(\d+)$`)
	digits  = regexp.MustCompile(`\d+`)

	// Lightning's names are made of KEY=VALUE: epoch=3-step=400-val_loss=0.25-v1. Of two
	// files with the same values the later one gets a version.
	keyedStep  = regexp.MustCompile(`(?:^|[-_.])(?:global_)?step=(\d+)(?:$|-)`)
	keyedEpoch = regexp.MustCompile(`(?:^|[-_.])epoch=(\d+)(?:$|-)`)
	version    = regexp.MustCompile(`-v\d+$`)
	// fraction is at the end of names that have a loss in them: model.05-0.45.
	fraction = regexp.MustCompile(`\d\.\d+$`)
)

// NoStep is the step of a name that has none.
const NoStep = -1

// IsStepDir reports whether a directory is named after a step: 40, step_40,
// checkpoint-500, global_step40.
func IsStepDir(base string) bool { return stepDir.MatchString(base) }

// IsPlainDir reports whether a directory is called step-N.
func IsPlainDir(base string) bool {
	return strings.HasPrefix(base, "step-") && StepAfterDash(base) != NoStep
}

// IsPartsDir reports whether a directory is where a save collects its parts.
func IsPartsDir(base string) bool { return strings.Contains(base, "_temp") }

// StepAfterDash returns the step in a name: the number after its last dash.
func StepAfterDash(name string) int64 {
	i := strings.LastIndexByte(name, '-')
	if n, err := strconv.ParseUint(name[i+1:], 10, 63); err == nil && i >= 0 {
		return int64(n)
	}
	return NoStep
}

// StepAtEnd returns the step in a name that a program made up: the number that it ends
// in, as in step_40, or the one that is called so, as in epoch=3-step=400-val_loss=0.25.
// Where no step is, an epoch counts; a fraction does not.
func StepAtEnd(name string) int64 {
	name = version.ReplaceAllString(name, "")
	m := keyedStep.FindStringSubmatch(name)
	if m == nil {
		m = keyedEpoch.FindStringSubmatch(name)
	}
	if m == nil && !fraction.MatchString(name) {
		m = endsIn.FindStringSubmatch(name)
	}
	if m != nil {
		if n, err := strconv.ParseUint(m[1], 10, 63); err == nil {
			return int64(n)
		}
	}
	return NoStep
}

// FileStep is the step of a file: the directory's, if that is named after one, or the
// number at the end of its own name, before the suffix.
func FileStep(name, suffix string) int64 {
	if dir := path.Base(path.Dir(name)); IsStepDir(dir) {
		return StepAtEnd(dir)
	}
	return StepAtEnd(strings.TrimSuffix(path.Base(name), suffix))
}

// lastName is what programs call the copy of what they saved last: last.ckpt, and last-v1.ckpt, of
// Lightning (ModelCheckpoint's save_last), latest.pt.
var lastName = regexp.MustCompile(`^(last|latest)(-v\d+)?(\.|$)`)

// IsLast reports whether a checkpoint is called the last one: programs that are told to go on
// look for that name, whatever steps the names beside it have.
func IsLast(base string) bool { return lastName.MatchString(base) }

// Shape is a name but for its numbers.
func Shape(name string) string { return digits.ReplaceAllString(name, "#") }

// partOfMore is the name, without its suffix, of a file that is one of several of a save: a
// shard, or what one rank has written.
var partOfMore = regexp.MustCompile(`-of-\d+$|(^|[-_.])(rng_state|random_states?|rank|shard|part)[-_]?\d+`)

// IsPartOfMore reports whether a file, by its base name without the suffix, is one of several
// of a save: the number in it is no step.
func IsPartOfMore(bare string) bool { return partOfMore.MatchString(bare) }

// SeriesOf returns the series of a checkpoint by its name: those in its directory whose names
// differ in their numbers alone, or those in directories that differ so (SeriesDirOf); empty
// if no number tells them apart.
func SeriesOf(name string) string {
	dir, base := SeriesDirOf(name), path.Base(name)
	if hasStep(base) || dir == path.Dir(name) && digits.MatchString(base) {
		base = Shape(base)
	}
	if series := path.Join(dir, base); series != name {
		return series
	}
	return ""
}

// SeriesDirOf returns the directory of a checkpoint without the numbers that its series counts
// by: those of directories that a word says are named after a step, as in step_40/model, and,
// where the checkpoint's own name has no step, that of the nearest one that is a number
// alone. Otherwise a number alone may count runs, of which each has a series of its own.
func SeriesDirOf(name string) string {
	dirs := strings.Split(path.Dir(name), "/")
	counted := hasStep(path.Base(name))
	for i, d := range slices.Backward(dirs) {
		if IsStepDir(d) && (d[0] >= 'a' || !counted) {
			dirs[i], counted = Shape(d), true
		}
	}
	return path.Join(dirs...)
}

// hasStep reports whether the number in a checkpoint's base name may be its step.
func hasStep(base string) bool {
	return digits.MatchString(base) && !IsPartOfMore(strings.TrimSuffix(base, path.Ext(base)))
}

// IsHidden reports whether a file lies in a hidden directory, such as the store's own, or
// is being written.
func IsHidden(file string) bool {
	return strings.HasPrefix(file, HiddenPrefix) && path.Dir(file) != "." || store.IsTemporary(path.Base(file))
}

// StepDirsOf returns the directories named after a step in which a file lies, the outermost
// first: it may be a part of each of them. None if it is among what a save collects, or hidden.
func StepDirsOf(file string) (dirs []string) {
	if IsHidden(file) || IsPartsDir(path.Base(path.Dir(file))) {
		return nil
	}
	for end, c := range file {
		if c == '/' && IsStepDir(path.Base(file[:end])) {
			dirs = append(dirs, file[:end])
		}
	}
	return dirs
}

// workerTemp is a directory into which a worker of MultiWorkerMirroredStrategy writes its
// copy of what the chief saves, because all must take part in a save. It removes it at once.
var workerTemp = regexp.MustCompile(`(^|/)workertemp_\d+(/|$)`)

// IsDiscarded reports whether an entry is, or lies in, a directory whose files their own
// program discards: nobody's checkpoint.
func IsDiscarded(name string) bool { return workerTemp.MatchString(name) }
