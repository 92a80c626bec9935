package transfer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"

	"google.golang.org/protobuf/encoding/protodelim"
	pb "google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/sasl"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// magic begins a handshake (DataTransferSaslUtil.SASL_TRANSFER_MAGIC_NUMBER).
const magic = 0xDEADBEEF

type message = wire.DataTransferEncryptorMessageProto

// handshake logs in on a fresh connection, within the deadline that it has.
func handshake(raw net.Conn, o sasl.Options, secret *wire.HandshakeSecretProto) (*conn, error) {
	first := binary.BigEndian.AppendUint32(nil, magic)
	if err := send(raw, first, &message{Payload: []byte{}, HandshakeSecret: secret}); err != nil {
		return nil, err
	}
	challenge, err := receive(raw)
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return nil, fmt.Errorf("%w: the DataNode closes the connection at once (%w), as one does that expects no SASL: "+
			"compare dfs.data.transfer.protection, dfs.encrypt.data.transfer and dfs.trustedchannel.resolver.class", ErrMismatch, err)
	}
	if err != nil {
		return nil, err
	}
	d := sasl.NewDigest(o)
	c, err := finish(raw, d, challenge)
	var told *refusal
	if err != nil && !errors.As(err, &told) { // it was ours: the DataNode logs why
		_ = send(raw, nil, &message{Status: wire.DataTransferEncryptorMessageProto_ERROR.Enum(), Message: pb.String(err.Error())})
	}
	return c, err
}

// finish answers the challenge and sets up what was negotiated.
func finish(raw net.Conn, d *sasl.Digest, challenge *message) (*conn, error) {
	response, err := d.Step(challenge.GetPayload())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMismatch, err)
	}
	m := &message{Payload: response}
	if d.QOP() == sasl.AuthConf {
		m.CipherOption = []*wire.CipherOptionProto{{Suite: wire.CipherSuiteProto_AES_CTR_NOPADDING.Enum()}}
	}
	if err := send(raw, nil, m); err != nil {
		return nil, err
	}
	reply, err := receive(raw)
	if err != nil {
		return nil, fmt.Errorf("after the response: %w", err)
	}
	session, err := d.Finish(reply.GetPayload())
	if err != nil {
		return nil, err
	}
	if session == nil {
		return &conn{raw, Mode{QOP: sasl.Auth}}, nil
	}
	if len(reply.GetCipherOption()) > 0 && session.QOP() == sasl.AuthConf {
		c, err := newStream(raw, session, reply.GetCipherOption()[0])
		return &conn{c, Mode{QOP: sasl.AuthConf, Cipher: aesName}}, err
	}
	return &conn{newWrapped(raw, session), Mode{QOP: session.QOP(), Cipher: session.Cipher()}}, nil
}

// send writes a message after its length, with prefix before both.
func send(w io.Writer, prefix []byte, m *message) error {
	if m.Status == nil {
		m.Status = wire.DataTransferEncryptorMessageProto_SUCCESS.Enum()
	}
	body, err := pb.Marshal(m)
	if err != nil {
		return err
	}
	b := binary.AppendUvarint(slices.Clone(prefix), uint64(len(body)))
	_, err = w.Write(append(b, body...))
	return err
}

// maxMessage bounds a message of the handshake; real ones have some hundred bytes.
const maxMessage = 64 << 10

// receive reads a message, and not a byte more. A failure that the DataNode
// reports is an error.
func receive(r io.Reader) (*message, error) {
	m := &message{}
	if err := (protodelim.UnmarshalOptions{MaxSize: maxMessage}).UnmarshalFrom(byteReader{r}, m); err != nil {
		return nil, err
	}
	return m, failure(m)
}

type byteReader struct{ io.Reader }

func (r byteReader) ReadByte() (byte, error) {
	var b [1]byte
	_, err := io.ReadFull(r, b[:])
	return b[0], err
}

// refusal is a DataNode's error about the login.
type refusal struct {
	text  string
	cause error // maybe nil
}

func (r *refusal) Error() string {
	if r.cause != nil {
		return fmt.Sprintf("%v: the DataNode says %q", r.cause, r.text)
	}
	return fmt.Sprintf("the DataNode refuses: %q", r.text)
}

func (r *refusal) Unwrap() error { return r.cause }

func failure(m *message) error {
	switch m.GetStatus() {
	case wire.DataTransferEncryptorMessageProto_SUCCESS:
		return nil
	case wire.DataTransferEncryptorMessageProto_ERROR_UNKNOWN_KEY:
		return &refusal{m.GetMessage(), errKeyUnknown}
	}
	if m.GetAccessTokenError() || tokenText(m.GetMessage()) {
		return &refusal{m.GetMessage(), ErrTokenRefused}
	}
	return &refusal{m.GetMessage(), nil}
}

// tokenText recognises a refused token where the DataNode, before Hadoop 3.4,
// does not say so otherwise (BlockTokenSecretManager.retrievePassword).
func tokenText(s string) bool {
	return strings.Contains(s, "InvalidToken") || strings.Contains(s, "Block token with") || strings.Contains(s, "required block key")
}
