package hdf5

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// Signature is what a file begins with.
const Signature = "\x89HDF\r\n\x1a\n"

// SuperblockSize is how many bytes of a file End needs; a shorter file has fewer.
const SuperblockSize = 96

const (
	addressSize = 8
	// undefined is an address of nothing.
	undefined = math.MaxUint64
)

type unsupportedError struct{ error }

// unsupported marks what a sound file may have and this package does not read.
func unsupported(format string, args ...any) error {
	return unsupportedError{fmt.Errorf(format, args...)}
}

// IsUnsupported reports whether an error shows only that something is not read here, and not
// that a file is damaged.
func IsUnsupported(err error) bool { return errors.As(err, new(unsupportedError)) }

// superblock is what a file begins with (II.A).
type superblock struct {
	end  uint64 // of the file
	root uint64 // address of the root group's object header
}

// readSuperblock parses what a file begins with.
func readSuperblock(head []byte) (superblock, error) {
	if !bytes.HasPrefix(head, []byte(Signature)) || len(head) < 64 {
		return superblock{}, errors.New("it does not begin as HDF5 does")
	}
	var sizesAt, flags, base, root int
	switch version := head[8]; version {
	case 0, 1:
		sizesAt, base = 13, 24
		if version == 1 {
			base = 28
		}
		root = base + 4*addressSize + addressSize // behind the name of the root's entry
	case 2, 3:
		sizesAt, base, root = 9, 12, 12+3*addressSize
		if version == 3 {
			flags = int(head[11])
		}
	default:
		return superblock{}, fmt.Errorf("its superblock has the version %d, which is not known", version)
	}
	address := func(at int) uint64 {
		if at+addressSize > len(head) {
			return undefined
		}
		return binary.LittleEndian.Uint64(head[at:])
	}
	switch {
	case head[sizesAt] != addressSize:
		return superblock{}, fmt.Errorf("its addresses have %d bytes", head[sizesAt])
	case address(base) != 0:
		return superblock{}, errors.New("its addresses do not count from its beginning")
	case flags&1 != 0:
		return superblock{}, errors.New("it was not closed by the program that wrote it")
	}
	return superblock{end: address(base + 2*addressSize), root: address(root)}, nil
}

// End returns the address of a file's end by its superblock, which head begins with
// (SuperblockSize). The library refuses a file that is shorter.
func End(head []byte) (uint64, error) {
	s, err := readSuperblock(head)
	return s.end, err
}

// file is a file whose datasets are being found.
type file struct {
	r     io.ReaderAt
	size  uint64
	admit func(bytes int64) error
	taken uint64 // bytes read, and held for names

	seen  map[uint64]bool   // object headers, by address
	heaps map[uint64][]byte // collections of global heaps, by address
	found []*Dataset
}

const (
	// A sound file is read about once: each structure has its own bytes. What comes back to
	// the same bytes again and again ends when these are exceeded.
	takenTimes = 4
	takenMore  = 64 << 10
	// takenEach is what a read or a name takes beside its bytes.
	takenEach = 16
	// mostPath is how long a dataset's name may be with those of its groups, in bytes.
	mostPath = 4096
)

// take counts n bytes that are read or held.
func (f *file) take(n uint64) error {
	f.taken += n + takenEach
	if f.taken > takenTimes*f.size+takenMore {
		return errors.New("its parts refer to each other in circles, or to the same bytes too often")
	}
	if f.admit != nil {
		return f.admit(int64(f.taken))
	}
	return nil
}

// read reads n bytes at an address. what names them for a person.
func (f *file) read(what string, at, n uint64) ([]byte, error) {
	if at > f.size || n > f.size-at {
		return nil, fmt.Errorf("%s, of %d bytes at byte %d, is beyond the file's end at %d", what, n, at, f.size)
	}
	if err := f.take(n); err != nil {
		return nil, err
	}
	b := make([]byte, n)
	if got, err := f.r.ReadAt(b, int64(at)); got < len(b) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return b, nil
}

// structure reads n bytes that begin with a signature, and returns those behind it.
func (f *file) structure(what, signature string, at, n uint64) (*fields, error) {
	b, err := f.read(what, at, max(n, uint64(len(signature))))
	if err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(b, []byte(signature)) {
		return nil, fmt.Errorf("at byte %d there is no %s: it does not begin with %s", at, what, signature)
	}
	return &fields{b: b[len(signature):]}, nil
}

// fields takes apart a structure in memory, field by field. Behind its end all is zero, and
// short is set.
type fields struct {
	b     []byte
	short bool
}

// bytes returns the next n bytes; none if there are fewer.
func (s *fields) bytes(n uint64) []byte {
	if n > uint64(len(s.b)) {
		s.b, s.short = nil, true
		return nil
	}
	b := s.b[:n:n]
	s.b = s.b[n:]
	return b
}

// uint returns the next number of that many bytes, at most 8.
func (s *fields) uint(width int) uint64 {
	var n uint64
	for i, c := range s.bytes(uint64(width)) {
		n |= uint64(c) << (8 * i)
	}
	return n
}

func (s *fields) address() uint64 { return s.uint(addressSize) }

// text returns what stands before the next byte of zero.
func (s *fields) text() string {
	i := bytes.IndexByte(s.b, 0)
	if i < 0 {
		s.b, s.short = nil, true
		return ""
	}
	text := string(s.b[:i])
	s.b = s.b[i+1:]
	return text
}

// padded returns n rounded up to a multiple of 8.
func padded(n uint64) uint64 { return (n + 7) &^ 7 }
