package format

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"holdfast/hdfsckpt/store"
)

var (
	stepDir = regexp.MustCompile(`^((global_?)?step|checkpoint|ckpt|epoch|iter)?[-_=]?\d+$`)
	endsIn  = regexp.MustCompile(`(?:^|[-_=.]|step|checkpoint|ckpt|epoch|iter)(\d+)$`)

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

// FileStep is the step of a file: that of its directory, if that counts it, or the number at the
// end of its own name, before the suffix.
func FileStep(name, suffix string) int64 {
	if dir := path.Base(path.Dir(name)); counts(dir, path.Base(name)) {
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

// chosen is in the names of what a program chooses among its checkpoints, or saves at its end.
var chosen = regexp.MustCompile(`(^|[-_.])(best|last|latest|final)([-_.]|$)`)

// IsChosen reports whether a file is called so, and needs no step in its name.
func IsChosen(base string) bool { return chosen.MatchString(base) }

// partOfMore is in the name, without its suffix, of a file that is one of several of a save: a
// shard, or what one rank has written.
var partOfMore = regexp.MustCompile(`\d+-of-\d+|(?:^|[-_.])(?:rng_state|random_states?|rank|shard|part|layer|expert)[-_]?\d+`)

// IsPartOfMore reports whether a file, by its base name without the suffix, is one of several
// of a save: the number in it is no step.
func IsPartOfMore(bare string) bool { return partOfMore.MatchString(bare) }

var (
	// number is one in a name, with fraction and exponent; or what Lightning writes for none.
	number = regexp.MustCompile(`\d+(?:\.\d+)*(?:[eE][-+]?\d+)?|=(?:nan|-?inf)\b`)
	// stepWord is before a number that counts what is trained.
	stepWord = regexp.MustCompile(`(?i)(?:step|checkpoint|ckpt|epoch|iter|iteration)s?$|^(?:ep|e|it|s)$`)
	// kindWord is before a number that says which of several something is, or how it is trained.
	kindWord = regexp.MustCompile(`(?i)^k?(?:fold|seed|run|trial|split|stage|member|replica|version|v|lr)$`)
	// keyedVersion is that of Lightning's later one of two files with the same values.
	keyedVersion = regexp.MustCompile(`((?:step|epoch)=[^/]*)-v\d+(\.[a-z]+)?$`)
)

// Shape is a name with # for each number that is another one in each checkpoint of a series: the
// step, and what was measured then, with its sign and fraction. The digits of a word, as in G1,
// resnet50 and v2, and numbers of ranks, folds, seeds and the like tell series apart, and stay. It
// is the same for all checkpoints of a series, of whatever format.
func Shape(name string) string {
	s, _ := shape(name)
	return s
}

// HasStep reports whether a number in a checkpoint's base name may be its step.
func HasStep(base string) bool {
	_, steps := shape(base)
	return len(steps) > 0
}

// step is a number in a name that may be that of its step.
type step struct {
	n    int64
	word bool // a word before it says that it is one
}

// OwnStep returns the number in a base name that is its step: the last of those before which a word
// says so (word), as in model_epoch_3 or epoch=3-step=400.ckpt, or else the last; NoStep if none may be.
func OwnStep(base string) (n int64, word bool) {
	_, steps := shape(base)
	for _, s := range slices.Backward(steps) {
		if s.word {
			return s.n, true
		}
	}
	if len(steps) > 0 {
		return steps[len(steps)-1].n, false
	}
	return NoStep, false
}

// counts reports whether the number of a directory is the step of what is called base in it: if a
// word says that it is a step, or if base has no other one.
func counts(dir, base string) bool {
	if !IsStepDir(dir) {
		return false
	}
	n, _ := OwnStep(base)
	return hasStepWord(dir) || n == NoStep || n == StepAtEnd(dir)
}

// shape is Shape, and the numbers that may be steps.
func shape(name string) (of string, steps []step) {
	name = keyedVersion.ReplaceAllString(name, "$1$2")
	parts := partOfMore.FindAllStringIndex(name, -1)
	var b strings.Builder
	at := 0
	for _, m := range number.FindAllStringIndex(name, -1) {
		from, to := m[0], m[1]
		if name[from] == '=' { // nan
			b.WriteString(name[at:from] + "=#")
			at = to
			continue
		}
		before := strings.TrimRightFunc(name[:from], unicode.IsLetter)
		word := name[len(before):from]
		glued := word != ""
		if !glued {
			before = strings.TrimRightFunc(before, isSeparator)
			word = before[len(strings.TrimRightFunc(before, unicode.IsLetter)):]
		}
		n, err := strconv.ParseInt(name[from:to], 10, 64)
		measured := err != nil
		next, _ := utf8.DecodeRuneInString(name[to:])
		isStep := stepWord.MatchString(word)
		switch {
		case slices.ContainsFunc(parts, func(p []int) bool { return p[0] <= from && to <= p[1] }), kindWord.MatchString(word),
			glued && !isStep && !measured, unicode.IsLetter(next) && !(glued && isStep):
			continue
		}
		if from > at && strings.ContainsRune("-+", rune(name[from-1])) && (from-1 == 0 || isSeparator(rune(name[from-2]))) {
			from-- // its sign
		}
		b.WriteString(name[at:from] + "#")
		at = to
		if !measured {
			steps = append(steps, step{n, isStep})
		}
	}
	b.WriteString(name[at:])
	return b.String(), steps
}

// isSeparator reports whether a character is between words or numbers of one name.
func isSeparator(r rune) bool { return r != '/' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// SeriesOf returns the series of a checkpoint by its name: those in its directory whose names
// have the same Shape, or those in directories that have (SeriesDirOf); empty if no step tells
// them apart.
func SeriesOf(name string) string {
	dir, base := SeriesDirOf(name), path.Base(name)
	if dir == path.Dir(name) && !HasStep(base) {
		return ""
	}
	return path.Join(dir, Shape(base))
}

// SeriesDirOf returns the directory of a checkpoint without the numbers that its series counts
// by: those of directories that a word says are named after a step, as in step_40/model, and,
// where the checkpoint's own name has no step, that of the nearest one that is a number
// alone. Otherwise a number alone may count runs, of which each has a series of its own.
func SeriesDirOf(name string) string {
	dirs := strings.Split(path.Dir(name), "/")
	counted := HasStep(path.Base(name)) || IsChosen(path.Base(name))
	for i, d := range slices.Backward(dirs) {
		if IsStepDir(d) && (hasStepWord(d) || !counted) {
			dirs[i], counted = Shape(d), true
		}
	}
	return path.Join(dirs...)
}

// hasStepWord reports whether a word says that a directory (IsStepDir) is named after a step.
func hasStepWord(dir string) bool { return dir[0] >= 'a' }

// IsNumber reports whether a directory is named by a number alone, which may be that of a run.
func IsNumber(dir string) bool { return IsStepDir(dir) && !hasStepWord(dir) }

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
