package hdf5_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/hdfsckpt/hdf5"
	"holdfast/test/bound"
)

// recorded are files that h5py wrote (testdata/save.py).
func recorded(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/*.h5")
	if err != nil || len(names) != 4 {
		t.Fatalf("recorded are %v, %v", names, err)
	}
	files := map[string][]byte{}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimSuffix(filepath.Base(name), ".h5")] = b
	}
	return files
}

func datasets(b []byte) ([]*hdf5.Dataset, error) {
	return hdf5.Datasets(bytes.NewReader(b), int64(len(b)), nil)
}

// look finds the datasets of a file, and reads a bounded part of what they say that they have.
// It returns the first error that is not IsUnsupported.
func look(t testing.TB, b []byte) error {
	found, wrong := datasets(b)
	if hdf5.IsUnsupported(wrong) {
		wrong = nil
	}
	const most = 1 << 16 // bytes of a dataset, and of a chunk
	for i, d := range found {
		if d.Err == nil && d.Size < 0 {
			t.Errorf("%s has %d bytes", d.Name, d.Size)
		}
		if i >= 32 {
			continue
		}
		rows := d.Rows
		if d.Chunked() {
			rows = func() (io.Reader, error) { return d.Chunks(most) }
		}
		r, err := rows()
		if err == nil {
			_, err = io.CopyN(io.Discard, r, most)
		}
		if err != nil && err != io.EOF && !hdf5.IsUnsupported(err) && wrong == nil {
			wrong = err
		}
	}
	return wrong
}

// TestChunks: chunk by chunk there are the same elements as in rows, within a limit.
func TestChunks(t *testing.T) {
	found, err := datasets(recorded(t)["chunks"])
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, d := range found {
		if d.Err != nil || d.Size == 0 || d.Name == "part" {
			continue
		}
		rows, err := d.Rows()
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		want, err := io.ReadAll(rows)
		if err != nil {
			t.Error(err)
		}
		chunks, err := d.Chunks(11 * 3 * 8)
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		got, err := io.ReadAll(chunks)
		if err != nil || bytes.Equal(got, want) || !slices.Equal(elements(got, d.Kind.Size()), elements(want, d.Kind.Size())) {
			t.Errorf("%s has in chunks %x, %v; in rows %x", d.Name, got, err, want)
		}
		if _, err := d.Chunks(4*3*4 - 1); err == nil {
			t.Errorf("%s: a chunk is larger than the limit", d.Name)
		}
		read++
	}
	if read != 3 {
		t.Errorf("%d are read", read)
	}
}

func elements(b []byte, width int) []string {
	var all []string
	for c := range slices.Chunk(b, width) {
		all = append(all, string(c))
	}
	slices.Sort(all)
	return all
}

// TestWhatIsReadIsAdmitted: whoever admits nothing has nothing read.
func TestWhatIsReadIsAdmitted(t *testing.T) {
	b := recorded(t)["links"]
	errMuch := errors.New("too much")
	last := int64(0)
	_, err := hdf5.Datasets(bytes.NewReader(b), int64(len(b)), func(n int64) error {
		if n <= last {
			t.Errorf("after %d bytes there are %d", last, n)
		}
		last = n
		return nil
	})
	if err != nil || last < 1000 || last > 2*int64(len(b)) {
		t.Errorf("of %d bytes %d are read: %v", len(b), last, err)
	}
	for _, limit := range []int64{0, last - 1} {
		_, err := hdf5.Datasets(bytes.NewReader(b), int64(len(b)), func(n int64) error {
			if n > limit {
				return errMuch
			}
			return nil
		})
		if !errors.Is(err, errMuch) {
			t.Errorf("with %d bytes: %v", limit, err)
		}
	}
}

// failing is a file that cannot be read.
type failing struct{}

var errRead = errors.New("no DataNode answers")

func (failing) ReadAt([]byte, int64) (int, error) { return 0, errRead }

func TestErrorsOfTheReader(t *testing.T) {
	if _, err := hdf5.Datasets(failing{}, 100, nil); !errors.Is(err, errRead) || hdf5.IsUnsupported(err) {
		t.Errorf("%v", err)
	}
}

// TestHoles: a file of which a part was never written, as of a copy that was broken off, is
// not sound, though it has its length and its beginning, unless only values are missing.
func TestHoles(t *testing.T) {
	for name, b := range recorded(t) {
		if err := look(t, b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, from := range []int{len(b) / 8, len(b) / 4, len(b) / 2} {
			torn := slices.Clone(b)
			clear(torn[from:])
			if err := look(t, torn); err == nil {
				t.Errorf("of %s, the last %d bytes are zeros, and it is sound", name, len(b)-from)
			}
		}
	}
}

// TestDamage: whichever byte is wrong, and wherever the file ends, nothing worse happens than
// an error.
func TestDamage(t *testing.T) {
	for _, b := range recorded(t) {
		for at := 0; at < len(b); at += 3 {
			bad := slices.Clone(b)
			bad[at] = []byte{0, 1, 0x7f, 0xff, ^bad[at]}[at%5]
			_ = look(t, bad)
			if at%8 == 0 {
				_ = look(t, b[:at])
			}
		}
	}
}

const end = ^uint64(0)

// built is a file of the newer form with the messages of its root group, behind which it goes
// on with what is at byte 1024.
func built(root []byte, more ...byte) []byte {
	b := make([]byte, 1024)
	copy(b, hdf5.Signature+"\x02\x08\x08\x00")
	for i, v := range []uint64{0, end, 1024 + uint64(len(more)), 48} {
		binary.LittleEndian.PutUint64(b[12+8*i:], v)
	}
	copy(b[48:], header(root))
	return append(b, more...)
}

// header is the header of an object.
func header(messages []byte) []byte {
	b := append([]byte("OHDR\x02\x01"), byte(len(messages)), byte(len(messages)>>8))
	return append(append(b, messages...), 0, 0, 0, 0)
}

// message is one in a header. Its numbers have 8 bytes.
func message(kind byte, parts ...any) []byte {
	data := packed(parts...)
	return append([]byte{kind, byte(len(data)), byte(len(data) >> 8), 0}, data...)
}

func packed(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch p := p.(type) {
		case int:
			b = binary.LittleEndian.AppendUint64(b, uint64(p))
		case uint64:
			b = binary.LittleEndian.AppendUint64(b, p)
		case string:
			b = append(b, p...)
		}
	}
	return b
}

// TestWhatCannotBe: files that refer to themselves, or say that they have much, end in an
// error, in a bounded time and memory.
func TestWhatCannotBe(t *testing.T) {
	const (
		space, of, link, layout, more, table, info = 1, 3, 6, 8, 16, 17, 2
		float                                      = "\x11\x20\x1f\x00\x04\x00\x00\x00\x00\x00\x20\x00\x17\x08\x00\x17\x7f\x00\x00\x00"
	)
	to := func(name string, at int) []byte { return message(link, "\x01\x00"+string(byte(len(name)))+name, at) }
	data := func(shape []byte, at, size uint64) []byte {
		return header(slices.Concat(shape, message(of, float), message(layout, "\x03\x01", at, size)))
	}
	node := func(level string, children int, rest ...any) []byte {
		return packed("TREE\x00"+level+string([]byte{byte(children), 0}), end, end, string(packed(rest...)))
	}
	for name, x := range map[string]struct {
		file []byte
		want string // in the error; empty: none
	}{
		"a sound one":                     {built(to("a", 1024), append(data(message(space, "\x02\x01\x00\x01", 2), 0, 8), make([]byte, 8)...)...), ""},
		"no members":                      {built(nil), ""},
		"a group in itself":               {built(to("a", 48)), ""},
		"groups in each other":            {built(to("a", 1024), header(to("b", 48))...), ""},
		"a header that goes on in itself": {built(message(more, 1024, 28), packed("OCHK", string(message(more, 1024, 28)), "\x00\x00\x00\x00")...), "circles"},
		"a header that goes on nowhere":   {built(message(more, 1024, 28)), "beyond"},
		"a header that goes on in little": {built(message(more, 1024, 3), make([]byte, 99)...), "goes on in 3 bytes"},
		"no header":                       {built(to("a", 1030), make([]byte, 99)...), "there is none"},
		"a header behind the end":         {built(to("a", 1<<40)), "beyond"},
		"a member without a name":         {built(to("", 1024), header(nil)...), `called ""`},
		"a member in another":             {built(to("a/b", 1024), header(nil)...), `called "a/b"`},
		"a long name":                     {built(message(link, "\x01\x03", end)), "cut off"},
		"a B-tree in itself":              {built(message(table, 1024, 1100), slices.Concat(node("\x01", 1, 0, 1024), make([]byte, 36), packed("HEAP\x00\x00\x00\x00", 8, 8, 1132), make([]byte, 8))...), "another level"},
		"a B-tree of much":                {built(message(table, 1024, 1064), slices.Concat(node("\x00", 255), make([]byte, 16), packed("HEAP\x00\x00\x00\x00", 8, 8, 1096), make([]byte, 8))...), "beyond"},
		"a large heap of names":           {built(message(table, 1024, 1024), packed("HEAP\x00\x00\x00\x00", 1<<60, 8, 1024)...), "beyond"},
		"a fractal heap of nothing":       {built(message(info, "\x00\x00", 1024, 1024), make([]byte, 200)...), "FRHP"},
		"an impossible shape":             {built(to("a", 1024), data(message(space, "\x02\x02\x00\x01", 1<<40, 1<<40), 0, 8)...), "impossible"},
		"a negative shape":                {built(to("a", 1024), data(message(space, "\x02\x01\x00\x01", end), 0, 8)...), "impossible"},
		"many dimensions":                 {built(to("a", 1024), data(message(space, "\x02\xff\x00\x01", end), 0, 8)...), "255 dimensions"},
		"more than there is":              {built(to("a", 1024), data(message(space, "\x02\x01\x00\x01", 1<<40), 0, 4<<40)...), "beyond"},
		"another size than the shape's":   {built(to("a", 1024), data(message(space, "\x02\x01\x00\x01", 2), 0, 12)...), "take 8 bytes"},
		"elements at the end of numbers":  {built(to("a", 1024), data(message(space, "\x02\x01\x00\x01", 2), end-3, 8)...), "beyond"},
		"a large chunk": {built(to("a", 1024), header(slices.Concat(message(space, "\x02\x01\x00\x01", 1<<40), message(of, float),
			message(layout, "\x03\x02\x02", 0, "\xff\xff\xff\xff\x04\x00\x00\x00")))...), "chunks"},
	} {
		done := bound.Memory(t, len(x.file), 100)
		err := look(t, x.file)
		done()
		if x.want == "" && err != nil || x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
	}
}

// FuzzDatasets looks at files that the library of HDF5 did not write.
func FuzzDatasets(f *testing.F) {
	files := recorded(f)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f.Add(files[name])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer bound.Memory(t, len(b), 1000)()
		_ = look(t, b)
	})
}
