package format

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

	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/torchfile"
)

// Torch is a file of torch.save.
const Torch Kind = "torch"

type torch struct{}

var _ Contents = torch{}

func (torch) Traits() Traits {
	return Traits{
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
	return ok && base != "training_args.bin" && !strings.HasPrefix(base, hiddenPrefix)
}

func (torch) Owner(file string) (Owner, bool) {
	if !standsAlone(file) || !isTorchName(path.Base(file)) {
		return Owner{}, false
	}
	return savedInPlace(file), true
}

func (torch) Claim(_ context.Context, d *Dir) ([]Claim, error) {
	return claimFiles(d, isTorchName, checkTorch), nil
}

func checkTorch(ctx context.Context, s store.Store, f File) (*Checkpoint, error) {
	sure := torchSuffixes[suffixOf(f.Name)]
	c := &Checkpoint{Name: f.Name, Kind: Torch, Step: fileStep(f.Name, suffixOf(f.Name)), Files: []File{f}, Shards: 1, State: Torn}
	a, err := openTorch(ctx, s, f.Name)
	switch {
	case errors.Is(err, fs.ErrPermission): // somebody else's file keeps nobody from the others
		if !sure {
			return nil, nil
		}
		c.State, c.Why = Unchecked, err.Error()
	case err != nil:
		return nil, err
	case a.damage != nil:
		c.Why, c.Certain = a.damage.Error(), sure
	case a.archive:
		c.State = Complete
	case a.legacy:
		c.State, c.Why = Unchecked, "it has the format of before PyTorch 1.6, in which a file that was cut off cannot be recognised: it has no checksums"
	case !sure:
		return nil, nil // something else
	case a.empty:
		c.Why, c.Certain = "it is empty", c.Step != NoStep
	default:
		c.State, c.Why = Unchecked, "it does not begin as torch.save's files do"
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
		w := &watchedReader{r: r}
		_, h.damage = torchfile.OpenArchive(w, r.Size())
		err = w.failed()
	} else {
		err = nil
	}
	return h, err
}

func (torch) Tensors(o *Opener, c *Checkpoint) ([]*Tensor, error) {
	if c.State == Unchecked {
		return nil, fmt.Errorf("its tensors cannot be shown: %s", c.Why)
	}
	r, err := o.Open(c.Name)
	if err != nil {
		return nil, err
	}
	a, err := torchfile.OpenArchive(r, r.Size())
	if err != nil {
		return nil, err
	}
	if pickle := a.Find(torchfile.Pickle); pickle != nil {
		if err := o.admit(c.Name, pickle.Size); err != nil {
			return nil, err
		}
	}
	f, err := torchfile.Open(r, r.Size())
	if err != nil {
		return nil, err
	}
	var all []*Tensor
	for i := range f.Tensors {
		x := &f.Tensors[i]
		name := x.Name
		if name == "" { // the tensor is all there is
			name = path.Base(c.Name)
		}
		rows := func(int64) (io.Reader, error) { return f.Rows(x) }
		all = append(all, &Tensor{
			Name: name, Kind: x.Kind, Shape: x.Shape, Bytes: x.Bytes(), File: c.Name, Pieces: 1,
			read: func() ([]byte, error) { return f.Read(x) },
			rows: rows, parts: rows, held: f.Held(x),
		})
	}
	return all, nil
}

// Parts are the records of the archive.
func (torch) Parts(ctx context.Context, s store.Store, c *Checkpoint) ([]Part, []Problem, error) {
	if c.State == Unchecked {
		return nil, nil, nil
	}
	return archiveParts(ctx, s, c.Name, 0, -1, "")
}

// archiveParts finds the records of an archive at offset in a file; length -1 is all of the
// file. The parts are of the tensor with that name; if it is empty, the archive names the
// tensors itself.
func archiveParts(ctx context.Context, s store.Store, name string, offset, length int64, tensor string) (parts []Part, problems []Problem, err error) {
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
	w := &watchedReader{r: r}
	f, err := torchfile.Open(io.NewSectionReader(w, offset, length), length)
	if w.failed() != nil {
		return nil, nil, w.failed()
	}
	if err != nil {
		return nil, []Problem{{File: name, Offset: offset, Tensor: tensor, Text: err.Error()}}, nil
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
		if w.failed() != nil {
			return nil, nil, w.failed()
		}
		if err != nil {
			problems = append(problems, Problem{File: name, Offset: offset, Tensor: tensor, Text: fmt.Sprintf("record %s: %v", rec.Name, err)})
			continue
		}
		owner := tensor
		if owner == "" {
			owner = strings.Join(owners[rec.Name], ", ")
		}
		parts = append(parts, Part{
			File: name, Offset: offset + at, Size: rec.Size, Tensor: owner,
			Check: func() Checker { return &recordCheck{rec, crc32.NewIEEE()} },
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
