package rpc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/wire/common"
)

// Call ids that are no calls (org.apache.hadoop.ipc.RpcConstants, AuthProtocol).
const (
	callContext = -3
	callPing    = -4
	callSASL    = -33
)

const (
	ipcVersion = 9
	authNone   = 0x00
	authSASL   = 0xdf // -33

	// maxPacket is ipc.maximum.response.length.
	maxPacket = 128 << 20
)

// stream is a connection after the handshake: whole packets, protected as was
// negotiated. One goroutine may read and one write.
type stream struct {
	conn    net.Conn
	r       *bufio.Reader
	session Session
	clear   bytes.Buffer // unwrapped and not yet read
}

// openStream does the handshake on a fresh connection: the connection header and, if
// login is not nil, SASL. The caller must send the connection context.
// openStream does not close conn on an error.
func openStream(ctx context.Context, conn net.Conn, address string, login Login) (*stream, error) {
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	s := &stream{conn: conn, r: bufio.NewReaderSize(conn, 64<<10)}
	err := s.open(ctx, address, login)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("open a connection to %s: %w", address, err)
	}
	return s, nil
}

func (s *stream) open(ctx context.Context, address string, login Login) error {
	header := []byte{'h', 'r', 'p', 'c', ipcVersion, 0, authNone}
	if login != nil {
		header[6] = authSASL
	}
	if _, err := s.conn.Write(header); err != nil {
		return err
	}
	if login == nil {
		return nil
	}
	reply, err := s.sasl(&common.RpcSaslProto{State: common.RpcSaslProto_NEGOTIATE.Enum()})
	if err != nil {
		return err
	}
	if reply.GetState() != common.RpcSaslProto_NEGOTIATE {
		// The server has switched to SIMPLE (Server.java, authentication off).
		_, _, err := login.Start(ctx, address, nil)
		if err == nil {
			err = errors.New("the server does not authenticate its clients")
		}
		return &loginError{err}
	}
	offers := make([]Auth, 0, len(reply.GetAuths()))
	for _, a := range reply.GetAuths() {
		offers = append(offers, Auth{a.GetMethod(), a.GetMechanism(), a.GetProtocol(), a.GetServerId(), a.GetChallenge()})
	}
	auth, mechanism, err := login.Start(ctx, address, offers)
	if err != nil {
		return &loginError{err}
	}
	response, err := mechanism.Step(auth.Challenge)
	if err != nil {
		return &loginError{err}
	}
	request := &common.RpcSaslProto{
		State: common.RpcSaslProto_INITIATE.Enum(),
		Token: response,
		Auths: []*common.RpcSaslProto_SaslAuth{{
			Method: &auth.Method, Mechanism: &auth.Mechanism, Protocol: &auth.Protocol, ServerId: &auth.ServerID,
		}},
	}
	for {
		if reply, err = s.sasl(request); err != nil {
			if g, ok := mechanism.(gss); ok && IsRemote(err, classSASL) && g.refused() {
				return &staleError{err}
			}
			return err
		}
		switch reply.GetState() {
		case common.RpcSaslProto_CHALLENGE:
			if response, err = mechanism.Step(reply.GetToken()); err != nil {
				return &loginError{err}
			}
			request = &common.RpcSaslProto{State: common.RpcSaslProto_RESPONSE.Enum(), Token: response}
		case common.RpcSaslProto_SUCCESS:
			if s.session, err = mechanism.Finish(reply.GetToken()); err != nil {
				return &loginError{err}
			}
			return nil
		default:
			return fmt.Errorf("the login was answered with the unexpected state %v", reply.GetState())
		}
	}
}

// sasl sends a message of the handshake and returns the answer.
func (s *stream) sasl(m *common.RpcSaslProto) (*common.RpcSaslProto, error) {
	if err := s.writeRaw(saslPacket(m)); err != nil {
		return nil, err
	}
	b, err := s.readRaw()
	if err != nil {
		return nil, fmt.Errorf("read the answer to the login: %w", err)
	}
	h, body, err := parseResponse(b)
	if err != nil {
		return nil, err
	}
	if err := remoteError(h); err != nil {
		return nil, err
	}
	if int32(h.GetCallId()) != callSASL {
		return nil, fmt.Errorf("the login was answered to call %d", int32(h.GetCallId()))
	}
	return parseSASL(body)
}

func parseSASL(body []byte) (*common.RpcSaslProto, error) {
	m := &common.RpcSaslProto{}
	if err := unmarshalDelimited(body, m); err != nil {
		return nil, fmt.Errorf("the server's SASL message: %w", err)
	}
	return m, nil
}

