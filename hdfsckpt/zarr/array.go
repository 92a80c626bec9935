package zarr

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"holdfast/hdfsckpt/tensor"
)

// Array is what the metadata of an array says.
type Array struct {
	Kind  tensor.Kind
	Shape []int64

	chunk []int64 // the shape of what is compressed by itself
	shard []int64 // the shape of what is stored under one name: the same, or a multiple
	// sharded: what is stored has several chunks, and says where they are.
	sharded      bool
	indexAtStart bool
	indexSummed  bool
	compressed   bool

	prefix, separator string // of the names of what is stored
	scalar            string // the name of a scalar's

	fill     []byte // an element where nothing is stored
	unread   string // why elements are not read; empty if they are
	noFill   string // why the fill value is not known; empty if it is
	elements int64
}

const (
	// mostAxes is how many dimensions TensorStore takes (kMaxRank in tensorstore/rank.h).
	mostAxes = 32
	// mostName is how much is shown of a kind that is not known, in bytes.
	mostName = 64
	// mostPadding is how many times as large as an array its chunks may be, as to lengths in
	// each dimension: what lies behind the end is decompressed for nothing.
	mostPadding = 64
)

// Unread returns why elements are not read; empty if they are.
func (a *Array) Unread() string { return a.unread }

// Bytes returns how many bytes the elements are; 0 where the size of one is not known.
func (a *Array) Bytes() int64 { return a.elements * int64(a.Kind.Size()) }

// Stored returns how many chunks or shards there are, of which each may be stored.
func (a *Array) Stored() int64 {
	n := int64(1)
	for _, c := range counts(a.Shape, a.shard) {
		n *= c
	}
	return n
}

// Names returns the names of these.
func (a *Array) Names() iter.Seq[string] {
	return func(yield func(string) bool) {
		if a.elements == 0 {
			return
		}
		at, grid := make([]int64, len(a.Shape)), counts(a.Shape, a.shard)
		for yield(a.name(at)) && advance(at, grid) {
		}
	}
}

// counts returns how many pieces of one shape a shape is cut into along each dimension.
func counts(shape, piece []int64) []int64 {
	all := make([]int64, len(shape))
	for i, d := range shape {
		all[i] = ceil(d, piece[i])
	}
	return all
}

// advance goes on to the next place of a grid, the last dimension fastest; false, and to the
// first place, after the last.
func advance(at, counts []int64) bool {
	for i := len(at) - 1; i >= 0; i-- {
		if at[i]++; at[i] < counts[i] {
			return true
		}
		at[i] = 0
	}
	return false
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }

// Parse reads the metadata of an array; name is Metadata2 or Metadata3. It returns nil if that is
// of something else, as a group of arrays.
func Parse(name string, text []byte) (*Array, error) {
	a := &Array{}
	var err error
	if name == Metadata2 {
		err = a.parse2(text)
	} else {
		var array bool
		if array, err = a.parse3(text); err == nil && !array {
			return nil, nil
		}
	}
	if err != nil {
		return nil, err
	}
	return a, a.validate()
}

// skip says why elements are not read. The first reason counts.
func (a *Array) skip(format string, args ...any) {
	if a.unread == "" {
		a.unread = fmt.Sprintf(format, args...)
	}
}

func (a *Array) validate() error {
	n, ok := tensor.Elements(a.Shape)
	if !ok || len(a.Shape) > mostAxes {
		return fmt.Errorf("its shape is %d", a.Shape)
	}
	a.elements = n
	for _, shape := range [][]int64{a.chunk, a.shard} {
		if len(shape) != len(a.Shape) || slices.ContainsFunc(shape, func(d int64) bool { return d < 1 }) {
			return fmt.Errorf("its shape is %d, and that of its chunks %d", a.Shape, shape)
		}
		if _, ok := tensor.Elements(shape); !ok {
			return fmt.Errorf("its chunks have the shape %d", shape)
		}
	}
	padded := 1.0
	for i, d := range a.chunk {
		if a.shard[i]%d != 0 {
			return fmt.Errorf("shards of %d do not consist of chunks of %d", a.shard, a.chunk)
		}
		padded *= float64(d) / float64(max(1, min(d, a.Shape[i])))
	}
	if padded > mostPadding {
		a.skip("its chunks, %d, are much larger than itself", a.chunk)
	}
	if a.Kind.Size() == 0 {
		a.skip("elements of %s are not known", a.Kind)
	}
	return nil
}

