package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	pb "google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/hdfs/transfer"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// groupStream reads a block group of an erasure-coded file from some offset on.
// Cells are read from the data units in turn, each over a connection that stays open. Lost
// cells are decoded from other units: only the requested bytes if they are within one
// cell, and otherwise whole stripes.
type groupStream struct {
	s        *source
	ctx      context.Context
	group    *wire.LocatedBlockProto
	policy   *policy
	size     int64 // of the group's data
	pos, end int64 // in the group's data: next byte to hand out, and where to stop
	units    []unit

	// Bytes [from, to) of each cell of a stripe, except those of parity and of units
	// that were not needed. to 0: none.
	stripe   int64
	from, to int64
	cells    [][]byte
}

// unit is one block of a group. It is used by one goroutine at a time.
type unit struct {
	locs   []int // in group.Locs: the DataNodes that have it
	failed int   // how many of them have failed
	last   error // why the last one did
	stream *blockStream
	end    int64 // of stream, in the unit
}

// openGroup prepares to read; it contacts no DataNode yet.
func openGroup(ctx context.Context, s *source, b *wire.LocatedBlockProto, pos, end int64) *groupStream {
	g := &groupStream{
		s: s, ctx: ctx, group: b, policy: s.policy, size: int64(b.GetB().GetNumBytes()), pos: pos, end: end,
		units: make([]unit, s.policy.units()), cells: make([][]byte, s.policy.units()),
	}
	for i, index := range b.GetBlockIndices() {
		if int(index) < len(g.units) && i < len(b.GetLocs()) {
			u := &g.units[index]
			u.locs = append(u.locs, i)
		}
	}
	return g
}

func (g *groupStream) left() int64 { return g.end - g.pos }

func (g *groupStream) close() {
	for i := range g.units {
		g.units[i].close()
	}
	g.forget()
}

// forget frees the cells; they can be read again.
func (g *groupStream) forget() {
	for i, c := range g.cells {
		g.s.c.shared.memory.Add(-cap(c))
		g.cells[i] = nil
	}
	g.to = 0
}

func (u *unit) close() {
	if u.stream != nil {
		u.stream.close()
		u.stream = nil
	}
}

// Read returns bytes up to end, and then io.EOF. It fails when too few units can be read.
func (g *groupStream) Read(b []byte) (int, error) {
	p := g.policy
	for g.pos < g.end {
		stripe, at := g.pos/(p.cell*int64(p.data)), g.pos%p.cell
		unit := int(g.pos / p.cell % int64(p.data))
		n := min(int64(len(b)), p.cell-at, g.end-g.pos)
		if g.to > 0 && g.stripe == stripe && g.from <= at && at+n <= g.to {
			copy(b[:n], g.cells[unit][at-g.from:])
			g.pos += n
			return int(n), nil
		}
		if !g.usable(unit, false) {
			from, to := at, at+g.end-g.pos
			if to > p.cell {
				from, to = 0, p.cell
			}
			if err := g.decode(stripe, from, to); err != nil {
				return 0, err
			}
			continue
		}
		k, err := g.readUnit(unit, stripe*p.cell+at, p.length(g.end, unit), b[:n])
		g.pos += int64(k)
		if err == nil {
			return k, nil
		}
		if err := g.lose(unit, err); err != nil || k > 0 {
			return k, err
		}
	}
	return 0, io.EOF
}

