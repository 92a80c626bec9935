package formats

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/format/look"
	"holdfast/hdfsckpt/limit"
	"holdfast/hdfsckpt/ocdbt"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/zarr"
)

const (
	// orbaxTree is a file in each directory of an item that is a tree of arrays.
	orbaxTree = "_METADATA"
	// orbaxProcess begins the names of the stores that each process writes in the directory of
	// an item. At the end of a save one is made there that names all of them
	// (orbax/checkpoint/_src/serialization/ocdbt_utils.py, merge_ocdbt_per_process_files).
	orbaxProcess = "ocdbt.process_"
	// orbaxDefault is the item of a program that names none.
	orbaxDefault = "default"
)

// orbaxFiles are the files of a checkpoint, and how they are read.
type orbaxFiles struct {
	ctx   context.Context
	s     store.Store
	c     *format.Checkpoint
	sizes map[string]int64
	open  func(name string) (store.Reader, error)
	admit func(name string, size int64) error // may so much be taken to find tensors?
	frame func(dir string, at ocdbt.Ref)      // is told of manifests and nodes before they are read; may be nil
}

func newOrbaxFiles(ctx context.Context, s store.Store, c *format.Checkpoint) *orbaxFiles {
	f := &orbaxFiles{ctx: ctx, s: s, c: c, sizes: map[string]int64{}, admit: func(string, int64) error { return nil }}
	for _, x := range c.Files {
		f.sizes[x.Name] = x.Size
	}
	return f
}

// keepOpen has files opened once. close closes them.
func (f *orbaxFiles) keepOpen() (close func()) {
	opened := map[string]store.Reader{}
	f.open = func(name string) (store.Reader, error) {
		if r := opened[name]; r != nil {
			return r, nil
		}
		r, err := f.s.Open(f.ctx, name)
		if err == nil {
			opened[name] = r
		}
		return r, err
	}
	return func() {
		for _, r := range opened {
			r.Close()
		}
	}
}

// lackingError is about a file of an index that is not there.
type lackingError struct{ name string }

func (e lackingError) Error() string { return e.name + " is missing" }

// store opens a store of keys. Files that it names are those of the checkpoint only.
func (f *orbaxFiles) store(dir string) (*ocdbt.Store, error) {
	return ocdbt.OpenStore(func(name string) (ocdbt.File, error) {
		name = path.Join(dir, name)
		if _, ok := f.sizes[name]; !ok {
			return nil, lackingError{f.below(name)}
		}
		r, err := f.open(name)
		if errors.Is(err, fs.ErrNotExist) { // it has been removed since
			err = lackingError{f.below(name)}
		}
		return r, err
	})
}

// below returns the name of a file in the checkpoint.
func (f *orbaxFiles) below(name string) string { return strings.TrimPrefix(name, f.c.Name+"/") }

// item returns the directory of the item that a file belongs to.
func (f *orbaxFiles) item(name string) string {
	item := f.c.Name
	for i, c := range f.below(name) {
		if _, ok := f.sizes[path.Join(item, orbaxTree)]; ok {
			break
		}
		if c == '/' {
			item = path.Join(f.c.Name, f.below(name)[:i])
		}
	}
	if _, ok := f.sizes[path.Join(item, orbaxTree)]; !ok {
		return f.c.Name
	}
	return item
}

// prefix is put before the names of an item's tensors.
func (f *orbaxFiles) prefix(item string) string {
	name := strings.Trim(strings.TrimPrefix(item, f.c.Name), "/")
	if name == "" || name == orbaxDefault {
		return ""
	}
	return strings.ReplaceAll(name, "/", ".") + "."
}

// stores returns the directories that are stores of keys: in an item the one that was made at the
// end, or, if there is none, those of its processes.
func (f *orbaxFiles) stores() []string {
	var all []string
	for _, x := range f.c.Files {
		dir, base := path.Split(x.Name)
		if dir = path.Clean(dir); base != ocdbt.Manifest {
			continue
		}
		if item, of := orbaxItemOf(dir); of {
			if _, merged := f.sizes[path.Join(item, ocdbt.Manifest)]; merged {
				continue
			}
		}
		all = append(all, dir)
	}
	return all
}

// orbaxItemOf returns the item whose values are in a store, and whether it has those of one
// process only.
func orbaxItemOf(store string) (item string, ofProcess bool) {
	if strings.HasPrefix(path.Base(store), orbaxProcess) {
		return path.Dir(store), true
	}
	return store, false
}

