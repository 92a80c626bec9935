package formats

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/format/look"
	"holdfast/hdfsckpt/limit"
	"holdfast/hdfsckpt/ocdbt"
	"holdfast/hdfsckpt/orbaxfile"
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
	committed := metadata.Committed > 0 || c.Holds(orbaxCommit)
	switch missing := missingItem(c, metadata.Items); {
	case missing != "":
		c.Why = "there is nothing of its item " + missing
	case !committed:
		c.Why = orbaxMetadata + " does not say that it was committed"
	default:
		c.State = format.Complete
		if c.Why, err = lackingOrbax(ctx, s, c); c.Why != "" {
			c.State, c.Certain = format.Torn, c.Step != format.NoStep
		}
	}
	return err
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

// orbaxFiles are the files of a checkpoint as the reader of their arrays wants them.
func orbaxFiles(o *format.Opener, c *format.Checkpoint) *orbaxfile.Files {
	f := &orbaxfile.Files{
		Sizes: map[string]int64{},
		Open:  func(name string) (ocdbt.File, error) { return o.Open(path.Join(c.Name, name)) },
		ReadAt: func(name string, b []byte, offset int64) (int, error) {
			r, err := o.Store().Open(o.Context(), path.Join(c.Name, name))
			if err != nil {
				return 0, err
			}
			defer r.Close()
			return r.ReadAt(b, offset)
		},
		Admit: func(name string, bytes int64) error { return o.Admit(path.Join(c.Name, name), bytes) },
	}
	for _, x := range c.Files {
		f.Sizes[strings.TrimPrefix(x.Name, c.Name+"/")] = x.Size
	}
	return f
}

// lackingOrbax returns what is wrong with the stores of keys of a checkpoint: a file that they name
// is missing or too short, or an index is damaged. Empty if nothing is, or if that cannot be seen.
func lackingOrbax(ctx context.Context, s store.Store, c *format.Checkpoint) (string, error) {
	o := format.NewOpener(ctx, s, math.MaxInt64)
	defer o.Close()
	f := orbaxFiles(o, c)
	need, err := f.Needed(func(manifest string, bytes int64, do func() error) error {
		return look.Taking(ctx, path.Join(c.Name, manifest), f.Sizes[manifest], bytes, do)
	})
	switch {
	case orbaxfile.IsDamaged(err):
		return err.Error(), nil
	case err != nil:
		return "", err
	}
	return look.Lacking(need, f.Sizes), nil
}

// Tensors are the arrays, by the keys that lead to them, with the item before unless a program
// names none.
func (orbax) Tensors(o *format.Opener, c *format.Checkpoint) ([]*format.Tensor, error) {
	items, err := orbaxFiles(o, c).Items()
	if err != nil {
		return nil, err
	}
	var all []*format.Tensor
	for _, item := range items {
		arrays, err := item.Arrays()
		if err != nil {
			return nil, err
		}
		for _, a := range arrays {
			t := &format.Tensor{
				Name: cmp.Or(a.Name, path.Base(c.Name)), Kind: a.Kind, Shape: a.Shape, Bytes: a.Bytes(), Pieces: int(max(1, min(a.Stored(), 1<<31-1))),
				Source: format.Source{Read: a.Read, Rows: a.Rows, Parts: a.Parts},
			}
			if t.Pieces <= 1 {
				t.File = path.Join(c.Name, a.File())
			}
			all = append(all, t)
		}
	}
	return all, nil
}

// Parts are the indexes of stores. Values have no checksums: of these it is looked whether they
// are there.
func (orbax) Parts(ctx context.Context, s store.Store, c *format.Checkpoint) (parts []format.Part, problems []format.Problem, err error) {
	o := format.NewOpener(ctx, s, math.MaxInt64)
	defer o.Close()
	f := orbaxFiles(o, c)
	f.Frame = func(name string, offset, length int64) {
		parts = append(parts, format.Part{
			File: path.Join(c.Name, name), Offset: offset, Size: length,
			Check: func() format.Checker { return &ocdbt.Sum{} },
		})
	}
	items, err := f.Items()
	switch {
	case err == nil:
	case orbaxfile.IsDamaged(err):
		if c.Whole() { // else the state says it
			problems = append(problems, format.Problem{File: c.Name, Offset: -1, Text: err.Error()})
		}
		return parts, problems, nil
	case ocdbt.IsUnknown(err) || limit.IsExceeded(err):
		return parts, nil, nil // what cannot be read says nothing
	default:
		return nil, nil, err
	}
	for _, item := range items {
		all := false
		if tree := path.Join(item.Dir, orbaxfile.Tree); f.Sizes[tree] > 0 {
			if all, err = storesAll(ctx, s, path.Join(c.Name, tree)); err != nil {
				return nil, nil, err
			}
		}
		arrays, err := item.Arrays()
		if err != nil {
			problems = append(problems, format.Problem{File: path.Join(c.Name, item.Dir), Offset: -1, Text: err.Error()})
		}
		for _, a := range arrays {
			if file, offset, text := a.Problem(all); text != "" {
				problems = append(problems, format.Problem{File: path.Join(c.Name, file), Tensor: a.Name, Offset: offset, Text: text})
			}
		}
	}
	return parts, problems, nil
}

// storesAll reports whether values that equal a fill value are stored of an item, too, by its
// file orbaxfile.Tree. What cannot be read of that says nothing.
func storesAll(ctx context.Context, s store.Store, name string) (bool, error) {
	var tree struct {
		StoresAll bool `json:"store_array_data_equal_to_fill_value"`
	}
	err := look.JSON(ctx, s, name, &tree)
	if look.IsDamaged(err) || limit.IsExceeded(err) {
		err = nil
	}
	return tree.StoresAll, err
}
