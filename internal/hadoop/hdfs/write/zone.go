package write

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"holdfast/internal/backoff"
	"holdfast/internal/hadoop/rpc"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// Files in encryption zones are encrypted as they are taken (File.Take): packets,
// checksums and what is sent again are of encrypted bytes.

// cryptoVersions returns the versions that this side supports.
func (c *Client) cryptoVersions() []wire.CryptoProtocolVersionProto {
	if c.o.Cipher == nil {
		return nil
	}
	return []wire.CryptoProtocolVersionProto{wire.CryptoProtocolVersionProto_ENCRYPTION_ZONES}
}

// createTries is how often a file is made whose zone changes meanwhile
// (DFSOutputStream.CREATE_RETRY_COUNT).
const createTries = 10

func (c *Client) create(ctx context.Context, req *wire.CreateRequestProto, resp *wire.CreateResponseProto) error {
	for try := 1; ; try++ {
		err := c.nn.Call(ctx, "create", req, resp)
		if try == createTries || !rpc.IsRemote(err, "org.apache.hadoop.hdfs.server.namenode.RetryStartFileException") || !backoff.Sleep(ctx, 50*time.Millisecond) {
			return err
		}
	}
}

// withCipher makes a file that was opened one whose bytes are encrypted, if it is
// in an encryption zone. Where that fails the file is given up: one that was made
// is removed.
func (c *Client) withCipher(ctx context.Context, f *File, status *wire.HdfsFileStatusProto) (*File, error) {
	info := status.GetFileEncryptionInfo()
	if info == nil {
		return f, nil
	}
	err := fmt.Errorf("%s is in an encryption zone: %w", f.path, syscall.ENOTSUP)
	if c.o.Cipher != nil {
		f.cipher, err = c.o.Cipher(ctx, f.path, info)
	}
	if err != nil {
		_ = f.Abort() // the first error is the one to tell
		return nil, err
	}
	if !f.created {
		f.begin = int64(status.GetLength())
	}
	return f, nil
}
