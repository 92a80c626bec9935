package am

import (
	"strings"

	"holdfast/hdfsckpt"
	"holdfast/proto"
)

// sumsLimit bounds the checksums that are remembered for one directory; when
// there are more, all are forgotten, and sealing reads what it does not know.
const sumsLimit = 50000

// sums remembers the checksums that agents computed of a directory's files as
// their bytes went by. Files are written by one task and renamed by another, so
// the two may be heard of in either order.
type sums struct {
	known map[string]hdfsckpt.Sum
	moved map[string]string // renamed before its checksum was heard of
}

func newSums() *sums {
	return &sums{known: map[string]hdfsckpt.Sum{}, moved: map[string]string{}}
}

// take takes in what was committed.
func (s *sums) take(f *proto.CommittedFile) {
	if len(s.known)+len(s.moved) > sumsLimit {
		clear(s.known)
		clear(s.moved)
	}
	if f.From != "" {
		s.rename(f.From, f.Name)
		return
	}
	name := f.Name
	if to, ok := s.moved[name]; ok {
		delete(s.moved, name)
		name = to
	}
	if !f.Summed {
		delete(s.known, name)
		return
	}
	s.known[name] = hdfsckpt.Sum{Name: name, Size: f.Size, CRC32C: f.Crc32C}
}

func (s *sums) rename(from, to string) {
	delete(s.known, to)
	found := false
	for name, sum := range s.known {
		rest, below := strings.CutPrefix(name, from)
		if !below || rest != "" && rest[0] != '/' {
			continue
		}
		found = true
		delete(s.known, name)
		sum.Name = to + rest
		s.known[sum.Name] = sum
	}
	if !found {
		s.moved[from] = to
	}
}
