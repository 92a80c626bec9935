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

// XGBoost is a file of Booster.save_model: UBJSON, or JSON. Both are one object with the
// keys learner and version, in this order, so that what a save writes last is known.
const XGBoost format.Kind = "xgboost"

type xgboost struct{}

var _ onefile.Format = xgboost{}

// xgboostNames are those of the files. All but the first are names of other files, too,
// and count only if the file begins as XGBoost's do.
var xgboostNames = []string{"*" + xgboostSuffix, "*[0-9].json", "*model*.json", "*.model", "*.xgb"}

const xgboostSuffix = ".ubj"

func (xgboost) Traits() format.Traits {
	return format.Traits{
		Kind: XGBoost, Last: xgboostNames,
		CompleteWhen: "the file ends with XGBoost's version, which is written last",
		MayGrow:      true, AloneInStepDir: true, Steady: true,
	}
}

func isXGBoostName(base string) bool {
	return matchesAny(xgboostNames, base)
}

func (xgboost) Owners(file string) []format.Owner {
	return onefile.Owners(file, isXGBoostName)
}

func (xgboost) Claim(_ context.Context, d *format.Dir) ([]format.Claim, error) {
	return onefile.Claim(d, isXGBoostName, xgboost{}.Check), nil
}

func (xgboost) Named(base string) (is, certain bool) {
	return isXGBoostName(base), path.Ext(base) == xgboostSuffix
}

func (xgboost) Check(ctx context.Context, s store.Store, f format.File) (*format.Checkpoint, error) {
	sure := path.Ext(f.Name) == xgboostSuffix
	return onefile.Check(ctx, s, f, format.Checkpoint{Kind: XGBoost, Step: format.FileStep(f.Name, path.Ext(f.Name))}, sure, judgeXGBoost)
}

var (
	// ubjsonBegin is the beginning of an object of UBJSON whose first key, with its length
	// as an L (int64), is learner.
	ubjsonBegin = []byte("{L\x00\x00\x00\x00\x00\x00\x00\x07learner{")
	// ubjsonEnd is its end: the key version, and an array of numbers.
	ubjsonEnd = regexp.MustCompile(`(?s)\x00\x07version\[.{0,64}\}$`)

	xgboostJSONBegin = regexp.MustCompile(`^\s*\{\s*"learner"\s*:`)
	xgboostJSONEnd   = regexp.MustCompile(`"version"\s*:\s*\[[\d\s,]*\]\s*\}\s*$`)
)

func judgeXGBoost(r io.ReaderAt, size int64) error {
	begin, end, err := onefile.Ends(r, size, 128)
	switch {
	case err != nil:
		return err
	case bytes.HasPrefix(begin, ubjsonBegin):
		if !ubjsonEnd.Match(end) {
			return onefile.CutOff(errors.New("it does not end with XGBoost's version, which is written last"))
		}
	case xgboostJSONBegin.Match(begin):
		if !xgboostJSONEnd.Match(end) {
			return onefile.CutOff(errors.New("it does not end with XGBoost's version, which is written last"))
		}
	case bytes.HasPrefix(ubjsonBegin, begin):
		return onefile.CutOff(errors.New("it ends before XGBoost's model begins"))
	default:
		return onefile.Foreign(errors.New("it does not begin as XGBoost's models do"))
	}
	return nil
}
