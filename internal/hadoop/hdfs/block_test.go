package hdfs

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"testing"

	pb "google.golang.org/protobuf/proto"

	wire "holdfast/internal/hadoop/wire/hdfs"
	"holdfast/test/bound"
)

// packet is one as a DataNode sends it, with a CRC32C for each 512 bytes.
func packet(at int64, data []byte, last bool) []byte {
	header, err := pb.Marshal(&wire.PacketHeaderProto{
		OffsetInBlock: &at, Seqno: pb.Int64(0), LastPacketInBlock: &last, DataLen: pb.Int32(int32(len(data))),
	})
	if err != nil {
		panic(err)
	}
	var sums []byte
	for rest := data; len(rest) > 0; {
		n := min(512, len(rest))
		sums = binary.BigEndian.AppendUint32(sums, crc32.Checksum(rest[:n], crc32.MakeTable(crc32.Castagnoli)))
		rest = rest[n:]
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(4+len(sums)+len(data)))
	b = binary.BigEndian.AppendUint16(b, uint16(len(header)))
	return append(append(append(b, header...), sums...), data...)
}

// stream reads what a DataNode has sent: bytes [pos, end), chunks from `from`.
func stream(t testing.TB, sent []byte, from, pos, end int64) *blockStream {
	ours, theirs := net.Pipe()
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	return &blockStream{
		conn: ours, r: bufio.NewReader(bytes.NewReader(sent)), pos: pos, end: end, at: from,
		table: crc32.MakeTable(crc32.Castagnoli), chunk: 512,
	}
}

func TestBlockStream(t *testing.T) {
	content := make([]byte, 4000)
	for i := range content {
		content[i] = byte(i * i / 7)
	}
	// Bytes 700 to 3100 are asked for; what comes are whole chunks.
	sent := append(packet(512, content[512:2048], false), packet(2048, content[2048:3584], false)...)
	got, err := io.ReadAll(stream(t, sent, 512, 700, 3100))
	if err != nil || !bytes.Equal(got, content[700:3100]) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	wrong := bytes.Clone(sent)
	wrong[len(wrong)-600] ^= 1
	if got, err := io.ReadAll(stream(t, wrong, 512, 700, 3100)); !errors.Is(err, errChecksum) || !bytes.Equal(got, content[700:2048]) {
		t.Errorf("a wrong byte: %d bytes, %v", len(got), err)
	}
	if _, err := io.ReadAll(stream(t, sent[:len(sent)-1], 512, 700, 3100)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("cut off: %v", err)
	}
	early := append(packet(512, content[512:2048], false), packet(2048, nil, true)...)
	if _, err := io.ReadAll(stream(t, early, 512, 700, 3100)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a block that ends early: %v", err)
	}
	if got, err := io.ReadAll(stream(t, packet(1024, content[1024:2048], false), 512, 700, 3100)); err == nil || len(got) != 0 {
		t.Errorf("a packet of another place: %d bytes, %v", len(got), err)
	}
}

func FuzzBlockStream(f *testing.F) {
	f.Add(packet(512, make([]byte, 1000), false))
	f.Add(append(packet(512, make([]byte, 512), false), packet(1024, nil, true)...))
	f.Fuzz(func(t *testing.T, sent []byte) {
		defer bound.Memory(t, len(sent), 100)()
		got, _ := io.ReadAll(stream(t, sent, 512, 600, 1500))
		if len(got) > 900 {
			t.Errorf("%d bytes of 900", len(got))
		}
	})
}
