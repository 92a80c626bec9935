package hdfs

import (
	"fmt"
	"syscall"

	"github.com/klauspost/reedsolomon"

	wire "holdfast/internal/hadoop/wire/hdfs"
)

// policy is how an erasure-coded file is laid out: its bytes go in cells round
// robin over data units, and from each row of cells (a stripe) as many parity cells
// are made as there are parity units. Any of the units may be lost, as many as
// there are parity units.
type policy struct {
	name         string
	codec        string
	data, parity int
	cell         int64
}

const (
	codecRS  = "rs"
	codecXOR = "xor"
)

// policies are those that Hadoop knows by number
// (SystemErasureCodingPolicies.java, ErasureCodeConstants.java).
var policies = map[uint32]policy{
	1: {"RS-6-3-1024k", codecRS, 6, 3, 1 << 20},
	2: {"RS-3-2-1024k", codecRS, 3, 2, 1 << 20},
	3: {"RS-LEGACY-6-3-1024k", "rs-legacy", 6, 3, 1 << 20},
	4: {"XOR-2-1-1024k", codecXOR, 2, 1, 1 << 20},
	5: {"RS-10-4-1024k", codecRS, 10, 4, 1 << 20},
}

// replicationPolicy is the number of the policy that stands for replication
// (ErasureCodeConstants.REPLICATION_POLICY_ID).
const replicationPolicy = 0

// maxStripe bounds what is held to bring lost cells back.
const maxStripe = 64 << 20

// policyOf reads a file's policy; nil for a replicated file, ENOTSUP for one that
// cannot be decoded here.
func policyOf(p *wire.ErasureCodingPolicyProto) (*policy, error) {
	if p == nil || p.GetId() == replicationPolicy {
		return nil, nil
	}
	known, ok := policies[p.GetId()]
	if !ok {
		schema := p.GetSchema()
		known = policy{p.GetName(), schema.GetCodecName(), int(schema.GetDataUnits()), int(schema.GetParityUnits()), int64(p.GetCellSize())}
	}
	switch {
	case known.codec != codecRS && known.codec != codecXOR:
		return nil, fmt.Errorf("it is erasure-coded by policy %s (number %d), whose codec %q is not known here: copy it with hadoop fs -cp to a directory that is replicated or has a policy of codec rs or xor: %w",
			known.name, p.GetId(), known.codec, syscall.ENOTSUP)
	case known.data < 1 || known.parity < 1 || known.data+known.parity > 127 || known.codec == codecXOR && known.parity != 1,
		known.cell < 1 || known.cell > maxStripe/int64(known.data+known.parity):
		return nil, fmt.Errorf("it is erasure-coded by policy %s (number %d) with %d data and %d parity units in cells of %d bytes, which cannot be read here: %w",
			known.name, p.GetId(), known.data, known.parity, known.cell, syscall.ENOTSUP)
	}
	return &known, nil
}

// units returns how many blocks a full group has.
func (p *policy) units() int { return p.data + p.parity }

// length returns how many bytes a unit has of the first size bytes of a group
// (StripedBlockUtil.getInternalBlockLength): a parity unit as many as the first
// data unit.
func (p *policy) length(size int64, unit int) int64 {
	if unit >= p.data {
		unit = 0
	}
	stripe := p.cell * int64(p.data)
	rest := min(max(size%stripe-p.cell*int64(unit), 0), p.cell)
	return size/stripe*p.cell + rest
}

// coder returns what makes a policy's cells from others. For codec "rs" the parity's matrix is what
// RSUtil.genCauchyMatrix makes, and ISA-L's gf_gen_cauchy1_matrix: 1/(row xor
// column) over GF(2^8) with the polynomial 0x11d, rows counted on from the data's.
// That is reedsolomon's Cauchy matrix too.
func (s *Shared) coder(p *policy) (reedsolomon.Encoder, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := policy{codec: p.codec, data: p.data, parity: p.parity}
	if c := s.coders[key]; c != nil {
		return c, nil
	}
	matrix := reedsolomon.WithCauchyMatrix()
	if p.codec == codecXOR {
		ones := make([]byte, p.data)
		for i := range ones {
			ones[i] = 1
		}
		matrix = reedsolomon.WithCustomMatrix([][]byte{ones})
	}
	c, err := reedsolomon.New(p.data, p.parity, matrix, reedsolomon.WithMaxGoroutines(1))
	if err != nil {
		return nil, fmt.Errorf("preparing to decode policy %s: %w", p.name, err)
	}
	s.coders[key] = c
	return c, nil
}
