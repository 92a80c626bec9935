package formats

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/format/onefile"
	"holdfast/hdfsckpt/limit"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/tensor"
)

// MXNet is a file NAME.params of MXNet, as nd.save, Gluon's save_parameters and Module's
// save_checkpoint write it, with a file NAME.states of the trainer or the optimizer where one
// lies beside it. The network (PREFIX-symbol.json) is no part: checkpoints share it.
//
// A file is a list of arrays and then their names, all little endian (include/mxnet/ndarray.h
// and src/ndarray/ndarray.cc of MXNet 1.9). There are no checksums.
//
//	uint64  0x112
//	uint64  reserved
//	uint64  how many arrays there are, which follow:
//	    uint32  0xf993fac9, or 0xf993faca of an array with NumPy's shapes
//	    int32   how it is stored: 0 dense, 1 the rows that are not 0, 2 compressed rows
//	    shape   of the values, unless it is dense
//	    shape   of the array. If nothing is known of it, the array ends here
//	    int32   the kind of device that it was on, and
//	    int32   which of these
//	    int32   the type of its elements
//	    int32, shape  of its indexes, unless it is dense: their type and their shape
//	    values, and then the indexes
//	uint64  how many names there are: none, or one for each array. They follow:
//	    uint64  length, and the name
//
// A shape is an int32 with the number of dimensions, and each as an int64.
const MXNet format.Kind = "mxnet"

type mxNet struct{}

var _ interface {
	format.Contents
	onefile.Accompanied
} = mxNet{}

const (
	mxnetSuffix       = ".params"
	mxnetStatesSuffix = ".states"
)

func (mxNet) Traits() format.Traits {
	return format.Traits{
		Kind: MXNet, Last: []string{"*" + mxnetSuffix, "*" + mxnetStatesSuffix},
		CompleteWhen: "the file ends behind the names of its arrays, which are written last",
		MayGrow:      true, AloneInStepDir: true, Steady: true, Summed: format.NotSummed,
	}
}

func isMXNetName(base string) bool { return path.Ext(base) == mxnetSuffix }

func (mxNet) Owners(file string) []format.Owner {
	all := onefile.Owners(file, func(base string) bool { return isMXNetName(base) || path.Ext(base) == mxnetStatesSuffix })
	if name, states := strings.CutSuffix(file, mxnetStatesSuffix); len(all) > 0 && states {
		all[0] = format.SavedInPlace(name + mxnetSuffix)
	}
	return all
}

func (mxNet) Claim(_ context.Context, d *format.Dir) ([]format.Claim, error) {
	states := map[string]store.Info{} // by what stands before the suffix
	for _, e := range d.Entries {
		if stem, ok := strings.CutSuffix(e.Name, mxnetStatesSuffix); ok && e.Mode.IsRegular() {
			states[stem] = e
		}
	}
	without := withoutStates(d.Entries, states)
	claims := onefile.Claim(d, isMXNetName, func(ctx context.Context, s store.Store, f format.File) (*format.Checkpoint, error) {
		stem := strings.TrimSuffix(path.Base(f.Name), mxnetSuffix)
		c, err := mxNet{}.Check(ctx, s, f)
		if c == nil || err != nil {
			return c, err
		}
		if e, ok := states[stem]; ok {
			c.Files = append(c.Files, format.FileOf(d.Name, e))
		} else if c.Whole() && without[stem] {
			c.State, c.Certain = format.Torn, true
			c.Why = "it has no file " + stem + mxnetStatesSuffix + ", as all before it have: the save did not get that far"
		}
		return c, nil
	})
	for i := range claims {
		if e, ok := states[strings.TrimSuffix(claims[i].Of[0], mxnetSuffix)]; ok {
			claims[i].Of = append(claims[i].Of, e.Name)
		}
	}
	return claims, nil
}

func (mxNet) Named(base string) (is, certain bool) { return isMXNetName(base), false }

func (mxNet) Companion(base string) string {
	return strings.TrimSuffix(base, mxnetSuffix) + mxnetStatesSuffix
}

// Check judges a file without what lies beside it.
func (mxNet) Check(ctx context.Context, s store.Store, f format.File) (*format.Checkpoint, error) {
	step := format.FileStep(f.Name, mxnetSuffix)
	return onefile.Check(ctx, s, f, format.Checkpoint{Kind: MXNet, Step: step}, step != format.NoStep, judgeMXNet)
}

