// Package safetensors reads files of tensors in the form of Hugging Face's library of
// that name, without it.
//
// A file is the length of its header (8 bytes, little endian), the header, which is a
// JSON object, and the tensors' bytes, one after the other:
//
//	{"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [BEGIN, END]}, ...}
//
// Offsets count from the header's end. An entry __metadata__ holds texts. There are no
// checksums. The library refuses a file that is longer or shorter than its header says,
// and a header of more than 100 MB (safetensors/src/tensor.rs).
package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"holdfast/hdfsckpt/tensor"
)

// maxHeader is how long the library lets a header be.
const maxHeader = 100_000_000

// lengthSize is how many bytes the length of the header has.
const lengthSize = 8

type (
	cutError     struct{ error }
	foreignError struct{ error }
)

var errBegin = foreignError{errors.New("it does not begin as a file of safetensors does")}

// IsCut reports whether an error of Open shows that a file ends before its last tensor.
func IsCut(err error) bool { return errors.As(err, new(cutError)) }

// IsForeign reports whether an error of Open shows that a file is of another form, or
// that its header was damaged.
func IsForeign(err error) bool { return errors.As(err, new(foreignError)) }

// Tensor is a tensor of a file.
type Tensor struct {
	Name   string
	Kind   tensor.Kind
	Shape  []int64
	Offset int64 // of its bytes, in the file
	Size   int64 // in bytes
}

// kinds has what dtypes mean. Others are named as they are.
var kinds = map[string]tensor.Kind{
	"BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32", "I32": "int32",
	"U64": "uint64", "I64": "int64", "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
	"F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "C64": "complex64",
}

// memoryInEach bounds the memory that Open takes for each byte of a header. An entry of a hundred
// bytes takes three hundred.
const memoryInEach = 12

// Memory returns how many bytes of memory Open takes at most. It reads the beginning of the file.
func Memory(r io.ReaderAt, size int64) (int64, error) {
	n, err := HeaderSize(r, size)
	return memoryInEach * n, err
}

// HeaderSize returns the length of a file's header in bytes, and reads only the beginning of
// the file. An error that is neither IsCut nor IsForeign is the reader's.
func HeaderSize(r io.ReaderAt, size int64) (int64, error) {
	if size == 0 {
		return 0, cutError{errors.New("it is empty")}
	}
	begin := make([]byte, min(size, lengthSize+1))
	if n, err := r.ReadAt(begin, 0); n < len(begin) {
		return 0, noEOF(err)
	}
	if len(begin) <= lengthSize {
		return 0, foreignError{fmt.Errorf("it has %d bytes", size)}
	}
	length := binary.LittleEndian.Uint64(begin)
	switch {
	case begin[lengthSize] != '{' || length > maxHeader:
		return 0, errBegin
	case int64(length) > size-lengthSize:
		return 0, cutError{fmt.Errorf("it has %d bytes, and its header alone %d", size, length)}
	}
	return int64(length), nil
}

// Open returns the tensors of a file, sorted by their offsets. It reads the header, which
// takes memory in proportion to its length (HeaderSize). An error for a longer file than
// its header says is neither IsCut nor IsForeign.
func Open(r io.ReaderAt, size int64) ([]Tensor, error) {
	length, err := HeaderSize(r, size)
	if err != nil {
		return nil, err
	}
	text := make([]byte, length)
	if n, err := r.ReadAt(text, lengthSize); n < len(text) {
		return nil, noEOF(err)
	}
	all, err := tensorsOf(bytes.NewReader(text), lengthSize+length)
	if err != nil {
		return nil, err
	}
	need := lengthSize + length
	for _, t := range all {
		need = max(need, t.Offset+t.Size)
	}
	switch {
	case size < need:
		return nil, cutError{fmt.Errorf("it has %d bytes, %d are needed", size, need)}
	case size > need:
		return nil, fmt.Errorf("it has %d bytes, and its tensors end at %d", size, need)
	}
	slices.SortFunc(all, func(a, b Tensor) int {
		if a.Offset != b.Offset {
			return int(max(-1, min(1, a.Offset-b.Offset)))
		}
		return strings.Compare(a.Name, b.Name)
	})
	return all, nil
}

// tensorsOf reads a header entry by entry. It ends at begin in the file. Of several entries of one
// name the last counts.
func tensorsOf(header io.Reader, begin int64) ([]Tensor, error) {
	foreign := func(err error) error { return foreignError{fmt.Errorf("its header: %w", noEOF(err))} }
	d := json.NewDecoder(header)
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, foreign(cmp.Or(err, errBegin.error))
	}
	var all []Tensor
	at := map[string]int{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, foreign(err)
		}
		name, _ := key.(string) // d accepts no other
		var text json.RawMessage
		if err := d.Decode(&text); err != nil {
			return nil, foreign(err)
		}
		if name == "__metadata__" {
			continue
		}
		t, err := parse(text, begin)
		if err != nil {
			return nil, foreignError{fmt.Errorf("its tensor %s: %w", name, err)}
		}
		t.Name = name
		if i, again := at[name]; again {
			all[i] = t
			continue
		}
		at[name] = len(all)
		all = append(all, t)
	}
	if _, err := d.Token(); err != nil { // the end of the object
		return nil, foreign(err)
	}
	if t, err := d.Token(); err != io.EOF {
		return nil, foreign(cmp.Or(err, fmt.Errorf("%v follows its end", t)))
	}
	return all, nil
}

// parse reads a tensor's entry in the header, which ends at begin in the file.
func parse(text json.RawMessage, begin int64) (Tensor, error) {
	var entry struct {
		DType   string  `json:"dtype"`
		Shape   []int64 `json:"shape"`
		Offsets []int64 `json:"data_offsets"`
	}
	if err := json.Unmarshal(text, &entry); err != nil {
		return Tensor{}, err
	}
	o := entry.Offsets
	if len(o) != 2 || o[0] < 0 || o[1] < o[0] || o[1] > math.MaxInt64/2 {
		return Tensor{}, fmt.Errorf("its offsets are %d", o)
	}
	t := Tensor{Kind: kinds[entry.DType], Shape: entry.Shape, Offset: begin + o[0], Size: o[1] - o[0]}
	if t.Kind == "" {
		t.Kind = tensor.Kind(strings.ToLower(entry.DType))
		return t, nil
	}
	n := int64(t.Kind.Size())
	for _, d := range t.Shape {
		if d < 0 || d > 0 && n > math.MaxInt64/d {
			return Tensor{}, fmt.Errorf("its shape is %d", t.Shape)
		}
		n *= d
	}
	if n != t.Size {
		return Tensor{}, fmt.Errorf("its shape %d of %s takes %d bytes, and it has %d", t.Shape, t.Kind, n, t.Size)
	}
	return t, nil
}

// noEOF is the error of a file that became shorter while it was read.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
