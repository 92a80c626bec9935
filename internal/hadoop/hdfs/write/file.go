package write

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/internal/hadoop/hdfs/zone"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// File is an open file. Write, Flush, Sync, SyncEnds, Close and Abort are for one goroutine at a
// time. After an error of one of them only Abort may be called.
type File struct {
	c         *Client
	path      string
	id        uint64
	blockSize int64
	created   bool // not opened by Append
	cipher    *zone.Cipher
	begin     int64       // where in the file what is written begins
	flushed   atomic.Bool // readers may have seen what is in the current block

	// Owned by the goroutine that writes.
	current *packet // being filled; nil at a packet's edge
	filled  int64   // bytes of the current block that were put into packets
	seq     int64
	length  int64 // bytes written since the file was opened
	blocks  int   // begun since then
	ended   bool
	// syncEnds has each block's end reach the disks.
	syncEnds bool

	mu      sync.Mutex
	cond    sync.Cond
	queue   []*packet // not sent
	acks    []*packet // sent, not acked
	held    int       // bytes in both
	ackedTo int64     // sequence numbers below it are acked, but for a block's end
	ending  bool      // a block is being ended at its DataNodes
	moved   time.Time // when something was acked, or begun after nothing
	err     error     // that ended the stream
	finish  bool      // nothing more will be queued
	aborted bool
	done    chan struct{} // closed when the stream has ended

	watch   *time.Timer        // fires Options.Stall after moved
	stop    context.CancelFunc // ends what the stream waits for
	running context.Context

	s streamState
}

var _ io.WriteCloser = (*File)(nil)

func newFile(c *Client, path string, status *wire.HdfsFileStatusProto, previous *wire.ExtendedBlockProto) *File {
	f := &File{
		c: c, path: path, id: status.GetFileId(), blockSize: int64(status.GetBlocksize()),
		done: make(chan struct{}),
	}
	if f.blockSize <= 0 {
		f.blockSize = c.o.BlockSize
	}
	f.cond.L = &f.mu
	f.s.previous = previous
	f.s.replication = int(status.GetBlockReplication())
	f.running, f.stop = context.WithCancel(context.Background())
	f.watch = time.AfterFunc(c.o.Stall, f.stalled)
	return f
}

// takeSize is how much Write takes before it waits.
const takeSize = 1 << 20

// Write adds to the file. It waits while more than Options.Window is not acked,
// or while all files together hold more than Options.Memory.
func (f *File) Write(b []byte) (int, error) {
	done := 0
	for done < len(b) {
		n := min(len(b)-done, takeSize)
		err := f.Take(b[done : done+n])
		if err == nil {
			err = f.Wait()
		}
		if err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

// Take is Write without waiting: it copies all of b. Wait must follow, which bounds what is
// held.
func (f *File) Take(b []byte) error {
	if f.ended {
		return fmt.Errorf("writing %s: it is closed", f.path)
	}
	for len(b) > 0 {
		if f.current == nil {
			if f.filled == f.blockSize { // only now: Sync may have to reach the block after it is full
				if err := f.queueEnd(); err != nil {
					return err
				}
			}
			if f.filled == 0 {
				f.blocks++
			}
			f.current = f.newPacket(f.filled, len(b))
		}
		p := f.current
		limit := min(f.blockSize, p.limit())
		n := p.add(b[:min(int64(len(b)), limit-p.end())])
		f.cipher.XOR(p.data()[p.n-n:], f.begin+f.length)
		b = b[n:]
		f.length += int64(n)
		if p.end() == limit {
			if err := f.push(); err != nil {
				return err
			}
		}
	}
	if f.c.o.Memory.Relieve(); f.c.o.Memory.Short() {
		return f.cut()
	}
	return nil
}

func (f *File) newPacket(offset int64, n int) *packet {
	return newPacket(f.c.o.Memory, f.c.o.Checksum, offset, n)
}

// cut queues the whole chunks of the current packet, although it has room: a packet must
// begin at a multiple of Checksum.Bytes.
func (f *File) cut() error {
	p := f.current
	chunk := f.c.o.Checksum.Bytes
	if p == nil || p.n < chunk {
		return nil
	}
	tail := p.data()[p.n/chunk*chunk:]
	p.n -= len(tail)
	f.filled = p.end()
	f.current = nil
	if len(tail) > 0 {
		f.current = f.newPacket(f.filled, len(tail))
		f.current.add(tail)
	}
	return f.enqueue(p)
}

// Wait waits until more may be taken. It bounds what the file has in flight; a file that
// has nothing in flight does not wait for others, which may be idle.
func (f *File) Wait() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.held > 0 && (f.held > f.c.o.Window || f.c.o.Memory.Short()) && f.err == nil && !f.aborted {
		f.cond.Wait()
	}
	return f.failure()
}

// push queues the current packet.
func (f *File) push() error {
	p := f.current
	f.current = nil
	f.filled = p.end()
	return f.enqueue(p)
}

// queueSync queues a packet that has each DataNode write what it has of the block to its disk.
// It is empty: for a packet of bytes that a DataNode has already, as one that is sent again or
// repeats a chunk's beginning, nothing is written (BlockReceiver.receivePacket).
func (f *File) queueSync() error {
	p := f.newPacket(f.at(), 0)
	p.sync = true
	return f.enqueue(p)
}

// queueEnd queues the block's last packet. Its bytes are on the disks before, if they are to be:
// where the last packet is lost with its connection, DataNodes end the block without writing it
// to their disks (FsDatasetImpl.recoverClose). The last packet asks, too: for the directory that
// the block is moved to (BlockReceiver.dirSyncOnFinalize).
func (f *File) queueEnd() error {
	if f.syncEnds {
		if err := f.queueSync(); err != nil {
			return err
		}
	}
	p := f.newPacket(f.filled, 0)
	p.last, p.sync = true, f.syncEnds
	f.filled = 0
	return f.enqueue(p)
}

// enqueue hands a packet to the stream.
func (f *File) enqueue(p *packet) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.failure(); err != nil {
		p.free()
		return err
	}
	if len(f.queue)+len(f.acks) == 0 {
		f.progress()
	}
	f.s.sample.Work()
	p.seq = f.seq
	f.seq++
	f.queue = append(f.queue, p)
	f.held += p.n
	f.cond.Broadcast()
	return nil
}

