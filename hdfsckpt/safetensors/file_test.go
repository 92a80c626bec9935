package safetensors_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"holdfast/hdfsckpt/safetensors"
	"holdfast/test/bound"
)

func few(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/few.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func open(b []byte) ([]safetensors.Tensor, error) {
	return safetensors.Open(bytes.NewReader(b), int64(len(b)))
}

// file makes a file of a header and n bytes of tensors.
func file(header string, n int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, n)...)
}

func TestTensorsAsTheLibraryWroteThem(t *testing.T) {
	b := few(t)
	all, err := open(b)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, x := range all {
		got[x.Name] = fmt.Sprint(x.Kind, x.Shape, x.Size)
		if x.Name == "bias" && !bytes.Equal(b[x.Offset:x.Offset+x.Size], []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 0, 0, 0x60, 0x40}) {
			t.Errorf("bias has the bytes %x", b[x.Offset:x.Offset+x.Size])
		}
	}
	want := map[string]string{"bias": "float32[3] 12", "weight": "int64[2 3] 48", "half": "float16[] 2", "none": "uint8[0 4] 0"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestCutAnywhere: whatever is missing at the end, the file is not taken for whole, and
// once its header has begun it is known to be cut off.
func TestCutAnywhere(t *testing.T) {
	b := few(t)
	for n := range b {
		if _, err := open(b[:n]); err == nil || safetensors.IsCut(err) != (n == 0 || n > 8) {
			t.Errorf("of %d bytes the first %d: %v", len(b), n, err)
		}
	}
}

func TestOthers(t *testing.T) {
	const one = `{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`
	for name, x := range map[string]struct {
		file    []byte
		foreign bool
		want    string // in the error; empty: none
	}{
		"whole":              {file(one, 4), false, ""},
		"no tensors":         {file("{}", 0), false, ""},
		"padded":             {file("{}      ", 0), false, ""},
		"a new kind":         {file(`{"a":{"dtype":"F4","shape":[4],"data_offsets":[0,2]}}`, 2), false, ""},
		"longer":             {file(one, 5), false, "end at"},
		"a pointer's text":   {[]byte("version https://git-lfs.github.com/spec/v1\noid sha256:0\n"), true, "does not begin"},
		"no JSON":            {file("{a}", 9), true, "header"},
		"no object":          {file("{}1", 9), true, "header"},
		"offsets":            {file(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[4]}}`, 4), true, "offsets"},
		"backwards":          {file(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}}`, 4), true, "offsets"},
		"overflow":           {file(`{"a":{"dtype":"F4","shape":[4],"data_offsets":[0,9223372036854775807]}}`, 4), true, "offsets"},
		"shape":              {file(`{"a":{"dtype":"U8","shape":[5],"data_offsets":[0,4]}}`, 4), true, "takes 5 bytes"},
		"a negative shape":   {file(`{"a":{"dtype":"U8","shape":[-2,-2],"data_offsets":[0,4]}}`, 4), true, "shape"},
		"an enormous shape":  {file(`{"a":{"dtype":"F64","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, 0), true, "shape"},
		"an enormous header": {append(binary.LittleEndian.AppendUint64(nil, 1<<62), "{}"...), true, "does not begin"},
	} {
		_, err := open(x.file)
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) || safetensors.IsForeign(err) != x.foreign || safetensors.IsCut(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// failing is a file that cannot be read.
type failing struct{ io.ReaderAt }

var errRead = errors.New("no DataNode answers")

func (failing) ReadAt([]byte, int64) (int, error) { return 0, errRead }

func TestErrorsOfTheReader(t *testing.T) {
	if _, err := safetensors.Open(failing{}, 100); !errors.Is(err, errRead) || safetensors.IsCut(err) || safetensors.IsForeign(err) {
		t.Errorf("%v", err)
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(few(f))
	f.Add(file(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, 4))
	f.Add(file(`{"a":{"dtype":"U8","shape":[`+strings.Repeat("1,", 1000)+`1],"data_offsets":[0,1]}}`, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer bound.Memory(t, len(b), 1000)()
		all, err := open(b)
		if err != nil {
			return
		}
		for _, x := range all {
			if x.Offset < 0 || x.Size < 0 || x.Offset+x.Size > int64(len(b)) {
				t.Errorf("%+v lies outside of %d bytes", x, len(b))
			}
		}
	})
}
