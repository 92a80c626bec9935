package write

import (
	"encoding/binary"
	"hash/crc32"
	"sync"

	pb "google.golang.org/protobuf/proto"

	wire "holdfast/internal/hadoop/wire/hdfs"
)

const (
	chunkSize  = 512 // bytes for each checksum
	packetData = 256 << 10
	sumSize    = 4
	maxSums    = packetData / chunkSize * sumSize
	maxHeader  = 6 + 64 // lengths and PacketHeaderProto, which takes 25 to 27 bytes
	dataAt     = maxHeader + maxSums
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// packet is one packet of a block. Its buffer has room for the header and the
// checksums in front of the data, so that it goes out in one piece.
type packet struct {
	offset int64 // in the block; a multiple of chunkSize
	seq    int64
	last   bool
	sync   bool
	n      int // bytes of data
	// repeated bytes at the beginning were in the packet before, too.
	repeated int
	sealed   []byte
	buf      [dataAt + packetData]byte
}

var packets = sync.Pool{New: func() any { return new(packet) }}

func newPacket(offset int64) *packet {
	p := packets.Get().(*packet)
	p.offset, p.seq, p.last, p.sync, p.n, p.repeated, p.sealed = offset, 0, false, false, 0, 0, nil
	return p
}

func (p *packet) data() []byte { return p.buf[dataAt : dataAt+p.n] }

// add copies as much of b as there is room for.
func (p *packet) add(b []byte) int {
	n := copy(p.buf[dataAt+p.n:], b)
	p.n += n
	return n
}

func (p *packet) full() bool { return p.n == packetData }

func (p *packet) end() int64 { return p.offset + int64(p.n) }

// bytes is the packet as it goes over the wire; made once.
func (p *packet) bytes() []byte {
	if p.sealed != nil {
		return p.sealed
	}
	sums := (p.n + chunkSize - 1) / chunkSize * sumSize
	at := dataAt - sums
	for i, data := 0, p.data(); len(data) > 0; i++ {
		chunk := data[:min(chunkSize, len(data))]
		binary.BigEndian.PutUint32(p.buf[at+i*sumSize:], crc32.Checksum(chunk, castagnoli))
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
	binary.BigEndian.PutUint32(p.buf[start:], uint32(4+sums+p.n))
	binary.BigEndian.PutUint16(p.buf[start+4:], uint16(len(header)))
	copy(p.buf[start+6:], header)
	p.sealed = p.buf[start : dataAt+p.n]
	return p.sealed
}

// heartbeatSeq marks a packet that only keeps the connection open
// (DFSPacket.java, HEART_BEAT_SEQNO).
const heartbeatSeq = -1

func heartbeat() []byte {
	p := newPacket(0)
	defer packets.Put(p)
	p.seq = heartbeatSeq
	return append([]byte(nil), p.bytes()...)
}
