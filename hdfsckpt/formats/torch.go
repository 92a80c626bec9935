package formats

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"path"
	"strings"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/format/look"
	"holdfast/hdfsckpt/format/onefile"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/torchfile"
)

// Torch is a file of torch.save.
const Torch format.Kind = "torch"

type torch struct{}

var _ format.Contents = torch{}

func (torch) Traits() format.Traits {
	return format.Traits{
		Kind:         Torch,
		Last:         []string{"*.pt", "*.pth", "*.pth.tar", "*.bin", "*.ckpt"},
		CompleteWhen: "the archive's directory, at the file's end, can be read",
		MayGrow:      true, AloneInStepDir: true, Steady: true,
	}
}

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

// isTorchName reports whether a file is named as files of torch.save are that can be
// checkpoints by themselves.
func isTorchName(base string) bool {
	_, ok := torchSuffixes[suffixOf(base)]
	return ok && base != "training_args.bin"
}

func (torch) Owner(file string) (format.Owner, bool) {
	return onefile.Owner(file, isTorchName)
}

func (torch) Claim(_ context.Context, d *format.Dir) ([]format.Claim, error) {
	return onefile.Claim(d, isTorchName, checkTorch), nil
}

func checkTorch(ctx context.Context, s store.Store, f format.File) (*format.Checkpoint, error) {
	sure := torchSuffixes[suffixOf(f.Name)]
	c := &format.Checkpoint{Name: f.Name, Kind: Torch, Step: format.FileStep(f.Name, suffixOf(f.Name)), Files: []format.File{f}, Shards: 1, State: format.Torn}
	a, err := openTorch(ctx, s, f.Name)
	switch {
	case errors.Is(err, fs.ErrPermission): // somebody else's file keeps nobody from the others
		if !sure {
			return nil, nil
		}
		c.State, c.Why = format.Unchecked, err.Error()
	case err != nil:
		return nil, err
	case a.damage != nil:
		c.Why, c.Certain = a.damage.Error(), sure
	case a.archive:
		c.State = format.Complete
	case a.legacy:
		c.State, c.Why = format.Unchecked, "it has the format of before PyTorch 1.6, in which a file that was cut off cannot be recognised: it has no checksums"
	case !sure:
		return nil, nil // something else
	case a.empty:
		c.Why, c.Certain = "it is empty", c.Step != format.NoStep
	default:
		c.State, c.Why = format.Unchecked, "it does not begin as torch.save's files do"
	}
	return c, nil
}

// torchHead is what can be seen of a file without reading its tensors.
type torchHead struct {
	empty, legacy, archive bool
	damage                 error // of an archive: what is wrong with its directory
}

func openTorch(ctx context.Context, s store.Store, name string) (torchHead, error) {
	r, err := s.Open(ctx, name)
	if err != nil {
		return torchHead{}, err
	}
	defer r.Close()
	head := make([]byte, torchfile.MagicSize)
	n, err := r.ReadAt(head, 0)
	if err != nil && err != io.EOF {
		return torchHead{}, err
	}
	head = head[:n]
	h := torchHead{empty: n == 0, legacy: torchfile.IsLegacy(head), archive: torchfile.IsZip(head)}
	if h.archive {
		w := look.Watch(r)
		_, h.damage = torchfile.OpenArchive(w, r.Size())
		err = w.Failed()
	} else {
		err = nil
	}
	return h, err
}

func (torch) Tensors(o *format.Opener, c *format.Checkpoint) ([]*format.Tensor, error) {
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
func (torch) Parts(ctx context.Context, s store.Store, c *format.Checkpoint) ([]format.Part, []format.Problem, error) {
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

// recordCheck compares the bytes of a record with its checksum.
type recordCheck struct {
	r   *torchfile.Record
	sum hash.Hash32
}

func (c *recordCheck) Write(b []byte) (int, error) { return c.sum.Write(b) }

func (c *recordCheck) End() error { return c.r.Check(c.sum.Sum32()) }
