package write

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	pb "google.golang.org/protobuf/proto"

	"holdfast/internal/backoff"
	"holdfast/internal/hadoop/hdfs/transfer"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// closing is a block whose data every DataNode has acked, and whose end they have not. It is
// ended while the next block is begun. The call for the next block (addBlock) reports this
// block's length to the NameNode; after that, this block's pipeline cannot be rebuilt. It
// need not be: the end can be sent again to any DataNode that has all data.
type closing struct {
	f      *File
	pipe   *pipeline
	header *wire.ClientOperationHeaderProto
	length int64
	stamp  uint64
	nodes  []node
	last   *packet
	ended  bool          // under File.mu: all have acked the end
	done   chan struct{} // closed when it is over
}

// endBlock sends the last packet of a block, when the others are acked, and starts a
// closing for it. It waits for the previous closing: there is one at a time.
func (f *File) endBlock(last *packet) error {
	if f.s.closing != nil {
		select {
		case <-f.s.closing.done:
		case <-f.running.Done():
			return f.running.Err()
		}
	}
	c := &closing{
		f: f, pipe: f.s.pipe, nodes: f.s.nodes, last: last, header: f.header(f.s.token),
		stamp: f.s.block.GetGenerationStamp(), done: make(chan struct{}),
	}
	f.mu.Lock()
	if f.err != nil { // of the one before
		f.mu.Unlock()
		return f.err
	}
	c.length = f.s.acked
	rate, measured := f.s.sample.Speed(c.length)
	f.s.block.NumBytes = pb.Uint64(uint64(c.length))
	f.queue = f.queue[1:]
	f.ending = true
	c.pipe.closing = c
	f.mu.Unlock()
	if measured {
		f.c.speeds.Note(infos(c.nodes), rate, time.Now())
	}
	c.pipe.send(last.bytes()) // what fails is broken, and the closing sees it
	f.s.closing, f.s.previous = c, f.s.block
	f.s.block, f.s.pipe, f.s.nodes = nil, nil, nil
	go c.run()
	return nil
}

func (c *closing) run() {
	defer close(c.done)
	f := c.f
	f.mu.Lock()
	for !c.ended && c.pipe.broken == nil && !f.aborted {
		f.cond.Wait()
	}
	ended, why := c.ended, c.pipe.broken
	f.mu.Unlock()
	c.pipe.close()
	var err error
	if !ended {
		err = c.again(why)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ending = false
	c.last.free()
	if err != nil {
		f.fail(err)
		return
	}
	f.ackedTo = max(f.ackedTo, c.last.seq+1)
	f.cond.Broadcast()
}

// againLimit bounds the attempts to reach any DataNode that has all of a block.
const againLimit = 30 * time.Second

// again sends the block's end to each DataNode, until one has confirmed it: from
// then on the NameNode restores the number of replicas.
func (c *closing) again(why error) error {
	ctx, cancel := context.WithTimeout(c.f.running, againLimit)
	defer cancel()
	for wait := backoff.New(100*time.Millisecond, 3*time.Second); ; {
		if err := c.f.running.Err(); err != nil {
			return err
		}
		c.f.c.o.Log.Warnf("writing %s: telling %d DataNodes the end of a block once more: %v", c.f.path, len(c.nodes), why)
		errs := make([]error, len(c.nodes))
		telling, stop := context.WithCancel(c.f.running)
		var wg sync.WaitGroup
		for i, n := range c.nodes {
			wg.Go(func() {
				if errs[i] = c.tell(telling, n); errs[i] == nil {
					time.AfterFunc(answerLimit, stop) // a DataNode that has not answered by then may hang
				}
			})
		}
		wg.Wait()
		stop()
		for _, err := range errs {
			if err == nil {
				return nil
			}
		}
		why = c.f.explainTakenOver(errors.Join(errs...))
		if errors.Is(why, errTakenOver) {
			return why
		}
		if !wait.Wait(ctx) {
			return fmt.Errorf("no DataNode could be told the end of a block: %w", why)
		}
	}
}

// tell ends the block on one DataNode: the stage PIPELINE_CLOSE_RECOVERY is
// enough to do it, and also fits where it was done before
// (FsDatasetImpl.recoverClose). The generation stamp remains: each DataNode has
// acked all data under it.
func (c *closing) tell(ctx context.Context, n node) error {
	conn, err := c.f.dial(n, c.header.GetBaseHeader().GetToken())
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	answer, err := transfer.Operate(conn, bufio.NewReader(conn), transfer.WriteBlock, &wire.OpWriteBlockProto{
		Header: c.header, Stage: wire.OpWriteBlockProto_PIPELINE_CLOSE_RECOVERY.Enum(), PipelineSize: pb.Uint32(1),
		MinBytesRcvd: pb.Uint64(uint64(c.length)), MaxBytesRcvd: pb.Uint64(uint64(c.length)),
		LatestGenerationStamp: &c.stamp, RequestedChecksum: c.f.requestedChecksum(), StorageType: n.storageType.Enum(),
	}, c.f.c.o.Timeout)
	if err == nil && answer.GetStatus() != wire.Status_SUCCESS {
		err = fmt.Errorf("it answers %s %s", answer.GetStatus(), answer.GetMessage())
	}
	if err != nil {
		return fmt.Errorf("DataNode %s: %w", address(n.info.GetId()), err)
	}
	return nil
}
