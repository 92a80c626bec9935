package ocdbt

import (
	"fmt"
	"io"
	"math"
	"path"
	"path/filepath"

	"holdfast/hdfsckpt/limit"
)

// Ref is where something lies.
type Ref struct {
	File           string // below the store's directory
	Offset, Length int64
}

// Store is an opened store.
type Store struct {
	// Keys and TreeBytes are how many keys there are and how many bytes their tree is, as the
	// manifest says.
	Keys, TreeBytes int64

	open   Open
	root   *place // nil if there are no keys
	height byte
}

const (
	manifestMagic = 0x0cdb3a2a
	// mostManifest is how large a manifest may be, in bytes: it names some versions of the
	// store only.
	mostManifest = 16 << 20
	missing      = math.MaxUint64 // offset and length of a root that is not there
)

// MemoryOfManifest returns how many bytes of memory OpenStore takes at most for a manifest of that size.
func MemoryOfManifest(size int64) int64 { return freeExpanded + mostExpanded*min(size, mostManifest) }

// Memory returns how many bytes of memory Walk takes at most.
func (s *Store) Memory() int64 {
	return freeExpanded + mostExpanded*min(s.TreeBytes, math.MaxInt64/(2*mostExpanded))
}

// OpenStore reads the manifest of a store.
func OpenStore(open Open) (*Store, error) {
	f, err := open(Manifest)
	if err != nil {
		return nil, err
	}
	if f.Size() > mostManifest {
		return nil, limit.Exceeded("%s has %d bytes, and up to %d are read", Manifest, f.Size(), mostManifest)
	}
	s := &Store{open: open}
	frame, err := read(f, 0, f.Size())
	if err == nil {
		err = s.parse(frame)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Manifest, err)
	}
	return s, nil
}

// read reads a part of a file, and takes no memory for what is not there.
func read(f File, offset, length int64) ([]byte, error) {
	if length > f.Size()-offset {
		return nil, damaged("it has %d bytes, and reaches to byte %d", f.Size(), offset+length)
	}
	b := make([]byte, length)
	n, err := f.ReadAt(b, offset)
	if n == len(b) {
		return b, nil
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return nil, err
}

func (s *Store) parse(frame []byte) error {
	b := &budget{read: int64(len(frame))}
	body, err := unwrap(frame, manifestMagic, b)
	if err != nil {
		return err
	}
	c := &cursor{b: body}
	c.bytes(16) // the store's identity
	if kind := c.uvarint(); kind != 0 && c.err == nil {
		return unknown("its versions lie in files of their own, which are not read")
	}
	c.uvarint() // how long a value in a node may be
	c.uvarint() // how large a node may be
	arity := c.byte()
	if method := c.uvarint(); method == 1 {
		c.bytes(4) // the level
	} else if method > 1 {
		return unknown("it names a compression that is not known: %d", method)
	}
	files, err := c.files("", b)
	if err != nil {
		return err
	}
	n := c.count()
	if c.err == nil && (n == 0 || arity > 63 || uint64(n) > 1<<arity) {
		return unknown("it names %d versions", n)
	}
	c.column(n, math.MaxUint64) // their numbers
	heights := c.bytes(uint64(n))
	roots := c.places(n, files, true)
	keys, trees := c.column(n, math.MaxUint64), c.column(n, math.MaxUint64)
	// What follows are sizes of values, times, and where older versions are.
	if c.err != nil {
		return c.err
	}
	s.root, s.height = roots[n-1], heights[n-1]
	s.Keys, s.TreeBytes = clamp(keys[n-1]), clamp(trees[n-1])
	return nil
}

func clamp(v uint64) int64 { return int64(min(v, math.MaxInt64)) }

// dataFile is a file that a node names.
type dataFile struct {
	base string // what names in the nodes that lie in it begin with
	name string // below the store's directory
}

// check refuses what is no file below the store's directory. A table may have the empty name,
// of a version without keys.
func (f dataFile) check() error {
	if !filepath.IsLocal(f.name) || path.Clean(f.name) != f.name {
		return unknown("it names a file %q", f.name)
	}
	return nil
}

// place is where a node lies.
type place struct {
	file           dataFile
	offset, length int64
}

// places reads where n nodes are. With allowMissing there may be none at one.
func (c *cursor) places(n int, files []dataFile, allowMissing bool) []*place {
	ids, offsets, lengths := c.ids(n, files), c.column(n, missing), c.column(n, missing)
	if c.err != nil {
		return nil
	}
	all := make([]*place, n)
	for i := range all {
		if allowMissing && offsets[i] == missing && lengths[i] == missing {
			continue
		}
		if !isRange(offsets[i], lengths[i]) {
			c.fail(unknown("a node has %d bytes from %d on", lengths[i], offsets[i]))
			return nil
		}
		all[i] = &place{files[ids[i]], int64(offsets[i]), int64(lengths[i])}
		if err := all[i].file.check(); err != nil {
			c.fail(err)
			return nil
		}
	}
	return all
}

func isRange(offset, length uint64) bool {
	return offset <= math.MaxInt64 && length <= math.MaxInt64-offset
}

// ids reads which file it is, of n entries.
func (c *cursor) ids(n int, files []dataFile) []uint64 {
	if n > 0 && len(files) == 0 {
		c.fail(unknown("it names no files"))
		return nil
	}
	return c.column(n, uint64(max(len(files), 1)-1))
}

// longest is how long the name of a file or a key may be, in bytes.
const longest = math.MaxUint16

// files reads a table of files: names, of which what each has in common with the one before is
// left out. base is what they all begin with.
func (c *cursor) files(base string, b *budget) ([]dataFile, error) {
	n := c.count()
	if n == 0 {
		return nil, c.err
	}
	if err := b.spend(int64(n) * entrySize); err != nil {
		return nil, err
	}
	common := append([]uint64{0}, c.column(n-1, longest)...)
	suffixes, bases := c.column(n, longest), c.column(n, longest)
	if c.err != nil {
		return nil, c.err
	}
	files := make([]dataFile, n)
	former := ""
	for i := range files {
		text := c.bytes(suffixes[i])
		if c.err != nil {
			return nil, c.err
		}
		size := common[i] + suffixes[i]
		if common[i] > uint64(len(former)) || size+uint64(len(base)) > longest || bases[i] > size {
			return nil, unknown("the name of a file has %d and %d bytes", common[i], suffixes[i])
		}
		if err := b.spend(2*int64(size) + int64(2*len(base))); err != nil {
			return nil, err
		}
		former = former[:common[i]] + string(text)
		files[i] = dataFile{base + former[:bases[i]], base + former}
	}
	return files, nil
}
