package pytorch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/format/look"
	"holdfast/hdfsckpt/format/onefile"
	"holdfast/hdfsckpt/safetensors"
	"holdfast/hdfsckpt/store"
)

// Safetensors is a file of tensors whose header says how long it is; or such an index of
// several (NAME.safetensors.index.json) with the files that it names, in the directory of
// both.
const Safetensors format.Kind = "safetensors"

// SafetensorsFormat is the format of kind Safetensors.
type SafetensorsFormat struct{}

var _ interface {
	format.Contents
	onefile.Format
} = SafetensorsFormat{}

func (SafetensorsFormat) Traits() format.Traits {
	return format.Traits{
		Kind:         Safetensors,
		Last:         []string{"*" + SafetensorsSuffix, "*" + safetensorsIndex},
		CompleteWhen: "the file has the length that its header says; with an index, all files that it names have",
		MayGrow:      true, AloneInStepDir: true, Summed: format.NotSummed,
	}
}

const (
	// SafetensorsSuffix is that of files of tensors with a header that says how long they
	// are.
	SafetensorsSuffix = ".safetensors"
	safetensorsIndex  = SafetensorsSuffix + ".index.json"
)

// safetensorsShard matches the name of a shard, one of the files that an index names.
var safetensorsShard = regexp.MustCompile(`^(.+)-\d{5,}-of-\d{5,}\.safetensors$`)

// IndexOfTensors returns the index to which a file belongs by its name, or which it is;
// empty if it stands for itself.
func IndexOfTensors(base string) string {
	if strings.HasSuffix(base, safetensorsIndex) {
		return base
	}
	if m := safetensorsShard.FindStringSubmatch(base); m != nil {
		return m[1] + safetensorsIndex
	}
	return ""
}

func (SafetensorsFormat) Owners(file string) []format.Owner {
	dir, base := path.Split(file)
	index := IndexOfTensors(base)
	if !onefile.StandsAlone(file) || strings.HasPrefix(base, format.HiddenPrefix) || index == "" && path.Ext(base) != SafetensorsSuffix {
		return nil
	}
	name := file
	if index != "" {
		name = path.Join(dir, index)
	}
	return []format.Owner{format.SavedInPlace(name)}
}

func (SafetensorsFormat) Claim(_ context.Context, d *format.Dir) ([]format.Claim, error) {
	var claims []format.Claim
	sharded := map[string][]store.Info{} // by the name of the index
	for _, e := range d.Entries {
		if !e.Mode.IsRegular() || strings.HasPrefix(e.Name, format.HiddenPrefix) {
			continue
		}
		switch index := IndexOfTensors(e.Name); {
		case index != "":
			sharded[index] = append(sharded[index], e)
		case path.Ext(e.Name) == SafetensorsSuffix:
			claims = append(claims, format.Claim{Take: []string{e.Name}, Check: func(ctx context.Context) (*format.Checkpoint, error) {
				return SafetensorsFormat{}.Check(ctx, d.Store, format.FileOf(d.Name, e))
			}})
		}
	}
	for _, index := range slices.Sorted(maps.Keys(sharded)) {
		claim := format.Claim{Check: func(ctx context.Context) (*format.Checkpoint, error) {
			return checkSharded(ctx, d, index, sharded[index])
		}}
		for _, e := range sharded[index] {
			claim.Take = append(claim.Take, e.Name)
		}
		claims = append(claims, claim)
	}
	return claims, nil
}

// safetensorsStep is the step in a file's name, or of the directory that it is alone in.
func safetensorsStep(name string) int64 {
	return format.FileStep(strings.TrimSuffix(name, ".index.json"), SafetensorsSuffix)
}

func (SafetensorsFormat) Named(base string) (is, certain bool) {
	return path.Ext(base) == SafetensorsSuffix, true
}

func (SafetensorsFormat) Check(ctx context.Context, s store.Store, f format.File) (*format.Checkpoint, error) {
	c := &format.Checkpoint{Name: f.Name, Kind: Safetensors, Step: safetensorsStep(f.Name), Files: []format.File{f}, Shards: 1, State: format.Complete}
	err := checkHeader(ctx, s, f.Name)
	switch {
	case errors.Is(err, fs.ErrPermission): // somebody else's file keeps nobody from the others
		c.State, c.Why = format.Unchecked, err.Error()
	case look.IsDamaged(err):
		c.State, c.Why = format.Unchecked, err.Error()
		if safetensors.IsCut(err) {
			c.State, c.Certain = format.Torn, f.Size > 0 || c.Step != format.NoStep
		}
	case err != nil:
		return c, err
	}
	return c, nil
}

