package formats

import (
	"context"
	"path"
	"regexp"
	"slices"
	"strings"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/format/onefile"
	"holdfast/hdfsckpt/formats/pytorch"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/tfbundle"
)

// Directory is a directory of several files, some of a known format, without anything that
// shows whether all of them are there: a program's own checkpoint-500 with model.pt and
// optimizer.pt. It is listed as one checkpoint, and is never removed automatically.
const Directory format.Kind = "directory"

type directory struct{}

var _ format.Format = directory{}

func (directory) Traits() format.Traits {
	t := format.Traits{Kind: Directory, Unnamed: true}
	for _, f := range having[onefile.Format]() {
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

// besideBundle are files that TensorFlow itself puts beside a checkpoint: its pointer, event
// files and the graph's text.
var besideBundle = regexp.MustCompile(`^(` + tfbundle.StateFile + `|events\.out\.tfevents\..*|graph\.pbtxt)$`)

func (directory) Claim(ctx context.Context, d *format.Dir) ([]format.Claim, error) {
	whole := format.IsStepDir(path.Base(d.Name)) && d.Name != "."
	var parts []store.Info
	var err error
	if whole {
		if d.Place, err = isPlace(d); d.Place || err != nil {
			return nil, err
		}
		parts, err = filesOfStep(ctx, d)
	} else {
		parts = belongTogether(d)
	}
	if parts == nil || err != nil {
		return nil, err
	}
	claim := format.Claim{Whole: whole, Inside: whole, Loose: true, Check: func(ctx context.Context) (*format.Checkpoint, error) {
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
	bundled, others := false, false // TensorFlow's files; those of another kind
	for _, e := range d.Entries {
		if !e.Mode.IsRegular() || strings.HasPrefix(e.Name, format.HiddenPrefix) {
			continue
		}
		files = append(files, e)
		switch m := tfFile.FindStringSubmatch(e.Name); {
		case m != nil && m[3] != "": // an index alone may be another program's
			if n := format.StepAfterDash(m[1]); n != format.NoStep && n != format.StepAtEnd(path.Base(d.Name)) {
				return nil, nil // a run's
			}
			bundled = true
		case m == nil && !besideBundle.MatchString(e.Name):
			others = true
		}
	}
	if bundled && d.Rule.Finds(tensorFlow{}) {
		if !others {
			return nil, nil // they are known by their prefix
		}
		return files, nil
	}
	if len(files) == 0 || isAlone(files) {
		return nil, nil
	}
	var doubtful []func() (*format.Checkpoint, error)
	for _, f := range having[onefile.Format]() {
		if !d.Rule.Finds(f) {
			continue
		}
		for _, e := range files {
			switch is, certain := f.Named(e.Name); {
			case is && certain:
				return files, nil
			case is:
				doubtful = append(doubtful, func() (*format.Checkpoint, error) { return f.Check(ctx, d.Store, format.FileOf(d.Name, e)) })
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
	for _, f := range having[onefile.Accompanied]() {
		for _, e := range files {
			if is, _ := f.Named(e.Name); is {
				beside = f.Companion(e.Name)
			}
		}
	}
	others := 0
	for _, e := range files {
		if e.Name != beside {
			others++
		}
	}
	index := pytorch.IndexOfTensors(files[0].Name)
	shards := index != "" && !slices.ContainsFunc(files, func(e store.Info) bool { return pytorch.IndexOfTensors(e.Name) != index })
	return (others == 1 || shards) && !besideModel.MatchString(files[0].Name)
}

// isPlace reports whether a directory that is named by a number alone, as that of a seed, a fold or
// a run is, holds checkpoints with steps of their own. A step is a checkpoint's own if a word says
// it (epoch=3, step_40, checkpoint-500) in its name or that of a directory below, and is not the
// number. Numbers without a word are, too, unless they count parts (0, 1, 2 or 1, 2, 3), or another
// file needs the directory's number, as it has none.
func isPlace(d *format.Dir) (bool, error) {
	base := path.Base(d.Name)
	if !format.IsNumber(base) {
		return false, nil
	}
	number := format.StepAtEnd(base)
	numbers := map[string]map[int64]bool{} // by the shapes of names
	one, unnumbered := false, false
	for _, e := range d.Entries {
		if !e.Mode.IsRegular() || !mayBeOne(e.Name) {
			continue
		}
		one = true
		n, word := format.OwnStep(e.Name)
		shape := format.Shape(e.Name)
		switch {
		case word && (n != number || strings.Contains(shape, "=#")):
			return true, nil
		case n != format.NoStep:
			if numbers[shape] == nil {
				numbers[shape] = map[int64]bool{}
			}
			numbers[shape][n] = true
		case !format.IsChosen(e.Name):
			unnumbered = true
		}
	}
	if !one {
		return false, nil
	}
	if !unnumbered {
		for _, of := range numbers {
			if !(len(of) == 1 && of[number]) && !areParts(of) {
				return true, nil
			}
		}
	}
	return holdsOtherSteps(d, d.Name, d.Entries, number, d.Depth)
}

// mayBeOne reports whether a file is named as single files are that are checkpoints, and few others.
func mayBeOne(base string) bool {
	if strings.HasPrefix(base, format.HiddenPrefix) {
		return false
	}
	if tfFile.MatchString(base) {
		return true
	}
	for _, f := range having[onefile.Format]() {
		if is, certain := f.Named(base); is && (certain || !slices.Contains([]string{".txt", ".json", ".h5"}, path.Ext(base))) {
			return true
		}
	}
	return false
}

// areParts reports whether numbers count parts: from 0 or 1 on, and none is left out.
func areParts(numbers map[int64]bool) bool {
	count := func(from int64) bool {
		for n := range int64(len(numbers)) {
			if !numbers[from+n] {
				return false
			}
		}
		return true
	}
	return count(0) || count(1)
}

// holdsOtherSteps reports whether a word in a name below a directory says that something is of another
// step than number.
func holdsOtherSteps(d *format.Dir, dir string, entries []store.Info, number int64, depth int) (bool, error) {
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name, format.HiddenPrefix) || format.IsDiscarded(e.Name) || format.IsPartsDir(e.Name) {
			continue
		}
		n, word := format.OwnStep(e.Name)
		if word && n != number && (format.IsStepDir(e.Name) || path.Ext(e.Name) == ".ckpt") {
			return true, nil
		}
		if depth >= format.MaxDepth {
			continue
		}
		below, err := d.List(path.Join(dir, e.Name))
		if err != nil && !store.Vanished(err) {
			return false, err
		}
		for _, f := range below {
			if n, word := format.OwnStep(f.Name); f.Mode.IsRegular() && mayBeOne(f.Name) && word && n != number {
				return true, nil
			}
		}
		if holds, err := holdsOtherSteps(d, path.Join(dir, e.Name), below, number, depth+1); holds || err != nil {
			return holds, err
		}
	}
	return false, nil
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
		ext, _ := pytorch.SuffixOf(e.Name)
		bare := strings.TrimSuffix(e.Name, ext)
		switch {
		case pytorch.IndexOfTensors(e.Name) != "":
			// its index says what belongs together
		case tfFile.MatchString(e.Name):
			return nil // TensorFlow's are known by their prefix
		case ext == "":
			others = append(others, e)
		case ext == pytorch.SafetensorsSuffix || format.StepAtEnd(bare) == format.NoStep || format.IsPartOfMore(bare):
			parts = append(parts, e)
		}
	}
	if len(parts) == 0 || len(others) == 0 {
		return nil
	}
	return append(parts, others...)
}
