// Package storetest is the conformance suite of checkpoint stores.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/hdfsckpt/store"
)

// limit bounds each test: generous, for slow machines.
const limit = 2 * time.Minute

// suite is one test's view of a store.
type suite struct {
	*testing.T
	ctx context.Context
	s   store.Store
}

// Run checks that the stores that open returns, each of them empty, do what
// package hdfsckpt says.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for _, x := range []struct {
		name string
		test func(*suite)
	}{
		{"root", (*suite).root},
		{"hidden until closed", (*suite).hidden},
		{"replace", (*suite).replace},
		{"abort", (*suite).abort},
		{"missing", (*suite).missing},
		{"staged", (*suite).staged},
		{"rename to a new name", (*suite).renameNew},
		{"guarded", (*suite).guarded},
		{"directories", (*suite).directories},
		{"rename", (*suite).rename},
		{"rename of directories", (*suite).renameDirectories},
		{"names", (*suite).names},
		{"names that leave the root", (*suite).escapes},
		{"attributes", (*suite).attributes},
		{"read", (*suite).read},
		{"read a replaced file", (*suite).readReplaced},
		{"append", (*suite).appends},
		{"many writers", (*suite).writers},
		{"temporaries", (*suite).temporaries},
		{"a directory that a killed writer left", (*suite).abandoned},
		{"removed with all that is in it", (*suite).removeAll},
		{"helpers", (*suite).helpers},
		{"space", (*suite).space},
		{"context", (*suite).cancelled},
	} {
		t.Run(x.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			defer cancel()
			s := open(t)
			defer s.Close()
			x.test(&suite{t, ctx, s})
		})
	}
}

