// Package hdfs is a client of HDFS: names, reading, and with package write,
// writing.
//
// # Names
//
// Calls of ClientProtocol (ClientNamenodeProtocol.proto) go over one RPC
// connection, many at a time. What is sent again after a lost connection keeps
// its call id, so that the NameNode's retry cache answers it. A NameNode that
// cannot be reached, hangs or is in safe mode is waited for, up to a minute; then the
// call fails with an error that names its address. With two NameNodes, the other one is
// asked after two seconds without an answer.
//
// On a cluster with Kerberos the NameNode is called with the delegation token
// for it in the file of HADOOP_TOKEN_FILE_LOCATION. Package transfer describes how
// the connections to DataNodes are protected.
//
// # Reading
//
// A file is opened by its path. From then on a Reader knows it by its first block and the
// pool that this is in: only locations that begin with it count, whether they are found by
// the inode's number (/.reserved/.inodes/N, independent of the file's present name) or by
// the path. So a Reader is not misled by a rename, by a replacement, or by a Router, which
// may pass the number on to a namespace where another file has it. Bytes come from
// DataNodes by READ_BLOCK (DataTransferProtocol.java, version 28): packets as package write
// has them, each checked by its checksums. When a DataNode fails, is silent or sends a
// wrong byte, the next one is asked, and the NameNode is told of wrong bytes
// (reportBadBlocks); when all have failed, the NameNode is asked again. A file whose writer
// is gone, and whose DataNodes have all been restarted since, has its lease ended by its
// first reader.
//
// A file is read in pieces of 256 KiB, kept while there is room; readers of one
// piece wait for the same fetch. Where pieces are read one after the other, a
// runner fetches up to 4 MiB ahead over one connection. If the reader still has to wait,
// and the DataNode is slower than a good network, the DataNodes of the other replicas are
// used as well: stripes of 4 MiB are fetched at the same time, up to four, each over a
// connection of its own. A DataNode that is much slower than the others is then abandoned,
// and asked last for a minute (stripes.go).
//
// Of an erasure-coded file, cells are read from the data units in turn, and those that
// are lost are made from others (striped.go, erasure.go). Its policy's codec must be rs
// or xor; ENOTSUP otherwise.
//
// A Reader holds at most 6 MiB, or 20 MiB with four connections, plus one stripe of an
// erasure-coded file of which a unit is lost. All files of clients with one Shared hold at
// most 48 MiB together. When these are used up, the least recently used pieces are dropped
// first, whichever Reader has them (shared.go), and Readers fetch little ahead.
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
// taken to be written; package zone says how, and where keys come from. Opening a file
// whose key cannot be obtained fails.
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
