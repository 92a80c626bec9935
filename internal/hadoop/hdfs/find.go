package hdfs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"syscall"

	pb "google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/rpc"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// The same path or inode number may lead to different files: a Router (router-based
// federation) passes /.reserved/.inodes/N to its default name service, where N is another
// file, and a path may meanwhile be mounted elsewhere. So a file is identified by its first
// block and that block's pool, which no two namespaces share: locations count only if they
// begin with that block.

// foundTries bounds the attempts to find a file that is replaced all the time.
const foundTries = 10

// find asks for a file's inode and blocks by its path. The NameNode returns both at
// once, but it sorts the DataNodes by distance only in answer to a call for blocks; so
// both calls are made, and must agree.
func (s *source) find(ctx context.Context) (*wire.LocatedBlocksProto, error) {
	for range foundTries {
		st, err := s.c.located(ctx, s.path)
		if err != nil {
			return nil, err
		}
		if st.GetFileType() == wire.HdfsFileStatusProto_IS_DIR {
			return nil, syscall.EISDIR
		}
		s.inode = st.GetFileId()
		located, err := s.c.blocks(ctx, s.path)
		if errors.Is(err, syscall.ENOENT) {
			continue // replaced or removed in between
		}
		if err != nil {
			return nil, err
		}
		first := st.GetLocations()
		if first == nil { // the NameNode cannot tell both at once
			again, err := s.c.status(ctx, s.path)
			if err == nil && again.GetFileId() == s.inode {
				return located, nil
			}
		} else if sameFile(blocksOf(first), blocksOf(located)) {
			return located, nil
		}
	}
	return nil, fmt.Errorf("another file takes its place all the time: %w", syscall.EBUSY)
}

// located returns the status of a file, with its blocks if the NameNode can return both
// at the same time (Hadoop 3.1 and later).
func (c *Client) located(ctx context.Context, name string) (*wire.HdfsFileStatusProto, error) {
	if c.plain.Load() {
		return c.status(ctx, name)
	}
	resp := &wire.GetLocatedFileInfoResponseProto{}
	err := c.call(ctx, "getLocatedFileInfo", &wire.GetLocatedFileInfoRequestProto{Src: &name, NeedBlockToken: pb.Bool(true)}, resp)
	if rpc.IsRemote(err, "org.apache.hadoop.ipc.RpcNoSuchMethodException") {
		c.plain.Store(true)
		return c.status(ctx, name)
	}
	if err == nil && resp.GetFs() == nil {
		err = syscall.ENOENT
	}
	return resp.GetFs(), err
}

// blocks returns where the blocks of a file are; ENOENT if there is no such file.
func (c *Client) blocks(ctx context.Context, name string) (*wire.LocatedBlocksProto, error) {
	resp := &wire.GetBlockLocationsResponseProto{}
	err := c.call(ctx, "getBlockLocations", &wire.GetBlockLocationsRequestProto{
		Src: &name, Offset: pb.Uint64(0), Length: pb.Uint64(math.MaxInt64),
	}, resp)
	if gone(err) || err == nil && resp.GetLocations() == nil {
		err = &failure{fmt.Errorf("there is no file %s", name), syscall.ENOENT}
	}
	return resp.GetLocations(), err
}

// blocksOf returns a file's blocks, including the one that is being written.
func blocksOf(located *wire.LocatedBlocksProto) []*wire.LocatedBlockProto {
	blocks := located.GetBlocks()
	if last := located.GetLastBlock(); !located.GetIsLastBlockComplete() && last != nil {
		if n := len(blocks); n == 0 || blocks[n-1].GetOffset() < last.GetOffset() {
			blocks = append(blocks, last)
		} else if blocks[n-1].GetOffset() == last.GetOffset() {
			blocks[n-1] = last
		}
	}
	return blocks
}

// sameFile reports whether locations are of the same file: its first block stays what
// it is, as long as it is there. Files without blocks are alike.
func sameFile(a, b []*wire.LocatedBlockProto) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	return a[0].GetB().GetPoolId() == b[0].GetB().GetPoolId() && a[0].GetB().GetBlockId() == b[0].GetB().GetBlockId()
}
