package torchfile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"holdfast/hdfsckpt/limit"
	"holdfast/hdfsckpt/tensor"
	"holdfast/hdfsckpt/torchfile"
	"holdfast/test/bound"
)

// told is what PyTorch reads back from a fixture (testdata/make.py).
type told struct {
	DType  tensor.Kind
	Shape  []int64
	Values []any
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func truth(t testing.TB, name string) map[string]told {
	t.Helper()
	var want map[string]told
	d := json.NewDecoder(bytes.NewReader(read(t, name)))
	d.UseNumber()
	if err := d.Decode(&want); err != nil {
		t.Fatal(err)
	}
	return want
}

func open(t testing.TB, name string) *torchfile.File {
	t.Helper()
	b := read(t, name)
	f, err := torchfile.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return f
}

// agree compares a tensor's bytes with what PyTorch read.
func agree(t *testing.T, name string, kind tensor.Kind, shape []int64, b []byte, w told) int {
	t.Helper()
	if kind != w.DType || !slices.Equal(shape, w.Shape) {
		t.Errorf("%s is %s %v, PyTorch says %s %v", name, kind, shape, w.DType, w.Shape)
		return 0
	}
	if len(b) != len(w.Values)*kind.Size() {
		t.Errorf("%s has %d bytes, PyTorch says %d elements of %s", name, len(b), len(w.Values), kind)
		return 0
	}
	for i, v := range w.Values {
		one := b[i*kind.Size():]
		if re, im, ok := kind.Complex(one); ok {
			if fmt.Sprint(parse(t, v.([]any)[0]), parse(t, v.([]any)[1])) != fmt.Sprint(re, im) {
				t.Errorf("%s[%d] is %v%+vj, PyTorch says %v", name, i, re, im, v)
			}
			continue
		}
		if kind.Integer() {
			if got := kind.Text(one); got != fmt.Sprint(v) {
				t.Errorf("%s[%d] is %s, PyTorch says %v", name, i, got, v)
			}
			continue
		}
		got, want := kind.Number()(one), parse(t, v)
		if got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%s[%d] is %v, PyTorch says %v", name, i, got, v)
		}
	}
	return len(w.Values)
}