// show shortens a text of the metadata.
func show(text []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, text) == nil {
		text = b.Bytes()
	}
	if len(text) > mostName {
		text = append(slices.Clone(text[:mostName]), "..."...)
	}
	return string(text)
}

// kinds2 are those that version 2 names as NumPy does, by what follows the byte order. TensorStore
// names others, as bfloat16, as they are called (tensorstore/driver/zarr/dtype.cc).
var kinds2 = map[string]tensor.Kind{
	"b1": "bool", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64",
	"u1": "uint8", "u2": "uint16", "u4": "uint32", "u8": "uint64",
	"f2": "float16", "f4": "float32", "f8": "float64", "c8": "complex64", "c16": "complex128",
}

func (a *Array) parse2(text []byte) error {
	var m struct {
		Format     int             `json:"zarr_format"`
		Shape      []int64         `json:"shape"`
		Chunks     []int64         `json:"chunks"`
		DType      json.RawMessage `json:"dtype"`
		Compressor json.RawMessage `json:"compressor"`
		Filters    json.RawMessage `json:"filters"`
		Order      string          `json:"order"`
		Fill       json.RawMessage `json:"fill_value"`
		Separator  string          `json:"dimension_separator"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return err
	}
	if m.Format != 2 {
		return fmt.Errorf("it is of version %d", m.Format)
	}
	a.Shape, a.chunk, a.shard = m.Shape, m.Chunks, m.Chunks
	var dtype string
	if json.Unmarshal(m.DType, &dtype) != nil {
		dtype = show(m.DType)
	}
	if order, kind := dtype[:min(1, len(dtype))], kinds2[dtype[min(1, len(dtype)):]]; kind != "" && strings.Contains("<>|", order) {
		a.Kind = kind
		if order == ">" && kind.Size() > 1 {
			a.skip("its elements are big endian")
		}
	} else {
		a.Kind = tensor.Kind(show([]byte(dtype)))
	}
	if len(m.Compressor) > 0 && string(m.Compressor) != "null" {
		var c struct{ ID string }
		if json.Unmarshal(m.Compressor, &c) != nil || c.ID != "zstd" {
			a.skip("it is compressed by %s", show(m.Compressor))
		}
		a.compressed = true
	}
	if len(m.Filters) > 0 && string(m.Filters) != "null" && string(m.Filters) != "[]" {
		a.skip("it has filters: %s", show(m.Filters))
	}
	if m.Order != "C" && len(m.Shape) > 1 {
		a.skip("its elements have the order %q", show([]byte(m.Order)))
	}
	a.separator, a.scalar = ".", "0"
	if m.Separator == "/" {
		a.separator = "/"
	} else if m.Separator != "" && m.Separator != "." {
		return fmt.Errorf("its chunks are named with %q", show([]byte(m.Separator)))
	}
	a.parseFill(m.Fill)
	return nil
}

// part is an element of version 3's metadata that has a name and, for some, a configuration.
type part struct {
	Name          string
	Configuration struct {
		ChunkShape []int64 `json:"chunk_shape"`
		Separator  string
		Endian     string
		Codecs     []part
		Index      []part `json:"index_codecs"`
		Location   string `json:"index_location"`
	}
}

func (a *Array) parse3(text []byte) (array bool, err error) {
	var m struct {
		Format       int             `json:"zarr_format"`
		Node         string          `json:"node_type"`
		Shape        []int64         `json:"shape"`
		DType        json.RawMessage `json:"data_type"`
		Grid         part            `json:"chunk_grid"`
		Keys         part            `json:"chunk_key_encoding"`
		Codecs       []part          `json:"codecs"`
		Fill         json.RawMessage `json:"fill_value"`
		Transformers []part          `json:"storage_transformers"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return false, err
	}
	switch {
	case m.Format != 3:
		return false, fmt.Errorf("it is of version %d", m.Format)
	case m.Node == "group":
		return false, nil
	case m.Grid.Name != "regular":
		return false, fmt.Errorf("its grid of chunks is %q", show([]byte(m.Grid.Name)))
	}
	a.Shape, a.shard, a.chunk = m.Shape, m.Grid.Configuration.ChunkShape, m.Grid.Configuration.ChunkShape
	var dtype string
	if json.Unmarshal(m.DType, &dtype) != nil {
		dtype = show(m.DType)
	}
	a.Kind = tensor.Kind(show([]byte(dtype)))
	a.separator = m.Keys.Configuration.Separator
	switch m.Keys.Name {
	case "default":
		a.scalar, a.prefix = "c", "c"
		if a.separator == "" {
			a.separator = "/"
		}
		a.prefix += a.separator
	case "v2":
		a.scalar = "0"
		if a.separator == "" {
			a.separator = "."
		}
	default:
		return false, fmt.Errorf("its chunks are named by %q", show([]byte(m.Keys.Name)))
	}
	if len(m.Transformers) > 0 {
		a.skip("it is stored by way of %q", show([]byte(m.Transformers[0].Name)))
	}
	codecs := m.Codecs
	if len(codecs) == 1 && codecs[0].Name == "sharding_indexed" {
		c := codecs[0].Configuration
		a.sharded, a.chunk, codecs = true, c.ChunkShape, c.Codecs
		a.indexAtStart = c.Location == "start"
		for i, x := range c.Index {
			switch {
			case i == 0 && x.Name == "bytes" && x.Configuration.Endian == "little":
			case i == 1 && x.Name == "crc32c":
				a.indexSummed = true
			default:
				a.skip("the index of its shards is written by %q", show([]byte(x.Name)))
			}
		}
	}
	for i, c := range codecs {
		switch {
		case i == 0 && c.Name == "bytes":
			if c.Configuration.Endian == "big" {
				a.skip("its elements are big endian")
			}
		case i == 1 && c.Name == "zstd":
			a.compressed = true
		default:
			a.skip("it is written by the codec %q", show([]byte(c.Name)))
		}
	}
	a.parseFill(m.Fill)
	return true, nil
}

