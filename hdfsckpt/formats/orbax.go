package formats

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/format/look"
	"holdfast/hdfsckpt/limit"
	"holdfast/hdfsckpt/store"
)

// Orbax is a directory that Orbax wrote, with all that is in it. It is written under the
// name NAME.orbax-checkpoint-tmp and renamed at the end; where that is not one step, it
// is marked by a file commit_success.txt (orbax/checkpoint/_src/path/atomicity.py).
const Orbax format.Kind = "orbax"

type orbax struct{}

var _ format.Contents = orbax{}

const (
	// orbaxMetadata is there from the beginning of a save; its end is entered before the
	// directory is renamed.
	orbaxMetadata = "_CHECKPOINT_METADATA"
	orbaxCommit   = "commit_success.txt"
	// orbaxTmp follows the name of a directory whose save has not ended.
	orbaxTmp = ".orbax-checkpoint-tmp"
)

func (orbax) Traits() format.Traits {
	return format.Traits{
		Kind: Orbax, Last: []string{orbaxMetadata, orbaxCommit},
		CompleteWhen: "the directory has its name, and " + orbaxMetadata + " says when it was committed; and of arrays in stores of keys all files are there that these name, with their lengths",
		Summed:       "the indexes of stores",
	}
}

// Owners returns none: of the files below a directory none shows that it is Orbax's. One
// that is named after a step is known by that (directory.Owners).
func (orbax) Owners(string) []format.Owner { return nil }

func (orbax) Claim(_ context.Context, d *format.Dir) ([]format.Claim, error) {
	name, _, unfinished := strings.Cut(path.Base(d.Name), orbaxTmp)
	if !unfinished && !slices.ContainsFunc(d.Entries, func(e store.Info) bool { return e.Name == orbaxMetadata && e.Mode.IsRegular() }) || d.Name == "." {
		return nil, nil
	}
	return []format.Claim{{Whole: true, Check: func(ctx context.Context) (*format.Checkpoint, error) {
		c := &format.Checkpoint{Name: d.Name, Kind: Orbax, Step: format.NoStep, State: format.Unchecked}
		if format.IsStepDir(name) {
			c.Step = format.StepAtEnd(name)
		}
		err := c.AddEntries(ctx, d.Store, d.Name, d.Entries)
		switch {
		case err != nil || len(c.Files) == 0:
			return nil, err
		case unfinished:
			c.State, c.Why, c.Certain = format.Torn, "its name is that of a save that has not ended", c.Step != format.NoStep
		default:
			err = checkOrbax(ctx, d.Store, c)
		}
		c.Certain = c.Certain || d.Part && c.State == format.Torn
		return c, err
	}}}, nil
}

// checkOrbax judges a directory that has its final name.
func checkOrbax(ctx context.Context, s store.Store, c *format.Checkpoint) error {
	c.Marker = path.Join(c.Name, orbaxMetadata)
	if c.TooDeep() != "" {
		c.Why = c.TooDeep()
		return nil
	}
	var metadata struct {
		Items     json.RawMessage `json:"item_handlers"`
		Committed int64           `json:"commit_timestamp_nsecs"`
	}
	err := look.JSON(ctx, s, c.Marker, &metadata)
	switch {
	case look.IsDamaged(err):
		c.Why = orbaxMetadata + " is not readable: " + err.Error()
		return nil
	case limit.IsExceeded(err), errors.Is(err, fs.ErrPermission):
		c.Why = err.Error()
		return nil
	case err != nil:
		return err
	}
	committed := metadata.Committed > 0 || holds(c, orbaxCommit)
	switch missing := missingItem(c, metadata.Items); {
	case missing != "":
		c.Why = "there is nothing of its item " + missing
	case !committed:
		c.Why = orbaxMetadata + " does not say that it was committed"
	default:
		c.State = format.Complete
		if c.Why, err = newOrbaxFiles(ctx, s, c).lacking(); c.Why != "" {
			c.State, c.Certain = format.Torn, c.Step != format.NoStep
		}
	}
	return err
}

// holds reports whether a file is in the checkpoint's directory.
func holds(c *format.Checkpoint, name string) bool {
	return slices.ContainsFunc(c.Files, func(f format.File) bool { return f.Name == path.Join(c.Name, name) })
}

// missingItem returns an item that the metadata names and that has no file; empty if there
// is none such. A checkpoint of one object names no items.
func missingItem(c *format.Checkpoint, items json.RawMessage) string {
	var names map[string]json.RawMessage
	if json.Unmarshal(items, &names) != nil {
		return ""
	}
	for _, f := range c.Files {
		item, _, _ := strings.Cut(strings.TrimPrefix(f.Name, c.Name+"/"), "/")
		delete(names, item)
	}
	if missing := slices.Sorted(maps.Keys(names)); len(missing) > 0 {
		return missing[0]
	}
	return ""
}