// checkSharded judges an index with the files that are there of those it names.
func checkSharded(ctx context.Context, d *format.Dir, index string, entries []store.Info) (*format.Checkpoint, error) {
	c := &format.Checkpoint{Name: path.Join(d.Name, index), Kind: Safetensors, State: format.Unchecked,
		Why: "it has no file " + index + ", which names all of its files"}
	c.Step = safetensorsStep(c.Name)
	sizes := map[string]int64{}
	for _, e := range entries {
		c.Files = append(c.Files, format.FileOf(d.Name, e))
		sizes[e.Name] = e.Size
	}
	c.Shards = len(entries)
	if _, ok := sizes[index]; !ok {
		return c, nil
	}
	c.Shards--
	c.Marker = c.Name
	need := map[string]int64{}
	switch err := shardsOf(ctx, d.Store, c.Name, need); {
	case look.IsDamaged(err) || errors.Is(err, fs.ErrPermission):
		c.Why = err.Error()
		return c, nil
	case err != nil:
		return c, err
	}
	for _, name := range slices.Sorted(maps.Keys(need)) {
		if _, own := sizes[name]; !own && IndexOfTensors(name) != index {
			c.Why = fmt.Sprintf("%s names %s, which is not called like one of its files", index, name)
			return c, nil
		}
	}
	counted := c.Step != format.NoStep || d.Part // what has none may be a model that is being put there
	if c.Why = look.Lacking(need, sizes); c.Why != "" {
		if counted {
			c.State, c.Certain = format.Torn, true
		}
		return c, nil
	}
	for _, name := range slices.Sorted(maps.Keys(need)) {
		err := checkHeader(ctx, d.Store, path.Join(d.Name, name))
		if err == nil {
			continue
		}
		if !look.IsDamaged(err) && !errors.Is(err, fs.ErrPermission) {
			return c, err
		}
		c.Why = name + ": " + err.Error()
		if safetensors.IsCut(err) {
			c.State, c.Certain = format.Torn, counted
		}
		return c, nil
	}
	c.State = format.Complete
	return c, nil
}

// checkHeader reads the header of a file, as look.File does.
func checkHeader(ctx context.Context, s store.Store, name string) error {
	return look.File(ctx, s, name, safetensors.Memory, func(r io.ReaderAt, size int64) error {
		_, err := safetensors.Open(r, size)
		return err
	})
}

func (SafetensorsFormat) Tensors(o *format.Opener, c *format.Checkpoint) ([]*format.Tensor, error) {
	var all []*format.Tensor
	for _, f := range c.Files {
		if path.Ext(f.Name) != SafetensorsSuffix {
			continue // the index
		}
		tensors, err := safetensorsOf(o, f.Name)
		if err != nil {
			return nil, err
		}
		all = append(all, tensors...)
	}
	return all, nil
}

// safetensorsOf finds the tensors of one file.
func safetensorsOf(o *format.Opener, file string) ([]*format.Tensor, error) {
	r, err := o.Open(file)
	if err != nil {
		return nil, err
	}
	header, err := safetensors.HeaderSize(r, r.Size())
	if err == nil {
		err = o.Admit(file, header)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var tensors []safetensors.Tensor
	err = look.Opened(o.Context(), r, file, safetensors.Memory, func(r io.ReaderAt, size int64) (err error) {
		tensors, err = safetensors.Open(r, size)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var all []*format.Tensor
	for _, x := range tensors {
		t := &format.Tensor{Name: x.Name, Kind: x.Kind, Shape: x.Shape, Bytes: x.Size, File: file, Pieces: 1}
		if x.Kind.Size() > 0 {
			t.Source.Read = func() ([]byte, error) {
				b := make([]byte, x.Size)
				n, err := r.ReadAt(b, x.Offset)
				if n == len(b) {
					err = nil
				}
				return b, err
			}
			t.Source.Rows = func(int64) (io.Reader, error) { return io.NewSectionReader(r, x.Offset, x.Size), nil }
			t.Source.Parts = t.Source.Rows
		}
		all = append(all, t)
	}
	return all, nil
}

// Parts are none: the files have no checksums.
func (SafetensorsFormat) Parts(context.Context, store.Store, *format.Checkpoint) ([]format.Part, []format.Problem, error) {
	return nil, nil, nil
}
