package write

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	pb "google.golang.org/protobuf/proto"

	"holdfast/internal/backoff"
	"holdfast/internal/hadoop/rpc"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// CommitLimit is how long a call waits for the NameNode if without it what was uploaded is
// lost: each one of an open file, and what gives the file its name. It also bounds the wait for
// the DataNodes to report the last block.
const CommitLimit = 2 * time.Minute

// call calls the NameNode for the open file.
func (f *File) call(ctx context.Context, method string, req, resp pb.Message) error {
	return f.c.nn.Call(rpc.WithLimit(ctx, CommitLimit), method, req, resp)
}

// complete repeats the call until the NameNode knows enough replicas of the last block
// (dfs.namenode.replication.min).
func (f *File) complete() error {
	ctx, cancel := context.WithTimeout(f.running, CommitLimit)
	defer cancel()
	for wait := backoff.New(2*time.Millisecond, 2*time.Second); ; {
		resp := &wire.CompleteResponseProto{}
		err := f.call(ctx, "complete", &wire.CompleteRequestProto{
			Src: &f.path, ClientName: &f.c.name, Last: f.s.previous, FileId: &f.id,
		}, resp)
		if err != nil {
			return fmt.Errorf("completing %s: %w", f.path, f.explainTakenOver(err))
		}
		if resp.GetResult() {
			return nil
		}
		if !wait.Wait(ctx) {
			return fmt.Errorf("completing %s: the NameNode did not hear of enough replicas of its last block within %s", f.path, CommitLimit)
		}
	}
}

// Abort abandons the file: one that was created is deleted, one that was opened by Append
// keeps what was flushed, and one that another writer has taken over is left to it. After
// Close it does nothing.
func (f *File) Abort() error {
	if f.ended {
		return nil
	}
	f.ended = true
	f.mu.Lock()
	f.aborted = true
	f.cond.Broadcast()
	f.mu.Unlock()
	f.stop()
	<-f.done
	f.watch.Stop()
	f.c.letGo()
	if f.current != nil {
		f.current.free()
	}
	for _, p := range append(f.queue, f.acks...) {
		p.free()
	}
	f.current, f.queue, f.acks = nil, nil, nil
	ctx, cancel := context.WithTimeout(context.Background(), abortLimit)
	defer cancel()
	if err := f.giveUp(ctx); err != nil {
		return fmt.Errorf("giving up %s: %w", f.path, err)
	}
	return nil
}

// giveUp gives the lease up, which would be renewed as long as other files are open. Both
// calls name the file by its path and ask for no lease of ours (FSNamesystem.delete and
// recoverLease, which takes it from whoever has it), so they are made only while the file is
// this one: another writer may have taken it over, or another file be at its path.
func (f *File) giveUp(ctx context.Context) error {
	if ours, err := f.ours(ctx); err != nil || !ours {
		return err
	}
	if f.created {
		return f.c.nn.Call(ctx, "delete", &wire.DeleteRequestProto{Src: &f.path, Recursive: pb.Bool(false)}, &wire.DeleteResponseProto{})
	}
	return f.c.nn.Call(ctx, "recoverLease", &wire.RecoverLeaseRequestProto{Src: &f.path, ClientName: &f.c.name}, &wire.RecoverLeaseResponseProto{})
}

// ours reports whether the file is still at its path, and its lease this Client's.
func (f *File) ours(ctx context.Context) (bool, error) {
	there, err := f.exists(ctx)
	if err != nil || !there {
		return false, err
	}
	return f.holdsLease(ctx)
}

// exists reports whether the file is still at its path.
func (f *File) exists(ctx context.Context) (bool, error) {
	info := &wire.GetFileInfoResponseProto{}
	err := f.c.nn.Call(ctx, "getFileInfo", &wire.GetFileInfoRequestProto{Src: &f.path}, info)
	return err == nil && info.GetFs().GetFileId() == f.id, err
}

// holdsLease reports whether the file's lease is this Client's (FSNamesystem.checkLease, which
// fsync makes).
func (f *File) holdsLease(ctx context.Context) (bool, error) {
	err := f.c.nn.Call(ctx, "fsync", &wire.FsyncRequestProto{Src: &f.path, Client: &f.c.name, FileId: &f.id}, &wire.FsyncResponseProto{})
	if rpc.IsRemote(err, "org.apache.hadoop.hdfs.server.namenode.LeaseExpiredException") || rpc.IsRemote(err, "java.io.FileNotFoundException") {
		return false, nil
	}
	return err == nil, err
}

// errTakenOver is an ESTALE that says why.
var errTakenOver = fmt.Errorf("another writer has taken the file over: %w", syscall.ESTALE)

// explainTakenOver adds errTakenOver to a failure whose cause is that. The NameNode and the DataNodes
// do not say so while the other one's recovery of the last block is under way, or is done:
// then the block is in the wrong state (FSNamesystem.checkUCBlock, a plain IOException), or
// has another generation stamp.
func (f *File) explainTakenOver(err error) error {
	if f.running.Err() != nil || errors.Is(err, errTakenOver) {
		return err // nobody waits for it, or it is known
	}
	ctx, cancel := context.WithTimeout(context.Background(), abortLimit)
	defer cancel()
	if there, askErr := f.exists(ctx); askErr != nil || !there {
		return err
	}
	if ours, askErr := f.holdsLease(ctx); askErr != nil || ours {
		return err
	}
	return fmt.Errorf("%w: %w", errTakenOver, err)
}

// abortLimit bounds what is asked of the NameNode once a file has failed.
const abortLimit = 10 * time.Second
