package pytorch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/format/look"
	"holdfast/hdfsckpt/limit"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/torchfile"
)

// Distributed is a directory that torch.distributed.checkpoint wrote: *.distcp, and
// .metadata, which is written last.
const Distributed format.Kind = "dcp"

// DistributedFormat is the format of kind Distributed.
type DistributedFormat struct{}

var _ interface {
	format.Contents
	format.Reviewer
} = DistributedFormat{}

func (DistributedFormat) Traits() format.Traits {
	return format.Traits{
		Kind: Distributed, Last: []string{torchfile.MetadataFile},
		CompleteWhen: ".metadata can be read, and every file that it names is there with its length",
	}
}

// dcpSuffix is that of the data files.
const dcpSuffix = ".distcp"

func isOfDistributed(base string) bool {
	return base == torchfile.MetadataFile || path.Ext(base) == dcpSuffix
}

// isShard reports whether a file has values, by its name relative to the checkpoint.
func isShard(name string) bool { return path.Dir(name) == "." && path.Ext(name) == dcpSuffix }

// Owners returns the directory, and those named after a step in which that lies.
func (DistributedFormat) Owners(file string) []format.Owner {
	dir, base := path.Dir(file), path.Base(file)
	if !isOfDistributed(base) || dir == "." || format.IsHidden(file) || format.IsPartsDir(path.Base(dir)) {
		return nil
	}
	all := []format.Owner{format.SavedInPlace(dir)}
	for _, outer := range format.StepDirsOf(path.Dir(file)) {
		all = append(all, format.SavedInPlace(outer))
	}
	return all
}

func (DistributedFormat) Claim(_ context.Context, d *format.Dir) ([]format.Claim, error) {
	if !slices.ContainsFunc(d.Entries, func(e store.Info) bool { return !e.IsDir() && isOfDistributed(e.Name) }) {
		return nil, nil
	}
	return []format.Claim{{Whole: true, Inside: hasDirectories(d.Name), Check: func(ctx context.Context) (*format.Checkpoint, error) { return checkDistributed(ctx, d) }}}, nil
}

// hasDirectories reports whether what is in directories of a checkpoint belongs to it.
func hasDirectories(name string) bool {
	return format.IsStepDir(path.Base(name)) || path.Ext(name) == ".ckpt"
}

func checkDistributed(ctx context.Context, d *format.Dir) (*format.Checkpoint, error) {
	c := &format.Checkpoint{Name: d.Name, Kind: Distributed, Step: distributedStep(path.Base(d.Name)), State: format.Torn}
	entries := d.Entries
	if !hasDirectories(d.Name) { // it may be a run's, with all that this has
		entries = slices.DeleteFunc(slices.Clone(entries), store.Info.IsDir)
	}
	if err := c.AddEntries(ctx, d.Store, d.Name, entries); err != nil {
		return nil, err
	}
	c.Shards = 0
	sizes := map[string]int64{}
	for _, f := range c.Files {
		name := strings.TrimPrefix(f.Name, d.Name+"/")
		sizes[name] = f.Size
		if isShard(name) {
			c.Shards++
		}
	}
	c.Certain = c.Shards > 0
	if _, committed := sizes[torchfile.MetadataFile]; !committed {
		c.Why = fmt.Sprintf("it has no file %s: the save did not get that far", torchfile.MetadataFile)
		return c, nil
	}
	if c.TooDeep() != "" {
		c.State, c.Why = format.Unchecked, c.TooDeep()
		return c, nil
	}
	c.Marker = path.Join(d.Name, torchfile.MetadataFile)
	m, err := readMetadata(ctx, d.Store, d.Name)
	switch {
	case look.IsDamaged(err):
		c.Why = err.Error()
	case err != nil:
		return c, err
	default:
		need := m.Sizes()
		if c.Why = look.Lacking(need, sizes); c.Why == "" {
			c.State = format.Complete
			leaveOut(c, need)
		}
	}
	return c, nil
}

// lightningMeta is the file that Lightning's FSDP strategy writes after the rest of a directory
// NAME.ckpt, and needs to restore it (lightning/pytorch/strategies/fsdp.py).
const lightningMeta = "meta.pt"

