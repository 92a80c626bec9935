// Package store is the checkpoint store: a directory, on HDFS or local, in
// which every task of a job sees the same files.
//
// A name is slash-separated and relative to the store's root; "." is the root.
// Errors of every method wrap a syscall.Errno, so that a mount can pass it on
// and errors.Is(err, fs.ErrNotExist) works; their text says what was tried, on
// what, and why it failed. All methods may be called from many goroutines.
package store

import (
	"context"
	"io"
	"io/fs"
	"time"
)

// Store is a directory in which checkpoints live. The conformance suite is
// package storetest.
type Store interface {
	// URI is where the store is, as a user writes it.
	URI() string
	// Stat returns ENOENT if there is nothing of that name.
	Stat(ctx context.Context, name string) (Info, error)
	// List returns a directory's entries sorted by name, without temporary
	// files (IsTemporary) and links that lead nowhere. ENOENT, ENOTDIR.
	List(ctx context.Context, dir string) ([]Info, error)
	// Mkdir makes one directory, with these permissions and sticky bit. ENOENT if the parent is
	// missing, EEXIST.
	Mkdir(ctx context.Context, name string, perm fs.FileMode) error
	// Rename renames a file or directory atomically. A file replaces a
	// file; a directory replaces an empty directory (ENOTEMPTY otherwise).
	Rename(ctx context.Context, from, to string) error
	// RenameNew is Rename that replaces nothing: EEXIST if the name is taken.
	RenameNew(ctx context.Context, from, to string) error
	// Remove deletes a file or an empty directory. ENOENT, ENOTEMPTY.
	Remove(ctx context.Context, name string) error
	// Create opens a new file for writing. It becomes visible under name at Close, and
	// then replaces a former file. ENOENT if the parent is missing.
	Create(ctx context.Context, name string, perm fs.FileMode) (Writer, error)
	// Stage opens a new file for writing that has its name at once. Close completes it
	// there, and the caller renames it. ENOENT, EEXIST.
	Stage(ctx context.Context, name string, perm fs.FileMode) (Writer, error)
	// Append opens a file that is visible while it is written; it is created
	// if missing.
	Append(ctx context.Context, name string, perm fs.FileMode) (Appender, error)
	// Open opens a file for reading. It sees the content as of the call, also
	// after the name was replaced or removed, as far as the file system can:
	// on HDFS a reader of a removed file may fail with ESTALE.
	Open(ctx context.Context, name string) (Reader, error)
	// Chmod sets the permissions and, as far as the store has them, the sticky and the
	// set-group-ID bit: all of them are as asked afterwards. HDFS has no set-group-ID bit, and no
	// store sets another one.
	Chmod(ctx context.Context, name string, mode fs.FileMode) error
	// Chtimes sets the times.
	Chtimes(ctx context.Context, name string, atime, mtime time.Time) error
	// Space returns the total and free space, with quotas taken into account.
	Space(ctx context.Context) (Space, error)
	// Close closes connections. Open files are not closed.
	Close() error
}

// Accesser is a Store that knows better than a file's mode who may do what with
// it, such as HDFS, where ACL entries permit further users. mask is a set of read (4), write (2)
// and execute (1); EACCES if that is not permitted.
type Accesser interface {
	Access(ctx context.Context, name string, mask uint32) error
}

// Info describes a file or directory.
type Info struct {
	Name    string // base name
	Size    int64  // bytes; 0 for directories
	Mode    fs.FileMode
	ModTime time.Time
	Inode   uint64 // 0 if the store has no such thing
	// Birth identifies what new files in a directory inherit: in two directories with the
	// same Birth they inherit the same.
	Birth string
	// Link: it is a symbolic link, which only a listing and Lstat tell. In a listing all else
	// is of what the link leads to, or of the link itself if that leads to nothing in the store.
	Link bool
}

// IsDir reports whether the entry is a directory.
func (i Info) IsDir() bool { return i.Mode.IsDir() }

// LeadsNowhere reports whether a listed entry is a symbolic link to nothing in the store.
func (i Info) LeadsNowhere() bool { return i.Mode&fs.ModeSymlink != 0 }

// Writer writes a new file. It is used by one goroutine at a time.
type Writer interface {
	io.Writer
	// Close completes the file and makes it visible under its name, atomically, or fails and
	// leaves the former file. A local file is on disk then. On HDFS, each of its DataNodes has
	// it, at least in memory.
	Close() error
	// SyncAtClose has what is not complete yet be on disk when Close returns: on HDFS, the
	// present block and those after it.
	SyncAtClose()
	// Abort drops what was written. After Close it does nothing.
	Abort() error
	// ID identifies the file.
	ID() FileID
}

// FileID is a file's identity, which does not change when it is renamed. The zero value is no
// file's.
type FileID struct {
	Inode uint64
	// Modified is the time of modification in ns in a store that may reuse the number of a
	// removed file (a local one; after Close); else 0.
	Modified int64
}

// Taker is a Writer whose Write may wait. Take is Write without waiting; it does not keep a
// reference to b. Wait must follow.
type Taker interface {
	Writer
	Take(b []byte) error
	Wait() error
}

// Appender appends to a file that may be read at the same time. It is used by one goroutine at a
// time.
type Appender interface {
	io.Writer
	// Flush makes all that was written visible to readers.
	Flush() error
	// Sync is Flush that has it on disk, too: on HDFS, all but blocks that were full, with others
	// after them, before the first call.
	Sync() error
	Close() error
}

// Reader reads a file; ReadAt may be called from many goroutines. A read past
// the end is short, with io.EOF.
type Reader interface {
	io.ReaderAt
	Size() int64
	Close() error
}

// Space is the capacity of a store, in bytes and files.
type Space struct {
	Total, Free           int64
	FilesTotal, FilesFree int64 // 0: no limit known
}
