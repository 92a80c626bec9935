package zipdir_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"

	"holdfast/hdfsckpt/limit"
	"holdfast/hdfsckpt/zipdir"
	"holdfast/test/bound"
)

// archive is an archive of so many members, with a comment behind it.
func archive(t testing.TB, members int, comment string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for i := range members {
		f, err := w.CreateHeader(&zip.FileHeader{Name: fmt.Sprintf("archive/data/%d", i), Method: zip.Store})
		if err == nil {
			_, err = f.Write([]byte{byte(i)})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	err := w.SetComment(comment)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func open(b []byte) (*zip.Reader, error) { return zipdir.Open(bytes.NewReader(b), int64(len(b))) }

// TestOpen reads archives as archive/zip does: small ones, such with a record of large ones, and
// with a long comment; and the memory for that is enough.
func TestOpen(t *testing.T) {
	for _, members := range []int{0, 1, 1000, 70_000} {
		for _, comment := range []string{"", strings.Repeat("c", 60_000)} {
			b := archive(t, members, comment)
			memory, err := zipdir.Memory(bytes.NewReader(b), int64(len(b)))
			if err != nil || memory > 1<<20+int64(1000*members) {
				t.Errorf("%d members: reading them takes %d bytes, %v", members, memory, err)
			}
			z, err := open(b)
			if err != nil || len(z.File) != members || z.Comment != comment {
				t.Errorf("%d members, a comment of %d bytes: %v", members, len(comment), err)
				continue
			}
			for i := 0; i < members; i += 999 {
				r, err := z.File[i].Open()
				if err == nil {
					var got []byte
					if got, err = io.ReadAll(r); len(got) != 1 || got[0] != byte(i) {
						t.Errorf("member %d has %x", i, got)
					}
				}
				if err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// TestCut: what is cut off anywhere is an error, and not one of a bound.
func TestCut(t *testing.T) {
	b := archive(t, 3, "")
	for n := range b {
		if _, err := open(b[:n]); err == nil || limit.IsExceeded(err) {
			t.Errorf("of %d bytes the first %d: %v", len(b), n, err)
		}
	}
}

// end64 is the end of a large archive behind so many bytes.
func end64(before int, members, directory uint64) []byte {
	b := make([]byte, 56+20+22)
	copy(b, "PK\x06\x06")
	binary.LittleEndian.PutUint64(b[24:], members)
	binary.LittleEndian.PutUint64(b[32:], members)
	binary.LittleEndian.PutUint64(b[40:], directory)
	copy(b[56:], "PK\x06\x07")
	binary.LittleEndian.PutUint64(b[64:], uint64(before))
	binary.LittleEndian.PutUint32(b[72:], 1)
	copy(b[76:], "PK\x05\x06")
	for i := 84; i < 96; i++ {
		b[i] = 0xff
	}
	return b
}

// zeros is a large file of zeros before some bytes.
type zeros struct {
	before int64
	end    []byte
}

func (z zeros) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	if from := z.before - off; from < int64(len(p)) {
		if from >= 0 {
			copy(p[from:], z.end)
		} else {
			copy(p, z.end[min(int64(len(z.end)), -from):])
		}
	}
	if off+int64(len(p)) > z.before+int64(len(z.end)) {
		return int(z.before) + len(z.end) - int(off), io.EOF
	}
	return len(p), nil
}

// TestAnArchiveCannotClaimMemory opens archives that say that they have large directories, or
// have larger ones than they say.
func TestAnArchiveCannotClaimMemory(t *testing.T) {
	const before = 1 << 40
	entry := append([]byte("PK\x01\x02"), make([]byte, 43)...)
	entry[28] = 1 // the length of its name
	many := bytes.Repeat(entry, 300_000)
	few := append(many, end64(len(many), 1, uint64(len(entry)))...)
	for name, x := range map[string]struct {
		r        io.ReaderAt
		size     int64
		exceeded bool
	}{
		"many members in few bytes":   {zeros{before, end64(before, 1<<24, 1000)}, before + 98, false},
		"a directory larger than all": {zeros{before, end64(before, 1, 1<<50)}, before + 98, false},
		"a large directory":           {zeros{before, end64(before, 1000, 1<<38)}, before + 98, true},
	} {
		end := bound.Memory(t, 0, 0)
		_, err := zipdir.Open(x.r, x.size)
		if err == nil || limit.IsExceeded(err) != x.exceeded {
			t.Errorf("%s: %v", name, err)
		}
		_, err = zipdir.Memory(x.r, x.size)
		end()
		if err == nil || limit.IsExceeded(err) != x.exceeded {
			t.Errorf("%s: how much it takes: %v", name, err)
		}
	}
	end := bound.Memory(t, 0, 0)
	_, err := open(few)
	end()
	if err == nil {
		t.Error("a directory that goes on behind its end is read")
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(archive(f, 3, ""))
	f.Add(archive(f, 2, "a comment"))
	b := archive(f, 1, "")
	f.Add(append(b, end64(len(b), 1, 60)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		memory, sized := zipdir.Memory(bytes.NewReader(b), int64(len(b)))
		end := bound.Memory(t, len(b), 50)
		z, err := open(b)
		end()
		if err == nil && (sized != nil || len(z.File) > len(b)/46) {
			t.Errorf("%d members in %d bytes, for which %d bytes of memory were enough: %v", len(z.File), len(b), memory, sized)
		}
	})
}
