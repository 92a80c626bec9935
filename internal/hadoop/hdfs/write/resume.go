package write

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	wire "holdfast/internal/hadoop/wire/hdfs"
)

// ErrNotResumed is returned by Append when no DataNode can continue a file's last block:
// they are lost, or it was written with checksums of another kind.
var ErrNotResumed = errors.New("the last block cannot go on")

// resumeTries is how many DataNodes may refuse to continue a block, including those that
// were added to the pipeline.
const resumeTries = 6

// resume sets a pipeline up to add to the file's last block, which has room
// (stage PIPELINE_SETUP_APPEND; DataStreamer.setupPipelineForAppendOrRecovery).
func (f *File) resume(ctx context.Context, b *wire.LocatedBlockProto) error {
	defer context.AfterFunc(ctx, f.stop)()
	f.s.block, f.s.token = b.GetB(), b.GetBlockToken()
	f.s.nodes = nodesOf(b)
	if n := f.c.recall(f.id, f.s.block); len(n) > len(f.s.nodes) {
		f.s.nodes = n
	}
	f.filled = int64(f.s.block.GetNumBytes())
	f.flushed.Store(true) // by who wrote it
	f.s.acked, f.s.sent = f.filled, f.filled
	if len(f.s.nodes) == 0 {
		return fmt.Errorf("%w: the NameNode knows of no DataNode that has it", ErrNotResumed)
	}
	bad, err := f.rebuild(wire.OpWriteBlockProto_PIPELINE_SETUP_APPEND)
	if err != nil && bad >= 0 {
		err = f.rebuildWithout(bad, err, wire.OpWriteBlockProto_PIPELINE_SETUP_APPEND_RECOVERY, nil)
	}
	if errors.Is(err, errNoneLeft) {
		return fmt.Errorf("%w: %w", ErrNotResumed, err)
	}
	return err
}

// lastBlock is the last block of a file that this Client has closed.
type lastBlock struct {
	file, block, stamp uint64
	nodes              []node
	closed             time.Time
}

const (
	// rememberFor is longer than a DataNode takes to report a block to the
	// NameNode.
	rememberFor = 10 * time.Second
	rememberMax = 64
)

// remember notes which DataNodes have acked a block's end. The NameNode completes
// a file when one of them has reported (dfs.namenode.replication.min), and
// names only those that have reported: appending at once would write to fewer, and
// the replicas of the others would be given up.
func (c *Client) remember(file uint64, block *wire.ExtendedBlockProto, nodes []node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.last = slices.DeleteFunc(c.last, func(l lastBlock) bool { return l.file == file || now.Sub(l.closed) > rememberFor })
	if len(c.last) == rememberMax {
		c.last = slices.Delete(c.last, 0, 1)
	}
	c.last = append(c.last, lastBlock{file, block.GetBlockId(), block.GetGenerationStamp(), nodes, now})
}

// recall returns what remember was given for the same replicas, if that was lately.
func (c *Client) recall(file uint64, block *wire.ExtendedBlockProto) []node {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.last {
		if l.file == file && l.block == block.GetBlockId() && l.stamp == block.GetGenerationStamp() && time.Since(l.closed) < rememberFor {
			return slices.Clone(l.nodes)
		}
	}
	return nil
}
