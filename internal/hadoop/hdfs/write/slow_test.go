package write

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protodelim"
	pb "google.golang.org/protobuf/proto"

	wire "holdfast/internal/hadoop/wire/hdfs"
)

func TestSlowDataNodesAreFoundOut(t *testing.T) {
	pipeline := func(names ...string) (nodes []node) {
		for _, n := range names {
			nodes = append(nodes, node{info: &wire.DatanodeInfoProto{Id: &wire.DatanodeIDProto{DatanodeUuid: pb.String(n)}}})
		}
		return nodes
	}
	start := time.Now()
	var s speeds
	for i, step := range []struct {
		nodes []node
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
		s.note(step.nodes, step.rate*(1<<20), now)
		var got []string
		for _, n := range s.slow(now) {
			got = append(got, n.GetId().GetDatanodeUuid())
		}
		slices.Sort(got)
		if fmt.Sprint(got) != fmt.Sprint(step.want) {
			t.Errorf("after block %d: %v, want %v", i, got, step.want)
		}
	}
	if got := s.slow(start.Add(time.Hour)); len(got) > 0 {
		t.Errorf("an hour later: %v", got)
	}
	s.note(pipeline("x", "y"), 1, start.Add(time.Hour))
	if got := s.slow(start.Add(time.Hour)); len(got) != 2 {
		t.Errorf("after a block at 1 MiB a second, with nothing to compare it with: %v", got)
	}
}

// TestSlowFlag has what PipelineAck.combineHeader makes.
func TestSlowFlag(t *testing.T) {
	for flag, want := range map[uint32]bool{0: false, 1 << 7: false, 2 << 7: true, 2<<7 | 1<<5: true, 3 << 5: false, 2 << 5: false} {
		if got := saysSlow(flag); got != want {
			t.Errorf("%b: %v", flag, got)
		}
	}
}

// TestADataNodeThatSaysItIsSlowIsLeft: it has to say so in several acks in a row, and enough
// others must stay.
func TestADataNodeThatSaysItIsSlowIsLeft(t *testing.T) {
	const flag = 2 << 7
	for _, c := range []struct {
		name   string
		nodes  int
		flags  []int // by ack: which node has the flag; -1: none
		leaves int   // -1: none
	}{
		{"of three", 3, slices.Repeat([]int{1}, slowAcks), 1},
		{"too seldom", 3, append(slices.Repeat([]int{1}, slowAcks-1), -1, 1), -1},
		{"of two", 2, slices.Repeat([]int{1}, 2*slowAcks), -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var acks bytes.Buffer
			for _, slow := range c.flags {
				ack := &wire.PipelineAckProto{Seqno: pb.Int64(heartbeatSeq)}
				for i := range c.nodes {
					ack.Reply = append(ack.Reply, wire.Status_SUCCESS)
					ack.Flag = append(ack.Flag, 0)
					if i == slow {
						ack.Flag[i] = flag
					}
				}
				if _, err := protodelim.MarshalTo(&acks, ack); err != nil {
					t.Fatal(err)
				}
			}
			conn, other := net.Pipe()
			defer other.Close()
			f := &File{running: t.Context()}
			f.cond.L = &f.mu
			p := &pipeline{f: f, conn: conn, reader: make(chan struct{}), bad: -1}
			p.readAcks(bufio.NewReader(&acks), c.nodes) // until the connection ends
			if slow := errors.Is(p.broken, errSlow); slow != (c.leaves >= 0) || slow && p.bad != c.leaves {
				t.Errorf("the pipeline leaves DataNode %d: %v", p.bad, p.broken)
			}
		})
	}
}
