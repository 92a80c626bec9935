package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sort"
	"sync"
	"syscall"
	"time"

	pb "google.golang.org/protobuf/proto"

	"holdfast/internal/backoff"
	"holdfast/internal/hadoop/hdfs/transfer"
	"holdfast/internal/hadoop/hdfs/zone"
	"holdfast/internal/hadoop/rpc"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// source knows where the bytes of a file are: its blocks, and which of their DataNodes
// can be expected to answer.
type source struct {
	c      *Client
	path   string // as it was called when it was opened
	inode  uint64
	size   int64
	policy *policy // nil: replicated
	// encryption is of a file in an encryption zone, and cipher what Open makes of
	// it; else both are nil.
	encryption *wire.FileEncryptionInfoProto
	cipher     *zone.Cipher

	mu     sync.Mutex
	blocks []*wire.LocatedBlockProto
	bad    map[string]bool // DataNodes that failed, by uuid
}

// open looks up a file in its present state.
func (c *Client) open(ctx context.Context, name string) (*source, error) {
	s := &source{c: c, path: name, bad: map[string]bool{}}
	located, err := s.find(ctx)
	if err == nil {
		s.policy, err = policyOf(located.GetEcPolicy())
	}
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
	s.take(located)
	return s, nil
}

func (s *source) take(located *wire.LocatedBlocksProto) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocks = blocksOf(located)
}

// locate asks again where the blocks are, and returns under which name the file
// was found: by its inode, which renames do not change, or by the name under which it was
// opened.
func (s *source) locate(ctx context.Context) (name string, err error) {
	s.mu.Lock()
	known := s.blocks
	s.mu.Unlock()
	for _, name = range []string{inodePath(s.inode), s.path} {
		var located *wire.LocatedBlocksProto
		located, err = s.c.blocks(ctx, name)
		if err == nil && sameFile(known, blocksOf(located)) {
			s.take(located)
			return name, nil
		}
		if err != nil && rpc.RemoteClass(err) == "" && !errors.Is(err, syscall.ENOENT) {
			return "", err // nobody could be asked
		}
	}
	if err != nil && !errors.Is(err, syscall.ENOENT) {
		return "", err
	}
	return "", fmt.Errorf("the file was removed or, behind a Router, renamed after it was opened: %w", syscall.ESTALE)
}

// at returns the block of an offset and its DataNodes. Those that were slow come after the
// others, and last those that failed or did not answer lately. Each lane gets another one
// first.
func (s *source) at(off int64, lane int) (*wire.LocatedBlockProto, []*wire.DatanodeIDProto) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := sort.Search(len(s.blocks), func(i int) bool { return int64(s.blocks[i].GetOffset()) > off }) - 1
	if i < 0 || off >= int64(s.blocks[i].GetOffset()+s.blocks[i].GetB().GetNumBytes()) {
		return nil, nil
	}
	var good, late, bad []*wire.DatanodeIDProto
	for _, l := range s.blocks[i].GetLocs() {
		switch id := l.GetId(); {
		case s.bad[id.GetDatanodeUuid()] || s.c.shared.silent.Has(id):
			bad = append(bad, id)
		case s.c.shared.slow.Has(id):
			late = append(late, id)
		default:
			good = append(good, id)
		}
	}
	if n := len(good); n > 0 {
		good = append(good[lane%n:n:n], good[:lane%n]...)
	}
	return s.blocks[i], slices.Concat(good, late, bad)
}

// markSlow notes that a stream's DataNode is much slower than others.
func (s *source) markSlow(f *fileStream) {
	for _, l := range f.b.GetLocs() {
		if l.GetId().GetDatanodeUuid() == f.from.GetDatanodeUuid() {
			s.c.shared.slow.Add(l)
			s.c.log.Infof("reading %s: DataNode %s is much slower than others, and asked last for a while", s.path, nodeAddress(f.from))
		}
	}
}

// suspect reports whether a DataNode failed, or did not answer lately.
func (s *source) suspect(node *wire.DatanodeIDProto) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bad[node.GetDatanodeUuid()] || s.c.shared.silent.Has(node)
}

// markBad notes that a DataNode failed, and reports whether it is the first time.
func (s *source) markBad(node *wire.DatanodeIDProto) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bad[node.GetDatanodeUuid()] {
		return false
	}
	s.bad[node.GetDatanodeUuid()] = true
	return true
}

