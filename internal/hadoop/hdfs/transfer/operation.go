package transfer

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
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
// megabyte is an error. If a deadline passes, what has come stays in r, and Receive can be
// called again.
func Receive(r *bufio.Reader, m pb.Message) error {
	if err := await(r); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return protodelim.UnmarshalOptions{MaxSize: 1 << 20}.UnmarshalFrom(r, m)
}

// await waits until r has a message in its buffer, or as much of a large one as that takes.
func await(r *bufio.Reader) error {
	var length uint64
	n := 0
	for head := 1; n == 0; head++ {
		b, err := r.Peek(head)
		if err != nil {
			return err
		}
		length, n = binary.Uvarint(b)
	}
	if n < 0 {
		return nil // no length; who reads it says so
	}
	_, err := r.Peek(n + int(min(length, uint64(r.Size()-n))))
	return err
}
