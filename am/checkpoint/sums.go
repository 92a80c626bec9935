package checkpoint

import (
	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// maxSums bounds the checksums that are remembered for one directory. When there are
// more, all are forgotten, and sealing reads the files that it does not know.
const maxSums = 50000

// sums remembers the checksums that agents computed while a directory's files were
// written. They belong to files, not to names: whoever renames or replaces a file, and in
// whichever order the reports arrive, a checksum is never taken for another file's.
type sums struct{ known hdfsckpt.Known }

func newSums() *sums { return &sums{known: hdfsckpt.Known{}} }

// add takes in a committed file.
func (s *sums) add(f *proto.CommittedFile) {
	if !f.HasCrc32C || f.Inode == 0 {
		return
	}
	if len(s.known) > maxSums {
		clear(s.known)
	}
	s.known[store.FileID{Inode: f.Inode, Modified: f.ModifiedUnixNs}] = hdfsckpt.KnownSum{Size: f.Size, CRC32C: f.Crc32C}
}