func parse(t *testing.T, v any) float64 {
	t.Helper()
	f, err := strconv.ParseFloat(fmt.Sprint(v), 64)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestTensorsAgreeWithPyTorch(t *testing.T) {
	for name, least := range map[string]int{"train-40.pt": 140, "kinds.pth": 140} {
		f, want := open(t, name), truth(t, name+".json")
		compared := 0
		for i := range f.Tensors {
			x := &f.Tensors[i]
			b, err := f.Read(x)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			compared += agree(t, x.Name, x.Kind, x.Shape, b, want[x.Name])
			delete(want, x.Name)
		}
		if len(want) != 0 || compared < least {
			t.Errorf("%s: %d values were compared; missing are %v", name, compared, want)
		}
	}
}

// TestOtherForms reads what is no dictionary of tensors.
func TestOtherForms(t *testing.T) {
	for name, want := range map[string]string{"alone.pt": " int64 [7];", "module.pt": "_parameters.weight float32 [1 2];_parameters.bias float32 [1];", "unchecked.pt": "a int64 [5];"} {
		f, got := open(t, name), ""
		for i := range f.Tensors {
			x := &f.Tensors[i]
			got += fmt.Sprintf("%s %s %v;", x.Name, x.Kind, x.Shape)
			if b, err := f.Read(x); err != nil || int64(len(b)) != x.Bytes() {
				t.Errorf("%s: %s: %d bytes, %v", name, x.Name, len(b), err)
			}
		}
		if got != want {
			t.Errorf("%s has %q, want %q", name, got, want)
		}
		checked := 0
		for _, r := range f.Archive().Records {
			if r.Checked() {
				checked++
			}
		}
		if (checked == 0) != (name == "unchecked.pt") {
			t.Errorf("%s: %d of %d records have checksums", name, checked, len(f.Archive().Records))
		}
	}
	legacy := read(t, "legacy.pt")
	if !torchfile.IsLegacy(legacy[:torchfile.MagicSize]) || torchfile.IsZip(legacy) || torchfile.IsLegacy(read(t, "alone.pt")) || !torchfile.IsZip(read(t, "alone.pt")) {
		t.Error("the old form is not told from the new one")
	}
	if _, err := torchfile.Open(bytes.NewReader(legacy), int64(len(legacy))); !torchfile.IsDamaged(err) {
		t.Errorf("the old form is read as the new one: %v", err)
	}
}

// whole reads all there is in a file and compares all checksums.
func whole(b []byte) error {
	f, err := torchfile.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return err
	}
	for i := range f.Archive().Records {
		r, err := f.Archive().Records[i].Open()
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// TestDamage cuts a file off everywhere, and flips bits in its records.
func TestDamage(t *testing.T) {
	b := read(t, "train-40.pt")
	if err := whole(b); err != nil {
		t.Fatal(err)
	}
	for i := range b {
		if err := whole(b[:i]); !torchfile.IsDamaged(err) {
			t.Fatalf("cut off at %d of %d: %v", i, len(b), err)
		}
	}
	a := open(t, "train-40.pt").Archive()
	for i := range a.Records {
		offset, err := a.Records[i].Offset()
		if err != nil {
			t.Fatal(err)
		}
		for range min(100, 8*a.Records[i].Size) {
			at := offset + rand.Int64N(a.Records[i].Size)
			bit := byte(1) << rand.IntN(8)
			b[at] ^= bit
			if err := whole(b); err == nil {
				t.Errorf("%s: a bit of byte %d was flipped unnoticed", a.Records[i].Name, at)
			}
			b[at] ^= bit
		}
	}
}

func TestDistributed(t *testing.T) {
	m, err := torchfile.ParseMetadata(read(t, "dcp-300/.metadata"))
	if err != nil {
		t.Fatal(err)
	}
	want, others := truth(t, "dcp-300.json"), ""
	for i := range m.Items {
		item := &m.Items[i]
		if !item.Tensor {
			others += " " + item.Name
			continue
		}
		b, err := item.Read(opener)
		if err != nil {
			t.Errorf("%s: %v", item.Name, err)
			continue
		}
		agree(t, item.Name, item.Kind, item.Shape, b, want[item.Name])
		delete(want, item.Name)
		if n := map[string]int{"model.rows": 2, "model.columns": 2}[item.Name]; n != 0 && len(item.Chunks) != n {
			t.Errorf("%s has %d chunks", item.Name, len(item.Chunks))
		}
	}
	if len(want) != 0 || others != " name step" {
		t.Errorf("missing are %v; beside tensors there are%s", want, others)
	}
	sizes := m.Sizes()
	for _, name := range []string{"__0_0.distcp", "__1_0.distcp"} {
		if have := int64(len(read(t, "dcp-300/"+name))); sizes[name] != have {
			t.Errorf("%s needs %d bytes, PyTorch wrote %d", name, sizes[name], have)
		}
	}
	if len(sizes) != 2 {
		t.Errorf("its files are %v", sizes)
	}
	b := read(t, "dcp-300/.metadata")
	for i := range b {
		if _, err := torchfile.ParseMetadata(b[:i]); !torchfile.IsMetadataDamaged(err) {
			t.Fatalf("cut off at %d of %d: %v", i, len(b), err)
		}
	}
}

func opener(file string) (io.ReaderAt, error) {
	b, err := os.ReadFile(filepath.Join("testdata/dcp-300", file))
	return bytes.NewReader(b), err
}

// TestHostilePickles: a pickle that would run a command, were it run, is only
// read; and ones that would cost memory or never end are refused.
func TestHostilePickles(t *testing.T) {
	for name, x := range map[string]string{
		"a command":             "\x80\x02cposix\nsystem\nX\x04\x00\x00\x00exit\x85R.",
		"text without an end":   "\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f",
		"bytes without an end":  "\x80\x04\x96\xff\xff\xff\xff\xff\xff\xff\xff.",
		"an empty stack":        "\x80\x020.",
		"a mark as a value":     "\x80\x02(.",
		"nothing is remembered": "\x80\x02h\x01.",
		"a list in itself":      "\x80\x04]\x94h\x00a.",
		"no operation":          "\x80\x02\xff.",
	} {
		if m, err := torchfile.ParseMetadata([]byte(x)); !torchfile.IsMetadataDamaged(err) {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
}

// TestFilesElsewhere: a checkpoint cannot name a file outside of its directory.
func TestFilesElsewhere(t *testing.T) {
	b := read(t, "dcp-300/.metadata")
	for _, name := range []string{"../../../etc", "/etc/passwd1", "a/../../bcde"} { // as long as the true one
		hostile := bytes.ReplaceAll(b, []byte("__0_0.distcp"), []byte(name))
		if m, err := torchfile.ParseMetadata(hostile); !torchfile.IsMetadataDamaged(err) {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	for _, name := range []string{"train-40.pt", "kinds.pth", "module.pt", "unchecked.pt", "legacy.pt"} {
		f.Add(read(f, name))
	}
	f.Fuzz(func(t *testing.T, b []byte) { readAll(t, b) })
}

// FuzzPickle puts pickles into an otherwise sound archive.
func FuzzPickle(f *testing.F) {
	for _, name := range []string{"train-40.pt", "kinds.pth", "module.pt"} {
		b := read(f, name)
		a, err := torchfile.OpenArchive(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			f.Fatal(err)
		}
		r, err := a.Find("data.pkl").Open()
		if err != nil {
			f.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, pickle []byte) { readAll(t, archive(pickle)) })
}

func readAll(t *testing.T, b []byte) {
	end := bound.Memory(t, len(b), 1000)
	x, err := torchfile.Open(bytes.NewReader(b), int64(len(b)))
	end()
	if err != nil {
		return
	}
	for i := range x.Tensors {
		_ = x.Tensors[i].Bytes()
		end := bound.Memory(t, len(b), 100)
		_, _ = x.Read(&x.Tensors[i])
		if r, err := x.Rows(&x.Tensors[i]); r != nil && err == nil {
			_, _ = io.Copy(io.Discard, r)
		}
		end()
	}
}

func FuzzMetadata(f *testing.F) {
	f.Add(read(f, "dcp-300/.metadata"))
	f.Fuzz(func(t *testing.T, b []byte) {
		end := bound.Memory(t, len(b), 1000)
		m, err := torchfile.ParseMetadata(b)
		end()
		if err != nil {
			if torchfile.IsMetadataDamaged(err) == limit.IsExceeded(err) {
				t.Error(err)
			}
			return
		}
		m.Sizes()
		data := read(t, "dcp-300/__0_0.distcp")
		for i := range m.Items {
			_ = m.Items[i].Bytes()
			end := bound.Memory(t, len(b)+len(data), 100)
			open := func(file string) (io.ReaderAt, error) {
				if !filepath.IsLocal(file) {
					return nil, errors.New("a file elsewhere")
				}
				return bytes.NewReader(data), nil
			}
			_, _ = m.Items[i].Read(open)
			for _, r := range []io.Reader{m.Items[i].Rows(open, 1<<20), m.Items[i].Parts(open, 1<<20)} {
				if r != nil {
					_, _ = io.Copy(io.Discard, r)
				}
			}
			end()
		}
	})
}
