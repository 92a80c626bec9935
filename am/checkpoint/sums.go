package am

import (
	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// sumsLimit bounds the checksums that are remembered for one directory; when
// there are more, all are forgotten, and sealing reads what it does not know.
const sumsLimit = 50000

// sums remembers the checksums that agents computed of a directory's files as
// their bytes went by. They are of files, not of names: whoever renames or replaces
// a file, and in whichever order that is heard of, a checksum is never taken for
// another file's.
type sums struct{ known hdfsckpt.Known }

func newSums() *sums { return &sums{known: hdfsckpt.Known{}} }

// take takes in what was committed.
func (s *sums) take(f *proto.CommittedFile) {
	if !f.HasCrc32C || f.Inode == 0 {
		return
	}
	if len(s.known) > sumsLimit {
		clear(s.known)
	}
	s.known[store.FileID{Inode: f.Inode, Modified: f.ModifiedUnixNs}] = hdfsckpt.KnownSum{Size: f.Size, CRC32C: f.Crc32C}
}
