package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"reflect"
	"strings"
	"syscall"
	"unicode/utf8"
)

// An entry below OwnDir that stands for a name in the store is named after it,
// escaped as in a URL. Escaping makes a name of non-ASCII bytes up to three times as
// long, so a long one is cut, and a digest of the name takes the place of the rest;
// the entry's content then holds the name.
const (
	longestEntry = 200 // bytes; leaves room for suffixes and temporary names
	cutEntry     = 120
	digestMark   = "%~" // never part of an escaped name
)

// EntryName returns the name of the entry below OwnDir that stands for name.
func EntryName(name string) string {
	escaped := url.PathEscape(name)
	if len(escaped) <= longestEntry {
		return escaped
	}
	sum := sha256.Sum256([]byte(name))
	return escaped[:cutEntry] + digestMark + hex.EncodeToString(sum[:16])
}

// EntryOf returns the name that an entry stands for. ok is false for an entry whose
// name was cut, and for one that EntryName has not made.
func EntryOf(entry string) (name string, ok bool) {
	if strings.Contains(entry, digestMark) {
		return "", false
	}
	name, err := url.PathUnescape(entry)
	return name, err == nil && IsEntryFor(entry, name)
}

// IsEntryFor reports whether an entry stands for name, and name is one that a program
// can use: what others have put below OwnDir must not lead out of the store.
func IsEntryFor(entry, name string) bool {
	return utf8.ValidString(entry) && CheckName("look at", name) == nil &&
		name != OwnDir && !strings.HasPrefix(name, OwnDir+"/") && EntryName(name) == entry
}

const recordSuffix = ".json"

// RecordName returns the name of the record in dir that is about a name in the store.
func RecordName(dir, about string) string { return path.Join(dir, EntryName(about)+recordSuffix) }

// ReadRecord reads a record by its name; about returns what a record is about. ok is false, and the
// record the zero one, where there is none, or none that can be parsed and is called after what it is
// about.
func ReadRecord[R any](ctx context.Context, s Store, name string, about func(R) string) (record R, ok bool, err error) {
	text, err := ReadFile(ctx, s, name)
	if err != nil {
		if Vanished(err) {
			err = nil
		}
		return record, false, err
	}
	var read R
	if ParseRecord(text, &read) != nil || !IsEntryFor(strings.TrimSuffix(path.Base(name), recordSuffix), about(read)) {
		return record, false, nil
	}
	return read, true, nil
}

