package write

import (
	"strings"

	"holdfast/internal/hadoop/rpc"
)

// notReplicatedYet: the block before has not enough replicas yet.
func notReplicatedYet(err error) bool {
	return rpc.IsRemote(err, "org.apache.hadoop.hdfs.server.namenode.NotReplicatedYetException")
}

// notEnoughNodes: no DataNode is there for the block. The NameNode throws a
// plain IOException (BlockManager.chooseTarget4NewBlock), so its text has to do.
func notEnoughNodes(err error) bool {
	return rpc.RemoteClass(err) != "" && strings.Contains(err.Error(), "could only be written to")
}
