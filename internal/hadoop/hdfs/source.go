package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"sort"
	"sync"
	"syscall"
	"time"

	pb "google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/hdfs/transfer"
	"holdfast/internal/hadoop/hdfs/zone"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// source finds the bytes of a file: its blocks, and who of their DataNodes is
// worth asking.
type source struct {
	c     *Client
	path  string // for messages
	inode uint64
	size  int64
	// encryption is of a file in an encryption zone, and cipher what Open makes of
	// it; else both are nil.
	encryption *wire.FileEncryptionInfoProto
	cipher     *zone.Cipher

	mu     sync.Mutex
	blocks []*wire.LocatedBlockProto
	bad    map[string]bool // DataNodes that failed, by uuid
}

// Open looks a file up, as it is now.
func (c *Client) open(ctx context.Context, name string) (*source, error) {
	st, err := c.Stat(ctx, name)
	if err == nil && st.Mode.IsDir() {
		err = syscall.EISDIR
	}
	if err != nil {
		return nil, Wrap("open", name, err)
	}
	s := &source{c: c, path: name, inode: st.Inode, bad: map[string]bool{}}
	located, err := s.locate(ctx)
	if err != nil {
		return nil, Wrap("open", name, err)
	}
	s.encryption = located.GetFileEncryptionInfo()
	s.size = int64(located.GetFileLength())
	if last := located.GetLastBlock(); !located.GetIsLastBlockComplete() && last != nil {
		// It is being written: what its writer has flushed and told the
		// NameNode counts too.
		s.size = max(s.size, int64(last.GetOffset()+last.GetB().GetNumBytes()))
	}
	return s, nil
}

// locate asks the NameNode where the blocks are.
func (s *source) locate(ctx context.Context) (*wire.LocatedBlocksProto, error) {
	resp := &wire.GetBlockLocationsResponseProto{}
	name := inodePath(s.inode)
	err := s.c.call(ctx, "getBlockLocations", &wire.GetBlockLocationsRequestProto{
		Src: &name, Offset: pb.Uint64(0), Length: pb.Uint64(math.MaxInt64),
	}, resp)
	if gone(err) || err == nil && resp.GetLocations() == nil {
		return nil, fmt.Errorf("the file was removed meanwhile: %w", syscall.ESTALE)
	}
	if err != nil {
		return nil, err
	}
	located := resp.GetLocations()
	blocks := located.GetBlocks()
	if last := located.GetLastBlock(); !located.GetIsLastBlockComplete() && last != nil {
		if n := len(blocks); n == 0 || blocks[n-1].GetOffset() < last.GetOffset() {
			blocks = append(blocks, last)
		} else if blocks[n-1].GetOffset() == last.GetOffset() {
			blocks[n-1] = last
		}
	}
	s.mu.Lock()
	s.blocks = blocks
	s.mu.Unlock()
	return located, nil
}

// at finds the block of an offset and its DataNodes, those last that failed or
// did not answer lately. Each lane has another one first.
func (s *source) at(off int64, lane int) (*wire.LocatedBlockProto, []*wire.DatanodeIDProto) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := sort.Search(len(s.blocks), func(i int) bool { return int64(s.blocks[i].GetOffset()) > off }) - 1
	if i < 0 || off >= int64(s.blocks[i].GetOffset()+s.blocks[i].GetB().GetNumBytes()) {
		return nil, nil
	}
	var good, bad []*wire.DatanodeIDProto
	for _, l := range s.blocks[i].GetLocs() {
		if id := l.GetId(); s.bad[id.GetDatanodeUuid()] || silent.Has(id) {
			bad = append(bad, id)
		} else {
			good = append(good, id)
		}
	}
	if n := len(good); n > 0 {
		good = append(good[lane%n:n:n], good[:lane%n]...)
	}
	return s.blocks[i], append(good, bad...)
}

// blame notes that a DataNode failed, and tells whether it is the first time.
func (s *source) blame(node *wire.DatanodeIDProto) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bad[node.GetDatanodeUuid()] {
		return false
	}
	s.bad[node.GetDatanodeUuid()] = true
	return true
}

// fileStream reads a file from some offset on, over its blocks.
type fileStream struct {
	s     *source
	pos   int64
	limit int64 // not read further than this; moved by who reads
	lane  int   // of those that read the file at the same time
	block *blockStream
	base  int64 // the block's offset in the file
	from  *wire.DatanodeIDProto
	b     *wire.LocatedBlockProto
}

const (
	// readLimit bounds what is done for one read.
	readLimit = 60 * time.Second
	// wrongRounds is how often the NameNode is asked for other replicas when
	// those that it names hold wrong bytes, or their DataNodes want another
	// protection than this side has.
	wrongRounds = 3
)

