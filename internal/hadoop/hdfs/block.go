package hdfs

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	pb "google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/hdfs/transfer"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// Constants of PacketReceiver.java.
const (
	maxPacket = 16 << 20
	maxHeader = 4 << 10
)

// silence is how long a DataNode may take to send the next bytes before another one is
// asked; shortSilence applies while there is another one that has not failed.
const (
	silence      = 20 * time.Second
	shortSilence = 4 * time.Second
)

// errChecksum: a DataNode sent bytes that do not fit their checksums.
var errChecksum = errors.New("the checksum does not fit")

// errUnrecovered: a DataNode was restarted while the block was written, and serves nothing of
// it until the file's lease has been recovered.
var errUnrecovered = errors.New("it has been restarted, and the block's writer has not come back")

// unrecovered is a part of such a DataNode's answer (BlockSender.java): the class of its
// replica.
const unrecovered = "ReplicaWaitingToBeRecovered"

// blockStream is one READ_BLOCK: bytes of a block from a DataNode, in order.
type blockStream struct {
	conn     net.Conn
	r        *bufio.Reader
	stop     func() bool // ends the watch over the context
	table    *crc32.Table
	chunk    int // bytes under one checksum; 0: none are sent
	silence  time.Duration
	pos, end int64 // in the block: next byte to hand out, and where to stop
	at       int64 // where the next packet's data must begin
	header   wire.PacketHeaderProto
	head     []byte // buffer for a packet's header and checksums
	packet   []byte // buffer for data that the caller has no room for
	data     []byte // what is left of it
}

// headRoom exceeds what a packet has before its data, so that most of the data is read
// from the connection directly into the caller's buffer.
const headRoom = 4 << 10

// openBlock asks a DataNode for the bytes [pos, end) of a block. silence bounds the wait
// for each part of the answer.
func openBlock(ctx context.Context, dial dialDataNode, node *wire.DatanodeIDProto, b *wire.LocatedBlockProto, client string, pos, end int64, silence time.Duration) (*blockStream, error) {
	connectCtx, cancel := context.WithTimeout(ctx, min(connectLimit, silence))
	defer cancel()
	conn, err := dial(connectCtx, node, b.GetBlockToken())
	if err != nil {
		return nil, err
	}
	s := &blockStream{conn: conn, r: bufio.NewReaderSize(conn, headRoom), silence: silence, pos: pos, end: end}
	s.stop = context.AfterFunc(ctx, func() { conn.Close() })
	if err := s.begin(b, client); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *blockStream) begin(b *wire.LocatedBlockProto, client string) error {
	resp, err := transfer.Operate(s.conn, s.r, transfer.ReadBlock, &wire.OpReadBlockProto{
		Header: &wire.ClientOperationHeaderProto{
			BaseHeader: &wire.BaseHeaderProto{Block: b.GetB(), Token: b.GetBlockToken()},
			ClientName: &client,
		},
		Offset: pb.Uint64(uint64(s.pos)), Len: pb.Uint64(uint64(s.end - s.pos)),
	}, s.silence)
	if err != nil {
		return err
	}
	switch resp.GetStatus() {
	case wire.Status_SUCCESS:
	case wire.Status_ERROR_ACCESS_TOKEN:
		return fmt.Errorf("it answers %s %s: %w", resp.GetStatus(), resp.GetMessage(), transfer.ErrTokenRefused)
	default:
		err := fmt.Errorf("it answers %s %s", resp.GetStatus(), resp.GetMessage())
		if strings.Contains(resp.GetMessage(), unrecovered) {
			err = fmt.Errorf("%w: %w", errUnrecovered, err)
		}
		return err
	}
	return s.agree(resp.GetReadOpChecksumInfo())
}

// agree records the kind of the checksums. Data begins at a chunk's beginning, at or
// before pos.
func (s *blockStream) agree(info *wire.ReadOpChecksumInfoProto) error {
	switch info.GetChecksum().GetType() {
	case wire.ChecksumTypeProto_CHECKSUM_CRC32C:
		s.table = crc32.MakeTable(crc32.Castagnoli)
	case wire.ChecksumTypeProto_CHECKSUM_CRC32:
		s.table = crc32.IEEETable
	}
	if s.table != nil {
		s.chunk = int(info.GetChecksum().GetBytesPerChecksum())
		if s.chunk <= 0 || s.chunk > maxPacket {
			return fmt.Errorf("it has %d bytes under one checksum", s.chunk)
		}
	}
	s.at = int64(info.GetChunkOffset())
	if s.at > s.pos || s.at < 0 || s.chunk > 0 && s.pos-s.at >= int64(s.chunk) {
		return fmt.Errorf("it starts at %d instead of %d", s.at, s.pos)
	}
	return nil
}

