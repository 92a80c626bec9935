package write

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast/internal/backoff"
	"holdfast/internal/hadoop/hdfs/transfer"
	"holdfast/internal/hadoop/hdfs/write/speed"
	"holdfast/internal/hadoop/rpc"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// streamState is what the sending goroutine knows of the block that it writes.
type streamState struct {
	previous    *wire.ExtendedBlockProto // the last complete block
	replication int

	block             *wire.ExtendedBlockProto // nil between blocks
	token             *wire.BlockTokenProto
	nodes             []node
	excluded          []*wire.DatanodeInfoProto // not to be used for this file any longer
	added             []*wire.DatanodeInfoProto // to the pipeline, while it is rebuilt
	slowSetup         bool                      // a pipeline took long to be set up, with all DataNodes there
	acceptsSingleNode bool                      // waiting for a second DataNode for a block has failed
	pipe              *pipeline
	closing           *closing // the block before, or nil

	// Recoveries since anything was acked.
	unackedRecoveries int
	ackedTo           int64

	// Under File.mu.
	sample speed.Sample
	acked  int64 // bytes of the block that all DataNodes have
	sent   int64 // bytes of the block that any may have
}

// node is one DataNode of a block's pipeline.
type node struct {
	info        *wire.DatanodeInfoProto
	storageType wire.StorageTypeProto
	storageID   string
}

// heartbeatEvery keeps an idle pipeline open: DataNodes give up after their
// socket timeout of 60 s.
const heartbeatEvery = 20 * time.Second

// stream sends what is queued, and recovers broken pipelines, until the file is finished
// or aborted.
func (f *File) stream() {
	defer close(f.done)
	if err := f.run(); err != nil {
		err = f.explainTakenOver(err)
		f.mu.Lock()
		f.fail(err) // the file is of no use, and nobody waits for the block before
		f.mu.Unlock()
	}
	if f.s.pipe != nil {
		f.s.pipe.close()
	}
	if f.s.closing != nil {
		<-f.s.closing.done
	}
}

func (f *File) run() error {
	for {
		p, broken, over := f.next()
		switch {
		case over:
			return nil
		case broken:
			if err := f.recover(); err != nil {
				return err
			}
			continue
		case p == nil:
			f.s.pipe.send(heartbeat())
			continue
		}
		if f.s.block == nil {
			if err := f.beginBlock(); err != nil {
				return err
			}
		}
		if p.last {
			if err := f.endBlock(p); err != nil {
				return err
			}
			continue
		}
		f.mu.Lock()
		f.queue = f.queue[1:]
		f.acks = append(f.acks, p)
		f.s.sent = max(f.s.sent, p.end())
		f.mu.Unlock()
		f.s.pipe.send(p.bytes()) // what fails is broken, and next says so
	}
}

// next waits for something to do: a packet to send (still in the queue), a
// broken pipeline to rebuild, a heartbeat (no packet), or the end.
func (f *File) next() (p *packet, broken, over bool) {
	var start time.Time // of waiting
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		switch {
		case f.aborted || f.err != nil: // the block before could not be ended
			return nil, false, true
		case f.s.pipe != nil && f.s.pipe.broken != nil:
			return nil, true, false
		case len(f.queue) > 0 && (!f.queue[0].last || len(f.acks) == 0):
			return f.queue[0], false, false
		case f.finish && len(f.queue) == 0 && len(f.acks) == 0 && !f.ending:
			return nil, false, true
		case start.IsZero():
			start = time.Now()
			defer time.AfterFunc(heartbeatEvery, func() {
				f.mu.Lock()
				f.cond.Broadcast()
				f.mu.Unlock()
			}).Stop()
		case f.s.pipe != nil && time.Since(start) >= heartbeatEvery:
			return nil, false, false
		}
		f.cond.Wait()
	}
}

// beginBlock asks for a block and sets its pipeline up, leaving out DataNodes
// that do not answer.
func (f *File) beginBlock() error {
	var deadline time.Time
	for tries := 0; ; tries++ {
		b, err := f.addBlock()
		if err != nil {
			return err
		}
		f.mu.Lock()
		f.s.acked, f.s.sent = 0, 0
		f.mu.Unlock()
		f.s.block, f.s.token = b.GetB(), b.GetBlockToken()
		f.s.nodes = nodesOf(b)
		if f.onSingleNode() && !f.s.acceptsSingleNode {
			if deadline.IsZero() {
				deadline = time.Now().Add(singleNodeLimit)
			}
			if f.s.acceptsSingleNode = time.Now().After(deadline); f.s.acceptsSingleNode {
				f.c.o.Log.Warnf("writing %s: continuing with 1 DataNode, as the NameNode offers no other", f.path)
			} else {
				if err := f.dropBlock(); err != nil {
					return err
				}
				tries--
				continue
			}
		}
		bad, err := f.connect(wire.OpWriteBlockProto_PIPELINE_SETUP_CREATE, f.s.block.GetGenerationStamp())
		if err == nil {
			return nil
		}
		if bad >= 0 && !f.awaitKeys(err, tries) {
			f.exclude(f.s.nodes[bad], err)
		}
		if abandonErr := f.abandon(); abandonErr != nil {
			return abandonErr
		}
		// A mismatch of the protection may be a single DataNode's; a second one is not.
		if tries >= 10 || tries > 0 && errors.Is(err, transfer.ErrMismatch) {
			return fmt.Errorf("no pipeline of DataNodes could be set up, tried %d: %w", tries+1, err)
		}
	}
}

