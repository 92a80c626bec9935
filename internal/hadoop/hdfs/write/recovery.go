package write

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	pb "google.golang.org/protobuf/proto"

	"holdfast/internal/backoff"
	"holdfast/internal/hadoop/hdfs/transfer"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

var errNoneLeft = errors.New("every DataNode that had the block is lost, and with them what they had acknowledged")

// unackedRecoveriesLimit is how many pipelines in a row may break without acking a byte.
const unackedRecoveriesLimit = 20

// recover rebuilds a broken pipeline without the node that failed.
func (f *File) recover() error {
	f.s.pipe.close()
	f.mu.Lock()
	bad, why := f.s.pipe.bad, f.s.pipe.broken
	f.queue = append(slices.Clone(f.acks), f.queue...)
	f.acks = nil
	untouched := f.s.acked == 0
	if f.ackedTo == f.s.ackedTo {
		f.s.unackedRecoveries++
	} else {
		f.s.unackedRecoveries, f.s.ackedTo = 0, f.ackedTo
	}
	f.mu.Unlock()
	f.s.pipe, f.s.added = nil, nil
	if f.s.unackedRecoveries > unackedRecoveriesLimit {
		return fmt.Errorf("%d pipelines broke one after the other, and none took anything: %w", f.s.unackedRecoveries, why)
	}

	if untouched {
		return f.rebuildWithout(bad, why, wire.OpWriteBlockProto_PIPELINE_SETUP_STREAMING_RECOVERY, f.abandon) // next finds the packets in the queue and begins another block
	}
	return f.rebuildWithout(bad, why, wire.OpWriteBlockProto_PIPELINE_SETUP_STREAMING_RECOVERY, nil)
}

// rebuildWithout sets up the pipeline without the node that failed, and without those that
// fail during that. If none is left, it returns what none returns, or errNoneLeft if that
// is nil.
func (f *File) rebuildWithout(bad int, why error, stage wire.OpWriteBlockProto_BlockConstructionStage, none func() error) error {
	holders := 0 // tries that failed by a DataNode that had the block before
	for tries := 0; ; tries++ {
		if stage == wire.OpWriteBlockProto_PIPELINE_SETUP_APPEND_RECOVERY && holders == resumeTries {
			return fmt.Errorf("%w: %w", errNoneLeft, why)
		}
		if bad < 0 || bad >= len(f.s.nodes) || !slices.Contains(f.s.added, f.s.nodes[bad].info) {
			holders++
		}
		if !f.awaitKeys(why, tries) {
			bad = min(max(bad, 0), len(f.s.nodes)-1)
			f.exclude(f.s.nodes[bad], why)
			f.s.nodes = slices.Delete(slices.Clone(f.s.nodes), bad, bad+1)
		}
		if len(f.s.nodes) == 0 {
			if none == nil {
				return fmt.Errorf("%w: %w", errNoneLeft, why)
			}
			return none()
		}
		if err := f.running.Err(); err != nil {
			return err
		}
		var err error
		if bad, err = f.rebuild(stage); err == nil {
			return nil
		} else if bad < 0 {
			return err
		}
		why = err
	}
}

// rebuild sets up the pipeline on the nodes that are left. On failure it returns the index
// of the node that failed, negative if none did.
func (f *File) rebuild(stage wire.OpWriteBlockProto_BlockConstructionStage) (bad int, err error) {
	resp := &wire.UpdateBlockForPipelineResponseProto{}
	f.mu.Lock()
	acked := f.s.acked
	f.mu.Unlock()
	old := pb.Clone(f.s.block).(*wire.ExtendedBlockProto)
	old.NumBytes = pb.Uint64(uint64(acked))
	if err := f.call(f.running, "updateBlockForPipeline", &wire.UpdateBlockForPipelineRequestProto{
		Block: old, ClientName: &f.c.name,
	}, resp); err != nil {
		return -1, fmt.Errorf("recovering a block: %w", err)
	}
	stamp := resp.GetBlock().GetB().GetGenerationStamp()
	f.s.token = resp.GetBlock().GetBlockToken()
	f.s.block = old // the DataNodes know it under its old stamp

	if f.wantsAnother() {
		if stage == wire.OpWriteBlockProto_PIPELINE_SETUP_APPEND {
			// Nothing was lost: an append should not wait for DataNodes that may not
			// exist.
			_ = f.tryAddNode()
		} else if err := f.addNode(); err != nil && f.demandsAnother() {
			return -1, fmt.Errorf("a DataNode is lost, %d are left, and no other takes its place, which by the Hadoop properties dfs.client.block.write.replace-datanode-on-failure.best-effort and .min-replication is an error: %w", len(f.s.nodes), err)
		} else if err != nil {
			f.c.o.Log.Warnf("writing %s: continuing with %d DataNodes: %v", f.path, len(f.s.nodes), err)
		}
	}
	if bad, err := f.connect(stage, stamp); err != nil {
		return bad, err
	}
	next := pb.Clone(old).(*wire.ExtendedBlockProto)
	next.GenerationStamp = &stamp
	update := &wire.UpdatePipelineRequestProto{ClientName: &f.c.name, OldBlock: old, NewBlock: next}
	for _, n := range f.s.nodes {
		update.NewNodes = append(update.NewNodes, n.info.GetId())
		update.StorageIDs = append(update.StorageIDs, n.storageID)
	}
	if err := f.call(f.running, "updatePipeline", update, &wire.UpdatePipelineResponseProto{}); err != nil {
		return -1, fmt.Errorf("recovering a block: %w", err)
	}
	f.s.block = next
	if stage == wire.OpWriteBlockProto_PIPELINE_SETUP_APPEND {
		return -1, nil
	}
	f.c.o.Log.Infof("writing %s: block %d continues with %d DataNodes", f.path, next.GetBlockId(), len(f.s.nodes))
	return -1, nil
}

