package write

import (
	"fmt"
	"syscall"

	wire "holdfast/internal/hadoop/wire/hdfs"
)

// flagReplicate makes a file replicated whatever the erasure coding policy of its
// directory is (CreateFlag.SHOULD_REPLICATE): block groups are not written here.
// NameNodes before Hadoop 3, which have no such policies, do not mind it.
const flagReplicate = 0x80

// striped reports whether a file is erasure-coded.
func striped(status *wire.HdfsFileStatusProto) bool {
	return status.GetEcPolicy().GetId() != 0 // replication (ErasureCodeConstants.REPLICATION_POLICY_ID)
}

// refuseStriped gives up an opened file if it is erasure-coded: its NameNode would
// hand out block groups. What was in it stays.
func (f *File) refuseStriped(status *wire.HdfsFileStatusProto) error {
	if !striped(status) {
		return nil
	}
	give := f.Close
	if f.created {
		give = f.Abort
	}
	err := fmt.Errorf("%s is erasure-coded (policy number %d), and only replicated files can be written or added to: copy it to a new file first: %w", f.path, status.GetEcPolicy().GetId(), syscall.ENOTSUP)
	if closeErr := give(); closeErr != nil {
		err = fmt.Errorf("%w; letting go of it: %w", err, closeErr)
	}
	return err
}
