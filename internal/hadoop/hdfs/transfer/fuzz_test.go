package transfer_test

import (
	"bufio"
	"bytes"
	"testing"

	"google.golang.org/protobuf/encoding/protodelim"

	"holdfast/internal/hadoop/hdfs/transfer"
	wire "holdfast/internal/hadoop/wire/hdfs"
	"holdfast/test/bound"
)

// FuzzReceive reads what DataNodes answer while blocks are written.
func FuzzReceive(f *testing.F) {
	var b bytes.Buffer
	seq := int64(7)
	if _, err := protodelim.MarshalTo(&b, &wire.PipelineAckProto{Seqno: &seq, Reply: []wire.Status{wire.Status_SUCCESS, wire.Status_ERROR}}); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("\xff\xff\xff\xff\x0f"))
	f.Add([]byte("\xff\xff\x3f"))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer bound.Memory(t, len(b), 1000)()
		r := bufio.NewReader(bytes.NewReader(b))
		for {
			if err := transfer.Receive(r, &wire.PipelineAckProto{}); err != nil {
				break
			}
		}
		_ = transfer.Receive(bufio.NewReader(bytes.NewReader(b)), &wire.BlockOpResponseProto{})
	})
}