// orbaxValue is a value of a store, or a file.
type orbaxValue struct {
	key    string // in the item
	file   string // in which it is
	offset int64  // of the value; of one in a node that of the node
	length int64  // of the value
	inline []byte // of one in a node
}

// orbaxValues are those of an item.
type orbaxValues struct {
	f    *orbaxFiles
	item string
	all  []orbaxValue // sorted by key
}

// orbaxKept is what a key of a store takes in memory, in bytes.
const orbaxKept = 128

// values finds all values of a checkpoint, by the items.
func (f *orbaxFiles) values() ([]*orbaxValues, error) {
	items := map[string]*orbaxValues{}
	of := func(item string) *orbaxValues {
		if items[item] == nil {
			items[item] = &orbaxValues{f: f, item: item}
		}
		return items[item]
	}
	for _, dir := range f.stores() {
		item, _ := orbaxItemOf(dir)
		if err := f.keys(dir, of(item)); err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
	}
	for _, x := range f.c.Files {
		item := f.item(x.Name)
		if items[item] != nil && len(items[item].all) > 0 && items[item].all[0].offset != orbaxWhole {
			continue // they lie in a store
		}
		key := strings.TrimPrefix(x.Name, item+"/")
		of(item).all = append(of(item).all, orbaxValue{key: key, file: x.Name, offset: orbaxWhole, length: x.Size})
	}
	var list []*orbaxValues
	for _, v := range items {
		slices.SortStableFunc(v.all, func(a, b orbaxValue) int { return strings.Compare(a.key, b.key) })
		list = append(list, v)
	}
	slices.SortFunc(list, func(a, b *orbaxValues) int { return strings.Compare(a.item, b.item) })
	return list, nil
}

// orbaxWhole is the offset of a value that is a file of its own.
const orbaxWhole = -1

// keys finds the values of a store.
func (f *orbaxFiles) keys(dir string, to *orbaxValues) error {
	manifest := path.Join(dir, ocdbt.Manifest)
	if err := f.admit(manifest, f.sizes[manifest]); err != nil {
		return err
	}
	if f.frame != nil {
		f.frame(dir, ocdbt.Ref{File: ocdbt.Manifest, Length: f.sizes[manifest]})
	}
	s, err := f.store(dir)
	if err != nil {
		return err
	}
	if err := f.admit(manifest, s.TreeBytes+min(s.Keys, 1<<40)*orbaxKept); err != nil {
		return err
	}
	v := ocdbt.Visitor{Entry: func(e ocdbt.Entry) error {
		length := e.Value.Length
		if e.Inline != nil { // then that is the node's
			length = int64(len(e.Inline))
		}
		to.all = append(to.all, orbaxValue{e.Key, path.Join(dir, e.Value.File), e.Value.Offset, length, e.Inline})
		return nil
	}}
	if f.frame != nil {
		v.Node = func(at ocdbt.Ref) { f.frame(dir, at) }
	}
	return s.Walk(v)
}

// find returns a value by its key; nil if there is none.
func (v *orbaxValues) find(key string) *orbaxValue {
	i, ok := slices.BinarySearchFunc(v.all, key, func(x orbaxValue, key string) int { return strings.Compare(x.key, key) })
	if !ok {
		return nil
	}
	return &v.all[i]
}

// read opens a value.
func (v *orbaxValues) read(x *orbaxValue) (*io.SectionReader, error) {
	switch {
	case x.inline != nil:
		return io.NewSectionReader(bytes.NewReader(x.inline), 0, int64(len(x.inline))), nil
	case x.offset == orbaxWhole:
		return io.NewSectionReader(reopened{v.f, x.file}, 0, x.length), nil
	}
	r, err := v.f.open(x.file)
	if err != nil {
		return nil, err
	}
	if end := x.offset + x.length; end > r.Size() {
		return nil, fmt.Errorf("%s has %d bytes, %d are needed: %w", v.f.below(x.file), r.Size(), end, syscall.EIO)
	}
	return io.NewSectionReader(r, x.offset, x.length), nil
}

// reopened opens a file for each read: of an array without a store there may be very many.
type reopened struct {
	f    *orbaxFiles
	name string
}

func (r reopened) ReadAt(b []byte, offset int64) (int, error) {
	in, err := r.f.s.Open(r.f.ctx, r.name)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	return in.ReadAt(b, offset)
}

