package rpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/wire/common"
)

// Tunnel logs in on a fresh connection, for a client that knows SIMPLE only:
// that client sends its own connection header, which is dropped, and a
// connection context, whose user is dropped (a login says itself who it is);
// then its packets go out and come in as was negotiated. The error leaves conn
// open.
func Tunnel(ctx context.Context, conn net.Conn, address string, login Login) (net.Conn, error) {
	s, err := Open(ctx, conn, address, login)
	if err != nil {
		return nil, err
	}
	return &tunnel{Conn: conn, s: s, header: 7}, nil
}

// tunnel is used by one reader and one writer, like the connection under it.
type tunnel struct {
	net.Conn
	s       *Stream
	header  int // bytes of the connection header still to come
	context bool
	out, in bytes.Buffer
}

// Write sends the packets that are complete.
func (t *tunnel) Write(b []byte) (int, error) {
	n := len(b)
	drop := min(t.header, len(b))
	t.header -= drop
	t.out.Write(b[drop:])
	for t.out.Len() >= 4 {
		l := int64(binary.BigEndian.Uint32(t.out.Bytes()))
		if l > maxPacket {
			return 0, errTooLong(l)
		}
		if int64(t.out.Len()) < 4+l {
			break
		}
		p := t.out.Next(4 + int(l))
		if !t.context {
			var err error
			if p, err = withoutUser(p); err != nil {
				return 0, err
			}
			t.context = true
		}
		if err := t.s.WritePacket(p); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// withoutUser takes the user out of a connection context.
func withoutUser(p []byte) ([]byte, error) {
	head, n := protowire.ConsumeBytes(p[4:])
	if n < 0 {
		return nil, errors.New("the connection context is cut off")
	}
	h, c := &common.RpcRequestHeaderProto{}, &common.IpcConnectionContextProto{}
	if err := proto.Unmarshal(head, h); err != nil {
		return nil, fmt.Errorf("the connection context's header: %w", err)
	}
	if h.GetCallId() != callContext {
		return nil, fmt.Errorf("call %d came before the connection context", h.GetCallId())
	}
	if err := unmarshalDelimited(p[4+n:], c); err != nil {
		return nil, fmt.Errorf("the connection context: %w", err)
	}
	c.UserInfo = nil
	return packet(h, c), nil
}

func (t *tunnel) Read(b []byte) (int, error) {
	if t.in.Len() == 0 {
		p, err := t.s.ReadPacket()
		if err != nil {
			return 0, err
		}
		t.in.Write(binary.BigEndian.AppendUint32(nil, uint32(len(p))))
		t.in.Write(p)
	}
	return t.in.Read(b)
}
