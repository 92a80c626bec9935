package checkpoint

import (
	"context"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"
	"time"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/formats"
	"holdfast/hdfsckpt/manifest"
	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// TestSumsAreOfFiles: in whatever order it is heard of that files were written,
// renamed, replaced and removed, what is sealed has the checksums of the bytes that
// are there.
func TestSumsAreOfFiles(t *testing.T) {
	const old, young = "older", "newer" // of one length
	crc := func(content string) uint32 { return crc32.Checksum([]byte(content), crc32.MakeTable(crc32.Castagnoli)) }
	write := func(t *testing.T, s store.Store, dir, name, content string) *proto.CommittedFile {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, ".tmp-"+name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := s.Rename(t.Context(), ".tmp-"+name, name); err != nil {
			t.Fatal(err)
		}
		i, err := s.Stat(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return &proto.CommittedFile{
			Name: []byte(name), Size: i.Size, Crc32C: crc(content), HasCrc32C: true, Inode: i.Inode, ModifiedUnixNs: i.ModTime.UnixNano(),
		}
	}
	rename := func(t *testing.T, s store.Store, from, to string) *proto.CommittedFile {
		t.Helper()
		if err := s.Rename(t.Context(), from, to); err != nil {
			t.Fatal(err)
		}
		return &proto.CommittedFile{Name: []byte(to), From: []byte(from)}
	}
	const name = "state-7.npz"
	for _, c := range []struct {
		name string
		do   func(t *testing.T, s store.Store, dir string) []*proto.CommittedFile // in the order they are heard of
		want string
	}{
		{"written", func(t *testing.T, s store.Store, dir string) []*proto.CommittedFile {
			return []*proto.CommittedFile{write(t, s, dir, name, young)}
		}, young},
		{"renamed, heard of first", func(t *testing.T, s store.Store, dir string) []*proto.CommittedFile {
			w := write(t, s, dir, "part", young)
			return []*proto.CommittedFile{rename(t, s, "part", name), w}
		}, young},
		{"a save again after its chief was lost: the rename is heard of before the new content", func(t *testing.T, s store.Store, dir string) []*proto.CommittedFile {
			lost := write(t, s, dir, "part", old)
			again := write(t, s, dir, "part", young)
			return []*proto.CommittedFile{lost, rename(t, s, "part", name), again}
		}, young},
		{"the same, and the new content is not heard of in time", func(t *testing.T, s store.Store, dir string) []*proto.CommittedFile {
			lost := write(t, s, dir, "part", old)
			write(t, s, dir, "part", young)
			return []*proto.CommittedFile{lost, rename(t, s, "part", name)}
		}, young},
		{"replaced by another task, which is not heard of", func(t *testing.T, s store.Store, dir string) []*proto.CommittedFile {
			w := write(t, s, dir, name, old)
			write(t, s, dir, name, young)
			return []*proto.CommittedFile{w}
		}, young},
		{"its number is another file's now", func(t *testing.T, s store.Store, dir string) []*proto.CommittedFile {
			w := write(t, s, dir, name, young)
			stale := &proto.CommittedFile{Name: []byte(name), Size: w.Size, Crc32C: crc(old), HasCrc32C: true, Inode: w.Inode, ModifiedUnixNs: w.ModifiedUnixNs - 1}
			return []*proto.CommittedFile{stale}
		}, young},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := store.NewLocal(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			sums := newSums(time.Time{})
			for _, f := range c.do(t, s, dir) {
				sums.add(f, time.Now())
			}
			i, err := s.Stat(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			found := format.Checkpoint{
				Name: name, Kind: formats.Plain, State: format.Complete, Time: time.Now(),
				Files: []format.File{{Name: name, Size: i.Size, ModTime: i.ModTime, Inode: i.Inode}},
			}
			m, err := hdfsckpt.Seal(context.Background(), s, found, manifest.Meta{}, sums.known)
			if err != nil {
				t.Fatal(err)
			}
			if m.Files[0].CRC32C != crc(c.want) {
				t.Errorf("sealed with the checksum %08x, and what is there has %08x", m.Files[0].CRC32C, crc(c.want))
			}
		})
	}
}

// TestKnownSumsAreUsed: what agents have summed is not read again.
func TestKnownSumsAreUsed(t *testing.T) {
	s := newSums(time.Time{})
	s.add(&proto.CommittedFile{Name: []byte("a"), Size: 3, Crc32C: 17, HasCrc32C: true, Inode: 5}, time.Now())
	s.add(&proto.CommittedFile{Name: []byte("b"), Size: 3, Crc32C: 18, Inode: 6}, time.Now())
	s.add(&proto.CommittedFile{Name: []byte("c"), Size: 3, Crc32C: 19, HasCrc32C: true}, time.Now())
	for inode, want := range map[uint64]bool{5: true, 6: false, 0: false} {
		if _, ok := s.known.Of(format.File{Name: "renamed", Size: 3, Inode: inode}); ok != want {
			t.Errorf("the checksum of file %d is known: %v", inode, ok)
		}
	}
	if _, ok := s.known.Of(format.File{Name: "a", Size: 4, Inode: 5}); ok {
		t.Error("a file that was added to has its former checksum")
	}
}

// TestHowLongASaveTook: from the first change of a file until the last was in its place, by the
// clock of the AM, whichever agents tell of it, and when; not where a file is older than what
// this AM has been told, and not again once the checkpoint has another name.
func TestHowLongASaveTook(t *testing.T) {
	heard := time.Unix(1000, 0)
	file := func(inode uint64, name string, writing, age int64) *proto.CommittedFile {
		return &proto.CommittedFile{Name: []byte(name), HasCrc32C: true, Inode: inode, WritingMs: writing, AgeMs: age}
	}
	listed := func(names ...string) (c format.Checkpoint) {
		for i, name := range names {
			c.Files = append(c.Files, format.File{Name: name, Inode: uint64(i + 1)})
		}
		return c
	}
	for name, c := range map[string]struct {
		told   []*proto.CommittedFile
		listed format.Checkpoint
		want   time.Duration
		known  bool
	}{
		"one file": {[]*proto.CommittedFile{file(1, "a", 700, 0)}, listed("a"), 700 * time.Millisecond, true},
		// From 1000 - 0.2 - 3 s to 1000 - 0.1 s.
		"two, of which one is told of late": {[]*proto.CommittedFile{file(1, "d/a", 3000, 200), file(2, "d/b", 500, 100)}, listed("d/a", "d/b"), 3100 * time.Millisecond, true},
		"a file of another checkpoint":      {[]*proto.CommittedFile{file(1, "d/a", 700, 0), file(9, "e/a", 90000, 0)}, listed("d/a"), 700 * time.Millisecond, true},
		"its directory is renamed at the end": {[]*proto.CommittedFile{
			file(1, "tmp/a", 700, 5000), {From: []byte("tmp"), Name: []byte("step-7"), AgeMs: 1000},
		}, listed("step-7/a"), 4700 * time.Millisecond, true},
		"a file is not known": {[]*proto.CommittedFile{file(1, "d/a", 700, 0)}, listed("d/a", "d/b"), 0, false},
		"nothing is there":    {nil, listed(), 0, false},
	} {
		s := newSums(time.Time{})
		for _, f := range c.told {
			s.add(f, heard)
		}
		took, known := s.saved(c.listed)
		if known != c.known || known && took != c.want {
			t.Errorf("%s: the save took %v (%v), want %v (%v)", name, took, known, c.want, c.known)
		}
		s.add(&proto.CommittedFile{From: []byte("d"), Name: []byte("former")}, heard.Add(time.Hour))
		if took, known := s.saved(c.listed); known {
			t.Errorf("%s: renamed an hour later, it was saved again, within %v", name, took)
		}
	}
}