func (s *blockStream) close() {
	s.stop()
	s.conn.Close()
}

func (s *blockStream) left() int64 { return s.end - s.pos }

// Read returns bytes up to end, and then io.EOF. It may use all of b as scratch space.
func (s *blockStream) Read(b []byte) (int, error) {
	for len(s.data) == 0 {
		if s.pos == s.end {
			return 0, io.EOF
		}
		if n, err := s.next(b); n > 0 || err != nil {
			s.pos += int64(n)
			return n, err
		}
	}
	n := copy(b, s.data)
	s.data = s.data[n:]
	s.pos += int64(n)
	return n, nil
}

// next reads a packet: into b if all of it is needed and fits, and else into a buffer, of
// which it keeps the part between pos and end.
func (s *blockStream) next(b []byte) (int, error) {
	_ = s.conn.SetReadDeadline(time.Now().Add(s.silence)) // fails only when closed, and then so does the read
	sums, length, err := s.readHead()
	if err != nil {
		return 0, err
	}
	if s.header.GetLastPacketInBlock() || length == 0 {
		return 0, fmt.Errorf("it ends at %d of %d bytes: %w", s.pos, s.end, io.ErrUnexpectedEOF)
	}
	from := s.at
	if s.header.GetOffsetInBlock() != from {
		return 0, fmt.Errorf("it sends the bytes at %d instead of %d", s.header.GetOffsetInBlock(), from)
	}
	direct := from == s.pos && from+int64(length) <= s.end && length <= len(b)
	data := b
	if !direct {
		s.packet = grown(s.packet, length)
		data = s.packet
	}
	data = data[:length]
	if _, err := io.ReadFull(s.r, data); err != nil {
		return 0, err
	}
	if err := s.check(sums, data); err != nil {
		return 0, err
	}
	s.at += int64(length)
	switch {
	case direct:
		return length, nil
	case s.at > s.pos: // not only the chunks before
		s.data = data[s.pos-from : min(s.end, s.at)-from]
	}
	return 0, nil
}

// readHead reads a packet up to its data: its header, its checksums, which are valid until
// the next call, and the length of the data.
func (s *blockStream) readHead() (sums []byte, length int, err error) {
	var lengths [6]byte
	if _, err := io.ReadFull(s.r, lengths[:]); err != nil {
		return nil, 0, err
	}
	// The first length counts itself, the checksums and the data.
	payload, header := int64(binary.BigEndian.Uint32(lengths[:]))-4, int(binary.BigEndian.Uint16(lengths[4:]))
	if payload < 0 || payload > maxPacket || header > maxHeader {
		return nil, 0, fmt.Errorf("it sends a packet of %d and %d bytes, which cannot be", header, payload)
	}
	s.head = grown(s.head, header)
	if _, err := io.ReadFull(s.r, s.head[:header]); err != nil {
		return nil, 0, err
	}
	if err := pb.Unmarshal(s.head[:header], &s.header); err != nil {
		return nil, 0, err
	}
	length = int(s.header.GetDataLen())
	if length < 0 || int64(length) > payload {
		return nil, 0, fmt.Errorf("it sends %d bytes in a packet of %d", length, payload)
	}
	s.head = grown(s.head, int(payload)-length)
	sums = s.head[:int(payload)-length]
	_, err = io.ReadFull(s.r, sums)
	return sums, length, err
}

// grown returns a buffer of at least n bytes, with any content.
func grown(b []byte, n int) []byte {
	if len(b) < n {
		return make([]byte, n)
	}
	return b
}

// check compares the data with one checksum for each chunk.
func (s *blockStream) check(sums, data []byte) error {
	if s.chunk == 0 {
		return nil
	}
	if n := (len(data) + s.chunk - 1) / s.chunk; len(sums) != 4*n {
		return fmt.Errorf("it sends %d bytes of checksums for %d chunks", len(sums), n)
	}
	for i := 0; len(data) > 0; i += 4 {
		n := min(s.chunk, len(data))
		if crc32.Checksum(data[:n], s.table) != binary.BigEndian.Uint32(sums[i:]) {
			return errChecksum
		}
		data = data[n:]
	}
	return nil
}

func nodeAddress(n *wire.DatanodeIDProto) string {
	return net.JoinHostPort(n.GetIpAddr(), strconv.Itoa(int(n.GetXferPort())))
}
