package formats

import (
	"context"
	"path"
	"regexp"
	"strings"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/store"
)

// Directory is a directory of several files, some of a known format, without anything that
// shows whether all of them are there: a program's own checkpoint-500 with model.pt and
// optimizer.pt. It is listed as one checkpoint, and is never removed automatically.
const Directory format.Kind = "directory"

type directory struct{}

var _ format.Format = directory{}

func (directory) Traits() format.Traits {
	return format.Traits{Kind: Directory, FoundBy: []format.Kind{Torch, Safetensors}, Unnamed: true}
}

// Owner returns the directory named after a step that a file lies in: whatever its format,
// it is written and removed as a whole.
func (directory) Owner(file string) (format.Owner, bool) {
	dir, ok := format.StepDirOf(file)
	return format.Owner{Checkpoint: dir, Series: format.SeriesOf(dir)}, ok
}

var (
	// partOfMore is the name, without its suffix, of a file that is one of several of a
	// save: a shard, or what one rank has written.
	partOfMore = regexp.MustCompile(`-of-\d+$|(^|[-_.])(rng_state|random_states?|rank|shard|part)[-_]?\d+`)
	// besideModel are files that programs put beside a model and that are no checkpoint
	// by themselves, if they are in a directory that is named after a step.
	besideModel = regexp.MustCompile(`^(training_args\.bin|optimizer\.(pt|pth|bin)|scheduler\.(pt|pth|bin)|scaler\.pt|rng_state(_\d+)?\.pth)$`)
)

func (directory) Claim(_ context.Context, d *format.Dir) ([]format.Claim, error) {
	parts := belongTogether(d)
	if parts == nil {
		return nil, nil
	}
	whole := format.IsStepDir(path.Base(d.Name))
	claim := format.Claim{Whole: whole, Check: func(ctx context.Context) (*format.Checkpoint, error) {
		c := &format.Checkpoint{Name: d.Name, Kind: Directory, Step: format.NoStep, State: format.Unchecked,
			Why: "nothing in it shows whether all of its files are there; the spec can say which is written last: format=plain,marker=FILE"}
		if whole { // with all that is below it
			c.Step = format.StepAtEnd(path.Base(d.Name))
			err := c.AddDir(ctx, d.Store, d.Name)
			if len(c.Files) == 0 {
				c = nil
			}
			return c, err
		}
		for _, f := range parts {
			c.Files = append(c.Files, format.FileOf(d.Name, f))
			c.Shards++
		}
		return c, nil
	}}
	for _, p := range parts {
		claim.Take = append(claim.Take, p.Name)
	}
	return []format.Claim{claim}, nil
}

// belongTogether returns the files of a directory that are one checkpoint together, and none
// by itself; nil if there are none such. In a directory named after a step these are all
// files, unless the only one may be a model. Elsewhere they are the files without a step in
// their names, beside files that are no checkpoints.
func belongTogether(d *format.Dir) []store.Info {
	var known, parts, others []store.Info
	inStepDir := format.IsStepDir(path.Base(d.Name))
	for _, e := range d.Entries {
		if !e.Mode.IsRegular() || strings.HasPrefix(e.Name, format.HiddenPrefix) {
			continue
		}
		ext := suffixOf(e.Name)
		bare := strings.TrimSuffix(e.Name, ext)
		_, torch := torchSuffixes[ext]
		switch {
		case !inStepDir && indexOfTensors(e.Name) != "":
			continue // its index says what belongs together
		case tfFile.MatchString(e.Name):
			return nil // TensorFlow's are known by their prefix
		case !torch && ext != safetensorsSuffix:
			others = append(others, e)
		case torch && format.StepAtEnd(bare) != format.NoStep && !partOfMore.MatchString(bare):
			known = append(known, e)
		default:
			known = append(known, e)
			parts = append(parts, e)
		}
	}
	switch {
	case d.Name == ".":
		return nil
	case inStepDir:
		if len(known) == 0 || len(known)+len(others) == 1 && !besideModel.MatchString(known[0].Name) {
			return nil
		}
		return append(known, others...)
	case len(parts) == 0 || len(others) == 0:
		return nil
	default:
		return append(parts, others...)
	}
}
