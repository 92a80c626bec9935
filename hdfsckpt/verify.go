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

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/manifest"
	"holdfast/hdfsckpt/store"
)

// verifier reads the files of one checkpoint, some at a time.
type verifier struct {
	ctx      context.Context
	s        store.Store
	manifest map[string]manifest.Sum
	parts    map[string][]format.Part // by file
	done     atomic.Int64
	total    int64
	progress func(done, total int64)

	mu       sync.Mutex
	problems []format.Problem
}

// readAtOnce is how many files, or parts of one, are read at the same time.
const readAtOnce = 4

// Verify reads every byte of a checkpoint and compares it with the manifest, if it is
// sealed, and with the checksums in its own files, if its format has any. It returns what
// is wrong with the checkpoint; the error is why that could not be found out. progress may
// be nil; it is called by several goroutines.
func Verify(ctx context.Context, s store.Store, c format.Checkpoint, progress func(done, total int64)) ([]format.Problem, error) {
	v := &verifier{s: s, manifest: map[string]manifest.Sum{}, parts: map[string][]format.Part{}, progress: progress}
	if !c.Whole() {
		v.add(c.Name, -1, "", fmt.Sprintf("it is %s: %s", c.State, c.Why))
	}
	if c.Manifest != nil {
		for _, f := range c.Manifest.Files {
			v.manifest[f.Name] = f
		}
	}
	if contents := c.Contents(); contents != nil {
		parts, problems, err := contents.Parts(ctx, s, &c)
		if err != nil {
			return nil, fmt.Errorf("cannot verify the checkpoint %s: %w", c.Name, err)
		}
		for _, p := range problems {
			if c.Whole() || !strings.Contains(c.Why, p.Text) { // else its state says so already
				v.problems = append(v.problems, p)
			}
		}
		for _, p := range parts {
			v.parts[p.File] = append(v.parts[p.File], p)
		}
	}
	for _, f := range c.Files {
		v.total += f.Size
	}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(readAtOnce)
	v.ctx = groupCtx
	for _, f := range c.Files {
		if err := v.file(group, f); err != nil {
			group.Go(func() error { return err })
			break
		}
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("cannot verify the checkpoint %s: %w", c.Name, err)
	}
	slices.SortFunc(v.problems, func(a, b format.Problem) int { return strings.Compare(a.String(), b.String()) })
	return v.problems, nil
}

func (v *verifier) add(file string, offset int64, tensor, text string) {
	v.mu.Lock()
	v.problems = append(v.problems, format.Problem{File: file, Offset: offset, Tensor: tensor, Text: text})
	v.mu.Unlock()
}

// file has a file read, a large one in several parts at the same time.
func (v *verifier) file(group *errgroup.Group, f format.File) error {
	r, err := v.s.Open(v.ctx, f.Name)
	if errors.Is(err, fs.ErrNotExist) {
		v.add(f.Name, -1, "", "it is missing")
		return nil
	}
	if err != nil {
		return err
	}
	all := v.stretches(f.Name, r.Size())
	for i := range all {
		all[i].r = r
		if i > 0 { // each reads ahead for itself
			if all[i].r, err = v.s.Open(v.ctx, f.Name); err != nil {
				for _, s := range all[:i] {
					s.r.Close()
				}
				return err
			}
		}
	}
	var left atomic.Int32
	left.Store(int32(len(all)))
	for i := range all {
		group.Go(func() error {
			err := v.read(f.Name, &all[i])
			if left.Add(-1) == 0 && err == nil {
				v.compare(f.Name, all)
			}
			return err
		})
	}
	return nil
}

// read reads a stretch, and checks what is in it.
func (v *verifier) read(name string, s *stretch) error {
	defer s.r.Close()
	var (
		in     = contextReader{v.ctx, io.NewSectionReader(s.r, s.from, s.to-s.from)}
		buf    = make([]byte, 1<<20)
		pos    = s.from
		reader = &partReader{v: v, file: name, waiting: s.parts}
	)
	for {
		n, err := in.Read(buf)
		s.crc = crc32.Update(s.crc, castagnoli, buf[:n])
		reader.write(pos, buf[:n])
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
	s.to = pos
	reader.end(pos)
	return nil
}

// compare compares a file with the manifest.
func (v *verifier) compare(name string, all []stretch) {
	var crc uint32
	var size int64
	for _, s := range all {
		crc = combine(crc, s.crc, s.to-s.from)
		size += s.to - s.from
	}
	if sum, ok := v.manifest[name]; ok && size != sum.Size {
		v.add(name, -1, "", fmt.Sprintf("it has %d bytes instead of %d", size, sum.Size))
	} else if ok && crc != sum.CRC32C {
		v.add(name, -1, "", fmt.Sprintf("its checksum is %08x, the manifest says %08x", crc, sum.CRC32C))
	}
}