// orbaxArray is an array of an item.
type orbaxArray struct {
	*zarr.Array
	name string // in the item
	file string // that has its metadata
	in   *orbaxValues
}

// orbaxMostMetadata is how large the metadata of an array may be, in bytes.
const orbaxMostMetadata = 1 << 20

// arrays reads the metadata of an item's arrays.
func (v *orbaxValues) arrays() ([]orbaxArray, error) {
	var all []orbaxArray
	total := int64(0)
	for i := range v.all {
		x := &v.all[i]
		name, base := "", x.key
		if slash := strings.LastIndexByte(x.key, '/'); slash >= 0 {
			name, base = x.key[:slash], x.key[slash+1:]
		}
		if base != zarr.Metadata2 && base != zarr.Metadata3 {
			continue
		}
		if len(all) > 0 && all[len(all)-1].name == name {
			continue // as another process wrote it
		}
		total += x.length
		if err := v.f.admit(x.file, total); err != nil {
			return nil, err
		}
		a, err := v.array(x, base)
		if err != nil {
			return nil, fmt.Errorf("%s: the metadata of %s: %w", v.f.below(x.file), cmp.Or(name, "the array"), err)
		}
		if a != nil {
			all = append(all, orbaxArray{a, name, x.file, v})
		}
	}
	return all, nil
}