// EachRecord calls f for each of the records in dir that can be read (ReadRecord), until one fails.
func EachRecord[R any](ctx context.Context, s Store, dir string, about func(R) string, f func(R) error) error {
	entries, err := s.List(ctx, dir)
	if err != nil && !Vanished(err) {
		return err
	}
	for _, e := range entries {
		if !e.Mode.IsRegular() {
			continue
		}
		record, ok, err := ReadRecord(ctx, s, path.Join(dir, e.Name), about)
		if ok {
			err = f(record)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// RemoveRecordOf removes a record if what it is of is gone. What may not be looked at counts as there,
// and a record that may not be removed stays.
func RemoveRecordOf(ctx context.Context, s Store, of, record string) error {
	there, err := Exists(ctx, s, of)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil || there {
		return err
	}
	if err := s.Remove(ctx, record); !Vanished(err) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}

// A string in a record that is not UTF-8, as a name on a local file system may be, is written as
// bytesMark and the string escaped as in a URL; so is one that begins with bytesMark.
const bytesMark = "%~"

func toRecord(s string) string {
	if utf8.ValidString(s) && !strings.HasPrefix(s, bytesMark) {
		return s
	}
	return bytesMark + url.PathEscape(s)
}

func fromRecord(s string) string {
	if escaped, ok := strings.CutPrefix(s, bytesMark); ok {
		if name, err := url.PathUnescape(escaped); err == nil {
			return name
		}
	}
	return s
}

// WriteRecord writes a record as JSON, in one step, and makes its directory. Strings in it may have
// any bytes (ParseRecord): those of exported fields, and of structs, slices and pointers in them.
func WriteRecord(ctx context.Context, s Store, name string, record any) error {
	if v, changed := replaceStrings(reflect.ValueOf(record), toRecord); changed {
		record = v.Interface()
	}
	text, err := json.MarshalIndent(record, "", "  ")
	if err == nil {
		err = MkdirAll(ctx, s, path.Dir(name), 0o755)
	}
	if err == nil {
		err = WriteFile(ctx, s, name, append(text, '\n'), 0o644)
	}
	return err
}

// ParseRecord parses what WriteRecord has written into a struct that into points to.
func ParseRecord(text []byte, into any) error {
	if err := json.Unmarshal(text, into); err != nil {
		return err
	}
	if !bytes.Contains(text, []byte(`"`+bytesMark)) { // the usual case
		return nil
	}
	if v, changed := replaceStrings(reflect.ValueOf(into).Elem(), fromRecord); changed {
		reflect.ValueOf(into).Elem().Set(v)
	}
	return nil
}

// replaceStrings returns a value with the strings that replace returns in place of its own, and
// whether any is another one. The value itself is not changed, nor is what it points to.
func replaceStrings(v reflect.Value, replace func(string) string) (_ reflect.Value, changed bool) {
	to := v
	set := func(at func(of reflect.Value) reflect.Value, former func() reflect.Value) {
		item, other := replaceStrings(at(v), replace)
		if !other {
			return
		}
		if !changed {
			to, changed = former(), true
		}
		at(to).Set(item)
	}
	switch v.Kind() {
	case reflect.String:
		if s := replace(v.String()); s != v.String() {
			to, changed = reflect.New(v.Type()).Elem(), true
			to.SetString(s)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			set(reflect.Value.Elem, func() reflect.Value { return reflect.New(v.Type().Elem()) })
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				set(func(of reflect.Value) reflect.Value { return of.Field(i) }, func() reflect.Value {
					c := reflect.New(v.Type()).Elem()
					c.Set(v)
					return c
				})
			}
		}
	case reflect.Slice:
		if k := v.Type().Elem().Kind(); k < reflect.Array { // bytes, numbers
			break
		}
		for i := range v.Len() {
			set(func(of reflect.Value) reflect.Value { return of.Index(i) }, func() reflect.Value {
				c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
				reflect.Copy(c, v)
				return c
			})
		}
	}
	return to, changed
}

// lstater is a store that may hold symbolic links.
type lstater interface {
	lstat(ctx context.Context, name string) (Info, error)
}

// Lstat is Stat that follows no symbolic link in the last element of the name.
func Lstat(ctx context.Context, s Store, name string) (Info, error) {
	if l, ok := s.(lstater); ok {
		return l.lstat(ctx, name)
	}
	return s.Stat(ctx, name)
}

// Exists reports whether something has a name in the store: a link, too, wherever it leads.
func Exists(ctx context.Context, s Store, name string) (bool, error) {
	_, err := Lstat(ctx, s, name)
	if Vanished(err) {
		return false, nil
	}
	return err == nil, err
}

// Vanished reports whether an error says that a file was removed, perhaps while it
// was being looked at.
func Vanished(err error) bool {
	return errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ESTALE)
}

// RemoveOwn removes a directory below OwnDir with all that is in it, as RemoveAll does.
func RemoveOwn(ctx context.Context, s Store, dir string) error {
	if !strings.HasPrefix(dir, OwnDir+"/") {
		return fmt.Errorf("cannot remove %s: it is not the store's own", dir)
	}
	return RemoveAll(ctx, s, dir)
}

const (
	// deepest bounds how deep RemoveAll goes: neither HDFS (MAX_PATH_DEPTH, 1000) nor Linux
	// (PATH_MAX, 4096 bytes) has deeper directories.
	deepest = 2048
	// removeTries is how often a directory is emptied that is filled meanwhile.
	removeTries = 4
)

// RemoveAll removes a directory with all that is in it, or a file: its temporary files too, as those of
// a writer that was killed must not keep it, and what is put into it meanwhile, unless
// something goes on doing that (ENOTEMPTY). Links are removed, and not what they lead to. It is
// no error if the directory does not exist.
func RemoveAll(ctx context.Context, s Store, dir string) error {
	if i, err := Lstat(ctx, s, dir); Vanished(err) {
		return nil
	} else if err != nil {
		return err
	} else if i.Link || !i.IsDir() {
		return s.Remove(ctx, dir)
	}
	return removeAll(ctx, s, dir, 0)
}

func removeAll(ctx context.Context, s Store, dir string, depth int) error {
	if depth > deepest {
		return fmt.Errorf("cannot remove %s: it lies too deep", dir)
	}
	for tries := 1; ; tries++ {
		entries, err := ListAll(ctx, s, dir)
		for _, e := range entries {
			name := path.Join(dir, e.Name)
			if e.IsDir() && !e.Link {
				err = removeAll(ctx, s, name, depth+1)
			} else {
				err = s.Remove(ctx, name)
			}
			if err != nil && !Vanished(err) {
				return err
			}
		}
		if err == nil || Vanished(err) {
			err = s.Remove(ctx, dir)
		}
		if Vanished(err) {
			return nil
		}
		if !errors.Is(err, syscall.ENOTEMPTY) || tries == removeTries {
			return err
		}
	}
}

// RemoveEmpty removes a directory that holds nothing but directories, none of which holds anything
// else. ENOTEMPTY if there is a file in it.
func RemoveEmpty(ctx context.Context, s Store, dir string) error {
	entries, err := ListAll(ctx, s, dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() || e.Link {
			return fmt.Errorf("%s is in %s: %w", e.Name, dir, syscall.ENOTEMPTY)
		}
		if err := RemoveEmpty(ctx, s, path.Join(dir, e.Name)); err != nil {
			return err
		}
	}
	return s.Remove(ctx, dir)
}
