// Package pytorch has the formats of PyTorch and of what is built on it: files of torch.save and of
// safetensors, torch.distributed.checkpoint, and what Lightning, DeepSpeed and Hugging Face's
// Trainer make of these. Package formats puts them in order with the others.
package pytorch

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/format/look"
	"holdfast/hdfsckpt/format/onefile"
	"holdfast/hdfsckpt/limit"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/torchfile"
)

// Torch is a file of torch.save.
const Torch format.Kind = "torch"

// TorchFormat is the format of kind Torch.
type TorchFormat struct{}

var _ interface {
	format.Contents
	onefile.Format
} = TorchFormat{}

func (TorchFormat) Traits() format.Traits {
	return format.Traits{
		Kind:         Torch,
		Last:         []string{"*.pt", "*.pth", "*.pth.tar", "*.bin", "*.ckpt"},
		CompleteWhen: "the archive's directory, at the file's end, can be read",
		MayGrow:      true, AloneInStepDir: true, Steady: true, RankFile: localShard.MatchString,
	}
}

// localShard is what each rank writes of a model whose FSDP saves local states
// (save_fsdp_model of accelerate/utils/fsdp_utils.py).
var localShard = regexp.MustCompile(`^pytorch_model_fsdp(_\d+)?_rank\d+\.bin$`)

// torchSuffixes are the suffixes of files of torch.save. Where it is false, other files have
// the suffix too, and a file counts only if it begins as those of torch.save do.
var torchSuffixes = map[string]bool{".pt": true, ".pth": true, ".pth.tar": true, ".bin": false, ".ckpt": false}

// suffixOf returns the suffix of a name: of checkpoint.pth.tar, which programs call files
// of torch.save though they are no tar archives, all of it.
func suffixOf(base string) string {
	const tar = ".pth.tar"
	if strings.HasSuffix(base, tar) {
		return tar
	}
	return path.Ext(base)
}

// SuffixOf returns the suffix of a file of torch.save or of safetensors by its name; empty if it is
// named otherwise. certain: no other files have it.
func SuffixOf(base string) (suffix string, certain bool) {
	suffix = suffixOf(base)
	if suffix == SafetensorsSuffix {
		return suffix, true
	}
	certain, torch := torchSuffixes[suffix]
	if !torch {
		return "", false
	}
	return suffix, certain
}

// isTorchName reports whether a file is named as files of torch.save are that can be
// checkpoints by themselves.
func isTorchName(base string) bool {
	_, ok := torchSuffixes[suffixOf(base)]
	return ok && base != trainerArguments
}

func (TorchFormat) Owners(file string) []format.Owner {
	return onefile.Owners(file, isTorchName)
}

func (TorchFormat) Claim(_ context.Context, d *format.Dir) ([]format.Claim, error) {
	claims := onefile.Claim(d, isTorchName, TorchFormat{}.Check)
	if !d.Part {
		return claims, nil
	}
	sizes := map[string]int64{}
	for _, e := range d.Entries {
		sizes[e.Name] = e.Size
		if e.Mode.IsRegular() && strings.HasSuffix(e.Name, torchIndex) {
			index := format.FileOf(d.Name, e)
			claims = append(claims, format.Claim{Check: func(ctx context.Context) (*format.Checkpoint, error) {
				return checkTorchIndex(ctx, d.Store, index, sizes)
			}})
		}
	}
	return claims, nil
}

// torchIndex names the shards of a model that was cut, of which each is a file of torch.save. Only
// among the parts of a checkpoint it is known that they should be there.
const torchIndex = ".bin.index.json"

// checkTorchIndex returns what is torn as files are missing that an index names; nil if none are, or if it
// cannot be read. sizes has the lengths of the files beside it.
func checkTorchIndex(ctx context.Context, s store.Store, index format.File, sizes map[string]int64) (*format.Checkpoint, error) {
	c := &format.Checkpoint{Name: index.Name, Kind: Torch, Step: format.NoStep, Files: []format.File{index}, State: format.Torn, Certain: true}
	need := map[string]int64{}
	if err := shardsOf(ctx, s, c.Name, need); look.IsDamaged(err) || errors.Is(err, fs.ErrPermission) {
		return nil, nil
	} else if err != nil {
		return c, err
	}
	if c.Why = look.Lacking(need, sizes); c.Why == "" {
		return nil, nil
	}
	return c, nil
}

func (TorchFormat) Named(base string) (is, certain bool) {
	_, is = torchSuffixes[suffixOf(base)]
	return is, true
}

