package formats

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"regexp"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/format/onefile"
	"holdfast/hdfsckpt/store"
)

// LightGBM is a file of Booster.save_model, or a snapshot of LightGBM's program: text that
// begins with a line tree, and ends with the parameters and, if Python wrote it, with
// what pandas called the categories.
const LightGBM format.Kind = "lightgbm"

type lightGBM struct{}

var _ onefile.Format = lightGBM{}

// lightGBMNames are those of the files; the last is what LightGBM's program calls
// snapshots. All are names of other files, too, and count only if the file begins as
// LightGBM's do.
var lightGBMNames = []string{"*[0-9].txt", "*model*.txt", "*.model", "*.lgb", "*.snapshot_iter_*"}

func (lightGBM) Traits() format.Traits {
	return format.Traits{
		Kind: LightGBM, Last: lightGBMNames,
		CompleteWhen: "the file ends with LightGBM's parameters, which are written last",
		MayGrow:      true, AloneInStepDir: true, Steady: true,
	}
}

func isLightGBMName(base string) bool {
	return matchesAny(lightGBMNames, base)
}

func (lightGBM) Owners(file string) []format.Owner {
	return onefile.Owners(file, isLightGBMName)
}

func (lightGBM) Claim(_ context.Context, d *format.Dir) ([]format.Claim, error) {
	return onefile.Claim(d, isLightGBMName, lightGBM{}.Check), nil
}

func (lightGBM) Named(base string) (is, certain bool) {
	return isLightGBMName(base), false
}

func (lightGBM) Check(ctx context.Context, s store.Store, f format.File) (*format.Checkpoint, error) {
	suffix := path.Ext(f.Name)
	if snapshot.MatchString(suffix) {
		suffix = ""
	}
	return onefile.Check(ctx, s, f, format.Checkpoint{Kind: LightGBM, Step: format.FileStep(f.Name, suffix)}, false, judgeLightGBM)
}

// snapshot is what stands behind a model's name in that of a snapshot.
var snapshot = regexp.MustCompile(`^\.snapshot_iter_\d+$`)

// lightGBMTail is how much of a file's end is read: what follows the trees is some
// kilobytes of parameters, behind a line for each feature.
const lightGBMTail = 64 << 10

var (
	lightGBMBegin = []byte("tree\nversion=v")
	// lightGBMEnd is the last line: LightGBM's own, or that of Python. The beginning of a
	// long one, which is a list of lists, is not among what is read; no other line ends so.
	lightGBMEnd = regexp.MustCompile(`\n(?:end of parameters\n\s*|pandas_categorical:[^\n]+\n)$|^[^\n]*\]\]\n$`)
	treesEnd    = []byte("\nend of trees\n")
)

func judgeLightGBM(r io.ReaderAt, size int64) error {
	begin, end, err := onefile.Ends(r, size, lightGBMTail)
	switch {
	case err != nil:
		return err
	case !bytes.HasPrefix(begin, lightGBMBegin):
		return onefile.Foreign(errors.New("it does not begin as LightGBM's models do"))
	case lightGBMEnd.Match(end):
		return nil
	case bytes.Contains(end, treesEnd): // LightGBM reads it, with what is there of the parameters
		return errors.New("it ends behind its trees, and before the end of the parameters: whether something is missing cannot be seen")
	}
	return onefile.CutOff(errors.New("it ends in the middle of its trees, or of what follows them"))
}
