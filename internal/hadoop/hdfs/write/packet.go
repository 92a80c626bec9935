package write

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"sync"

	pb "google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/hdfs/budget"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

const (
	packetData = 256 << 10
	sumSize    = 4
	maxHeader  = 6 + 64 // lengths and PacketHeaderProto, which takes 25 to 27 bytes
)

// Checksum is the kind of the checksums, and the number of bytes under each
// (dfs.checksum.type, dfs.bytes-per-checksum).
type Checksum struct {
	Type  wire.ChecksumTypeProto
	Bytes int
}

// Bounds of Checksum.Bytes: a packet has room for its checksums, and for the bytes
// under one.
const (
	MinChunk = 512
	MaxChunk = packetData
)

// standard is Hadoop's default.
var standard = Checksum{wire.ChecksumTypeProto_CHECKSUM_CRC32C, MinChunk}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (c Checksum) table() *crc32.Table {
	if c.Type == wire.ChecksumTypeProto_CHECKSUM_CRC32 {
		return crc32.IEEETable
	}
	return castagnoli
}

// packet is one packet of a block.
type packet struct {
	offset int64 // in the block; a multiple of sums.Bytes, but for what is appended
	sums   Checksum
	seq    int64
	last   bool
	sync   bool
	n      int // bytes of data
	// repeated is how many bytes at the beginning were in the previous packet, too.
	repeated int
	sealed   []byte
	*buffer
	memory *budget.Memory
}

// buffer has room for data, and in front of it for the header and the checksums,
// so that a packet goes out in one piece.
type buffer struct {
	room int // for data
	b    []byte
}

// rooms are the sizes of buffers: a small file needs little memory.
var rooms = [...]int{4 << 10, 32 << 10, packetData}

var buffers [len(rooms)]sync.Pool

// newBuffer returns a buffer for n bytes, or the largest one.
func newBuffer(n int) *buffer {
	i := 0
	for i < len(rooms)-1 && rooms[i] < n {
		i++
	}
	if b, ok := buffers[i].Get().(*buffer); ok {
		return b
	}
	return &buffer{rooms[i], make([]byte, maxHeader+rooms[i]/MinChunk*sumSize+rooms[i])}
}

func (b *buffer) free() { buffers[slices.Index(rooms[:], b.room)].Put(b) }

// dataAt returns where the data begins.
func (b *buffer) dataAt() int { return len(b.b) - b.room }

// newPacket makes a packet with room for about n bytes at first. The caller must free it.
func newPacket(m *budget.Memory, sums Checksum, offset int64, n int) *packet {
	p := &packet{offset: offset, sums: sums, memory: m}
	p.hold(newBuffer(n))
	return p
}

// hold replaces the buffer.
func (p *packet) hold(b *buffer) {
	if p.buffer != nil {
		p.memory.Add(-len(p.b))
		p.buffer.free()
	}
	if p.buffer = b; b != nil {
		p.memory.Add(len(b.b))
	}
}

// free releases what the packet holds; it must not be used afterwards.
func (p *packet) free() { p.hold(nil) }

func (p *packet) data() []byte { return p.b[p.dataAt() : p.dataAt()+p.n] }

// add copies as much of b as one packet carries.
func (p *packet) add(b []byte) int {
	b = b[:min(int64(len(b)), p.limit()-p.end())]
	if want := p.n + len(b); want > p.room {
		larger := newBuffer(want)
		copy(larger.b[larger.dataAt():], p.data())
		p.hold(larger)
	}
	n := copy(p.b[p.dataAt()+p.n:], b)
	p.n += n
	return n
}

// limit returns where the packet must end at the latest: at a multiple of sums.Bytes. One
// that begins within a chunk carries the rest of that chunk and no more
// (BlockReceiver.receivePacket).
func (p *packet) limit() int64 {
	chunk := int64(p.sums.Bytes)
	if within := p.offset % chunk; within != 0 {
		return p.offset - within + chunk
	}
	return p.offset + packetData/chunk*chunk
}

func (p *packet) end() int64 { return p.offset + int64(p.n) }

// bytes returns the packet as it goes over the wire; made once.
func (p *packet) bytes() []byte {
	if p.sealed != nil {
		return p.sealed
	}
	sums, table := (p.n+p.sums.Bytes-1)/p.sums.Bytes*sumSize, p.sums.table()
	at := p.dataAt() - sums
	for i, data := 0, p.data(); len(data) > 0; i++ {
		chunk := data[:min(p.sums.Bytes, len(data))]
		binary.BigEndian.PutUint32(p.b[at+i*sumSize:], crc32.Checksum(chunk, table))
		data = data[len(chunk):]
	}
	h := &wire.PacketHeaderProto{
		OffsetInBlock: &p.offset, Seqno: &p.seq, LastPacketInBlock: &p.last, DataLen: pb.Int32(int32(p.n)),
	}
	if p.sync {
		h.SyncBlock = &p.sync
	}
	header, err := pb.Marshal(h)
	if err != nil {
		panic(err) // all required fields are set
	}
	start := at - len(header) - 6
	binary.BigEndian.PutUint32(p.b[start:], uint32(4+sums+p.n))
	binary.BigEndian.PutUint16(p.b[start+4:], uint16(len(header)))
	copy(p.b[start+6:], header)
	p.sealed = p.b[start : p.dataAt()+p.n]
	return p.sealed
}

// heartbeatSeq marks a packet that only keeps the connection open
// (DFSPacket.java, HEART_BEAT_SEQNO).
const heartbeatSeq = -1

func heartbeat() []byte {
	p := newPacket(new(budget.Memory), standard, 0, 0)
	p.seq = heartbeatSeq
	return p.bytes()
}
