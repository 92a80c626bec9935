package write

import (
	"context"
	"fmt"

	pb "google.golang.org/protobuf/proto"

	wire "holdfast/internal/hadoop/wire/hdfs"
)

// Flush waits until every DataNode has all that was written, and reports the length to the
// NameNode: new readers see it (hflush).
func (f *File) Flush(ctx context.Context) error { return f.flush(ctx, false, true) }

// Drain is Flush without the report to the NameNode: readers may see less.
func (f *File) Drain(ctx context.Context) error { return f.flush(ctx, false, false) }

// Sync is Flush with the DataNodes' disks (hsync). It does not reach blocks that had
// ended before the first call of Sync or SyncEnds: they are on disk when the DataNodes' kernels
// have written them.
func (f *File) Sync(ctx context.Context) error {
	f.SyncEnds()
	return f.flush(ctx, true, true)
}

// SyncEnds has the DataNodes write each block to their disks when it ends, from the present one
// on (as CreateFlag SYNC_BLOCK does).
func (f *File) SyncEnds() { f.syncEnds = true }

func (f *File) flush(ctx context.Context, sync, tell bool) error {
	if f.ended {
		return fmt.Errorf("flushing %s: it is closed", f.path)
	}
	f.flushed.Store(true)
	if p := f.current; p != nil && p.n > p.repeated {
		tail := min(p.n, int(p.end()%int64(f.c.o.Checksum.Bytes)))
		last := append([]byte(nil), p.data()[p.n-tail:]...)
		end := p.end()
		f.current = nil
		if err := f.enqueue(p); err != nil {
			return err
		}
		// The next packet starts at the chunk's beginning again.
		f.filled = end - int64(tail)
		if tail > 0 {
			f.current = f.newPacket(f.filled, len(last))
			f.current.repeated = f.current.add(last)
		}
	}
	length := f.at()
	var err error
	switch {
	case tell && length == f.blockSize: // or its DataNodes would be needed for as long as nothing more comes
		err = f.queueEnd()
	case sync && length > 0:
		err = f.queueSync()
	}
	if err != nil {
		return err
	}
	if err := f.drain(ctx, f.seq); err != nil || !tell {
		return err
	}
	if length == 0 {
		return nil
	}
	err = f.call(ctx, "fsync", &wire.FsyncRequestProto{
		Src: &f.path, Client: &f.c.name, LastBlockLength: pb.Int64(length), FileId: &f.id,
	}, &wire.FsyncResponseProto{})
	if err != nil {
		return fmt.Errorf("telling the NameNode the length of %s: %w", f.path, err)
	}
	return nil
}

// at returns the number of bytes written to the current block.
func (f *File) at() int64 {
	if f.current != nil {
		return f.current.end()
	}
	return f.filled
}

// drain waits until the packets below seq are acked.
func (f *File) drain(ctx context.Context, seq int64) error {
	defer context.AfterFunc(ctx, func() {
		f.mu.Lock()
		f.cond.Broadcast()
		f.mu.Unlock()
	})()
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.ackedTo < seq || f.ending {
		if err := f.failure(); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("flushing %s: %w", f.path, err)
		}
		f.cond.Wait()
	}
	return nil
}