// progress restarts the Stall timeout. f.mu is held.
func (f *File) progress() {
	f.moved = time.Now()
	f.watch.Reset(f.c.o.Stall)
}

// stalled gives the stream up if nothing was acked for too long.
func (f *File) stalled() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.queue)+len(f.acks) == 0 || time.Since(f.moved) < f.c.o.Stall || f.err != nil {
		return
	}
	f.fail(fmt.Errorf("no DataNode has taken anything for %s", f.c.o.Stall))
}

// fail ends the stream, and what it waits for. Only the first failure is kept: others
// follow from it. f.mu is held.
func (f *File) fail(err error) {
	if f.err == nil {
		f.err = err
	}
	f.stop()
	f.cond.Broadcast()
}

// failure returns why the stream has failed, nil if it has not. f.mu is held.
func (f *File) failure() error {
	if f.err != nil {
		return fmt.Errorf("writing %s: %w", f.path, f.err)
	}
	if f.aborted {
		return fmt.Errorf("writing %s: it was aborted", f.path)
	}
	return nil
}

// ID returns the file's inode number, which renames do not change and the NameNode does
// not reuse (INodeId.java).
func (f *File) ID() uint64 { return f.id }

// Length returns the number of bytes written since the file was opened.
func (f *File) Length() int64 { return f.length }

// Blocks returns the number of blocks that were begun since the file was opened.
func (f *File) Blocks() int { return f.blocks }

// Close writes what is left and completes the file: when it returns nil, every DataNode has
// all of it, on disk or, but for Sync and SyncEnds, in its kernel's memory.
func (f *File) Close() error {
	if f.ended {
		return nil
	}
	err := f.close()
	if err != nil {
		_ = f.Abort() // the first error is the one to tell
	}
	return err
}

func (f *File) close() error {
	if f.current != nil {
		if err := f.push(); err != nil {
			return err
		}
	}
	if f.filled > 0 {
		if err := f.queueEnd(); err != nil {
			return err
		}
	}
	f.mu.Lock()
	f.finish = true
	f.cond.Broadcast()
	f.mu.Unlock()
	<-f.done
	f.mu.Lock()
	err := f.failure()
	f.mu.Unlock()
	if err != nil {
		return err
	}
	if err := f.complete(); err != nil {
		return err
	}
	if c := f.s.closing; c != nil && c.ended {
		f.c.remember(f.id, f.s.previous, c.nodes)
	}
	f.ended = true
	f.watch.Stop()
	f.stop()
	f.c.letGo()
	return nil
}