// byteStream reads a block, or a block group, up to an end that was set before.
type byteStream interface {
	io.Reader
	left() int64 // bytes up to the end
	close()
}

var (
	_ byteStream = (*blockStream)(nil)
	_ byteStream = (*groupStream)(nil)
)

// fileStream reads a file from some offset on, over its blocks.
type fileStream struct {
	s     *source
	pos   int64
	limit int64 // not read further than this; moved by who reads
	lane  int   // of those that read the file at the same time
	block byteStream
	base  int64 // the block's offset in the file
	from  *wire.DatanodeIDProto
	b     *wire.LocatedBlockProto
}

const (
	// readLimit bounds what is done for one read.
	readLimit = 60 * time.Second
	// wrongRounds is how often the NameNode is asked for other replicas when
	// those that it names hold wrong bytes, or their DataNodes require another
	// protection than this client has.
	wrongRounds = 3
)

// readFull fills b, trying all DataNodes if necessary. It reads ahead in a block up to
// limit.
func (f *fileStream) readFull(ctx context.Context, b []byte) error {
	limited, cancel := context.WithTimeout(ctx, readLimit)
	defer cancel()
	failed := failures{} // of this round
	var last error
	wait := backoff.New(100*time.Millisecond, 3*time.Second)
	wrong := 0
	for len(b) > 0 {
		err := f.connect(ctx, failed)
		if err == nil {
			n, readErr := io.ReadFull(f.block, b[:min(int64(len(b)), f.block.left())])
			f.pos += int64(n)
			b = b[n:]
			if readErr == nil {
				if f.block.left() == 0 {
					f.close()
				}
				continue
			}
			if f.s.policy == nil {
				f.fail(ctx, readErr, failed)
				last = fmt.Errorf("DataNode %s: %w", nodeAddress(f.from), readErr)
				continue
			}
			f.close() // it has tried whatever there is
			last, err = readErr, errNoReplica
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
		// All have failed, or the block's access token has expired: the NameNode may
		// know others by now, or the file may have been removed.
		if errors.Is(last, errChecksum) || errors.Is(last, transfer.ErrMismatch) {
			wrong++
		}
		if limited.Err() != nil || wrong == wrongRounds {
			return fmt.Errorf("no DataNode could be read from, at byte %d: %w", f.pos, last)
		}
		if f.abandoned(failed) {
			f.s.endAbandonedLease(limited)
		}
		if _, err := f.s.locate(limited); err != nil {
			if limited.Err() != nil {
				return fmt.Errorf("no DataNode could be read from, at byte %d: %w", f.pos, last)
			}
			return err
		}
		clear(failed)
		wait.Wait(limited)
	}
	return nil
}

// failures are errors by the uuid of the DataNode.
type failures map[string]error

// errNoReplica: every DataNode of the block has failed in this round.
var errNoReplica = errors.New("no DataNode has the block")

// connect opens a stream at pos, unless there is one.
func (f *fileStream) connect(ctx context.Context, failed failures) error {
	if f.block != nil {
		return nil
	}
	b, nodes := f.s.at(f.pos, f.lane)
	if b == nil {
		return errNoReplica
	}
	if f.s.policy != nil {
		f.base = int64(b.GetOffset())
		end := min(f.limit, f.s.size, f.base+int64(b.GetB().GetNumBytes()))
		f.block = openGroup(ctx, f.s, b, f.pos-f.base, end-f.base)
		return nil
	}
	for _, n := range nodes {
		if failed[n.GetDatanodeUuid()] != nil {
			continue
		}
		f.base = int64(b.GetOffset())
		end := min(f.limit, f.s.size, f.base+int64(b.GetB().GetNumBytes()))
		block, err := openBlock(ctx, f.s.c.dial, n, b, "holdfast", f.pos-f.base, end-f.base, f.readTimeout(n, nodes, failed))
		f.from, f.b = n, b
		if errors.Is(err, transfer.ErrTokenRefused) { // not the DataNode's fault
			f.s.c.log.Debugf("reading %s: asking for new block access tokens: %v", f.s.path, err)
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

// readTimeout returns how long a DataNode may be silent, among those that have the block.
func (f *fileStream) readTimeout(node *wire.DatanodeIDProto, nodes []*wire.DatanodeIDProto, failed failures) time.Duration {
	f.s.mu.Lock()
	defer f.s.mu.Unlock()
	for _, n := range nodes {
		if id := n.GetDatanodeUuid(); n != node && failed[id] == nil && !f.s.bad[id] {
			return shortSilence
		}
	}
	return silence
}

// abandoned reports whether no writer can continue the block at pos: all its DataNodes
// have been restarted since, and a pipeline cannot be rebuilt from the replicas that they
// have then (FsDatasetImpl.recoverRbwImpl). So ending the file's lease disturbs no writer.
func (f *fileStream) abandoned(failed failures) bool {
	_, nodes := f.s.at(f.pos, f.lane)
	return len(nodes) > 0 && !slices.ContainsFunc(nodes, func(n *wire.DatanodeIDProto) bool {
		return !errors.Is(failed[n.GetDatanodeUuid()], errUnrecovered)
	})
}

// endAbandonedLease ends the lease of a file whose writer is gone, so that the NameNode
// determines its length. It would do so by itself only after 20 minutes
// (dfs.namenode.lease-hard-limit-sec).
func (s *source) endAbandonedLease(ctx context.Context) {
	name, err := s.locate(ctx)
	if err == nil {
		err = s.c.recoverLease(ctx, name)
	}
	if err != nil {
		s.c.log.Warnf("reading %s: its writer is gone, and the NameNode does not end its lease: %v", s.path, err)
	}
}

// fail notes that a DataNode failed, and reports wrong bytes.
func (f *fileStream) fail(ctx context.Context, why error, failed failures) {
	f.close()
	if ctx.Err() != nil {
		return // it was not the DataNode's fault
	}
	failed[f.from.GetDatanodeUuid()] = why
	i := slices.IndexFunc(f.b.GetLocs(), func(l *wire.DatanodeInfoProto) bool {
		return l.GetId().GetDatanodeUuid() == f.from.GetDatanodeUuid()
	})
	if i < 0 {
		return
	}
	b := pb.Clone(f.b).(*wire.LocatedBlockProto)
	b.Locs = b.Locs[i : i+1]
	if i < len(b.StorageIDs) {
		b.StorageIDs = b.StorageIDs[i : i+1]
	}
	if i < len(b.StorageTypes) {
		b.StorageTypes = b.StorageTypes[i : i+1]
	}
	f.s.nodeFailed(ctx, b, why)
}

// nodeFailed notes that the one DataNode of a located block failed, and reports wrong
// bytes to the NameNode.
func (s *source) nodeFailed(ctx context.Context, b *wire.LocatedBlockProto, why error) {
	node := b.Locs[0]
	if !s.markBad(node.GetId()) {
		return
	}
	if errors.Is(why, os.ErrDeadlineExceeded) || errors.Is(why, context.DeadlineExceeded) {
		s.c.shared.silent.Add(node)
	}
	s.c.log.Warnf("reading %s: DataNode %s is left out: %v", s.path, nodeAddress(node.GetId()), why)
	if !errors.Is(why, errChecksum) {
		return
	}
	err := s.c.call(ctx, "reportBadBlocks", &wire.ReportBadBlocksRequestProto{Blocks: []*wire.LocatedBlockProto{b}}, &wire.ReportBadBlocksResponseProto{})
	if err != nil {
		s.c.log.Warnf("cannot tell the NameNode of wrong bytes of %s on DataNode %s: %v", s.path, nodeAddress(node.GetId()), err)
	}
}

// releaseIdle frees what a stream that is idle holds besides its connections, if memory is
// short.
func (f *fileStream) releaseIdle() {
	if g, ok := f.block.(*groupStream); ok && f.s.c.shared.memory.Short() {
		g.forget()
	}
}

func (f *fileStream) close() {
	if f.block != nil {
		f.block.close()
		f.block = nil
	}
}

// BlockPlace is where a block of a file is.
type BlockPlace struct {
	Offset, Size int64
	DataNodes    []string // HOST:PORT of the data transfer, in the NameNode's order
}

// Locate returns where the blocks of a file are.
func (c *Client) Locate(ctx context.Context, name string) ([]BlockPlace, error) {
	s, err := c.open(ctx, name)
	if err != nil {
		return nil, err
	}
	var places []BlockPlace
	for _, b := range s.blocks {
		p := BlockPlace{Offset: int64(b.GetOffset()), Size: int64(b.GetB().GetNumBytes())}
		for _, l := range b.GetLocs() {
			p.DataNodes = append(p.DataNodes, fmt.Sprintf("%s:%d", l.GetId().GetHostName(), l.GetId().GetXferPort()))
		}
		places = append(places, p)
	}
	return places, nil
}
