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
	t := format.Traits{Kind: Directory, Unnamed: true}
	for _, f := range having[single]() {
		t.FoundBy = append(t.FoundBy, f.Traits().Kind)
	}
	return t
}

// Owners returns the directories named after a step that a file lies in: whatever its format,
// one is written and removed as a whole.
func (directory) Owners(file string) []format.Owner {
	return format.OwnedByStep(file, format.IsStepDir)
}

// besideModel are files that programs put beside a model and that are no checkpoint by
// themselves, if they are in a directory that is named after a step.
var besideModel = regexp.MustCompile(`^(training_args\.bin|optimizer\.(pt|pth|bin)|scheduler\.(pt|pth|bin)|scaler\.pt|rng_state(_\d+)?\.pth)$`)

func (directory) Claim(ctx context.Context, d *format.Dir) ([]format.Claim, error) {
	whole := format.IsStepDir(path.Base(d.Name)) && d.Name != "."
	var parts []store.Info
	var err error
	if whole {
		parts, err = filesOfStep(ctx, d)
	} else {
		parts = belongTogether(d)
	}
	if parts == nil || err != nil {
		return nil, err
	}
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

// filesOfStep returns the files of a directory named after a step if they are one checkpoint
// together, and none by itself: if there are several, and one of them would be a checkpoint
// of its own elsewhere. nil if they are not.
func filesOfStep(ctx context.Context, d *format.Dir) ([]store.Info, error) {
	var files []store.Info
	for _, e := range d.Entries {
		switch {
		case !e.Mode.IsRegular() || strings.HasPrefix(e.Name, format.HiddenPrefix):
		case tfFile.MatchString(e.Name):
			return nil, nil // TensorFlow's are known by their prefix
		default:
			files = append(files, e)
		}
	}
	if len(files) == 0 || isAlone(files) {
		return nil, nil
	}
	var doubtful []func() (*format.Checkpoint, error)
	for _, f := range having[single]() {
		if !d.Rule.Finds(f) {
			continue
		}
		for _, e := range files {
			switch is, certain := f.named(e.Name); {
			case is && certain:
				return files, nil
			case is:
				doubtful = append(doubtful, func() (*format.Checkpoint, error) { return f.check(ctx, d.Store, format.FileOf(d.Name, e)) })
			}
		}
	}
	for _, check := range doubtful { // others have such names, too
		c, err := check()
		if err != nil && !store.Vanished(err) {
			return nil, err
		}
		if c != nil {
			return files, nil
		}
	}
	return nil, nil
}

// isAlone reports whether the files of a directory are a model, and what its format keeps
// beside it.
func isAlone(files []store.Info) bool {
	beside := ""
	for _, f := range having[accompanied]() {
		for _, e := range files {
			if is, _ := f.named(e.Name); is {
				beside = f.companion(e.Name)
			}
		}
	}
	others := 0
	for _, e := range files {
		if e.Name != beside {
			others++
		}
	}
	return others == 1 && !besideModel.MatchString(files[0].Name)
}

// belongTogether returns the files of a directory that is not named after a step which are
// one checkpoint together, and none by itself; nil if there are none such. They are the files
// of torch.save and safetensors without a step in their names, beside files that are no
// checkpoints.
func belongTogether(d *format.Dir) []store.Info {
	var parts, others []store.Info
	if d.Name == "." {
		return nil
	}
	for _, e := range d.Entries {
		if !e.Mode.IsRegular() || strings.HasPrefix(e.Name, format.HiddenPrefix) {
			continue
		}
		ext := suffixOf(e.Name)
		bare := strings.TrimSuffix(e.Name, ext)
		_, torch := torchSuffixes[ext]
		switch {
		case indexOfTensors(e.Name) != "":
			// its index says what belongs together
		case tfFile.MatchString(e.Name):
			return nil // TensorFlow's are known by their prefix
		case !torch && ext != safetensorsSuffix:
			others = append(others, e)
		case !torch || format.StepAtEnd(bare) == format.NoStep || format.IsPartOfMore(bare):
			parts = append(parts, e)
		}
	}
	if len(parts) == 0 || len(others) == 0 {
		return nil
	}
	return append(parts, others...)
}
