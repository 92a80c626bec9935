// Package hdfs is a client of HDFS: names, reading, and with package write,
// writing.
//
// # Names
//
// Calls of ClientProtocol (ClientNamenodeProtocol.proto) go over one RPC
// connection, many at a time. What is sent again after a lost connection keeps
// its call id, so that the NameNode's retry cache answers it. A NameNode that
// is away, stalled or in safe mode is waited for, up to a minute; then the
// call fails with an error that names its address. Of two, the other one is
// asked after two seconds without an answer.
//
// On a cluster with Kerberos the NameNode is called with the delegation token
// for it in the file of HADOOP_TOKEN_FILE_LOCATION. Package transfer describes how
// the connections to DataNodes are protected.
//
// # Reading
//
// A file is opened by its path. From then on a Reader knows it by its first block and
// the pool that this is in: only locations that begin with it count, whether they are
// found by the inode's number (/.reserved/.inodes/N, whatever the file is called now)
// or by the path. So neither a rename or a replacement confuses it, nor a Router, which
// passes a number on to a namespace where it is another file's. Bytes come from DataNodes by
// READ_BLOCK (DataTransferProtocol.java, version 28): packets as package write
// has them, each checked by its checksums. When a DataNode fails, is silent or
// sends a wrong byte, the next one is asked, and the NameNode is told of wrong
// bytes (reportBadBlocks); when all have failed, the NameNode is asked again. A
// file whose writer is gone, and whose DataNodes have all been restarted since, has
// its lease ended by its first reader.
//
// A file is read in pieces of 256 KiB, kept while there is room; readers of one
// piece wait for the same fetch. Where pieces are read one after the other, a
// runner fetches up to 4 MiB ahead over one connection. If the reader waits for
// it nevertheless, and the DataNode is slower than a good network, the DataNodes
// of the other replicas help: stripes of 4 MiB are fetched at the same time, each
// over a connection of its own, up to four. A DataNode that is much slower than the
// others is left then, and asked last for a minute (stripes.go).
//
// Of an erasure-coded file, cells are read from the data units in turn, and those that
// are lost are made from others (striped.go, erasure.go). Its policy's codec must be rs
// or xor; ENOTSUP otherwise.
//
// A Reader holds at most 6 MiB, and with four connections 20 MiB; besides, a stripe of
// an erasure-coded file of which a unit is lost. All files that the process has open on
// HDFS, to read or to write, hold 48 MiB together; when they are used up, what was used
// the longest ago goes first, whichever Reader has it (shared.go), and then a Reader fetches
// little more than what is asked for.
//
// # Settings
//
// hdfs-site.xml decides on replication, block size, checksums, timeouts and what becomes
// of a pipeline that has lost a DataNode (settings.go). Observers are not read from, as
// they may not know yet what others have just closed; they refer to the active
// NameNode.
//
// # Encryption zones
//
// Files in them are decrypted piece by piece once read, and encrypted as they are
// taken to be written; package zone says how, and where keys come from. A file whose
// key is not to be had is not opened.
//
// # Errors
//
// Errors wrap the syscall.Errno that fits the Java exception, whose message is
// kept in the text.
//
// # Goroutines
//
// A runner, and what fetches a stripe, ends when its Reader is closed, or when it
// has nothing to fetch. Close waits for it.
package hdfs