// singleNodeLimit is how long the writing of a block on a single DataNode waits for another
// one, since a loss of that DataNode would lose the block: the NameNode may consider all
// others too busy, or not know yet that one is back.
const singleNodeLimit = 5 * time.Second

// addNode adds another DataNode to the pipeline and has the block copied to it.
func (f *File) addNode() error {
	for deadline := time.Now().Add(singleNodeLimit); ; {
		err := f.tryAddNode()
		if err == nil || len(f.s.nodes) > 1 || time.Now().After(deadline) || !backoff.Sleep(f.running, singleNodeLimit/20) {
			return err
		}
	}
}

// addedLimit is how many DataNodes are added to a pipeline while it is rebuilt, of which each
// may be lost as well: NameNodes offer one for up to ten minutes after it has died.
const addedLimit = 5

// tryAddNode tries once. If there is no other DataNode, it tries those that failed earlier,
// except the last one: they may be back. It takes none twice while a pipeline is rebuilt: the
// copying to one that is dead succeeds as its source says (DataNode.DataTransfer logs what
// fails), and only the pipeline finds out.
func (f *File) tryAddNode() error {
	if len(f.s.added) >= addedLimit {
		return fmt.Errorf("%d were added, and each of them failed", len(f.s.added))
	}
	added, token, err := f.anotherNode(slices.Concat(f.s.excluded, f.s.added))
	if err != nil && len(f.s.excluded) > 1 {
		added, token, err = f.anotherNode(slices.Concat(f.s.excluded[len(f.s.excluded)-1:], f.s.added))
	}
	if err != nil {
		return err
	}
	f.s.added = append(f.s.added, added.info)
	return f.copyTo(added, token)
}

// anotherNode asks for a DataNode that does not have the block, and for the token to copy
// the block to it: the token to write it is not accepted for that.
func (f *File) anotherNode(excluded []*wire.DatanodeInfoProto) (*node, *wire.BlockTokenProto, error) {
	have := make([]*wire.DatanodeInfoProto, len(f.s.nodes))
	ids := make([]string, len(f.s.nodes))
	for i, n := range f.s.nodes {
		have[i], ids[i] = n.info, n.storageID
	}
	resp := &wire.GetAdditionalDatanodeResponseProto{}
	if err := f.call(f.running, "getAdditionalDatanode", &wire.GetAdditionalDatanodeRequestProto{
		Src: &f.path, Blk: f.s.block, Existings: have, Excludes: excluded,
		NumAdditionalNodes: pb.Uint32(1), ClientName: &f.c.name, ExistingStorageUuids: ids, FileId: &f.id,
	}, resp); err != nil {
		return nil, nil, fmt.Errorf("asking for another DataNode: %w", err)
	}
	for _, n := range nodesOf(resp.GetBlock()) {
		if !slices.ContainsFunc(f.s.nodes, func(o node) bool {
			return o.info.GetId().GetDatanodeUuid() == n.info.GetId().GetDatanodeUuid()
		}) {
			return &n, resp.GetBlock().GetBlockToken(), nil
		}
	}
	return nil, nil, errors.New("asking for another DataNode: there is none")
}

// copyTo has the block copied to a DataNode, which joins the pipeline.
func (f *File) copyTo(added *node, token *wire.BlockTokenProto) error {
	source := f.s.nodes[len(f.s.nodes)-1]
	conn, err := f.dial(source, token)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(f.running, func() { conn.Close() })()
	// The copy may take as long as writing a whole block.
	answer, err := transfer.Operate(conn, bufio.NewReader(conn), transfer.TransferBlock, &wire.OpTransferBlockProto{
		Header: f.header(token), Targets: []*wire.DatanodeInfoProto{added.info},
		TargetStorageTypes: []wire.StorageTypeProto{added.storageType},
	}, 2*f.c.o.Timeout)
	if err != nil {
		return fmt.Errorf("copying the block from %s to %s: %w", address(source.info.GetId()), address(added.info.GetId()), err)
	}
	if answer.GetStatus() != wire.Status_SUCCESS {
		return fmt.Errorf("copying the block from %s to %s: %s %s", address(source.info.GetId()), address(added.info.GetId()), answer.GetStatus(), answer.GetMessage())
	}
	f.s.nodes = append(f.s.nodes, *added)
	return nil
}
