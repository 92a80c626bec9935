package hdfsckpt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/tfbundle"
	"holdfast/hdfsckpt/torchfile"
)

// region is a part of a file that has a checksum of its own.
type region struct {
	offset, size int64
	tensor       string // "" if it is no tensor's
	check        func() checker
}

// checker takes a region's bytes, in order and in whatever pieces.
type checker interface {
	Write(b []byte) (int, error)
	End() error
}

var _ checker = (*tfbundle.Check)(nil)

// tensorflow finds which tensors are in which file.
func (v *verifier) tensorflow(ctx context.Context, c Checkpoint) error {
	name := tfbundle.IndexFile(c.Name)
	x, err := readIndex(ctx, v.s, name)
	if isContent(err) {
		v.add(name, -1, "", err.Error())
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // said already
	}
	if err != nil {
		return err
	}
	for i := range x.Entries {
		e := &x.Entries[i]
		if e.Partitioned() {
			continue
		}
		file := tfbundle.DataFile(c.Name, e.Shard, x.Header.Shards)
		v.regions[file] = append(v.regions[file], region{e.Offset, e.Size, e.Name, func() checker { return tfbundle.NewCheck(e) }})
	}
	return nil
}

// torch finds the records of a file of torch.save.
func (v *verifier) torch(ctx context.Context, c Checkpoint) error {
	if c.State == Unchecked {
		return nil // said already
	}
	return v.archive(ctx, c.Name, 0, -1, "")
}

// distributed finds the archives in the files of a distributed checkpoint.
func (v *verifier) distributed(ctx context.Context, c Checkpoint) error {
	m, err := readMetadata(ctx, v.s, c.Name)
	if torchfile.IsMetadataDamaged(err) || errors.Is(err, fs.ErrNotExist) {
		return nil // said already
	}
	if err != nil {
		return err
	}
	for _, item := range m.Items {
		for _, k := range item.Chunks {
			if k.Transformed {
				continue // the manifest's checksum is all there is
			}
			if err := v.archive(ctx, path.Join(c.Name, k.File), k.Offset, k.Length, item.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// archive finds the records of an archive that stands at offset in a file;
// length -1 is all of the file. tensor is what it has in it; "" to take the
// names that it has itself.
func (v *verifier) archive(ctx context.Context, name string, offset, length int64, tensor string) error {
	r, err := v.s.Open(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // said already
	}
	if err != nil {
		return err
	}
	defer r.Close()
	if length < 0 {
		length = r.Size()
	}
	w := &watched{r: r}
	f, err := torchfile.Open(io.NewSectionReader(w, offset, length), length)
	if w.failed() != nil {
		return w.failed()
	}
	if err != nil {
		v.add(name, offset, tensor, err.Error())
		return nil
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
			return w.failed()
		}
		if err != nil {
			v.add(name, offset, tensor, fmt.Sprintf("record %s: %v", rec.Name, err))
			continue
		}
		owner := tensor
		if owner == "" {
			owner = strings.Join(owners[rec.Name], ", ")
		}
		v.regions[name] = append(v.regions[name], region{offset + at, rec.Size, owner, func() checker { return newRecordCheck(rec) }})
	}
	return nil
}

// recordCheck compares the bytes of a record with its checksum.
type recordCheck struct {
	r   *torchfile.Record
	sum hash.Hash32
}

func newRecordCheck(r *torchfile.Record) *recordCheck { return &recordCheck{r, crc32.NewIEEE()} }

func (c *recordCheck) Write(b []byte) (int, error) { return c.sum.Write(b) }

func (c *recordCheck) End() error { return c.r.Check(c.sum.Sum32()) }

// parts hands the bytes of a file to the checks of its regions.
type parts struct {
	v       *verifier
	file    string
	waiting []region // begin at or after what was read, sorted by offset
	open    []openRegion
}

type openRegion struct {
	region
	to checker
}

// stretch is a part of a file that is read on its own.
type stretch struct {
	from, to int64
	regions  []region // that begin in it, sorted
	r        store.Reader
	crc      uint32
}

// stretchSize is the least that is worth reading on its own, in bytes.
var stretchSize int64 = 64 << 20

// stretches cuts a file in some parts, but no region.
func (v *verifier) stretches(file string, size int64) (all []stretch) {
	regions := v.regions[file]
	slices.SortStableFunc(regions, func(a, b region) int { return cmp.Compare(a.offset, b.offset) })
	from := int64(0)
	for n := min(readAtOnce, size/stretchSize); n > 1; n-- {
		to, i := from+(size-from)/n, 0
		for ; i < len(regions) && regions[i].offset < to; i++ {
			to = max(to, regions[i].offset+regions[i].size)
		}
		if to >= size {
			break
		}
		all = append(all, stretch{from: from, to: to, regions: regions[:i]})
		from, regions = to, regions[i:]
	}
	return append(all, stretch{from: from, to: size, regions: regions})
}

// write takes the bytes in that stand at pos.
func (p *parts) write(pos int64, b []byte) {
	end := pos + int64(len(b))
	for len(p.waiting) > 0 && p.waiting[0].offset < end {
		p.open = append(p.open, openRegion{p.waiting[0], p.waiting[0].check()})
		p.waiting = p.waiting[1:]
	}
	left := p.open[:0]
	for _, o := range p.open {
		from, to := max(pos, o.offset), min(end, o.offset+o.size)
		var err error
		if from < to {
			_, err = o.to.Write(b[from-pos : to-pos])
		}
		switch {
		case err != nil:
			p.problem(o.region, err)
		case o.offset+o.size > end:
			left = append(left, o)
		default:
			p.problem(o.region, o.to.End())
		}
	}
	p.open = left
}

// end tells of regions that the file is too short for.
func (p *parts) end(size int64) {
	for _, r := range p.waiting {
		if r.size > 0 {
			p.open = append(p.open, openRegion{region: r})
		}
	}
	for _, o := range p.open {
		p.problem(o.region, fmt.Errorf("it reaches to byte %d, the file ends at %d", o.offset+o.size, size))
	}
}

func (p *parts) problem(r region, err error) {
	if err != nil {
		p.v.add(p.file, r.offset, r.tensor, err.Error())
	}
}
