package transfer_test

import (
	"slices"
	"testing"

	pb "google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/hdfs/transfer"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// The latest is last: who needs one of them all the same tries the others first.
func TestSilentDataNodesAreInOrder(t *testing.T) {
	var s transfer.Silent
	node := func(id string) *wire.DatanodeInfoProto {
		return &wire.DatanodeInfoProto{Id: &wire.DatanodeIDProto{DatanodeUuid: pb.String(id)}}
	}
	for _, id := range []string{"a", "b", "a"} {
		s.Add(node(id))
	}
	var ids []string
	for _, n := range s.Nodes() {
		ids = append(ids, n.GetId().GetDatanodeUuid())
	}
	if !slices.Equal(ids, []string{"b", "a"}) {
		t.Errorf("they are %v", ids)
	}
	if !s.Has(node("b").GetId()) || s.Has(node("c").GetId()) {
		t.Error("b did not answer, and c was not asked")
	}
}