// Review has a directory NAME.ckpt without Lightning's last file count as torn where one beside it
// has that.
func (DistributedFormat) Review(_ format.Rule, found []format.Checkpoint) {
	ofLightning := func(c *format.Checkpoint) bool { return c.Kind == Distributed && path.Ext(c.Name) == ".ckpt" }
	has := map[string]bool{}
	for i := range found {
		if c := &found[i]; ofLightning(c) && c.Holds(lightningMeta) {
			has[path.Dir(c.Name)] = true
		}
	}
	for i := range found {
		if c := &found[i]; ofLightning(c) && c.Whole() && has[path.Dir(c.Name)] && !c.Holds(lightningMeta) {
			c.Why, c.Certain = "it has no file "+lightningMeta+", as others beside it have: the save did not get that far", true
			c.MarkTorn()
		}
	}
}

// leaveOut leaves out data files that the metadata does not name: a save by fewer ranks
// does not replace all files of the one that it saves over.
func leaveOut(c *format.Checkpoint, named map[string]int64) {
	c.Files = slices.DeleteFunc(c.Files, func(f format.File) bool {
		name := strings.TrimPrefix(f.Name, c.Name+"/")
		if _, ok := named[name]; ok || !isShard(name) {
			return false
		}
		c.Extra = append(c.Extra, f)
		c.Shards--
		return true
	})
}

// distributedStep is the step in a directory's name, as far as that is sure: other numbers
// at the end, as in pytorch_model_fsdp_0, count models.
func distributedStep(base string) int64 {
	if name, lightning := strings.CutSuffix(base, ".ckpt"); lightning || format.IsStepDir(base) {
		return format.StepAtEnd(name)
	}
	return format.StepAfterDash(base)
}

// readMetadata reads .metadata, as look.File does.
func readMetadata(ctx context.Context, s store.Store, dir string) (m *torchfile.Metadata, err error) {
	err = look.File(ctx, s, path.Join(dir, torchfile.MetadataFile), torchfile.MemoryOfMetadata, func(r io.ReaderAt, size int64) error {
		b := make([]byte, size)
		if n, err := r.ReadAt(b, 0); n < len(b) {
			return fmt.Errorf("it ends at byte %d: %w", n, err)
		}
		m, err = torchfile.ParseMetadata(b)
		return err
	})
	return m, err
}

func (DistributedFormat) Tensors(o *format.Opener, c *format.Checkpoint) ([]*format.Tensor, error) {
	if err := o.AdmitFile(path.Join(c.Name, torchfile.MetadataFile)); err != nil {
		return nil, err
	}
	m, err := readMetadata(o.Context(), o.Store(), c.Name)
	if err != nil {
		return nil, err
	}
	var all []*format.Tensor
	for i := range m.Items {
		x := &m.Items[i]
		if !x.Tensor {
			continue
		}
		t := &format.Tensor{
			Name: x.Name, Kind: x.Kind, Shape: x.Shape, Bytes: x.Bytes(), Pieces: len(x.Chunks),
			Source: format.Source{
				Read:  func() ([]byte, error) { return x.Read(o.Below(c.Name)) },
				Rows:  func(limit int64) (io.Reader, error) { return x.Rows(o.Below(c.Name), limit), nil },
				Parts: func(limit int64) (io.Reader, error) { return x.Parts(o.Below(c.Name), limit), nil },
				Held:  2 * x.Bytes(),
			},
		}
		if len(x.Chunks) == 1 {
			t.File = path.Join(c.Name, x.Chunks[0].File)
		}
		all = append(all, t)
	}
	return all, nil
}

// Parts are the records of the archives in the data files.
func (DistributedFormat) Parts(ctx context.Context, s store.Store, c *format.Checkpoint) (parts []format.Part, problems []format.Problem, err error) {
	m, err := readMetadata(ctx, s, c.Name)
	if look.IsDamaged(err) || limit.IsExceeded(err) || errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil // the checkpoint's state says so
	}
	if err != nil {
		return nil, nil, err
	}
	for _, item := range m.Items {
		for _, k := range item.Chunks {
			if k.Transformed {
				continue // the manifest's checksum is all there is
			}
			more, wrong, err := archiveParts(ctx, s, path.Join(c.Name, k.File), k.Offset, k.Length, item.Name)
			if err != nil {
				return nil, nil, err
			}
			parts, problems = append(parts, more...), append(problems, wrong...)
		}
	}
	return parts, problems, nil
}
