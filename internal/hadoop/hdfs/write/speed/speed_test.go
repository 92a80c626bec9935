package speed_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	pb "google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/hdfs/write/speed"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

func TestSlowDataNodesAreFoundOut(t *testing.T) {
	pipeline := func(names ...string) (nodes []*wire.DatanodeInfoProto) {
		for _, n := range names {
			nodes = append(nodes, &wire.DatanodeInfoProto{Id: &wire.DatanodeIDProto{DatanodeUuid: pb.String(n)}})
		}
		return nodes
	}
	start := time.Now()
	var s speed.Nodes
	for i, step := range []struct {
		nodes []*wire.DatanodeInfoProto
		rate  float64 // MiB a second
		want  []string
	}{
		{pipeline("a", "b"), 100, nil},
		{pipeline("a", "c"), 20, []string{"c"}},           // a is known to be fast
		{pipeline("d", "e"), 20, []string{"c", "d", "e"}}, // one of them, and which is not known
		{pipeline("d", "b"), 90, []string{"c", "e"}},
		{pipeline("c", "b"), 30, []string{"e"}}, // within the factor
	} {
		now := start.Add(time.Duration(i) * time.Minute / 2)
		s.Note(step.nodes, step.rate*(1<<20), now)
		var got []string
		for _, n := range s.Slow(now) {
			got = append(got, n.GetId().GetDatanodeUuid())
		}
		slices.Sort(got)
		if fmt.Sprint(got) != fmt.Sprint(step.want) {
			t.Errorf("after block %d: %v, want %v", i, got, step.want)
		}
	}
	if got := s.Slow(start.Add(time.Hour)); len(got) > 0 {
		t.Errorf("an hour later: %v", got)
	}
	s.Note(pipeline("x", "y"), 1, start.Add(time.Hour))
	if got := s.Slow(start.Add(time.Hour)); len(got) != 2 {
		t.Errorf("after a block at 1 MiB a second, with nothing to compare it with: %v", got)
	}
}