// onSingleNode reports whether the NameNode has allocated a block on a single DataNode
// although more are wanted, after another one had failed. It is false if that DataNode is
// itself one that failed: then there are no others.
func (f *File) onSingleNode() bool {
	if len(f.s.nodes) != 1 || !f.wantsAnother() {
		return false
	}
	only := f.s.nodes[0].info.GetId().GetDatanodeUuid()
	return len(f.s.excluded) > 0 && !slices.ContainsFunc(f.s.excluded, func(n *wire.DatanodeInfoProto) bool { return n.GetId().GetDatanodeUuid() == only })
}

// dropBlock abandons a block on a single DataNode and waits, so that it is asked for again
// when DataNodes that failed may be back, or others less busy.
func (f *File) dropBlock() error {
	if err := f.abandon(); err != nil {
		return err
	}
	f.s.excluded = f.s.excluded[len(f.s.excluded)-1:]
	backoff.Sleep(f.running, singleNodeLimit/20)
	return nil
}

// tokenTries is how often new block tokens are asked for in a row.
const tokenTries = 8

// awaitKeys reports whether a DataNode has refused a new block token, and waits if so:
// after a restart a DataNode gets the NameNode's keys with its first heartbeats.
func (f *File) awaitKeys(why error, tries int) bool {
	if !errors.Is(why, transfer.ErrTokenRefused) || tries >= tokenTries {
		return false
	}
	backoff.Sleep(f.running, min(100*time.Millisecond<<tries, 3*time.Second))
	return true
}

// infos are what the NameNode says of DataNodes.
func infos(nodes []node) []*wire.DatanodeInfoProto {
	list := make([]*wire.DatanodeInfoProto, len(nodes))
	for i, n := range nodes {
		list[i] = n.info
	}
	return list
}

func nodesOf(b *wire.LocatedBlockProto) []node {
	nodes := make([]node, len(b.Locs))
	for i, l := range b.Locs {
		nodes[i] = node{info: l, storageType: wire.StorageTypeProto_DISK}
		if i < len(b.StorageTypes) {
			nodes[i].storageType = b.StorageTypes[i]
		}
		if i < len(b.StorageIDs) {
			nodes[i].storageID = b.StorageIDs[i]
		}
	}
	return nodes
}

// addBlockLimit bounds the wait for a NameNode that answers to allow the next block
// (NotReplicatedYetException) or to find DataNodes for it.
const addBlockLimit = 60 * time.Second

func (f *File) addBlock() (*wire.LocatedBlockProto, error) {
	var refused time.Time // first
	slow := f.c.speeds.Slow(time.Now())
	excluded := slices.Concat(f.s.excluded, slow)
	for wait := backoff.New(50*time.Millisecond, 2*time.Second); ; {
		resp := &wire.AddBlockResponseProto{}
		err := f.call(f.running, "addBlock", &wire.AddBlockRequestProto{
			Src: &f.path, ClientName: &f.c.name, Previous: f.s.previous, ExcludeNodes: excluded, FileId: &f.id,
		}, resp)
		if err == nil && len(slow) > 0 && len(resp.GetBlock().GetLocs()) < f.wanted() {
			// Slow DataNodes are better than too few.
			f.s.block = resp.GetBlock().GetB()
			if err := f.abandon(); err != nil {
				return nil, err
			}
			slow = slow[:len(slow)/2]
			excluded = slices.Concat(f.s.excluded, slow)
			continue
		}
		if err == nil {
			return resp.GetBlock(), nil
		}
		if len(slow) > 0 && notEnoughNodes(err) {
			slow = slow[:len(slow)/2]
			excluded = slices.Concat(f.s.excluded, slow)
			continue
		}
		if len(excluded) > 0 && notEnoughNodes(err) {
			// A DataNode that failed before is better than none: it may be back.
			excluded = nil
		} else if !notReplicatedYet(err) && !notEnoughNodes(err) {
			return nil, fmt.Errorf("asking for a block: %w", err)
		}
		if refused.IsZero() {
			refused = time.Now()
		}
		if time.Since(refused) > addBlockLimit || !wait.Wait(f.running) {
			return nil, fmt.Errorf("asking for a block, for %s: %w", addBlockLimit, err)
		}
	}
}

func (f *File) abandon() error {
	err := f.call(f.running, "abandonBlock", &wire.AbandonBlockRequestProto{
		B: f.s.block, Src: &f.path, Holder: &f.c.name, FileId: &f.id,
	}, &wire.AbandonBlockResponseProto{})
	f.s.block, f.s.nodes = nil, nil
	if err != nil {
		return fmt.Errorf("abandoning a block: %w", err)
	}
	return nil
}

func (f *File) exclude(n node, why error) {
	say := f.c.o.Log.Warnf
	if errors.Is(why, transfer.ErrMismatch) {
		say = f.c.o.Log.Debugf // if it matters, the write fails by it
	}
	say("writing %s: DataNode %s is left out: %v", f.path, address(n.info.GetId()), why)
	f.s.excluded = append(f.s.excluded, n.info)
	if errors.Is(why, errSilent) {
		f.c.o.Silent.Add(n.info)
	}
}

// notReplicatedYet: the block before has not enough replicas yet.
func notReplicatedYet(err error) bool {
	return rpc.IsRemote(err, "org.apache.hadoop.hdfs.server.namenode.NotReplicatedYetException")
}

// notEnoughNodes: no DataNode is there for the block. The NameNode throws a
// plain IOException (BlockManager.chooseTarget4NewBlock), so its text has to do.
func notEnoughNodes(err error) bool {
	return rpc.RemoteClass(err) != "" && strings.Contains(err.Error(), "could only be written to")
}