func (v *orbaxValues) array(x *orbaxValue, base string) (*zarr.Array, error) {
	if x.length > orbaxMostMetadata {
		return nil, fmt.Errorf("it has %d bytes", x.length)
	}
	r, err := v.read(x)
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
func (a *orbaxArray) value(name string) *orbaxValue { return a.in.find(path.Join(a.name, name)) }

func (a *orbaxArray) open(name string) (*io.SectionReader, error) {
	x := a.value(name)
	if x == nil {
		return nil, nil
	}
	return a.in.read(x)
}

// Tensors are the arrays, by the keys that lead to them, with the item before unless a program
// names none.
func (orbax) Tensors(o *format.Opener, c *format.Checkpoint) ([]*format.Tensor, error) {
	f := newOrbaxFiles(o.Context(), o.Store(), c)
	f.open, f.admit = o.Open, o.Admit
	items, err := f.values()
	if err != nil {
		return nil, err
	}
	var all []*format.Tensor
	for _, item := range items {
		arrays, err := item.arrays()
		if err != nil {
			return nil, err
		}
		for i := range arrays {
			all = append(all, arrays[i].tensor(f.prefix(item.item)))
		}
	}
	return all, nil
}

func (a *orbaxArray) tensor(prefix string) *format.Tensor {
	name := prefix + a.name
	if a.name == "" { // the array is all there is
		name = cmp.Or(strings.TrimSuffix(prefix, "."), path.Base(a.in.f.c.Name))
	}
	t := &format.Tensor{
		Name: name, Kind: a.Kind, Shape: a.Shape, Bytes: a.Bytes(), Pieces: int(max(1, min(a.Stored(), 1<<31-1))),
		Source: format.Source{
			Read:  func() ([]byte, error) { return a.Read(a.open) },
			Rows:  func(limit int64) (io.Reader, error) { return a.Rows(a.open, limit) },
			Parts: func(int64) (io.Reader, error) { return a.Parts(a.open) },
		},
	}
	if t.Pieces <= 1 {
		t.File = a.file // where nothing is stored
		for name := range a.Names() {
			if x := a.value(name); x != nil {
				t.File = x.file
			}
		}
	}
	return t
}

// lacking returns what is wrong with the stores of keys of a checkpoint: a file that they name is
// missing or too short, or an index is damaged. Empty if nothing is, or if that cannot be seen.
func (f *orbaxFiles) lacking() (string, error) {
	defer f.keepOpen()()
	need := map[string]int64{}
	for _, dir := range f.stores() {
		if item, of := orbaxItemOf(dir); of {
			return f.below(path.Join(item, ocdbt.Manifest)) + " is missing, which is written last of the item", nil
		}
		err := f.needed(dir, need)
		var lacking lackingError
		switch {
		case err == nil:
		case limit.IsExceeded(err):
			return "", err
		case errors.As(err, &lacking):
			return lacking.Error(), nil
		case ocdbt.IsDamaged(err):
			return strings.TrimPrefix(f.below(dir)+"/", f.c.Name+"/") + err.Error(), nil
		case ocdbt.IsUnknown(err) || errors.Is(err, fs.ErrPermission):
		default:
			return "", err
		}
	}
	have := map[string]int64{}
	for name, size := range f.sizes {
		have[f.below(name)] = size
	}
	return look.Lacking(need, have), nil
}

// needed adds the files that a store names, with how many bytes they must have.
func (f *orbaxFiles) needed(dir string, need map[string]int64) error {
	manifest := path.Join(dir, ocdbt.Manifest)
	size := f.sizes[manifest]
	var s *ocdbt.Store
	err := look.Taking(f.ctx, manifest, size, ocdbt.MemoryOfManifest(size), func() (err error) {
		s, err = f.store(dir)
		return err
	})
	if err != nil {
		return err
	}
	return look.Taking(f.ctx, manifest, size, s.Memory(), func() error {
		return s.Walk(ocdbt.Visitor{Entry: func(e ocdbt.Entry) error {
			if e.Inline == nil {
				name := f.below(path.Join(dir, e.Value.File))
				need[name] = max(need[name], e.Value.Offset+e.Value.Length)
			}
			return nil
		}})
	})
}

// Parts are the indexes of stores. Values have no checksums: of these it is looked whether they
// are there.
func (orbax) Parts(ctx context.Context, s store.Store, c *format.Checkpoint) (parts []format.Part, problems []format.Problem, err error) {
	f := newOrbaxFiles(ctx, s, c)
	defer f.keepOpen()()
	f.frame = func(dir string, at ocdbt.Ref) {
		parts = append(parts, format.Part{
			File: path.Join(dir, at.File), Offset: at.Offset, Size: at.Length,
			Check: func() format.Checker { return &ocdbt.Sum{} },
		})
	}
	items, err := f.values()
	switch {
	case err == nil:
	case ocdbt.IsDamaged(err) || errors.As(err, new(lackingError)):
		if c.Whole() { // else the state says it
			problems = append(problems, format.Problem{File: c.Name, Offset: -1, Text: err.Error()})
		}
		return parts, problems, nil
	case ocdbt.IsUnknown(err) || limit.IsExceeded(err):
		return parts, nil, nil // what cannot be read says nothing
	default:
		return nil, nil, err
	}
	for _, item := range items {
		wrong, err := item.problems()
		if err != nil {
			return nil, nil, err
		}
		problems = append(problems, wrong...)
	}
	return parts, problems, nil
}

// problems returns which values of an item are not there. Of a value that no key or file names
// that is one only where the save stores all, and not only what differs from a fill value.
func (v *orbaxValues) problems() (all []format.Problem, err error) {
	var tree struct {
		StoresAll bool `json:"store_array_data_equal_to_fill_value"`
	}
	if name := path.Join(v.item, orbaxTree); v.f.sizes[name] > 0 {
		// What cannot be read says nothing.
		if err := look.JSON(v.f.ctx, v.f.s, name, &tree); err != nil && !look.IsDamaged(err) && !limit.IsExceeded(err) {
			return nil, err
		}
	}
	arrays, err := v.arrays()
	if err != nil {
		return []format.Problem{{File: v.item, Offset: -1, Text: err.Error()}}, nil
	}
	for i := range arrays {
		if p := arrays[i].problem(tree.StoresAll); p != nil {
			all = append(all, *p)
		}
	}
	return all, nil
}

// problem returns the first thing that is wrong with an array's values; nil if there is none. It
// takes time for values that are stored only, however many the shape claims.
func (a *orbaxArray) problem(storesAll bool) *format.Problem {
	p := &format.Problem{Tensor: a.in.f.prefix(a.in.item) + a.name, Offset: -1}
	if storesAll {
		for name := range a.Names() {
			if a.value(name) == nil {
				p.File, p.Text = a.file, "its chunk "+name+" is missing"
				return p
			}
		}
	}
	below := path.Join(a.name, "x")
	below = below[:len(below)-1]
	first, _ := slices.BinarySearchFunc(a.in.all, below, func(x orbaxValue, key string) int { return strings.Compare(x.key, key) })
	for _, x := range a.in.all[first:] {
		if !strings.HasPrefix(x.key, below) {
			break
		}
		if x.inline != nil || x.offset == orbaxWhole {
			continue
		}
		p.File, p.Offset = x.file, x.offset
		size, ok := a.in.f.sizes[x.file]
		if !ok {
			p.Text = "the file is missing"
			return p
		}
		if end := x.offset + x.length; end > size {
			p.Text = fmt.Sprintf("it reaches to byte %d, the file ends at %d", end, size)
			return p
		}
	}
	return nil
}