// withoutStates are the newest of their series, if they alone have no states. A program that
// loads both of the newest would end with an error each time.
func withoutStates(entries []store.Info, states map[string]store.Info) map[string]bool {
	type series struct {
		newest  string
		step    int64
		all, no int // files, and how many of them have no states
	}
	found := map[string]*series{}
	for _, e := range entries {
		stem, ok := strings.CutSuffix(e.Name, mxnetSuffix)
		if !ok {
			continue
		}
		s := found[format.Shape(stem)]
		if s == nil {
			s = &series{step: format.NoStep}
			found[format.Shape(stem)] = s
		}
		s.all++
		if _, ok := states[stem]; !ok {
			s.no++
		}
		if step := format.StepAtEnd(stem); step > s.step {
			s.newest, s.step = stem, step
		}
	}
	without := map[string]bool{}
	for _, s := range found {
		if _, ok := states[s.newest]; !ok && s.no == 1 && s.all > 1 {
			without[s.newest] = true
		}
	}
	return without
}

const (
	mxnetMagic    = "\x12\x01\x00\x00\x00\x00\x00\x00"
	mxnetArray    = 0xf993fac9
	mxnetNumPy    = 0xf993faca
	mxnetReserved = 8 // bytes
	mxnetDevice   = 8

	// What is read of a file is bounded, whatever it says.
	mxnetMostArrays = 1 << 20
	mxnetMostName   = 64 << 10 // bytes
	mxnetMostAxes   = 64
	// mxnetWindow is how much is read at once: many small arrays, or the beginning of a
	// large one.
	mxnetWindow = 16 << 10
)

// mxnetKinds are the kinds of elements, by their numbers (3rdparty/mshadow/mshadow/base.h).
var mxnetKinds = []tensor.Kind{"float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool", "int16", "uint16", "uint32", "uint64", "bfloat16"}

// mxnetIndexes are the indexes of arrays, by how those are stored.
var mxnetIndexes = [][]string{{}, {"indices"}, {"indptr", "indices"}}

// mxnetPart is what lies in a file of an array: its elements, or the values and each of the
// indexes of one that is not dense.
type mxnetPart struct {
	array  int
	name   string // as MXNet names the part; empty for all elements
	kind   tensor.Kind
	shape  []int64
	offset int64
}

func (p *mxnetPart) size() int64 {
	n, _ := tensor.Elements(p.shape)
	return n * int64(p.kind.Size())
}

func judgeMXNet(r io.ReaderAt, size int64) error {
	_, err := walkMXNet(r, size, func(mxnetPart) {}, func(string) {})
	return err
}

// walkMXNet calls part for each part of each array of a file, and then name for each name. It
// reads none of the elements, and holds a bounded amount of memory. rest is how many bytes of
// the file are no elements. Its errors are what onefile.Check takes.
func walkMXNet(r io.ReaderAt, size int64, part func(mxnetPart), name func(string)) (rest int64, err error) {
	f := &mxnetReader{r: r, size: size, where: "before its first array"}
	if begin := f.bytes(min(size, int64(len(mxnetMagic)))); f.err == nil && !strings.HasPrefix(mxnetMagic, string(begin)) {
		return 0, onefile.Foreign(errors.New("it does not begin as MXNet's lists of arrays do"))
	}
	f.bytes(mxnetReserved)
	arrays := f.uint64()
	if arrays > mxnetMostArrays {
		f.fail(limit.Exceeded("it says that it has %d arrays, and up to %d are looked at", arrays, mxnetMostArrays))
	}
	rest = size
	for i := 0; uint64(i) < arrays && f.err == nil; i++ {
		f.where = fmt.Sprintf("in array %d of %d", i+1, arrays)
		for _, p := range f.array() {
			p.array, p.offset = i, f.at
			if f.skip(p.size()); f.err == nil {
				rest -= p.size()
				part(p)
			}
		}
	}
	f.where = "in the names of its arrays, which are written last"
	names := f.uint64()
	if names != 0 && names != arrays {
		f.fail(fmt.Errorf("it has %d arrays, and %d names", arrays, names))
	}
	for i := uint64(0); i < names && f.err == nil; i++ {
		length := f.uint64()
		if length > mxnetMostName {
			f.fail(limit.Exceeded("it has a name of %d bytes, and names are read up to %d", length, mxnetMostName))
		}
		if text := f.bytes(int64(length)); f.err == nil {
			name(string(text))
		}
	}
	if f.at < size {
		f.fail(fmt.Errorf("it has %d bytes, and its names end at %d", size, f.at))
	}
	return rest, f.err
}

// mxnetReader reads a file from its beginning on. After its first error it reads nothing,
// and returns zeros.
type mxnetReader struct {
	r     io.ReaderAt
	size  int64
	where string // for a person
	err   error

	at     int64 // in the file
	window []byte
	begin  int64 // of the window
}

func (f *mxnetReader) fail(err error) {
	if f.err == nil {
		f.err = err
	}
}

// skip goes on behind n bytes, which must be there.
func (f *mxnetReader) skip(n int64) {
	if n > f.size-f.at {
		f.fail(onefile.CutOff(fmt.Errorf("it ends %s", f.where)))
	}
	if f.err == nil {
		f.at += n
	}
}

