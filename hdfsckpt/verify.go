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

	"holdfast/hdfsckpt/tfbundle"
)

// Problem is something that is wrong with a checkpoint.
type Problem struct {
	File   string // relative to the store's root
	Tensor string // "" where it is the file as a whole
	Text   string
}

func (p Problem) String() string {
	if p.Tensor != "" {
		return fmt.Sprintf("%s: tensor %s", p.File, p.Text)
	}
	return p.File + ": " + p.Text
}

// verifier reads the files of one checkpoint, some at a time.
type verifier struct {
	ctx      context.Context
	s        Store
	manifest map[string]Sum
	shards   map[string][]*tfbundle.Entry // by file, sorted by offset
	done     atomic.Int64
	total    int64
	progress func(done, total int64)

	mu       sync.Mutex
	problems []Problem
}

// Verify reads every byte of a checkpoint and compares it with the manifest, if
// it is sealed, and with the checksums of the tensors. What is wrong is in the
// problems; the error tells why it could not be found out. progress may be nil;
// it is called by several goroutines.
func Verify(ctx context.Context, s Store, c Checkpoint, progress func(done, total int64)) ([]Problem, error) {
	v := &verifier{s: s, manifest: map[string]Sum{}, shards: map[string][]*tfbundle.Entry{}, progress: progress}
	if !c.Whole() {
		v.add(c.Name, "", fmt.Sprintf("it is %s: %s", c.State, c.Why))
	}
	if c.Manifest != nil {
		for _, f := range c.Manifest.Files {
			v.manifest[f.Name] = f
		}
	}
	if c.Kind == TensorFlow {
		if err := v.index(ctx, c); err != nil {
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

func (v *verifier) add(file, tensor, text string) {
	v.mu.Lock()
	v.problems = append(v.problems, Problem{File: file, Tensor: tensor, Text: text})
	v.mu.Unlock()
}

// index finds which tensors are in which file.
func (v *verifier) index(ctx context.Context, c Checkpoint) error {
	name := tfbundle.IndexFile(c.Name)
	x, err := readIndex(ctx, v.s, name)
	if isContent(err) {
		v.add(name, "", err.Error())
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // said already
	}
	if err != nil {
		return err
	}
	for i := range x.Entries {
		if e := &x.Entries[i]; !e.Partitioned() {
			file := tfbundle.DataFile(c.Name, e.Shard, x.Header.Shards)
			v.shards[file] = append(v.shards[file], e)
		}
	}
	for _, list := range v.shards {
		slices.SortFunc(list, func(a, b *tfbundle.Entry) int { return int(min(1, max(-1, a.Offset-b.Offset))) })
	}
	return nil
}

func (v *verifier) file(f File) error {
	r, err := v.s.Open(v.ctx, f.Name)
	if errors.Is(err, fs.ErrNotExist) {
		v.add(f.Name, "", "it is missing")
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
		shard = &shardCheck{v: v, file: f.Name, waiting: v.shards[f.Name]}
	)
	for {
		n, err := in.Read(buf)
		crc = crc32.Update(crc, castagnoli, buf[:n])
		shard.write(pos, buf[:n])
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
	shard.end(pos)
	if sum, ok := v.manifest[f.Name]; ok && pos != sum.Size {
		v.add(f.Name, "", fmt.Sprintf("it has %d bytes instead of %d", pos, sum.Size))
	} else if ok && crc != sum.CRC32C {
		v.add(f.Name, "", fmt.Sprintf("its checksum is %08x, the manifest says %08x", crc, sum.CRC32C))
	}
	return nil
}

// shardCheck hands the bytes of a data file to the checks of its tensors.
type shardCheck struct {
	v       *verifier
	file    string
	waiting []*tfbundle.Entry // begin at or after what was read
	open    []openCheck
}

type openCheck struct {
	e     *tfbundle.Entry
	check *tfbundle.Check
}

// write takes the bytes in that stand at pos.
func (s *shardCheck) write(pos int64, b []byte) {
	end := pos + int64(len(b))
	for len(s.waiting) > 0 && s.waiting[0].Offset < end {
		s.open = append(s.open, openCheck{s.waiting[0], tfbundle.NewCheck(s.waiting[0])})
		s.waiting = s.waiting[1:]
	}
	left := s.open[:0]
	for _, o := range s.open {
		from, to := max(pos, o.e.Offset), min(end, o.e.Offset+o.e.Size)
		var err error
		if from < to {
			_, err = o.check.Write(b[from-pos : to-pos])
		}
		switch {
		case err != nil:
			s.problem(o.e, err)
		case o.e.Offset+o.e.Size > end:
			left = append(left, o)
		default:
			s.problem(o.e, o.check.End())
		}
	}
	s.open = left
}

// end tells of tensors that the file is too short for.
func (s *shardCheck) end(size int64) {
	for _, e := range s.waiting {
		if e.Size > 0 {
			s.open = append(s.open, openCheck{e, nil})
		}
	}
	for _, o := range s.open {
		s.problem(o.e, fmt.Errorf("%q reaches to byte %d, the file ends at %d", o.e.Name, o.e.Offset+o.e.Size, size))
	}
}

func (s *shardCheck) problem(e *tfbundle.Entry, err error) {
	if err == nil {
		return
	}
	text := err.Error()
	if !strings.Contains(text, e.Name) {
		text = fmt.Sprintf("%q: %s", e.Name, text)
	}
	s.v.add(s.file, e.Name, text)
}
