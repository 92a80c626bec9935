package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
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
	return fs.ValidPath(name) && utf8.ValidString(entry) && CheckName("look at", name) == nil &&
		name != OwnDir && !strings.HasPrefix(name, OwnDir+"/") && EntryName(name) == entry
}

// WriteRecord writes a record as JSON, in one step, and makes its directory.
func WriteRecord(ctx context.Context, s Store, name string, record any) error {
	text, err := json.MarshalIndent(record, "", "  ")
	if err == nil {
		err = MkdirAll(ctx, s, path.Dir(name), 0o755)
	}
	if err == nil {
		err = WriteFile(ctx, s, name, append(text, '\n'), 0o644)
	}
	return err
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
	// deepest bounds how deep RemoveAll goes.
	deepest = 64
	// removeTries is how often a directory is emptied that is filled meanwhile.
	removeTries = 4
)

// RemoveAll removes a directory with all that is in it: its temporary files too, as those of
// a writer that was killed must not keep it, and what is put into it meanwhile, unless
// something goes on doing that (ENOTEMPTY). Links are removed, and not what they lead to. It is
// no error if the directory does not exist.
func RemoveAll(ctx context.Context, s Store, dir string) error {
	if i, err := Lstat(ctx, s, dir); Vanished(err) {
		return nil
	} else if err != nil {
		return err
	} else if i.Link {
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
