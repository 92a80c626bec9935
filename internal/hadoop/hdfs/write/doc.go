// Package write writes files to HDFS, and survives the loss of DataNodes during a
// write.
//
// # Protocol
//
// The NameNode is asked for blocks one after the other (ClientProtocol: create,
// addBlock, complete). A block's bytes go to a pipeline of DataNodes, of which
// the client talks to the first (operation WRITE_BLOCK of the data transfer
// protocol, version 28; DataTransferProtocol.java, datatransfer.proto). A
// packet is
//
//	int32  length of what follows the header length field, less the header: 4 + checksums + data
//	int16  length of the header
//	PacketHeaderProto
//	checksums of each 512 bytes of data, or as Options.Checksum says, big endian
//	data, at most 256 KiB
//
// (Hadoop's own client sends 64 KiB; DataNodes take up to 16 MiB, and fewer acks
// and wakeups cost them and us less) and starts in the block at a multiple of what
// one checksum is for; after a flush in the
// middle of such a chunk the next packet repeats the chunk's beginning. Acks
// come back in order, with one status for each DataNode. A block ends with an
// empty packet that is marked as the last one, sent when all others are acked. A full block
// ends when it is flushed, when more is written, or with the file.
//
// The DataNodes' disks are asked for by empty packets (syncBlock), and before a block's last
// packet: see File.queueSync and queueEnd.
//
// Blocks are written one after the other. Several at once, into files that
// ClientProtocol's concat would join, were tried with files that were not even
// joined, on a busy machine of two processors with three DataNodes: 512 MB took
// 1.43 s in one file and 1.49 s in four at replication 1, 4.03 and 3.44 s at
// replication 3 (medians of three). That does not pay for a second way to write
// and to recover.
//
// # Appending
//
// A file that exists is added to in its last block, as long as there is room
// (ClientProtocol: append without CreateFlag NEW_BLOCK; stage PIPELINE_SETUP_APPEND
// under a new generation stamp, then updatePipeline). Where that block ends within a
// chunk, the first packet carries the rest of the chunk at most. Each NEW_BLOCK would
// count against dfs.namenode.fs-limits.max-blocks-per-file, and make readers connect
// once more; it is used for blocks that no DataNode can continue, such as those that were
// written with another number of bytes per checksum.
//
// # Recovery
//
// A packet is kept until all DataNodes of the pipeline have acked it. When one of them
// fails, the pipeline is built anew without it: the NameNode gives the block a new
// generation stamp (updateBlockForPipeline), the others are set up with it (stage
// PIPELINE_SETUP_STREAMING_RECOVERY), the NameNode is told (updatePipeline), and what was
// not acked is sent again. Where too few are left, another DataNode is brought in first, by
// copying the block to it (getAdditionalDatanode, TRANSFER_BLOCK), as Options.Replace says.
// A DataNode has failed when it reports so, when it answers no probe 2 s after an ack was due,
// and when the oldest packet has no ack for Options.Timeout, however well it answers others.
// When none is left and nothing of the block was acked yet, the block is abandoned and
// another begun; otherwise the write fails. It also fails when nothing is acked for five
// minutes (Options.Stall), whatever is tried.
//
// A DataNode that is slow rather than lost is done without for the next blocks, or left
// at once when acks say that it is slow (pipeline.go).
//
// Files are replicated, also in directories with an erasure coding policy; erasure-coded
// files cannot be added to (ENOTSUP).
//
// # Goroutines and memory
//
// Each open file has one goroutine that sends, while a pipeline stands one that
// reads acks, and one while a block comes to its end; all end with Close or
// Abort. A Client with open files has one goroutine that renews its lease, every
// 30 s.
//
// An open file holds at most Options.Window bytes that are not acked, and what it
// was given last. All files together hold at most Options.Memory,
// and what each was given last (package budget). A packet that is being filled takes
// as much as is in it, roughly.
package write
