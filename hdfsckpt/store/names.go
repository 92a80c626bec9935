package store

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"
	"unicode/utf8"
)

// OwnDir is the directory in a store's root that is the store's own: manifests, what is
// retained, and other records. Mounts do not show it.
const OwnDir = ".holdfast"

// A temporary file is in the directory of the file that it becomes and is called
// .NAME.RANDOM.hf-tmp.
const (
	temporarySuffix = ".hf-tmp"
	randomLength    = 12
	maxComponent    = 255 // NAME_MAX, and dfs.namenode.fs-limits.max-component-length
)

// IsTemporary reports whether name is a file that is being written, or that a
// killed writer left.
func IsTemporary(name string) bool {
	name = path.Base(name)
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, temporarySuffix) && len(name) > len(temporarySuffix)+1
}

// TemporaryFor makes a name for the file that becomes name, new at each call. A
// long name is shortened in it.
func TemporaryFor(name string) string {
	random := make([]byte, randomLength/2)
	rand.Read(random) // never fails
	dir, base := path.Split(name)
	for len(base) > maxComponent-len(temporarySuffix)-randomLength-2 {
		_, n := utf8.DecodeLastRuneInString(base)
		base = base[:len(base)-n]
	}
	return dir + "." + base + "." + hex.EncodeToString(random) + temporarySuffix
}

// CheckName returns an error for a name that could leave the root, or that a store may not support.
func CheckName(op, name string) error {
	if name == "." {
		return nil
	}
	for element := range strings.SplitSeq(name, "/") {
		switch {
		case element == "" || element == "." || element == ".." || strings.ContainsRune(element, 0):
			return &fs.PathError{Op: op, Path: name, Err: fmt.Errorf("not a name in a store: %w", syscall.EINVAL)}
		case len(element) > maxComponent:
			return &fs.PathError{Op: op, Path: name, Err: syscall.ENAMETOOLONG}
		}
	}
	return nil
}

// CheckChange returns an error for a change that would replace or remove the root itself.
func CheckChange(op, name string) error {
	if name == "." {
		return &fs.PathError{Op: op, Path: name, Err: fmt.Errorf("this is the root of the store: %w", syscall.EBUSY)}
	}
	return CheckName(op, name)
}