// readFull fills b, from whatever DataNodes it takes. It reads ahead in a block
// as far as limit.
func (f *fileStream) readFull(ctx context.Context, b []byte) error {
	limited, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	failed := failures{} // of this round
	var last error
	pause := 100 * time.Millisecond
	wrong := 0
	for len(b) > 0 {
		err := f.connect(ctx, failed)
		if err == nil {
			n, readErr := io.ReadFull(f.block, b[:min(int64(len(b)), f.base+f.block.end-f.pos)])
			f.pos += int64(n)
			b = b[n:]
			if readErr == nil {
				if f.block.pos == f.block.end {
					f.close()
				}
				continue
			}
			f.fail(ctx, readErr, failed)
			last = fmt.Errorf("DataNode %s: %w", nodeAddress(f.from), readErr)
			continue
		}
		if !errors.Is(err, errNoReplica) {
			last = err
			if ctx.Err() == nil && !errors.Is(err, transfer.ErrTokenRefused) {
				continue // another replica
			}
		}
		if last == nil {
			last = err
		}
		// All have failed, or the block's access token has run out: maybe the
		// NameNode knows others by now, or the file is gone.
		if errors.Is(last, errChecksum) || errors.Is(last, transfer.ErrMismatch) {
			wrong++
		}
		if limited.Err() != nil || wrong == wrongRounds {
			return fmt.Errorf("no DataNode could be read from, at byte %d: %w", f.pos, last)
		}
		if f.abandoned(failed) {
			f.s.conclude(limited)
		}
		if _, err := f.s.locate(limited); err != nil {
			if limited.Err() != nil {
				return fmt.Errorf("no DataNode could be read from, at byte %d: %w", f.pos, last)
			}
			return err
		}
		clear(failed)
		select {
		case <-limited.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, 3*time.Second)
	}
	return nil
}

// failures tells, by DataNodes' uuids, what went wrong with them.
type failures map[string]error

// errNoReplica: every DataNode of the block has failed in this round.
var errNoReplica = errors.New("no DataNode has the block")

// connect sees to a stream at pos.
func (f *fileStream) connect(ctx context.Context, failed failures) error {
	if f.block != nil {
		return nil
	}
	b, nodes := f.s.at(f.pos, f.lane)
	if b == nil {
		return errNoReplica
	}
	for _, n := range nodes {
		if failed[n.GetDatanodeUuid()] != nil {
			continue
		}
		f.base = int64(b.GetOffset())
		end := min(f.limit, f.s.size, f.base+int64(b.GetB().GetNumBytes()))
		block, err := openBlock(ctx, f.s.c.dial, n, b, "holdfast", f.pos-f.base, end-f.base, f.patience(n, nodes, failed))
		f.from, f.b = n, b
		if errors.Is(err, transfer.ErrTokenRefused) { // not the DataNode's fault
			f.s.c.log.WithError(err).Debugf("reading %s: asking for new block access tokens", f.s.path)
			return fmt.Errorf("DataNode %s: %w", nodeAddress(n), err)
		}
		if err != nil {
			f.fail(ctx, err, failed)
			return fmt.Errorf("DataNode %s: %w", nodeAddress(n), err)
		}
		f.block = block
		return nil
	}
	return errNoReplica
}

// patience is how long a DataNode may be silent, among those that have the block.
func (f *fileStream) patience(node *wire.DatanodeIDProto, nodes []*wire.DatanodeIDProto, failed failures) time.Duration {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	for _, n := range nodes {
		if id := n.GetDatanodeUuid(); n != node && failed[id] == nil && !f.s.bad[id] {
			return shortSilence
		}
	}
	return silence
}

// abandoned tells whether nobody can write on in the block at pos: all its
// DataNodes have been restarted since, and of what they have then, a writer cannot
// make a pipeline again (FsDatasetImpl.recoverRbwImpl). So nobody can be disturbed
// by an end of its file's lease.
func (f *fileStream) abandoned(failed failures) bool {
	_, nodes := f.s.at(f.pos, f.lane)
	return len(nodes) > 0 && !slices.ContainsFunc(nodes, func(n *wire.DatanodeIDProto) bool {
		return !errors.Is(failed[n.GetDatanodeUuid()], errUnrecovered)
	})
}

// conclude has the NameNode settle how long a file is whose writer is gone. It
// would do so by itself only after 20 minutes (dfs.namenode.lease-hard-limit-sec).
func (s *source) conclude(ctx context.Context) {
	if err := s.c.recoverLease(ctx, inodePath(s.inode)); err != nil {
		s.c.log.WithError(err).Warnf("reading %s: its writer is gone, and the NameNode does not end its lease", s.path)
	}
}

// fail notes that a DataNode failed, and reports wrong bytes.
func (f *fileStream) fail(ctx context.Context, why error, failed failures) {
	f.close()
	if ctx.Err() != nil {
		return // it was not the DataNode's fault
	}
	failed[f.from.GetDatanodeUuid()] = why
	if !f.s.blame(f.from) {
		return
	}
	i := slices.IndexFunc(f.b.GetLocs(), func(l *wire.DatanodeInfoProto) bool {
		return l.GetId().GetDatanodeUuid() == f.from.GetDatanodeUuid()
	})
	if i >= 0 && (errors.Is(why, os.ErrDeadlineExceeded) || errors.Is(why, context.DeadlineExceeded)) {
		silent.Add(f.b.Locs[i])
	}
	f.s.c.log.WithError(why).Warnf("reading %s: DataNode %s is left out", f.s.path, nodeAddress(f.from))
	if i < 0 || !errors.Is(why, errChecksum) {
		return
	}
	bad := pb.Clone(f.b).(*wire.LocatedBlockProto)
	bad.Locs = bad.Locs[i : i+1]
	if i < len(bad.StorageIDs) {
		bad.StorageIDs = bad.StorageIDs[i : i+1]
	}
	if i < len(bad.StorageTypes) {
		bad.StorageTypes = bad.StorageTypes[i : i+1]
	}
	err := f.s.c.call(ctx, "reportBadBlocks", &wire.ReportBadBlocksRequestProto{Blocks: []*wire.LocatedBlockProto{bad}}, &wire.ReportBadBlocksResponseProto{})
	if err != nil {
		f.s.c.log.WithError(err).Warnf("cannot tell the NameNode of wrong bytes of %s on DataNode %s", f.s.path, nodeAddress(f.from))
	}
}

func (f *fileStream) close() {
	if f.block != nil {
		f.block.close()
		f.block = nil
	}
}
