package write_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"sync/atomic"
	"testing"

	pb "google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/hdfs/write"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// endless cuts the connection at the end of a block: before the DataNode is
// told, or, if told is set, before it can answer.
type endless struct {
	net.Conn
	told bool
	cut  *atomic.Int32
}

func (c endless) Write(b []byte) (int, error) {
	if !isEnd(b) {
		return c.Conn.Write(b)
	}
	c.cut.Add(1)
	n := len(b)
	if c.told {
		n, _ = c.Conn.Write(b)
	}
	return n, c.Close()
}

// isEnd reports whether b is a block's last packet.
func isEnd(b []byte) bool {
	if len(b) < 6 || binary.BigEndian.Uint32(b) != 4 || int(binary.BigEndian.Uint16(b[4:]))+6 != len(b) {
		return false // an operation, or a packet with data
	}
	h := &wire.PacketHeaderProto{}
	return pb.Unmarshal(b[6:], h) == nil && h.GetLastPacketInBlock()
}

// TestABlocksEndIsLost: the DataNodes have all data of a block, but the
// connection ends with it. They are told in another way, and nothing is missing.
func TestABlocksEndIsLost(t *testing.T) {
	const block, blocks = 1 << 20, 4
	for _, told := range []bool{false, true} {
		for _, replication := range []int{1, 3} {
			t.Run(fmt.Sprintf("told %v replication %d", told, replication), func(t *testing.T) {
				var cut atomic.Int32
				c := clientWith(t, write.Options{Replication: replication, BlockSize: block, Dial: over(func(conn net.Conn) net.Conn { return endless{conn, told, &cut} })})
				path, want := fmt.Sprintf("/endless-%v-%d", told, replication), content(7, blocks*block-1000)
				f := create(t, c, path)
				if _, err := f.Write(want); err != nil {
					t.Fatal(err)
				}
				if err := f.Close(); err != nil {
					t.Fatal(err)
				}
				if n := cut.Load(); n != blocks {
					t.Errorf("%d connections were cut, want %d", n, blocks)
				}
				same(t, path, want)
			})
		}
	}
}
