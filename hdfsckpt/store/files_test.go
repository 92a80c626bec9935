package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"holdfast/hdfsckpt/store"
)

// counted counts what is opened in a store.
type counted struct {
	store.Store
	opened int
}

func (c *counted) Open(ctx context.Context, name string) (store.Reader, error) {
	c.opened++
	return c.Store.Open(ctx, name)
}

func TestTheLatestIsReadOnce(t *testing.T) {
	local, err := store.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	s := &counted{Store: local}
	var l store.Latest
	for i, x := range []struct {
		before func() error
		text   string
		opened int
	}{
		{func() error { return store.WriteFile(t.Context(), s, "f", []byte("one"), 0o600) }, "one", 1},
		{func() error { return nil }, "one", 1},
		{func() error { return s.Chtimes(t.Context(), "f", time.Unix(1, 0), time.Unix(1, 0)) }, "one", 2},
		{func() error { return store.WriteFile(t.Context(), s, "f", []byte("two"), 0o600) }, "two", 3},
	} {
		err := x.before()
		if err == nil {
			err = l.Read(t.Context(), s, "f")
		}
		if err != nil || string(l.Text) != x.text || s.opened != x.opened {
			t.Errorf("%d: %q, %v, opened %d times", i, l.Text, err, s.opened)
		}
	}
	if err := s.Remove(t.Context(), "f"); err != nil {
		t.Fatal(err)
	}
	if err := l.Read(t.Context(), s, "f"); err == nil {
		t.Error("what is no longer there was read")
	}
}

// filling puts a file into a directory each time it is to be removed, as long as left says.
type filling struct {
	*store.Local
	dir  string
	left int
}

func (f *filling) Remove(ctx context.Context, name string) error {
	if name == f.dir && f.left > 0 {
		f.left--
		if err := store.WriteFile(ctx, f.Local, f.dir+"/late", nil, 0o600); err != nil {
			return err
		}
	}
	return f.Local.Remove(ctx, name)
}

// TestWhatComesMeanwhileIsRemoved: a directory is removed although something is put into it
// meanwhile; if that does not end, the error says so.
func TestWhatComesMeanwhileIsRemoved(t *testing.T) {
	for times, want := range map[int]error{1: nil, 2: nil, 1000: syscall.ENOTEMPTY} {
		local, err := store.NewLocal(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer local.Close()
		s := &filling{Local: local, dir: "job/journal", left: times}
		if err := store.MkdirAll(t.Context(), s, s.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := store.RemoveAll(t.Context(), s, "job"); !errors.Is(err, want) {
			t.Errorf("filled %d times: %v, want %v", times, err, want)
		}
		if there, err := store.Exists(t.Context(), s, "job"); err != nil || there != (want != nil) {
			t.Errorf("filled %d times: it is there: %v (%v)", times, there, err)
		}
	}
}

func TestAppendFile(t *testing.T) {
	s, err := store.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, text := range []string{"one ", "two"} {
		if err := store.AppendFile(t.Context(), s, "a/b/log", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := store.ReadFile(t.Context(), s, "a/b/log"); err != nil || string(text) != "one two" {
		t.Errorf("the file is %q (%v)", text, err)
	}
}

// TestRecordsHaveAnyBytes: strings in records come back as they were, whatever their bytes, and
// those of former versions, and what is written is not changed by it.
func TestRecordsHaveAnyBytes(t *testing.T) {
	type part struct {
		Name string
		At   time.Time
	}
	type record struct {
		Name  string
		Parts []part
		To    *part
		None  *part
		Names []string
		Raw   json.RawMessage
		Step  int64
	}
	ctx, s := t.Context(), openLocal(t, t.TempDir())
	defer s.Close()
	at := time.Unix(1e9, 5).UTC()
	for _, names := range [][2]string{{"modèle-10", "a/b"}, {"mod\xe8le-10/\xff%~", "a/b"}, {"a/b", "\xe8"}, {"%~mod%E8le", "%~%zz"}, {"%~", "\x00\xed\xa0\x80"}} {
		make := func() record {
			return record{names[0], []part{{"x", at}, {names[1], at}}, &part{names[0], at}, nil, []string{"x", names[0], names[1]}, json.RawMessage(`{"a":"%~41"}`), 7}
		}
		in := make()
		if err := store.WriteRecord(ctx, s, "d/record.json", in); err != nil {
			t.Fatal(err)
		}
		text, err := store.ReadFile(ctx, s, "d/record.json")
		if err != nil || !utf8.Valid(text) {
			t.Errorf("%q, %v", text, err)
		}
		if utf8.ValidString(names[0]) && !strings.HasPrefix(names[0], "%~") && !strings.Contains(string(text), `"Name": "`+names[0]+`"`) {
			t.Errorf("a name that is UTF-8 is changed in %s", text)
		}
		var out record
		if err := store.ParseRecord(text, &out); err != nil {
			t.Error(err)
		}
		out.Raw = in.Raw // indented
		if !reflect.DeepEqual(out, make()) || !reflect.DeepEqual(in, make()) {
			t.Errorf("written was %+v\nread is %+v\nand there is %+v", make(), out, in)
		}
	}
	var out record
	if err := store.ParseRecord([]byte(`{"Name": "%~%zz", "Names": ["%", "%E8"]}`), &out); err != nil || out.Name != "%~%zz" || out.Names[1] != "%E8" {
		t.Errorf("a record of another version is %+v, %v", out, err)
	}
}
