package transfer

import (
	"bufio"
	"encoding/binary"
	"net"
	"time"

	"google.golang.org/protobuf/encoding/protodelim"
	pb "google.golang.org/protobuf/proto"

	wire "holdfast/internal/hadoop/wire/hdfs"
)

// Operation is what a connection to a DataNode is for (Op.java).
type Operation byte

const (
	WriteBlock    Operation = 80
	ReadBlock     Operation = 81
	TransferBlock Operation = 86
)

// version is DATA_TRANSFER_VERSION of DataTransferProtocol.java.
const version = 28

// Operate requests an operation from a DataNode and reads its answer, with any status, from r,
// which reads conn. It takes no longer than the limit, and leaves conn without a deadline.
func Operate(conn net.Conn, r *bufio.Reader, op Operation, m pb.Message, limit time.Duration) (*wire.BlockOpResponseProto, error) {
	body, err := pb.Marshal(m)
	if err != nil {
		return nil, err
	}
	b := binary.BigEndian.AppendUint16(nil, version)
	b = append(b, byte(op))
	b = binary.AppendUvarint(b, uint64(len(body)))
	if err := conn.SetDeadline(time.Now().Add(limit)); err != nil {
		return nil, err
	}
	if _, err := conn.Write(append(b, body...)); err != nil {
		return nil, err
	}
	resp := &wire.BlockOpResponseProto{}
	if err := Receive(r, resp); err != nil {
		return nil, err
	}
	return resp, conn.SetDeadline(time.Time{})
}

// Receive reads an answer or an acknowledgement of a DataNode, which comes after
// its length as a varint. Real ones have some dozens of bytes; more than a
// megabyte is an error.
func Receive(r *bufio.Reader, m pb.Message) error {
	return protodelim.UnmarshalOptions{MaxSize: 1 << 20}.UnmarshalFrom(r, m)
}
