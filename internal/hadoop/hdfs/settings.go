package hdfs

import (
	"fmt"
	"strings"
	"time"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs/write"
	"holdfast/internal/hadoop/notice"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// writeOptions returns what hdfs-site.xml says about new files.
func writeOptions(c *conf.Conf, log notice.Log) (write.Options, error) {
	var o write.Options
	replication, err := c.Int("dfs.replication", 3)
	if err != nil {
		return o, err
	}
	if o.BlockSize, err = c.Int("dfs.blocksize", 128<<20); err != nil {
		return o, err
	}
	timeout, err := c.Int("dfs.client.socket-timeout", 60_000)
	if err != nil {
		return o, err
	}
	o.Replication, o.Timeout = int(replication), time.Duration(timeout)*time.Millisecond
	if o.Checksum, err = checksumOf(c, o.BlockSize, log); err != nil {
		return o, err
	}
	o.Replace, err = replaceOf(c)
	return o, err
}

func checksumOf(c *conf.Conf, blockSize int64, log notice.Log) (write.Checksum, error) {
	sums := write.Checksum{Type: wire.ChecksumTypeProto_CHECKSUM_CRC32C}
	switch kind := c.Get("dfs.checksum.type"); strings.ToUpper(kind) {
	case "", "CRC32C":
	case "CRC32":
		sums.Type = wire.ChecksumTypeProto_CHECKSUM_CRC32
	case "NULL":
		log.Warnf("dfs.checksum.type is NULL, which would leave wrong bytes unnoticed: files are written with CRC32C")
	default:
		return sums, fmt.Errorf("the Hadoop property dfs.checksum.type is %q: set it to CRC32C or CRC32 in hdfs-site.xml", kind)
	}
	bytes, err := c.Int("dfs.bytes-per-checksum", write.MinChunk)
	if err != nil {
		return sums, err
	}
	if bytes < write.MinChunk || bytes > write.MaxChunk || blockSize%bytes != 0 {
		return sums, fmt.Errorf("the Hadoop property dfs.bytes-per-checksum is %d: it must be from %d to %d and divide dfs.blocksize, which is %d; set it in hdfs-site.xml",
			bytes, write.MinChunk, write.MaxChunk, blockSize)
	}
	sums.Bytes = int(bytes)
	return sums, nil
}

func replaceOf(c *conf.Conf) (write.Replace, error) {
	const prefix = "dfs.client.block.write.replace-datanode-on-failure."
	var r write.Replace
	switch policy := c.Get(prefix + "policy"); strings.ToUpper(policy) {
	case "", "DEFAULT":
	case "NEVER":
		r.Policy = write.ReplaceNever
	case "ALWAYS":
		r.Policy = write.ReplaceAlways
	default:
		return r, fmt.Errorf("the Hadoop property %spolicy is %q: set it to DEFAULT, NEVER or ALWAYS in hdfs-site.xml", prefix, policy)
	}
	if !c.Bool(prefix+"enable", true) {
		r.Policy = write.ReplaceNever
	}
	least, err := c.Int(prefix+"min-replication", 0)
	if err != nil {
		return r, err
	}
	r.Least = int(max(0, min(least, 1<<15-1)))
	// Whoever says how many are enough wants fewer to be an error, as it is by Hadoop's default.
	r.Strict = !c.Bool(prefix+"best-effort", r.Least == 0)
	return r, nil
}
