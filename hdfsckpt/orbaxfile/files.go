// Package orbaxfile finds the arrays in a checkpoint that Orbax wrote, without Orbax.
//
// A checkpoint is a directory of items, each in a directory of its own, or one item itself. An
// item that is a tree of arrays has a file _METADATA. The arrays are zarr's (package zarr); their
// values are files of the item, or lie in a key-value store (package ocdbt) in its directory.
// Each process writes a store ocdbt.process_N in there, and at the end of a save one is made that
// names all that is in these (orbax/checkpoint/_src/serialization/ocdbt_utils.py,
// merge_ocdbt_per_process_files).
package orbaxfile

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"holdfast/hdfsckpt/ocdbt"
)

const (
	// Tree is a file in the directory of an item that is a tree of arrays.
	Tree = "_METADATA"
	// process begins the names of the stores that each process writes.
	process = "ocdbt.process_"
	// unnamed is the item of a program that names none.
	unnamed = "default"
)

// Files are the files of a checkpoint, and how they are read. All names are relative to its
// directory. Its methods may be called by many goroutines if its functions may.
type Files struct {
	Sizes map[string]int64 // of all files, in bytes
	// Open opens a file, or returns it as it was opened before.
	Open ocdbt.Open
	// ReadAt reads from a file that does not stay open: of an array without a store there may be
	// very many.
	ReadAt func(name string, b []byte, offset int64) (int, error)
	// Admit fails if so many bytes may not be held to find what a file names.
	Admit func(name string, bytes int64) error
	// Frame is told of manifests and nodes before they are read; may be nil.
	Frame func(name string, offset, length int64)
}

// missingError is about a file of an index that is not there.
type missingError struct{ text string }

func (e missingError) Error() string { return e.text }

// IsDamaged reports whether an error shows that a file which a store consists of is missing, or is
// not what was written (ocdbt.IsDamaged).
func IsDamaged(err error) bool { return ocdbt.IsDamaged(err) || errors.As(err, new(missingError)) }

// store opens a store of keys. Files that it names are those of the checkpoint only.
func (f *Files) store(dir string) (*ocdbt.Store, error) {
	return ocdbt.OpenStore(func(name string) (ocdbt.File, error) {
		name = path.Join(dir, name)
		missing := missingError{name + " is missing"}
		if _, ok := f.Sizes[name]; !ok {
			return nil, missing
		}
		r, err := f.Open(name)
		if errors.Is(err, fs.ErrNotExist) { // it has been removed since
			err = missing
		}
		return r, err
	})
}

// in has an error about a store name that.
func in(dir string, err error) error {
	var missing missingError
	switch {
	case errors.As(err, &missing):
		return missing
	case dir == ".":
		return err
	case ocdbt.IsDamaged(err) || ocdbt.IsUnknown(err): // they begin with the name of a file in it
		return fmt.Errorf("%s/%w", dir, err)
	}
	return fmt.Errorf("%s: %w", dir, err)
}

// stores returns the directories that are stores of keys: in an item the one that was made at the
// end, or, if there is none, those of its processes.
func (f *Files) stores() []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(f.Sizes)) {
		dir := path.Dir(name)
		if path.Base(name) != ocdbt.Manifest {
			continue
		}
		if item, of := itemOf(dir); of {
			if _, merged := f.Sizes[path.Join(item, ocdbt.Manifest)]; merged {
				continue
			}
		}
		all = append(all, dir)
	}
	return all
}

// itemOf returns the item whose values are in a store, and whether it has those of one process
// only.
func itemOf(store string) (item string, ofProcess bool) {
	if strings.HasPrefix(path.Base(store), process) {
		return path.Dir(store), true
	}
	return store, false
}