func (TorchFormat) Check(ctx context.Context, s store.Store, f format.File) (*format.Checkpoint, error) {
	sure := torchSuffixes[suffixOf(f.Name)]
	c := &format.Checkpoint{Name: f.Name, Kind: Torch, Step: format.FileStep(f.Name, suffixOf(f.Name)), Files: []format.File{f}, Shards: 1, State: format.Torn}
	a, err := openTorch(ctx, s, f.Name)
	switch {
	case errors.Is(err, fs.ErrPermission): // somebody else's file keeps nobody from the others
		if !sure {
			return nil, nil
		}
		c.State, c.Why, err = format.Unchecked, err.Error(), nil
	case err != nil:
		return c, err
	case a.damage != nil:
		c.Why, c.Certain = a.damage.Error(), sure || a.pickled && suffixOf(f.Name) == ".ckpt"
	case a.archive:
		c.State = format.Complete
		if c.Step == format.NoStep && suffixOf(f.Name) == ".ckpt" {
			err = stepInside(ctx, s, c, f.Name)
		}
	case a.legacy:
		c.State, c.Why = format.Unchecked, "it has the format of before PyTorch 1.6, in which a file that was cut off cannot be recognised: it has no checksums"
	case !sure:
		return nil, nil // something else
	case a.empty:
		c.Why, c.Certain = "it is empty", c.Step != format.NoStep
	default:
		c.State, c.Why = format.Unchecked, "it does not begin as torch.save's files do"
	}
	return c, err
}

// torchHead is what can be seen of a file without reading its tensors.
type torchHead struct {
	empty, legacy, archive bool
	pickled                bool  // its first member is the pickle, as torch.save writes it
	damage                 error // of an archive: what is wrong with its directory
}

// torchHeadSize is how much of the beginning of a file is read.
const torchHeadSize = 512

func openTorch(ctx context.Context, s store.Store, name string) (torchHead, error) {
	r, err := s.Open(ctx, name)
	if err != nil {
		return torchHead{}, err
	}
	defer r.Close()
	head := make([]byte, torchHeadSize)
	n, err := r.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return torchHead{}, err
	}
	head = head[:n]
	h := torchHead{empty: n == 0, legacy: torchfile.IsLegacy(head), archive: torchfile.IsZip(head), pickled: torchfile.BeginsWithPickle(head)}
	if !h.archive {
		return h, nil
	}
	err = look.Opened(ctx, r, name, torchfile.MemoryOfArchive, func(r io.ReaderAt, size int64) error {
		_, err := torchfile.OpenArchive(r, size)
		return err
	})
	if look.IsDamaged(err) {
		h.damage, err = err, nil
	}
	return h, err
}

// longestPickle bounds the pickle that is read for a number.
const longestPickle = 4 << 20

// savedNumber returns the integer to which keys lead in what torch.save wrote. ok is false if
// there is none, if the file is not there, or if what is in it cannot be read.
func savedNumber(ctx context.Context, s store.Store, file string, keys ...string) (n int64, ok bool, err error) {
	r, err := s.Open(ctx, file)
	if errors.Is(err, fs.ErrPermission) || store.Vanished(err) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer r.Close()
	w := look.Watch(r)
	memory, err := torchfile.MemoryOfArchive(w, r.Size())
	if err != nil {
		return 0, false, w.Failed()
	}
	// What exceeds a bound is not noted: the checkpoint is judged without the number.
	release, err := limit.Take(ctx, memory)
	if err != nil {
		return 0, false, ctx.Err()
	}
	a, err := torchfile.OpenArchive(w, r.Size())
	release() // nobody waits for more while holding some
	if err != nil {
		return 0, false, w.Failed()
	}
	pickle := a.Find(torchfile.Pickle)
	if pickle == nil || pickle.Size > longestPickle {
		return 0, false, nil
	}
	if release, err = limit.Take(ctx, memory+torchfile.MemoryOfPickle(pickle.Size)); err != nil {
		return 0, false, ctx.Err()
	}
	defer release()
	if n, ok, err = a.Number(longestPickle, keys...); err != nil {
		return 0, false, w.Failed()
	}
	return n, ok, nil
}

func (TorchFormat) Tensors(o *format.Opener, c *format.Checkpoint) ([]*format.Tensor, error) {
	if c.State == format.Unchecked {
		return nil, fmt.Errorf("its tensors cannot be shown: %s", c.Why)
	}
	return torchTensors(o, c.Name, "")
}

