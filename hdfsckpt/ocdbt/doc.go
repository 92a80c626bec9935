// Package ocdbt reads key-value stores in the form OCDBT of TensorStore, which is how Orbax
// writes arrays, without TensorStore. The form is described at
// https://google.github.io/tensorstore/kvstore/ocdbt/index.html ("Storage format"); what that
// leaves open, as the order of some fields, is as in tensorstore/kvstore/ocdbt/format of
// github.com/google/tensorstore at bc4fbc11.
//
// A store is a directory. Its file manifest.ocdbt names the root of a B+tree, and that names
// where in which files its nodes and the values lie. All of these files are only ever added
// to, and the nodes and the manifest have checksums (CRC-32C); values have none.
//
//	manifest   uint32be 0x0cdb3a2a, uint64le length, version 0, compression (0 none, 1 zstd);
//	           compressed: the configuration, a table of files, the versions of the store
//	           that are the newest, and where older ones are; uint32le CRC-32C of all before
//	node       the same with 0x0cdb20de; compressed: its height (one byte), a table of files,
//	           and so many entries: children, or keys with their values
//
// Numbers are unsigned LEB128 where nothing else is said. Entries lie in columns: first that
// field of all of them, then the next. Values of at most 1 KiB lie in the leaves as Orbax
// configures it, others in data files.
//
// Read is the newest version only, which is the one that programs restore: no nodes of the tree
// of older versions. Numbered manifests are refused, which Orbax never writes
// (manifest_kind in orbax/checkpoint/_src/serialization/tensorstore_utils.py).
//
// What a file claims is never believed: lengths are compared with files, and how much memory
// nodes take, compressed and with prefixes of keys left out, is bounded by how many bytes of
// files they are.
package ocdbt

import (
	"errors"
	"fmt"
	"io"
)

// Manifest is the name of the file that makes a directory a store.
const Manifest = "manifest.ocdbt"

// File is an opened file. A read past its end is short, with io.EOF.
type File interface {
	io.ReaderAt
	Size() int64
}

// Open opens a file by its name below the store's directory.
type Open func(name string) (File, error)

type (
	damagedError struct{ error }
	unknownError struct{ error }
)

func (e damagedError) Unwrap() error { return e.error }
func (e unknownError) Unwrap() error { return e.error }

// IsDamaged reports whether an error shows that a file was read and is not what was written: it
// ends too early, or a checksum is wrong.
func IsDamaged(err error) bool { return errors.As(err, new(damagedError)) }

// IsUnknown reports whether an error is about what was read as it was written, and is of a form
// that is not read, or cannot be. Errors that are neither are those of opening and reading files.
func IsUnknown(err error) bool { return errors.As(err, new(unknownError)) }

func damaged(format string, args ...any) error { return damagedError{fmt.Errorf(format, args...)} }
func unknown(format string, args ...any) error { return unknownError{fmt.Errorf(format, args...)} }
