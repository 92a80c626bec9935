package write

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protodelim"
	pb "google.golang.org/protobuf/proto"

	wire "holdfast/internal/hadoop/wire/hdfs"
)

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