func saslPacket(m *common.RpcSaslProto) []byte {
	return packet(&common.RpcRequestHeaderProto{
		RpcKind:  common.RpcKindProto_RPC_PROTOCOL_BUFFER.Enum(),
		RpcOp:    common.RpcRequestHeaderProto_RPC_FINAL_PACKET.Enum(),
		CallId:   proto.Int32(callSASL),
		ClientId: []byte{},
	}, m)
}

// packet encodes length ‖ delimited messages. Encoding fails only for a request without its
// required fields, which marshal reports.
func packet(messages ...proto.Message) []byte {
	b := make([]byte, 4, 256)
	for _, m := range messages {
		b = protowire.AppendVarint(b, uint64(proto.Size(m)))
		b, _ = proto.MarshalOptions{AllowPartial: true}.MarshalAppend(b, m)
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return b
}

// writePacket sends a packet, which begins with its length.
func (s *stream) writePacket(b []byte) error {
	if s.session == nil {
		return s.writeRaw(b)
	}
	w, err := s.session.Wrap(b)
	if err != nil {
		return err
	}
	return s.writeRaw(saslPacket(&common.RpcSaslProto{State: common.RpcSaslProto_WRAP.Enum(), Token: w}))
}

func (s *stream) writeRaw(b []byte) error {
	_, err := s.conn.Write(b)
	return err
}

// readPacket returns the next packet without its length.
func (s *stream) readPacket() ([]byte, error) {
	if s.session == nil {
		return s.readRaw()
	}
	for {
		if b := s.clear.Bytes(); len(b) >= 4 {
			n := int64(binary.BigEndian.Uint32(b))
			if n > maxPacket {
				return nil, errTooLong(n)
			}
			if int64(len(b)) >= 4+n {
				s.clear.Next(4)
				return bytes.Clone(s.clear.Next(int(n))), nil
			}
		}
		b, err := s.readRaw()
		if err != nil {
			return nil, err
		}
		h, body, err := parseResponse(b)
		if err != nil {
			return nil, err
		}
		if int32(h.GetCallId()) != callSASL {
			// Errors too are wrapped (Server.java, Responder.doRespond).
			return nil, errors.New("the server answered without the protection that was negotiated: somebody else may have")
		}
		if err := remoteError(h); err != nil {
			return nil, err
		}
		m, err := parseSASL(body)
		if err != nil {
			return nil, err
		}
		if m.GetState() != common.RpcSaslProto_WRAP {
			return nil, fmt.Errorf("the server sent the unexpected SASL state %v", m.GetState())
		}
		c, err := s.session.Unwrap(m.GetToken())
		if err != nil {
			return nil, err
		}
		s.clear.Write(c)
	}
}

func (s *stream) readRaw() ([]byte, error) {
	var l [4]byte
	if _, err := io.ReadFull(s.r, l[:]); err != nil {
		return nil, err
	}
	if string(l[:]) == "HTTP" {
		return nil, errHTTP
	}
	n := int64(binary.BigEndian.Uint32(l[:]))
	if n > maxPacket {
		return nil, errTooLong(n)
	}
	// Grow as bytes arrive: a length alone must not cause an allocation.
	var b bytes.Buffer
	if _, err := io.CopyN(&b, s.r, n); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return b.Bytes(), nil
}

func errTooLong(n int64) error {
	return fmt.Errorf("a packet of %d bytes is announced: more than %d, or this is not Hadoop RPC", n, maxPacket)
}

// QOP returns the protection that was negotiated: "" for SIMPLE and for auth.
func (s *stream) QOP() string {
	if s.session == nil {
		return ""
	}
	return s.session.QOP()
}

// parseResponse splits a packet into header and body.
func parseResponse(b []byte) (*common.RpcResponseHeaderProto, []byte, error) {
	head, n := protowire.ConsumeBytes(b)
	if n < 0 {
		return nil, nil, errors.New("a response is damaged: its header is cut off")
	}
	h := &common.RpcResponseHeaderProto{}
	if err := proto.Unmarshal(head, h); err != nil {
		return nil, nil, fmt.Errorf("a response's header: %w", err)
	}
	return h, b[n:], nil
}

func unmarshalDelimited(b []byte, m proto.Message) error {
	body, n := protowire.ConsumeBytes(b)
	if n < 0 {
		return errors.New("the message is cut off")
	}
	return proto.Unmarshal(body, m)
}

func remoteError(h *common.RpcResponseHeaderProto) error {
	if h.GetStatus() == common.RpcResponseHeaderProto_SUCCESS {
		return nil
	}
	return &RemoteError{
		Class:   h.GetExceptionClassName(),
		Message: h.GetErrorMsg(),
		Code:    h.GetErrorDetail().String(),
		Fatal:   h.GetStatus() == common.RpcResponseHeaderProto_FATAL,
	}
}
