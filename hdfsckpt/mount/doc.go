// Package mount shows a checkpoint store as a directory (FUSE), so that an
// unchanged training script writes its checkpoints to the store.
//
// # Semantics
//
// What one mount has closed, every mount sees; what is not closed, only the
// mount of its writer sees:
//
//   - A new or truncated file is written to a hidden temporary file of the
//     store. FLUSH, which the kernel sends for each close(2), renames it over
//     its name in one step. Until then other mounts see the former content.
//     An error of the store fails write, fsync or close, and the name keeps
//     its former content. RELEASE cannot fail anything, so nothing is left to
//     it.
//   - A process that is killed in the middle of a file publishes nothing. The
//     kernel sends FLUSH for it as well, so FLUSH looks at the caller in /proc
//     (package caller). A process that exits by itself with an error, with a file
//     still open that is not one of its standard streams, publishes nothing
//     either: no process closed that file.
//   - FLUSH also comes from a child that inherited a descriptor, and for each
//     duplicate. It counts only if that process opened or wrote the file, and
//     if none that did still has it open (flush.go). Where that is not known,
//     and a file is written on after it was published, the rest goes to a new
//     copy that is published at the next close.
//   - Sequential writes stream to the store. The first write that is not at the
//     end, and a read of what is not published, moves the file to a local
//     spool, an unlinked file in Options.SpoolDir that is uploaded at FLUSH.
//   - Event files (the name contains "tfevents") and files that are opened with
//     O_APPEND, and not to be emptied, are written in place, and flushed to
//     readers every FlushEvery. A writer that is killed loses what it had written
//     since the last fsync at most, and never the file.
//   - FSYNC has what was added in place on the DataNodes' disks; of a hidden file it has
//     that done when it is published.
//   - Inputs (Options.Inputs) are seen in front of the store, from a local directory, and
//     cannot be changed. A directory of inputs comes into being in the store when
//     something is written in it.
//   - Nothing is cached: every lookup asks the store, and a name whose file was
//     replaced through another mount gets a new inode, so that pages of two
//     versions never mix.
//
// The differences from POSIX are listed in docs/filesystem.md and covered by tests.
//
// # Who may change the store
//
// A mount changes the store as long as its lease lasts and it has not been fenced off
// (writers.Fence). The lease is checked when an operation enters the gate, and again right
// before each change is sent, since the process may be suspended in between; Fence cancels
// what was sent and has not arrived by resetting its connection.
// Files are written in the mount's area of the store, and files that are removed are
// moved there first, so that a mount that was fenced off can neither publish a file nor
// remove one, whenever its requests arrive. Renames of visible files are prevented by the
// lease alone.
//
// # Waiting
//
// A call waits as long as the store keeps trying, and then fails with EIO and the
// reason in Options.Log: on HDFS one to two minutes for the NameNode, a minute for
// DataNodes that give nothing, and five for DataNodes that take nothing. A process
// that is killed does not wait (requests.go); what it had asked for may still be
// done. Neither does an unmount.
//
// # Memory
//
// A mount uses at most 300 MB of memory, independently of the number and size of files: 48
// MiB for the files that are open on HDFS, 64 MiB for the kernel's requests in progress,
// and as much again for what Go's collector has not freed yet. Files that are not written
// sequentially take local disk space, in Options.SpoolDir.
//
// # Structure
//
// Requests of the kernel arrive in requests.go. A node is an inode known to the kernel;
// nodes form a tree by name (node.go). A handle is an open file of a process (handle.go).
// A work is the content of a node while it is written (work.go, spool.go, publish.go;
// append.go for what is written in place). All changes of the store pass the gate (package
// gate), which Fence closes.
//
// # Locks
//
// FS.mu guards the tree, the tables and the fields so marked, and is never held
// across I/O. work.mu makes the I/O on one written file sequential, as
// hdfsckpt.Writer asks. It is taken before FS.mu, and two works are locked in
// the order of their nodes' numbers.
//
// # Goroutines
//
// go-fuse serves each request in a goroutine of its own, and what may wait for
// the store runs in another, which outlives a request that was given up. Serve
// and ServeFD start one goroutine that waits for the end of service and one that
// flushes event files; both end when the file system is unmounted.
package mount
