package orbaxfile

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"syscall"

	"holdfast/hdfsckpt/zarr"
)

// find returns a value by its key; nil if there is none.
func (x *Item) find(key string) *value {
	i, ok := slices.BinarySearchFunc(x.values, key, func(v value, key string) int { return strings.Compare(v.key, key) })
	if !ok {
		return nil
	}
	return &x.values[i]
}

// read opens a value.
func (f *Files) read(v *value) (*io.SectionReader, error) {
	switch {
	case v.inline != nil:
		return io.NewSectionReader(bytes.NewReader(v.inline), 0, int64(len(v.inline))), nil
	case v.offset == whole:
		return io.NewSectionReader(reopened{f, v.file}, 0, v.length), nil
	}
	r, err := f.Open(v.file)
	if err != nil {
		return nil, err
	}
	if end := v.offset + v.length; end > r.Size() {
		return nil, fmt.Errorf("%s has %d bytes, %d are needed: %w", v.file, r.Size(), end, syscall.EIO)
	}
	return io.NewSectionReader(r, v.offset, v.length), nil
}

// reopened is a file that does not stay open.
type reopened struct {
	f    *Files
	name string
}

func (r reopened) ReadAt(b []byte, offset int64) (int, error) { return r.f.ReadAt(r.name, b, offset) }

// Array is an array of an item.
type Array struct {
	*zarr.Array
	// Name is the keys that lead to it, with the item before unless a program names none; empty if
	// it is all there is.
	Name     string
	key      string // in the item
	metadata string // the file that has its metadata
	in       *Item
}

// mostMetadata is how large the metadata of an array may be, in bytes.
const mostMetadata = 1 << 20

// Arrays reads the metadata of an item's arrays.
func (x *Item) Arrays() ([]*Array, error) {
	var all []*Array
	total := int64(0)
	for i := range x.values {
		v := &x.values[i]
		key, base := "", v.key
		if slash := strings.LastIndexByte(v.key, '/'); slash >= 0 {
			key, base = v.key[:slash], v.key[slash+1:]
		}
		if base != zarr.Metadata2 && base != zarr.Metadata3 {
			continue
		}
		if len(all) > 0 && all[len(all)-1].key == key {
			continue // as another process wrote it
		}
		total += v.length
		if err := x.f.Admit(v.file, total); err != nil {
			return nil, err
		}
		a, err := x.f.array(v, base)
		if err != nil {
			return nil, fmt.Errorf("%s: the metadata of %s: %w", v.file, cmp.Or(key, "the array"), err)
		}
		if a != nil {
			all = append(all, &Array{a, x.tensor(key), key, v.file, x})
		}
	}
	return all, nil
}

// tensor returns the name of an array.
func (x *Item) tensor(key string) string {
	switch {
	case x.Dir == "." || x.Dir == unnamed:
		return key
	case key == "":
		return strings.ReplaceAll(x.Dir, "/", ".")
	}
	return strings.ReplaceAll(x.Dir, "/", ".") + "." + key
}

func (f *Files) array(v *value, base string) (*zarr.Array, error) {
	if v.length > mostMetadata {
		return nil, fmt.Errorf("it has %d bytes", v.length)
	}
	r, err := f.read(v)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	return zarr.Parse(base, text)
}

// value returns what is stored of an array under a name; nil if there is nothing.
func (a *Array) value(name string) *value { return a.in.find(path.Join(a.key, name)) }

func (a *Array) open(name string) (*io.SectionReader, error) {
	v := a.value(name)
	if v == nil {
		return nil, nil
	}
	return a.in.f.read(v)
}

// Read, Rows and Parts are those of zarr.Array.
func (a *Array) Read() ([]byte, error)               { return a.Array.Read(a.open) }
func (a *Array) Rows(limit int64) (io.Reader, error) { return a.Array.Rows(a.open, limit) }
func (a *Array) Parts(int64) (io.Reader, error)      { return a.Array.Parts(a.open) }

// File returns the file with the elements of an array that is stored as one value at most: if it
// is as none, that with its metadata.
func (a *Array) File() string {
	file := a.metadata
	for name := range a.Names() {
		if v := a.value(name); v != nil {
			file = v.file
		}
	}
	return file
}

// Problem returns the first thing that is wrong with an array's values, where it is (offset -1: in
// the file as a whole), and an empty text if there is none. That a value has no key and is no file
// is wrong only if the save stores all, and not only what differs from a fill value. It takes time
// for values that are stored only, however many the shape claims.
func (a *Array) Problem(storesAll bool) (file string, offset int64, text string) {
	if storesAll {
		for name := range a.Names() {
			if a.value(name) == nil {
				return a.metadata, -1, "its chunk " + name + " is missing"
			}
		}
	}
	below := path.Join(a.key, "x")
	below = below[:len(below)-1]
	first, _ := slices.BinarySearchFunc(a.in.values, below, func(v value, key string) int { return strings.Compare(v.key, key) })
	for _, v := range a.in.values[first:] {
		if !strings.HasPrefix(v.key, below) {
			break
		}
		if v.inline != nil || v.offset == whole {
			continue
		}
		size, ok := a.in.f.Sizes[v.file]
		if !ok {
			return v.file, v.offset, "the file is missing"
		}
		if end := v.offset + v.length; end > size {
			return v.file, v.offset, fmt.Sprintf("it reaches to byte %d, the file ends at %d", end, size)
		}
	}
	return "", -1, ""
}
