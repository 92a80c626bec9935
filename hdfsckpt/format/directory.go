package hdfsckpt

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"

	"holdfast/hdfsckpt/store"
)

// Directory is a directory of several files of which some are of a known
// format, but nothing tells whether all of them are there: a program's own
// checkpoint-500 with model.pt and optimizer.pt. It is listed as one, and
// nothing removes it by itself.
const Directory Kind = "directory"

// safetensorsSuffix is that of files of tensors with a header that says how
// long they are.
const safetensorsSuffix = ".safetensors"

var (
	// partOfMore is the name, without its suffix, of a file that is one of
	// several of a save: a shard, or what one rank has written.
	partOfMore = regexp.MustCompile(`-of-\d+$|(^|[-_.])(rng_state|random_states?|rank|shard|part)[-_]?\d+`)
	// neverAlone are files that programs put beside a model and that are no
	// checkpoint by themselves.
	neverAlone = map[string]bool{"training_args.bin": true}
	// besideModel are such files, if they are in a directory that is called after a step.
	besideModel = regexp.MustCompile(`^(training_args\.bin|optimizer\.(pt|pth|bin)|scheduler\.(pt|pth|bin)|scaler\.pt|rng_state(_\d+)?\.pth)$`)
)

// belongs are the files of a directory that are parts of one checkpoint
// together, none of which is one by itself; nil if there are none such. In a
// directory that is called after a step these are all, unless there is a single
// one that may be a model; elsewhere those without a step of their own, beside files that are no
// checkpoints.
func belongs(dir string, entries []store.Info) []store.Info {
	var known, parts, others []store.Info
	for _, e := range entries {
		if !e.Mode.IsRegular() || strings.HasPrefix(e.Name, hiddenPrefix) {
			continue
		}
		ext := path.Ext(e.Name)
		bare := strings.TrimSuffix(e.Name, ext)
		_, torch := torchSuffixes[ext]
		switch {
		case tfFile.MatchString(e.Name):
			return nil // TensorFlow's are known by their prefix
		case !torch && ext != safetensorsSuffix:
			others = append(others, e)
		case torch && numberAtEnd(bare) != NoStep && !partOfMore.MatchString(bare):
			known = append(known, e)
		default:
			known = append(known, e)
			parts = append(parts, e)
		}
	}
	switch {
	case dir == ".":
		return nil
	case stepDir.MatchString(path.Base(dir)):
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

// unit lists a directory whose files belong together. One that is called after a
// step is a checkpoint with all that is below it.
func (l *lister) unit(dir string, files []store.Info) error {
	c := Checkpoint{Name: dir, Kind: Directory, Step: NoStep, State: Unchecked,
		Why: "nothing tells whether all of its files are there; the spec can say which is written last: format=plain,marker=FILE"}
	if stepDir.MatchString(path.Base(dir)) {
		c.Step = numberAtEnd(path.Base(dir))
		if err := l.below(dir, 0, &c); err != nil {
			return err
		}
	} else {
		for _, f := range files {
			c.Files = append(c.Files, fileOf(dir, f))
			c.Shards++
		}
	}
	if len(c.Files) > 0 {
		l.add(c)
	}
	return nil
}

// below collects all files of a directory. What lies too deep makes it one that
// cannot be checked.
func (l *lister) below(dir string, depth int, c *Checkpoint) error {
	entries, err := l.s.List(l.ctx, dir)
	if vanished(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return l.belowEntries(dir, entries, depth, c)
}

func (l *lister) belowEntries(dir string, entries []store.Info, depth int, c *Checkpoint) error {
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
			c.tooDeep = path.Join(dir, e.Name)
		}
	}
	return nil
}

// NotUnderstood tells what is in a store that holds no checkpoint that is known:
// how many files and directories its root has, and the names of some.
func NotUnderstood(ctx context.Context, s store.Store) (names []string, n int, err error) {
	entries, err := s.List(ctx, ".")
	if err != nil {
		return nil, 0, err
	}
	const most = 5
	for _, e := range entries {
		if strings.HasPrefix(e.Name, hiddenPrefix) {
			continue
		}
		if n++; n <= most {
			name := e.Name
			if e.IsDir() {
				name += "/"
			}
			names = append(names, name)
		}
	}
	return names, n, nil
}

// tooDeepToTell is why a checkpoint is unchecked of which not all was looked at.
func tooDeepToTell(name string) string {
	return fmt.Sprintf("%s lies too deep to be looked at", name)
}
