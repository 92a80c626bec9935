package hdfsckpt

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Problem is something that is wrong with a checkpoint.
type Problem struct {
	File   string // relative to the store's root
	Tensor string // "" where it is the file as a whole, or a part that is no tensor's
	Offset int64  // in bytes, where the tensor or the part begins; -1 for the file as a whole
	Text   string
}

func (p Problem) String() string {
	switch {
	case p.Tensor != "":
		return fmt.Sprintf("%s: at byte %d, tensor %s: %s", p.File, p.Offset, p.Tensor, p.Text)
	case p.Offset >= 0:
		return fmt.Sprintf("%s: at byte %d: %s", p.File, p.Offset, p.Text)
	}
	return p.File + ": " + p.Text
}

// verifier reads the files of one checkpoint, some at a time.
type verifier struct {
	ctx      context.Context
	s        Store
	manifest map[string]Sum
	regions  map[string][]region // by file
	done     atomic.Int64
	total    int64
	progress func(done, total int64)

	mu       sync.Mutex
	problems []Problem
}

// Verify reads every byte of a checkpoint and compares it with the manifest, if
// it is sealed, and with the checksums that the files have in themselves: of
// TensorFlow's tensors, of the records of PyTorch's archives. What is wrong is in the
// problems; the error tells why it could not be found out. progress may be nil;
// it is called by several goroutines.
func Verify(ctx context.Context, s Store, c Checkpoint, progress func(done, total int64)) ([]Problem, error) {
	v := &verifier{s: s, manifest: map[string]Sum{}, regions: map[string][]region{}, progress: progress}
	if !c.Whole() {
		v.add(c.Name, -1, "", fmt.Sprintf("it is %s: %s", c.State, c.Why))
	}
	if c.Manifest != nil {
		for _, f := range c.Manifest.Files {
			v.manifest[f.Name] = f
		}
	}
	find := map[Kind]func(context.Context, Checkpoint) error{
		TensorFlow: v.tensorflow, Torch: v.torch, Distributed: v.distributed,
	}[c.Kind]
	if find != nil {
		if err := find(ctx, c); err != nil {
			return nil, fmt.Errorf("cannot verify the checkpoint %s: %w", c.Name, err)
		}
	}
	for _, f := range c.Files {
		v.total += f.Size
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	v.ctx = groupCtx
	for _, f := range c.Files {
		group.Go(func() error { return v.file(f) })
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("cannot verify the checkpoint %s: %w", c.Name, err)
	}
	slices.SortFunc(v.problems, func(a, b Problem) int { return strings.Compare(a.String(), b.String()) })
	return v.problems, nil
}

func (v *verifier) add(file string, offset int64, tensor, text string) {
	v.mu.Lock()
	v.problems = append(v.problems, Problem{File: file, Offset: offset, Tensor: tensor, Text: text})
	v.mu.Unlock()
}

func (v *verifier) file(f File) error {
	r, err := v.s.Open(v.ctx, f.Name)
	if errors.Is(err, fs.ErrNotExist) {
		v.add(f.Name, -1, "", "it is missing")
		return nil
	}
	if err != nil {
		return err
	}
	defer r.Close()
	var (
		in    = contextReader{v.ctx, io.NewSectionReader(r, 0, r.Size())}
		buf   = make([]byte, 1<<20)
		crc   uint32
		pos   int64
		parts = newParts(v, f.Name)
	)
	for {
		n, err := in.Read(buf)
		crc = crc32.Update(crc, castagnoli, buf[:n])
		parts.write(pos, buf[:n])
		pos += int64(n)
		if done := v.done.Add(int64(n)); v.progress != nil {
			v.progress(done, v.total)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	parts.end(pos)
	if sum, ok := v.manifest[f.Name]; ok && pos != sum.Size {
		v.add(f.Name, -1, "", fmt.Sprintf("it has %d bytes instead of %d", pos, sum.Size))
	} else if ok && crc != sum.CRC32C {
		v.add(f.Name, -1, "", fmt.Sprintf("its checksum is %08x, the manifest says %08x", crc, sum.CRC32C))
	}
	return nil
}