// Needed returns the files that stores of keys name, with how many bytes they must have. taking
// calls do, which takes so many bytes of memory, or fails. IsDamaged finds the error of a store
// that is not all there; what a store names that cannot be read is left out.
func (f *Files) Needed(taking func(manifest string, bytes int64, do func() error) error) (map[string]int64, error) {
	need := map[string]int64{}
	for _, dir := range f.stores() {
		if item, of := itemOf(dir); of {
			return nil, missingError{path.Join(item, ocdbt.Manifest) + " is missing, which is written last of the item"}
		}
		manifest := path.Join(dir, ocdbt.Manifest)
		var s *ocdbt.Store
		err := taking(manifest, ocdbt.MemoryOfManifest(f.Sizes[manifest]), func() (err error) {
			s, err = f.store(dir)
			return err
		})
		if err == nil {
			err = taking(manifest, s.Memory(), func() error {
				return s.Walk(ocdbt.Visitor{Entry: func(e ocdbt.Entry) error {
					if e.Inline == nil {
						name := path.Join(dir, e.Value.File)
						need[name] = max(need[name], e.Value.Offset+e.Value.Length)
					}
					return nil
				}})
			})
		}
		if err != nil && !ocdbt.IsUnknown(err) && !errors.Is(err, fs.ErrPermission) {
			return nil, in(dir, err)
		}
	}
	return need, nil
}

// Item is an item of a checkpoint.
type Item struct {
	Dir    string // "." if it is all that is in the checkpoint
	f      *Files
	values []value // sorted by key
}

// value is a value of a store, or a file.
type value struct {
	key    string // in the item
	file   string // in which it is
	offset int64  // of the value; of one in a node that of the node
	length int64  // of the value
	inline []byte // of one in a node
}

// whole is the offset of a value that is a file of its own.
const whole = -1

// kept is what a key of a store takes in memory, in bytes.
const kept = 128

// itemWith returns the directory of the item that a file belongs to.
func (f *Files) itemWith(name string) string {
	dir := "."
	for i, c := range name {
		if _, ok := f.Sizes[path.Join(dir, Tree)]; ok {
			return dir
		}
		if c == '/' {
			dir = name[:i]
		}
	}
	return "."
}

// Items finds the items of a checkpoint, with all their values.
func (f *Files) Items() ([]*Item, error) {
	items := map[string]*Item{}
	of := func(dir string) *Item {
		if items[dir] == nil {
			items[dir] = &Item{Dir: dir, f: f}
		}
		return items[dir]
	}
	for _, dir := range f.stores() {
		item, _ := itemOf(dir)
		if err := f.keys(dir, of(item)); err != nil {
			return nil, in(dir, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Sizes)) {
		item := of(f.itemWith(name))
		if len(item.values) > 0 && item.values[0].offset != whole {
			continue // they lie in a store
		}
		key := strings.TrimPrefix(name, item.Dir+"/")
		item.values = append(item.values, value{key: key, file: name, offset: whole, length: f.Sizes[name]})
	}
	list := slices.SortedFunc(maps.Values(items), func(a, b *Item) int { return strings.Compare(a.Dir, b.Dir) })
	for _, item := range list {
		slices.SortStableFunc(item.values, func(a, b value) int { return strings.Compare(a.key, b.key) })
	}
	return list, nil
}

// keys finds the values of a store.
func (f *Files) keys(dir string, to *Item) error {
	manifest := path.Join(dir, ocdbt.Manifest)
	if err := f.Admit(manifest, f.Sizes[manifest]); err != nil {
		return err
	}
	v := ocdbt.Visitor{Entry: func(e ocdbt.Entry) error {
		length := e.Value.Length
		if e.Inline != nil { // then that is the node's
			length = int64(len(e.Inline))
		}
		to.values = append(to.values, value{e.Key, path.Join(dir, e.Value.File), e.Value.Offset, length, e.Inline})
		return nil
	}}
	if f.Frame != nil {
		f.Frame(manifest, 0, f.Sizes[manifest])
		v.Node = func(at ocdbt.Ref) { f.Frame(path.Join(dir, at.File), at.Offset, at.Length) }
	}
	s, err := f.store(dir)
	if err != nil {
		return err
	}
	if err := f.Admit(manifest, s.TreeBytes+min(s.Keys, 1<<40)*kept); err != nil {
		return err
	}
	return s.Walk(v)
}
