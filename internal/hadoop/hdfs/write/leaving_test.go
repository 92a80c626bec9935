package write_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/protobuf/encoding/protodelim"
	pb "google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/hdfs/write"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// flagging is a connection to a DataNode, in whose acks the second of the pipeline reports that
// it is slow.
type flagging struct {
	net.Conn
	in    *bufio.Reader
	out   bytes.Buffer
	begun bool // the answer to the request was read; acks follow
	told  *atomic.Bool
}

func (c *flagging) Read(b []byte) (int, error) {
	if c.out.Len() == 0 {
		var m pb.Message = &wire.BlockOpResponseProto{}
		if c.begun {
			m = &wire.PipelineAckProto{}
		}
		if err := protodelim.UnmarshalFrom(c.in, m); err != nil {
			return 0, err
		}
		if ack, ok := m.(*wire.PipelineAckProto); ok {
			ack.Flag = make([]uint32, len(ack.Reply))
			if len(ack.Flag) > 1 {
				ack.Flag[1] = 2 << 7 // PipelineAck.SLOW
				c.told.Store(true)
			}
		}
		c.begun = true
		if _, err := protodelim.MarshalTo(&c.out, m); err != nil {
			return 0, err
		}
	}
	return c.out.Read(b)
}

// TestAPipelineGoesOnWithoutASlowDataNode: a DataNode that reports in ack after ack that it is slow
// is left out of the block that is being written. All bytes are there, and it has none of them.
func TestAPipelineGoesOnWithoutASlowDataNode(t *testing.T) {
	var told atomic.Bool // the first pipeline that works is told so, and no other one
	dial := func(ctx context.Context, n *wire.DatanodeIDProto, token *wire.BlockTokenProto) (net.Conn, error) {
		return over(func(c net.Conn) net.Conn {
			if told.Load() {
				return c
			}
			return &flagging{Conn: c, in: bufio.NewReader(c), told: &told}
		})(ctx, n, token)
	}
	var said bytes.Buffer
	log := logrus.New()
	log.SetOutput(io.MultiWriter(&said, t.Output()))
	c := clientWith(t, write.Options{Replication: 3, BlockSize: 64 << 20, Dial: dial, Log: log, Replace: write.Replace{Policy: write.ReplaceAlways}})
	f, want := create(t, c, "/says-it-is-slow"), content(9, 16<<20)
	if _, err := f.Write(want); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	same(t, "/says-it-is-slow", want)
	left := regexp.MustCompile(`DataNode (\S+) is left out: .*it reports that it is slow`).FindStringSubmatch(said.String())
	if left == nil || !strings.Contains(said.String(), "continues with 3 DataNodes") {
		t.Fatalf("no DataNode was left out and replaced:\n%s", said.String())
	}
	var out string
	var err error
	// The NameNode completes a file when it knows of one replica; the DataNodes report the others.
	for deadline := time.Now().Add(time.Minute); ; {
		out, err = shared.Get(t).Hadoop(t.Context(), "org.apache.hadoop.hdfs.tools.DFSck", "/says-it-is-slow", "-files", "-blocks", "-locations")
		if err != nil || strings.Contains(out, "Live_repl=3") || time.Now().After(deadline) {
			break
		}
	}
	if err != nil || !strings.Contains(out, "len=16777216 Live_repl=3") || strings.Contains(out, "DatanodeInfoWithStorage["+left[1]+",") {
		t.Errorf("left out was %s, and the block lies here: %v\n%s", left[1], err, out)
	}
}