// parseFill reads the fill value: null, which TensorStore takes for zero, a boolean, a number,
// or one that JSON cannot have: its name, or its bits in hexadecimal.
func (a *Array) parseFill(text json.RawMessage) {
	width := a.Kind.Size()
	a.fill = make([]byte, width)
	if width == 0 || len(text) == 0 {
		return
	}
	if err := fillOf(a.Kind, text, a.fill); err != nil {
		a.noFill = fmt.Sprintf("its fill value is %s: %v", show(text), err)
	}
}

var errFill = errors.New("such values are not read")

// fillOf writes a fill value as an element, little endian.
func fillOf(kind tensor.Kind, text json.RawMessage, to []byte) error {
	put := func(v uint64) error {
		for i := range min(8, len(to)) {
			to[i] = byte(v >> (8 * i))
		}
		return nil
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return err
	}
	switch v := value.(type) {
	case nil:
		return nil
	case bool:
		if v {
			return put(1)
		}
		return nil
	case string:
		if digits, hex := strings.CutPrefix(v, "0x"); hex {
			bits, err := strconv.ParseUint(digits, 16, 64)
			if err != nil || len(to) > 8 {
				return errFill
			}
			return put(bits)
		}
		f, err := strconv.ParseFloat(v, 64) // NaN, Infinity, -Infinity
		if err != nil {
			return errFill
		}
		return putFloat(kind, f, put)
	case json.Number:
		if kind.Integer() {
			if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
				return put(uint64(n))
			}
			n, err := strconv.ParseUint(v.String(), 10, 64)
			if err != nil {
				return errFill
			}
			return put(n)
		}
		f, err := v.Float64()
		if err != nil {
			return errFill
		}
		return putFloat(kind, f, put)
	}
	return errFill
}

// putFloat puts the bits of a number.
func putFloat(kind tensor.Kind, f float64, put func(uint64) error) error {
	switch bits := math.Float32bits(float32(f)); {
	case f != f: // of all that are none, that of NumPy: Go's has another bit set
		switch kind {
		case "float64":
			return put(0x7ff8 << 48)
		case "float32":
			return put(0x7fc0 << 16)
		case "bfloat16":
			return put(0x7fc0)
		case "float16":
			return put(0x7e00)
		}
	case f == 0 && !math.Signbit(f):
		return nil
	case kind == "float64":
		return put(math.Float64bits(f))
	case kind == "float32":
		return put(uint64(bits))
	case kind == "bfloat16" && float64(float32(f)) == f && bits&0xffff == 0:
		return put(uint64(bits >> 16))
	}
	return errFill
}
