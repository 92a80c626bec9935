package hdfsckpt

import (
	"cmp"
	"fmt"
	"slices"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/store"
)

// partReader hands the bytes of a file to the checks of its parts.
type partReader struct {
	v       *verifier
	file    string
	waiting []format.Part // begin at or after what was read, sorted by offset
	open    []openPart
}

type openPart struct {
	format.Part
	to format.Checker
}

// stretch is a part of a file that is read on its own.
type stretch struct {
	from, to int64
	parts    []format.Part // that begin in it, sorted
	r        store.Reader
	crc      uint32
}

// stretchSize is the smallest stretch that is worth reading on its own, in bytes.
var stretchSize int64 = 64 << 20

// stretches divides a file into stretches, and no part of it.
func (v *verifier) stretches(file string, size int64) (all []stretch) {
	parts := v.parts[file]
	slices.SortStableFunc(parts, func(a, b format.Part) int { return cmp.Compare(a.Offset, b.Offset) })
	from := int64(0)
	for n := min(readAtOnce, size/stretchSize); n > 1; n-- {
		to, i := from+(size-from)/n, 0
		for ; i < len(parts) && parts[i].Offset < to; i++ {
			to = max(to, parts[i].Offset+parts[i].Size)
		}
		if to >= size {
			break
		}
		all = append(all, stretch{from: from, to: to, parts: parts[:i]})
		from, parts = to, parts[i:]
	}
	return append(all, stretch{from: from, to: size, parts: parts})
}

// write takes the bytes at pos.
func (p *partReader) write(pos int64, b []byte) {
	end := pos + int64(len(b))
	for len(p.waiting) > 0 && p.waiting[0].Offset < end {
		p.open = append(p.open, openPart{p.waiting[0], p.waiting[0].Check()})
		p.waiting = p.waiting[1:]
	}
	left := p.open[:0]
	for _, o := range p.open {
		from, to := max(pos, o.Offset), min(end, o.Offset+o.Size)
		var err error
		if from < to {
			_, err = o.to.Write(b[from-pos : to-pos])
		}
		switch {
		case err != nil:
			p.problem(o.Part, err)
		case o.Offset+o.Size > end:
			left = append(left, o)
		default:
			p.problem(o.Part, o.to.End())
		}
	}
	p.open = left
}

// end reports parts that the file is too short for.
func (p *partReader) end(size int64) {
	for _, r := range p.waiting {
		if r.Size > 0 {
			p.open = append(p.open, openPart{Part: r})
		}
	}
	for _, o := range p.open {
		p.problem(o.Part, fmt.Errorf("it reaches to byte %d, the file ends at %d", o.Offset+o.Size, size))
	}
}

func (p *partReader) problem(r format.Part, err error) {
	if err != nil {
		p.v.add(p.file, r.Offset, r.Tensor, err.Error())
	}
}