// bytes reads n bytes. They are good until the next call.
func (f *mxnetReader) bytes(n int64) []byte {
	from := f.at
	if f.skip(n); f.err != nil {
		return nil
	}
	if from < f.begin || f.at > f.begin+int64(len(f.window)) {
		f.window = make([]byte, min(max(n, mxnetWindow), f.size-from))
		f.begin = from
		if got, err := f.r.ReadAt(f.window, from); got < len(f.window) {
			f.fail(err)
			return nil
		}
	}
	return f.window[from-f.begin : f.at-f.begin]
}

func (f *mxnetReader) int32() int32 {
	if b := f.bytes(4); f.err == nil {
		return int32(binary.LittleEndian.Uint32(b))
	}
	return 0
}

func (f *mxnetReader) uint64() uint64 {
	if b := f.bytes(8); f.err == nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// array reads what stands before an array's elements, and returns its parts; none if it has
// no elements.
func (f *mxnetReader) array() []mxnetPart {
	magic, storage := uint32(f.int32()), f.int32()
	switch {
	case f.err != nil:
		return nil
	case magic != mxnetArray && magic != mxnetNumPy:
		f.fail(fmt.Errorf("%s there is something else, or the older form, which is not read: it begins with %#x", f.where, magic))
		return nil
	case storage < 0 || int(storage) >= len(mxnetIndexes):
		f.fail(fmt.Errorf("%s elements are stored in a way that is not known: %d", f.where, storage))
		return nil
	}
	indexes := mxnetIndexes[storage]
	all := mxnetPart{}
	if len(indexes) > 0 {
		all.name = "data"
		all.shape = f.shape()
	}
	shape := f.shape()
	if len(shape) == 0 && magic == mxnetArray || slices.ContainsFunc(shape, func(d int64) bool { return d < 0 }) {
		return nil
	}
	if len(indexes) == 0 {
		all.shape = shape
	}
	f.bytes(mxnetDevice)
	all.kind = f.kind()
	parts := []mxnetPart{all}
	for _, name := range indexes {
		parts = append(parts, mxnetPart{name: name, kind: f.kind(), shape: f.shape()})
	}
	for _, p := range parts {
		if _, ok := tensor.Elements(p.shape); !ok {
			f.fail(fmt.Errorf("%s the shape is %d", f.where, p.shape))
		}
	}
	if f.err != nil {
		return nil
	}
	return parts
}

func (f *mxnetReader) kind() tensor.Kind {
	n := f.int32()
	if n < 0 || int(n) >= len(mxnetKinds) {
		f.fail(fmt.Errorf("%s the elements are of a kind that is not known: %d", f.where, n))
		return ""
	}
	return mxnetKinds[n]
}

// shape reads a shape. One of which not even the number of dimensions is known has a single
// one of -1.
func (f *mxnetReader) shape() []int64 {
	axes := f.int32()
	switch {
	case axes == -1:
		return []int64{-1}
	case axes < 0 || axes > mxnetMostAxes:
		f.fail(fmt.Errorf("%s there are %d dimensions, more than are read", f.where, axes))
		return nil
	}
	shape := make([]int64, axes)
	for i := range shape {
		shape[i] = int64(f.uint64())
	}
	return shape
}

func (mxNet) Tensors(o *format.Opener, c *format.Checkpoint) ([]*format.Tensor, error) {
	r, err := o.Open(c.Name)
	if err != nil {
		return nil, err
	}
	size := r.Size()
	rest, err := walkMXNet(r, size, func(mxnetPart) {}, func(string) {})
	if err == nil {
		err = o.Admit(c.Name, rest)
	}
	var parts []mxnetPart
	var names []string
	if err == nil {
		_, err = walkMXNet(r, size, func(p mxnetPart) { parts = append(parts, p) }, func(name string) { names = append(names, name) })
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Name, err)
	}
	var all []*format.Tensor
	for _, p := range parts {
		name := strconv.Itoa(p.array) // a list without names
		if len(names) > 0 {
			name = names[p.array]
		}
		if p.name != "" {
			name += "." + p.name
		}
		rows := func(int64) (io.Reader, error) { return io.NewSectionReader(r, p.offset, p.size()), nil }
		all = append(all, &format.Tensor{
			Name: name, Kind: p.kind, Shape: p.shape, Bytes: p.size(), File: c.Name, Pieces: 1,
			Source: format.Source{
				Read: func() ([]byte, error) { return io.ReadAll(io.NewSectionReader(r, p.offset, p.size())) },
				Rows: rows, Parts: rows,
			},
		})
	}
	return all, nil
}

// Parts are none: the files have no checksums.
func (mxNet) Parts(context.Context, store.Store, *format.Checkpoint) ([]format.Part, []format.Problem, error) {
	return nil, nil, nil
}