func (s *suite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// fails checks that an error carries one of these errnos, and a text of its own.
func (s *suite) fails(err error, want ...syscall.Errno) {
	s.Helper()
	var errno syscall.Errno
	if err == nil || !errors.As(err, &errno) {
		s.Fatalf("the error is %v, want one with %v", err, want)
	}
	for _, w := range want {
		if errno == w && errors.Is(err, w) {
			return
		}
	}
	s.Fatalf("the error is %v (errno %d), want %v", err, errno, want)
}

func (s *suite) write(name, content string) {
	s.Helper()
	s.must(store.WriteFile(s.ctx, s.s, name, []byte(content), 0o644))
}

func (s *suite) content(name string) string {
	s.Helper()
	b, err := store.ReadFile(s.ctx, s.s, name)
	s.must(err)
	return string(b)
}

func (s *suite) list(dir string) string {
	s.Helper()
	infos, err := s.s.List(s.ctx, dir)
	s.must(err)
	var names []string
	for _, i := range infos {
		name := i.Name
		if i.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// staged: a file has its name from the beginning, and its identity whatever it is
// called.
func (s *suite) staged() {
	w, err := s.s.Stage(s.ctx, "stage", 0o640)
	s.must(err)
	_, err = s.s.Stat(s.ctx, "stage")
	s.must(err)
	_, err = w.Write([]byte("content"))
	s.must(err)
	s.must(w.Close())
	s.must(w.Abort())
	if s.list(".") != "stage" || s.content("stage") != "content" {
		s.Errorf("%q", s.list("."))
	}
	_, err = s.s.Stage(s.ctx, "stage", 0o640)
	s.fails(err, syscall.EEXIST)
	_, err = s.s.Stage(s.ctx, "none/stage", 0o640)
	s.fails(err, syscall.ENOENT)
	s.must(s.s.Rename(s.ctx, "stage", "a"))
	i, err := s.s.Stat(s.ctx, "a")
	s.must(err)
	id := w.ID()
	if id.Inode == 0 || i.Inode != id.Inode || id.Modified != 0 && id.Modified != i.ModTime.UnixNano() || i.Mode != 0o640 {
		s.Errorf("it was %+v, and is %+v", id, i)
	}
	w, err = s.s.Stage(s.ctx, "b", 0o644)
	s.must(err)
	s.must(w.Abort())
	if s.list(".") != "a" {
		s.Errorf("an aborted file stays: %q", s.list("."))
	}
}

func (s *suite) renameNew() {
	s.write("a", "a")
	s.write("b", "b")
	s.must(s.s.Mkdir(s.ctx, "d", 0o755))
	s.must(s.s.RenameNew(s.ctx, "a", "d/a"))
	for _, to := range []string{"d/a", "d"} {
		s.fails(s.s.RenameNew(s.ctx, "b", to), syscall.EEXIST)
	}
	s.fails(s.s.RenameNew(s.ctx, "none", "c"), syscall.ENOENT)
	s.fails(s.s.RenameNew(s.ctx, "b", "none/b"), syscall.ENOENT)
	if s.content("d/a") != "a" || s.list(".") != "b d/" {
		s.Errorf("%q", s.list("."))
	}
}

// guarded: a change whose right is lost is not made.
func (s *suite) guarded() {
	s.write("a", "a")
	lost := fmt.Errorf("the lease is over: %w", syscall.EIO)
	ctx := store.Guarded(s.ctx, func() error { return lost })
	for what, err := range map[string]error{
		"rename":     s.s.Rename(ctx, "a", "b"),
		"rename new": s.s.RenameNew(ctx, "a", "b"),
		"remove":     s.s.Remove(ctx, "a"),
		"mkdir":      s.s.Mkdir(ctx, "d", 0o755),
		"chmod":      s.s.Chmod(ctx, "a", 0o600),
	} {
		if !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "the lease is over") {
			s.Errorf("%s: %v", what, err)
		}
	}
	if s.list(".") != "a" {
		s.Errorf("%q", s.list("."))
	}
	s.must(s.s.Rename(store.Guarded(s.ctx, func() error { return nil }), "a", "b"))
}

func (s *suite) root() {
	i, err := s.s.Stat(s.ctx, ".")
	s.must(err)
	if !i.IsDir() || s.list(".") != "" || s.s.URI() == "" {
		s.Errorf("root: %+v, %q", i, s.list("."))
	}
	s.fails(s.s.Remove(s.ctx, "."), syscall.EBUSY)
	s.fails(s.s.Mkdir(s.ctx, ".", 0o755), syscall.EEXIST)
}

func (s *suite) hidden() {
	w, err := s.s.Create(s.ctx, "a", 0o640)
	s.must(err)
	_, err = w.Write([]byte("one "))
	s.must(err)
	_, err = s.s.Stat(s.ctx, "a")
	s.fails(err, syscall.ENOENT)
	if l := s.list("."); l != "" {
		s.Errorf("before close there is %q", l)
	}
	_, err = w.Write([]byte("two"))
	s.must(err)
	s.must(w.Close())
	i, err := s.s.Stat(s.ctx, "a")
	s.must(err)
	if i.Name != "a" || i.Size != 7 || i.Mode != 0o640 || time.Since(i.ModTime).Abs() > time.Hour {
		s.Errorf("%+v", i)
	}
	if got := s.content("a"); got != "one two" || s.list(".") != "a" {
		s.Errorf("%q, %q", got, s.list("."))
	}
	s.must(w.Abort())
	if s.content("a") != "one two" {
		s.Error("an abort after close did something")
	}
	s.fails(w.Close(), syscall.EBADF, syscall.EIO)
}

func (s *suite) replace() {
	s.write("a", "old")
	w, err := s.s.Create(s.ctx, "a", 0o644)
	s.must(err)
	_, err = w.Write([]byte("new"))
	s.must(err)
	if got := s.content("a"); got != "old" {
		s.Errorf("before close: %q", got)
	}
	s.must(w.Close())
	if got := s.content("a"); got != "new" || s.list(".") != "a" {
		s.Errorf("%q in %q", got, s.list("."))
	}
	s.write("empty", "")
	if s.content("empty") != "" {
		s.Error("an empty file is not empty")
	}
}

func (s *suite) abort() {
	s.write("a", "old")
	for _, name := range []string{"a", "b"} {
		w, err := s.s.Create(s.ctx, name, 0o644)
		s.must(err)
		_, err = w.Write(make([]byte, 100_000))
		s.must(err)
		s.must(w.Abort())
		s.must(w.Abort())
	}
	if s.content("a") != "old" || s.list(".") != "a" {
		s.Errorf("%q in %q", s.content("a"), s.list("."))
	}
	s.must(s.s.Remove(s.ctx, "a"))
	s.nothingLeft()
}

// nothingLeft checks that no temporary file stands in a directory that looks
// empty: else it could not be removed.
func (s *suite) nothingLeft() {
	s.Helper()
	w, err := s.s.Create(s.ctx, "last", 0o644)
	s.must(err)
	s.must(w.Close())
	s.must(s.s.Mkdir(s.ctx, "left", 0o755))
	w, err = s.s.Create(s.ctx, "left/a", 0o644)
	s.must(err)
	s.must(w.Abort())
	s.must(s.s.Remove(s.ctx, "left"))
}

func (s *suite) missing() {
	_, err := s.s.Stat(s.ctx, "no")
	s.fails(err, syscall.ENOENT)
	_, err = s.s.Open(s.ctx, "no")
	s.fails(err, syscall.ENOENT)
	_, err = s.s.List(s.ctx, "no")
	s.fails(err, syscall.ENOENT)
	_, err = s.s.Create(s.ctx, "no/a", 0o644)
	s.fails(err, syscall.ENOENT)
	_, err = s.s.Append(s.ctx, "no/a", 0o644)
	s.fails(err, syscall.ENOENT)
	s.fails(s.s.Mkdir(s.ctx, "no/a", 0o755), syscall.ENOENT)
	s.fails(s.s.Remove(s.ctx, "no"), syscall.ENOENT)
	s.fails(s.s.Rename(s.ctx, "no", "there"), syscall.ENOENT)
	s.fails(s.s.Chmod(s.ctx, "no", 0o600), syscall.ENOENT)
	s.fails(s.s.Chtimes(s.ctx, "no", time.Now(), time.Now()), syscall.ENOENT)
	s.write("file", "x")
	s.fails(s.s.Rename(s.ctx, "file", "no/a"), syscall.ENOENT)
	_, err = s.s.List(s.ctx, "file")
	s.fails(err, syscall.ENOTDIR)
	_, err = s.s.Stat(s.ctx, "file/a")
	s.fails(err, syscall.ENOTDIR, syscall.ENOENT)
	_, err = s.s.Create(s.ctx, "file/a", 0o644)
	s.fails(err, syscall.ENOTDIR)
}

func (s *suite) directories() {
	s.must(s.s.Mkdir(s.ctx, "d", 0o750))
	s.fails(s.s.Mkdir(s.ctx, "d", 0o750), syscall.EEXIST)
	i, err := s.s.Stat(s.ctx, "d")
	s.must(err)
	if !i.IsDir() || i.Mode.Perm() != 0o750 || i.Size != 0 || i.Name != "d" {
		s.Errorf("%+v", i)
	}
	_, err = s.s.Open(s.ctx, "d")
	s.fails(err, syscall.EISDIR)
	s.write("d/f", "x")
	s.fails(s.s.Mkdir(s.ctx, "d/f", 0o750), syscall.EEXIST)
	s.fails(s.s.Remove(s.ctx, "d"), syscall.ENOTEMPTY)
	s.must(s.s.Remove(s.ctx, "d/f"))
	s.must(s.s.Mkdir(s.ctx, "d/e", 0o755))
	for _, name := range []string{"d/z", "d/b", "d/a", "d/ä"} {
		s.write(name, "x")
	}
	if got := s.list("d"); got != "a b e/ z ä" {
		s.Errorf("list: %q", got)
	}
	w, err := s.s.Create(s.ctx, "d/e", 0o644)
	if err == nil {
		err = w.Close()
	}
	s.fails(err, syscall.EISDIR)
}

func (s *suite) rename() {
	s.write("a", "one")
	s.must(s.s.Rename(s.ctx, "a", "b"))
	if s.list(".") != "b" || s.content("b") != "one" {
		s.Errorf("%q", s.list("."))
	}
	s.write("c", "two")
	s.must(s.s.Rename(s.ctx, "c", "b"))
	if s.list(".") != "b" || s.content("b") != "two" {
		s.Errorf("%q: %q", s.list("."), s.content("b"))
	}
	s.must(s.s.Rename(s.ctx, "b", "b"))
	s.must(s.s.Mkdir(s.ctx, "d", 0o755))
	s.must(s.s.Rename(s.ctx, "b", "d/b"))
	s.write("f", "x")
	s.fails(s.s.Rename(s.ctx, "f", "d"), syscall.EISDIR, syscall.EEXIST)
	s.fails(s.s.Rename(s.ctx, "d", "f"), syscall.ENOTDIR)
	s.fails(s.s.Rename(s.ctx, "f", "."), syscall.EBUSY)
}

func (s *suite) renameDirectories() {
	s.must(s.s.Mkdir(s.ctx, "d", 0o755))
	s.write("d/a", "x")
	s.must(s.s.Rename(s.ctx, "d", "e"))
	s.must(s.s.Mkdir(s.ctx, "empty", 0o755))
	s.must(s.s.Rename(s.ctx, "e", "empty"))
	if s.list(".") != "empty/" || s.content("empty/a") != "x" {
		s.Errorf("%q", s.list("."))
	}
	s.must(s.s.Mkdir(s.ctx, "full", 0o755))
	s.write("full/b", "x")
	s.fails(s.s.Rename(s.ctx, "empty", "full"), syscall.ENOTEMPTY)
	s.fails(s.s.Rename(s.ctx, "full", "full/in"), syscall.EINVAL)
	if s.list(".") != "empty/ full/" {
		s.Errorf("%q", s.list("."))
	}
}

func (s *suite) names() {
	for _, name := range []string{
		"model.ckpt-24.data-00000-of-00002", "with space", "ümläut-检查点", ".hidden", "a\\b", "%41", "a?b#c", "*", "-", "..a",
		strings.Repeat("n", 255),
	} {
		s.write(name, name)
		if got := s.content(name); got != name {
			s.Errorf("%q holds %q", name, got)
		}
		i, err := s.s.Stat(s.ctx, name)
		s.must(err)
		if i.Name != name {
			s.Errorf("%q is called %q", name, i.Name)
		}
		if got := s.list("."); got != name {
			s.Errorf("list of %q: %q", name, got)
		}
		s.must(s.s.Remove(s.ctx, name))
	}
	_, err := s.s.Create(s.ctx, strings.Repeat("n", 256), 0o644)
	s.fails(err, syscall.ENAMETOOLONG)
}

func (s *suite) escapes() {
	for _, name := range []string{"", "/", "/etc/passwd", "..", "../x", "a/../../x", "a//b", "a/./b", "a/", "a\x00b"} {
		_, err := s.s.Stat(s.ctx, name)
		s.fails(err, syscall.EINVAL)
		_, err = s.s.Create(s.ctx, name, 0o644)
		s.fails(err, syscall.EINVAL)
		_, err = s.s.Open(s.ctx, name)
		s.fails(err, syscall.EINVAL)
		s.fails(s.s.Rename(s.ctx, "a", name), syscall.EINVAL)
		s.fails(s.s.Rename(s.ctx, name, "a"), syscall.EINVAL)
		s.fails(s.s.Remove(s.ctx, name), syscall.EINVAL)
		s.fails(s.s.Mkdir(s.ctx, name, 0o755), syscall.EINVAL)
	}
}

func (s *suite) attributes() {
	s.write("a", "x")
	s.must(s.s.Chmod(s.ctx, "a", 0o600))
	when := time.UnixMilli(1_600_000_000_123)
	s.must(s.s.Chtimes(s.ctx, "a", when, when))
	i, err := s.s.Stat(s.ctx, "a")
	s.must(err)
	if i.Mode != 0o600 || !i.ModTime.Equal(when) {
		s.Errorf("%+v", i)
	}
	infos, err := s.s.List(s.ctx, ".")
	s.must(err)
	if len(infos) != 1 || infos[0].Mode != i.Mode || !infos[0].ModTime.Equal(when) || infos[0].Size != 1 || infos[0].Inode != i.Inode {
		s.Errorf("%+v in the list, %+v alone", infos, i)
	}
	s.must(s.s.Mkdir(s.ctx, "d", 0o777|fs.ModeSticky))
	i, err = s.s.Stat(s.ctx, "d")
	s.must(err)
	if i.Mode != fs.ModeDir|fs.ModeSticky|0o777 {
		s.Errorf("a directory is made with the mode %v", i.Mode)
	}
	for _, mode := range []fs.FileMode{0o777 | fs.ModeSticky, 0o755 | fs.ModeSticky, 0o755, 0o1755} { // 0o1000 is no bit of a FileMode
		s.must(s.s.Chmod(s.ctx, "d", mode))
		i, err := s.s.Stat(s.ctx, "d")
		s.must(err)
		if want := mode & (fs.ModePerm | fs.ModeSticky); i.Mode != fs.ModeDir|want {
			s.Errorf("a directory's mode is %v after it was set to %v", i.Mode, want)
		}
	}
}

// random is content that a shifted or repeated piece would show in.
func random(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	r.Read(b)
	return b
}

func (s *suite) read() {
	want := random(9<<20 + 12345)
	w, err := s.s.Create(s.ctx, "a", 0o644)
	s.must(err)
	for off, n := 0, 1; off < len(want); n = n*3 + 7 {
		end := min(off+n%3_000_000, len(want))
		_, err := w.Write(want[off:end])
		s.must(err)
		off = end
	}
	s.must(w.Close())
	r, err := s.s.Open(s.ctx, "a")
	s.must(err)
	defer r.Close()
	if r.Size() != int64(len(want)) {
		s.Fatalf("size %d of %d", r.Size(), len(want))
	}
	whole, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
	s.must(err)
	if !bytes.Equal(whole, want) {
		s.Fatal("the content is not what was written")
	}
	b := make([]byte, 1000)
	if n, err := r.ReadAt(b, r.Size()-10); n != 10 || err != io.EOF {
		s.Errorf("a read over the end: %d, %v", n, err)
	}
	if n, err := r.ReadAt(b, r.Size()+10); n != 0 || err != io.EOF {
		s.Errorf("a read past the end: %d, %v", n, err)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 1))
			for range 40 {
				b := make([]byte, 1+rnd.IntN(1<<20))
				off := rnd.IntN(len(want))
				n, err := r.ReadAt(b, int64(off))
				if err != nil && err != io.EOF || n != min(len(b), len(want)-off) || !bytes.Equal(b[:n], want[off:off+n]) {
					s.Errorf("reading %d at %d: %d, %v, or other bytes", len(b), off, n, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func (s *suite) readReplaced() {
	old := random(3 << 20)
	s.write("a", string(old))
	r, err := s.s.Open(s.ctx, "a")
	s.must(err)
	defer r.Close()
	s.must(s.s.Rename(s.ctx, "a", "b"))
	s.write("a", "another")
	b := make([]byte, len(old))
	if n, err := r.ReadAt(b, 0); n != len(old) || err != nil && err != io.EOF || !bytes.Equal(b, old) {
		s.Errorf("after a rename: %d, %v", n, err)
	}
	r2, err := s.s.Open(s.ctx, "b")
	s.must(err)
	defer r2.Close()
	s.must(s.s.Remove(s.ctx, "b"))
	n, err := r2.ReadAt(b, 0)
	if err != nil && err != io.EOF {
		s.fails(err, syscall.ESTALE)
	} else if !bytes.Equal(b[:n], old) {
		s.Errorf("after the removal: %d other bytes", n)
	}
	if s.content("a") != "another" {
		s.Error("the new file has the wrong content")
	}
}

func (s *suite) appends() {
	a, err := s.s.Append(s.ctx, "events", 0o640)
	s.must(err)
	var want []byte
	part := random(300_000)
	for _, n := range []int{1, 0, 511, 1, 512, 70_000, 3, 200_000} {
		want = append(want, part[:n]...)
		_, err = a.Write(part[:n])
		s.must(err)
		s.must(a.Flush())
		if got := s.content("events"); got != string(want) {
			s.Fatalf("after a flush %d bytes are visible, not these %d", len(got), len(want))
		}
		i, err := s.s.Stat(s.ctx, "events")
		s.must(err)
		if i.Size != int64(len(want)) || i.Mode != 0o640 {
			s.Fatalf("after a flush: %+v, want %d bytes", i, len(want))
		}
	}
	_, err = a.Write([]byte("end"))
	s.must(err)
	want = append(want, "end"...)
	s.must(a.Close())
	for _, more := range []string{"more", "", "and more"} {
		a, err = s.s.Append(s.ctx, "events", 0o644)
		s.must(err)
		_, err = a.Write([]byte(more))
		s.must(err)
		s.must(a.Close())
		want = append(want, more...)
		if got := s.content("events"); got != string(want) {
			s.Fatalf("after appending %q: %d bytes, want %d", more, len(got), len(want))
		}
	}
	// A writer that never closed loses the file to the next one.
	lost, err := s.s.Append(s.ctx, "events", 0o644)
	s.must(err)
	_, err = lost.Write([]byte("kept"))
	s.must(err)
	s.must(lost.Flush())
	want = append(want, "kept"...)
	a, err = s.s.Append(s.ctx, "events", 0o644)
	s.must(err)
	_, err = a.Write([]byte("!"))
	s.must(err)
	s.must(a.Close())
	want = append(want, '!')
	_ = lost.Close() // may fail
	if got := s.content("events"); got != string(want) {
		s.Errorf("after taking over: %d bytes, want %d", len(got), len(want))
	}
	s.must(s.s.Mkdir(s.ctx, "d", 0o755))
	_, err = s.s.Append(s.ctx, "d", 0o644)
	s.fails(err, syscall.EISDIR, syscall.EEXIST, syscall.ENOENT)
}

func (s *suite) writers() {
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			name := fmt.Sprint("f", i%6) // two write each file
			content := bytes.Repeat([]byte(name), 50_000)
			if err := store.WriteFile(s.ctx, s.s, name, content, 0o644); err != nil {
				s.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range 6 {
		name := fmt.Sprint("f", i)
		if s.content(name) != strings.Repeat(name, 50_000) {
			s.Errorf("%s is mixed up", name)
		}
	}
}

func (s *suite) temporaries() {
	s.must(s.s.Mkdir(s.ctx, "d", 0o755))
	for _, name := range []string{"a", "d/b", strings.Repeat("n", 255)} {
		w, err := s.s.Create(s.ctx, name, 0o644)
		s.must(err)
		_, err = w.Write([]byte("x"))
		s.must(err) // and its writer is killed
	}
	if err := s.s.Remove(s.ctx, "d"); !errors.Is(err, syscall.ENOTEMPTY) {
		s.Fatalf("removing a directory in which a file is written: %v", err)
	}
	s.write("d/keep", "x")
	if s.list(".") != "d/" || s.list("d") != "keep" {
		s.Errorf("%q, %q", s.list("."), s.list("d"))
	}
	for dir, count := range map[string]int{".": 2, "d": 1} {
		hidden, err := store.ListTemporary(s.ctx, s.s, dir)
		s.must(err)
		if len(hidden) != count {
			s.Errorf("%d temporary files in %s, want %d: %+v", len(hidden), dir, count, hidden)
		}
		for _, i := range hidden {
			s.must(s.s.Remove(s.ctx, path.Join(dir, i.Name)))
		}
	}
	s.must(s.s.Remove(s.ctx, "d/keep"))
	s.must(s.s.Remove(s.ctx, "d"))
}

func (s *suite) abandoned() {
	s.must(s.s.Mkdir(s.ctx, "d", 0o755))
	w, err := s.s.Create(s.ctx, "d/x", 0o644)
	s.must(err)
	_, err = w.Write([]byte("x"))
	s.must(err)
	s.write("d/seen", "x")
	if err := store.RemoveDir(s.ctx, s.s, "d"); !errors.Is(err, syscall.ENOTEMPTY) {
		s.Fatalf("removing a directory with a file in it: %v", err)
	}
	s.must(s.s.Remove(s.ctx, "d/seen"))
	s.must(store.RemoveDir(s.ctx, s.s, "d"))
	if err := w.Close(); err == nil {
		s.Errorf("a writer in a directory that was removed gets no error")
	}
	if got := s.list("."); got != "" {
		s.Errorf("left: %q", got)
	}
	if err := store.RemoveDir(s.ctx, s.s, "d"); !errors.Is(err, syscall.ENOENT) {
		s.Errorf("removing what is not there: %v", err)
	}
}

func (s *suite) removeAll() {
	s.must(store.MkdirAll(s.ctx, s.s, "d/empty", 0o755))
	s.write("d/seen", "x")
	s.must(s.s.Mkdir(s.ctx, "d/below", 0o755))
	w, err := s.s.Create(s.ctx, "d/below/x", 0o644)
	s.must(err)
	_, err = w.Write([]byte("x"))
	s.must(err)
	s.must(store.RemoveAll(s.ctx, s.s, "d"))
	if err := w.Close(); err == nil {
		s.Errorf("a writer in a directory that was removed gets no error")
	}
	if got := s.list("."); got != "" {
		s.Errorf("left: %q", got)
	}
	s.must(store.RemoveAll(s.ctx, s.s, "d"))
}

func (s *suite) helpers() {
	s.must(store.MkdirAll(s.ctx, s.s, "a/b/c", 0o755))
	s.must(store.MkdirAll(s.ctx, s.s, "a/b/c", 0o755))
	s.must(store.MkdirAll(s.ctx, s.s, ".", 0o755))
	s.write("a/b/c/f", "x")
	s.fails(store.MkdirAll(s.ctx, s.s, "a/b/c/f", 0o755), syscall.ENOTDIR)
	s.fails(store.MkdirAll(s.ctx, s.s, "a/b/c/f/g", 0o755), syscall.ENOTDIR)
	s.must(store.WriteFile(s.ctx, s.s, "a/secret", []byte("s"), 0o600))
	if i, err := s.s.Stat(s.ctx, "a/secret"); err != nil || i.Mode != 0o600 {
		s.Errorf("%+v, %v", i, err)
	}
}

func (s *suite) space() {
	space, err := s.s.Space(s.ctx)
	s.must(err)
	if space.Total <= 0 || space.Free <= 0 || space.Free > space.Total {
		s.Errorf("%+v", space)
	}
}

func (s *suite) cancelled() {
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	_, err := s.s.Stat(ctx, ".")
	var errno syscall.Errno
	if !errors.Is(err, context.Canceled) || !errors.As(err, &errno) {
		s.Errorf("with a context that has ended: %v", err)
	}
	if _, err := s.s.Stat(s.ctx, "."); errors.Is(err, fs.ErrNotExist) {
		s.Error(err)
	}
}