// readUnit reads some bytes of a unit. It opens a stream for [at, end) if the present one
// is not at that offset.
func (g *groupStream) readUnit(i int, at, end int64, b []byte) (int, error) {
	u := &g.units[i]
	if u.stream == nil || u.stream.pos != at || u.end < at+int64(len(b)) {
		u.close()
		located := g.located(i)
		stream, err := openBlock(g.ctx, g.s.c.dial, located.Locs[0].GetId(), located, "holdfast", at, end, g.readTimeout(i))
		if err != nil {
			return 0, err
		}
		u.stream, u.end = stream, end
	}
	n, err := u.stream.Read(b)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// located returns a unit as a block of its own, on the next DataNode that has not failed
// (StripedBlockUtil.constructInternalBlock).
func (g *groupStream) located(i int) *wire.LocatedBlockProto {
	at := g.units[i].locs[g.units[i].failed]
	block := pb.Clone(g.group.GetB()).(*wire.ExtendedBlockProto)
	block.BlockId = pb.Uint64(block.GetBlockId() + uint64(i))
	block.NumBytes = pb.Uint64(uint64(g.policy.length(g.size, i)))
	b := &wire.LocatedBlockProto{
		B: block, Offset: g.group.Offset, Corrupt: pb.Bool(false), BlockToken: g.group.GetBlockToken(), Locs: g.group.Locs[at : at+1],
	}
	if at < len(g.group.BlockTokens) {
		b.BlockToken = g.group.BlockTokens[at]
	}
	if at < len(g.group.StorageIDs) {
		b.StorageIDs = g.group.StorageIDs[at : at+1]
	}
	if at < len(g.group.StorageTypes) {
		b.StorageTypes = g.group.StorageTypes[at : at+1]
	}
	return b
}

// usable reports whether a unit may be read from: not from a DataNode that failed before
// or was silent lately, unless anyNode is set.
func (g *groupStream) usable(i int, anyNode bool) bool {
	u := &g.units[i]
	if u.failed == len(u.locs) {
		return false
	}
	return anyNode || !g.s.suspect(g.group.Locs[u.locs[u.failed]].GetId())
}

// readTimeout returns how long a unit's DataNode may be silent: short while its bytes can be
// decoded from others.
func (g *groupStream) readTimeout(i int) time.Duration {
	spare := -g.policy.data
	for j := range g.units {
		if j != i && (g.usable(j, false) || g.policy.length(g.size, j) == 0) {
			spare++
		}
	}
	if spare >= 0 {
		return shortSilence
	}
	return silence
}

// lose notes that a unit's DataNode failed. It returns an error if the failure is not the
// DataNode's and the locations of the whole group have to be asked for again.
func (g *groupStream) lose(i int, why error) error {
	u := &g.units[i]
	u.close()
	located := g.located(i)
	err := fmt.Errorf("DataNode %s: %w", nodeAddress(located.Locs[0].GetId()), why)
	if g.ctx.Err() != nil || errors.Is(why, transfer.ErrTokenRefused) {
		return err
	}
	u.failed++
	u.last = err
	g.s.nodeFailed(g.ctx, located, why)
	return nil
}

// decode makes bytes [from, to) of all data cells of a stripe available, decoded from the
// units that can be read.
func (g *groupStream) decode(stripe, from, to int64) error {
	p := g.policy
	coder, err := g.s.c.shared.coder(p)
	if err != nil {
		return err
	}
	g.to = 0
	have := make([]bool, len(g.units))
	for {
		chosen, err := g.choose(stripe, from, to, have)
		if err != nil {
			return err
		}
		if chosen == nil {
			break
		}
		errs := make([]error, len(g.units))
		var reading sync.WaitGroup
		for _, i := range chosen {
			reading.Go(func() { errs[i] = g.readCell(i, stripe, from, to) })
		}
		reading.Wait()
		for _, i := range chosen {
			if have[i] = errs[i] == nil; have[i] {
				continue
			}
			if err := g.lose(i, errs[i]); err != nil {
				return err
			}
		}
	}
	shards := make([][]byte, len(g.units))
	for i := range shards {
		switch {
		case have[i]:
			shards[i] = g.cells[i]
		case i < p.data:
			shards[i] = g.buffer(i, to-from)[:0]
		}
	}
	if err := coder.ReconstructData(shards); err != nil {
		return fmt.Errorf("making lost cells from others: %w", err)
	}
	copy(g.cells, shards[:p.data])
	g.stripe, g.from, g.to = stripe, from, to
	return nil
}

// choose returns the units that are still to be read, none if there are enough. A unit
// without bytes in that stripe, at a file's end, counts as zeros.
func (g *groupStream) choose(stripe, from, to int64, have []bool) ([]int, error) {
	p := g.policy
	missing := p.data
	for i := range have {
		if i < p.data && !have[i] && p.length(g.size, i) <= stripe*p.cell+from {
			clear(g.buffer(i, to-from))
			have[i] = true
		}
		if have[i] {
			missing--
		}
	}
	if missing <= 0 {
		return nil, nil
	}
	var chosen []int
	for _, anyNode := range []bool{false, true} {
		for i := range g.units {
			if missing > 0 && !have[i] && g.usable(i, anyNode) && (!anyNode || !g.usable(i, false)) {
				chosen = append(chosen, i)
				missing--
			}
		}
	}
	if missing > 0 {
		return nil, g.tooFew()
	}
	return chosen, nil
}

// errTooFewUnits: more units of a block group are lost than it has parity units.
var errTooFewUnits = errors.New("too many of its DataNodes are lost")

func (g *groupStream) tooFew() error {
	readable := 0
	causes := []error{}
	for i := range g.units {
		if g.usable(i, true) || g.policy.length(g.size, i) == 0 {
			readable++
		} else if g.units[i].last != nil {
			causes = append(causes, g.units[i].last)
		}
	}
	return fmt.Errorf("%w: %d of a block group's %d units can be read, and policy %s needs %d: %w",
		errTooFewUnits, readable, len(g.units), g.policy.name, g.policy.data, errors.Join(causes...))
}

// readCell reads a unit's bytes [from, to) of a stripe into its buffer; beyond the
// unit's end they are zero.
func (g *groupStream) readCell(i int, stripe, from, to int64) error {
	p := g.policy
	b := g.buffer(i, to-from)
	start := stripe * p.cell
	n := min(to, p.length(g.size, i)-start) - from
	clear(b[n:])
	end := start + from + n
	if to-from == p.cell { // more stripes may follow
		whole := p.cell * int64(p.data)
		end = min(p.length(g.size, i), (g.end+whole-1)/whole*p.cell)
	}
	for at := start + from; n > 0; {
		k, err := g.readUnit(i, at, end, b[:n])
		if err != nil {
			return err
		}
		b, at, n = b[k:], at+int64(k), n-int64(k)
	}
	return nil
}

// buffer returns a unit's buffer, with n bytes.
func (g *groupStream) buffer(i int, n int64) []byte {
	if int64(cap(g.cells[i])) < n {
		g.s.c.shared.memory.Add(int(n) - cap(g.cells[i]))
		g.cells[i] = make([]byte, n)
	}
	g.cells[i] = g.cells[i][:n]
	return g.cells[i]
}