// torchTensors finds the tensors of a file of torch.save. prefix is put before their names.
func torchTensors(o *format.Opener, file, prefix string) ([]*format.Tensor, error) {
	r, err := o.Open(file)
	if err != nil {
		return nil, err
	}
	a, err := torchfile.OpenArchive(r, r.Size())
	if err != nil {
		return nil, err
	}
	if pickle := a.Find(torchfile.Pickle); pickle != nil {
		if err := o.Admit(file, pickle.Size); err != nil {
			return nil, err
		}
	}
	f, err := torchfile.Open(r, r.Size())
	if err != nil {
		return nil, err
	}
	var all []*format.Tensor
	for i := range f.Tensors {
		x := &f.Tensors[i]
		name := x.Name
		if name == "" { // the tensor is all there is
			name = path.Base(file)
		}
		rows := func(int64) (io.Reader, error) { return f.Rows(x) }
		all = append(all, &format.Tensor{
			Name: prefix + name, Kind: x.Kind, Shape: x.Shape, Bytes: x.Bytes(), File: file, Pieces: 1,
			Source: format.Source{
				Read: func() ([]byte, error) { return f.Read(x) },
				Rows: rows, Parts: rows, Held: f.Held(x),
			},
		})
	}
	return all, nil
}

// Parts are the records of the archive.
func (TorchFormat) Parts(ctx context.Context, s store.Store, c *format.Checkpoint) ([]format.Part, []format.Problem, error) {
	if c.State == format.Unchecked {
		return nil, nil, nil
	}
	return archiveParts(ctx, s, c.Name, 0, -1, "")
}

// archiveParts finds the records of an archive at offset in a file; length -1 is all of the
// file. The parts are of the tensor with that name; if it is empty, the archive names the
// tensors itself.
func archiveParts(ctx context.Context, s store.Store, name string, offset, length int64, tensor string) (parts []format.Part, problems []format.Problem, err error) {
	r, err := s.Open(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil // the checkpoint's state says so
	}
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	if length < 0 {
		length = r.Size()
	}
	w := look.Watch(r)
	f, err := torchfile.Open(io.NewSectionReader(w, offset, length), length)
	if w.Failed() != nil {
		return nil, nil, w.Failed()
	}
	if limit.IsExceeded(err) {
		return nil, nil, nil // what is not read says nothing
	}
	if err != nil {
		return nil, []format.Problem{{File: name, Offset: offset, Tensor: tensor, Text: err.Error()}}, nil
	}
	owners := map[string][]string{}
	for i := range f.Tensors {
		t := &f.Tensors[i]
		owners[t.Record()] = append(owners[t.Record()], t.Name)
	}
	records := f.Archive().Records
	for i := range records {
		rec := &records[i]
		at, err := rec.Offset()
		if w.Failed() != nil {
			return nil, nil, w.Failed()
		}
		if err != nil {
			problems = append(problems, format.Problem{File: name, Offset: offset, Tensor: tensor, Text: fmt.Sprintf("record %s: %v", rec.Name, err)})
			continue
		}
		owner := tensor
		if owner == "" {
			owner = strings.Join(owners[rec.Name], ", ")
		}
		parts = append(parts, format.Part{
			File: name, Offset: offset + at, Size: rec.Size, Tensor: owner,
			Check: func() format.Checker { return &recordCheck{rec, crc32.NewIEEE()} },
		})
	}
	return parts, problems, nil
}

// savedParts finds the records of all files that torch.save wrote, as far as they are archives.
func savedParts(ctx context.Context, s store.Store, files []format.File) (parts []format.Part, problems []format.Problem, err error) {
	for _, f := range files {
		if _, saved := torchSuffixes[suffixOf(path.Base(f.Name))]; !saved {
			continue
		}
		h, err := openTorch(ctx, s, f.Name)
		if store.Vanished(err) || err == nil && !h.archive {
			continue // its state says so; of old files nothing can be said
		}
		if err != nil {
			return nil, nil, err
		}
		more, wrong, err := archiveParts(ctx, s, f.Name, 0, -1, "")
		if err != nil {
			return nil, nil, err
		}
		parts, problems = append(parts, more...), append(problems, wrong...)
	}
	return parts, problems, nil
}

// recordCheck compares the bytes of a record with its checksum.
type recordCheck struct {
	r   *torchfile.Record
	sum hash.Hash32
}

func (c *recordCheck) Write(b []byte) (int, error) { return c.sum.Write(b) }

func (c *recordCheck) End() error { return c.r.Check(c.sum.Sum32()) }
