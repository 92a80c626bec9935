package hdfs

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	pb "google.golang.org/protobuf/proto"

	wire "holdfast/internal/hadoop/wire/hdfs"
)

// TestParityIsHadoops compares with what RSRawEncoder and XORRawEncoder of Hadoop
// 3.4.2 made of cells whose byte j of cell i is 31i+7j²+3.
func TestParityIsHadoops(t *testing.T) {
	for id, want := range map[uint32][]string{
		1: {"b5557c363e0fa3c6a9b2547d3864267b", "40c0a9bfb7662a53977ddb4eb14cf3b4", "be309a9a3b57daa90ea0c81a7fbf8526"},
		2: {"51d4bc002278671c31cc0ce3699b972f", "523ff119e44480e842727b4c76117327"},
		4: {"21232123e163e12321636123e1632163"},
		5: {"2a1650db647de54fd252bf9296bc500b", "086ab1e77726f6331a2e5ec98539b177", "5dcc5819b089ffb0cfdf2786d03728d3", "5e8689b4719f3efa8de586e01127f9e9"},
	} {
		p, err := policyOf(&wire.ErasureCodingPolicyProto{Id: &id})
		if err != nil {
			t.Fatal(err)
		}
		coder, err := NewShared().coder(p)
		if err != nil {
			t.Fatal(err)
		}
		cells := make([][]byte, p.units())
		for i := range cells {
			cells[i] = make([]byte, 16)
			for j := range cells[i] {
				cells[i][j] = byte(31*i + 7*j*j + 3)
			}
		}
		if err := coder.Encode(cells); err != nil {
			t.Fatal(err)
		}
		for i, w := range want {
			if got := hex.EncodeToString(cells[p.data+i]); got != w {
				t.Errorf("%s: parity %d is %s, and Hadoop's %s", p.name, i, got, w)
			}
		}
	}
}

func TestPolicies(t *testing.T) {
	own := func(codec string, data, parity, cell uint32) *wire.ErasureCodingPolicyProto {
		return &wire.ErasureCodingPolicyProto{
			Id: pb.Uint32(64), Name: pb.String("OWN"), CellSize: &cell,
			Schema: &wire.ECSchemaProto{CodecName: &codec, DataUnits: &data, ParityUnits: &parity},
		}
	}
	for _, p := range []*wire.ErasureCodingPolicyProto{nil, {Id: pb.Uint32(0)}} {
		if got, err := policyOf(p); got != nil || err != nil {
			t.Errorf("replication: %v, %v", got, err)
		}
	}
	if got, err := policyOf(own("rs", 4, 2, 65536)); err != nil || *got != (policy{"OWN", "rs", 4, 2, 65536}) {
		t.Errorf("a policy of a cluster's own: %v, %v", got, err)
	}
	for _, p := range []*wire.ErasureCodingPolicyProto{
		{Id: pb.Uint32(3)}, {Id: pb.Uint32(99)}, own("hitchhiker", 4, 2, 65536), own("rs", 0, 2, 65536), own("rs", 4, 2, 0),
		own("rs", 4, 2, 1<<30), own("xor", 4, 2, 65536), own("rs", 200, 200, 65536),
	} {
		if got, err := policyOf(p); !errors.Is(err, syscall.ENOTSUP) || !strings.Contains(err.Error(), fmt.Sprint(p.GetId())) {
			t.Errorf("%v: %v, %v", p, got, err)
		}
	}
}

// TestUnitLengths: a group's units hold all its bytes, wherever it ends.
func TestUnitLengths(t *testing.T) {
	p := &policy{data: 3, parity: 2, cell: 10}
	for size, want := range map[int64][5]int64{
		0: {}, 1: {1, 0, 0, 1, 1}, 10: {10, 0, 0, 10, 10}, 15: {10, 5, 0, 10, 10}, 30: {10, 10, 10, 10, 10}, 34: {14, 10, 10, 14, 14}, 59: {20, 20, 19, 20, 20},
	} {
		for i, w := range want {
			if got := p.length(size, i); got != w {
				t.Errorf("of %d bytes, unit %d has %d instead of %d", size, i, got, w)
			}
		}
	}
}
