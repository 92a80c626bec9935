package sasl

import (
	"crypto/hmac"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/types"
)

// GSSSession protects messages by GSSAPI wrap tokens. Each direction is used by
// one goroutine.
type GSSSession struct {
	c   *gssContext
	qop string
	bad error // the first bad message ends the session
}

// QOP is auth-int or auth-conf.
func (s *GSSSession) QOP() string { return s.qop }

// Wrap protects a message.
func (s *GSSSession) Wrap(message []byte) ([]byte, error) {
	return s.c.wrap(message, s.qop == AuthConf)
}

// Unwrap checks and decrypts a message. After an error the session cannot be used any more.
func (s *GSSSession) Unwrap(b []byte) ([]byte, error) {
	if s.bad != nil {
		return nil, s.bad
	}
	var m []byte
	err := Guard(func() (err error) {
		m, err = s.c.unwrap(b, s.qop == AuthConf)
		return err
	})
	if err != nil {
		s.bad = fmt.Errorf("GSSAPI: a message: %w", err)
	}
	return m, s.bad
}

// gssContext is an established context: the initiator's side.
type gssContext struct {
	key         types.EncryptionKey
	acceptorKey bool   // the key is the acceptor's
	out, in     uint64 // the next sequence numbers
}

// The header of a wrap token (RFC 4121, section 4.2.6.2): 05 04, flags, ff, EC
// and RRC (2 bytes each), sequence number (8 bytes).
const (
	wrapHeader = 16

	flagAcceptor    = 1
	flagSealed      = 2
	flagAcceptorKey = 4
)

// check reports whether this key's encryption type has wrap tokens of that form.
func (c *gssContext) check() error {
	switch c.key.KeyType {
	case etypeID.AES128_CTS_HMAC_SHA1_96, etypeID.AES256_CTS_HMAC_SHA1_96, etypeID.AES128_CTS_HMAC_SHA256_128, etypeID.AES256_CTS_HMAC_SHA384_192:
		return nil
	}
	return fmt.Errorf("the service's keys have the encryption type %d, and only AES is supported: have the service's keytab made with AES keys", c.key.KeyType)
}

// header is that of a token with the right rotation count 0.
func header(flags byte, ec uint16, sequence uint64) []byte {
	b := []byte{5, 4, flags, 0xff}
	b = binary.BigEndian.AppendUint16(b, ec)
	b = binary.BigEndian.AppendUint16(b, 0)
	return binary.BigEndian.AppendUint64(b, sequence)
}

// wrap makes a token: sealed, header ‖ E(message ‖ header); else
// header ‖ message ‖ checksum(message ‖ header with EC and RRC 0).
func (c *gssContext) wrap(message []byte, seal bool) ([]byte, error) {
	e, err := crypto.GetEtype(c.key.KeyType)
	if err != nil {
		return nil, err
	}
	var flags byte
	if c.acceptorKey {
		flags |= flagAcceptorKey
	}
	sequence := c.out
	c.out++
	if seal {
		h := header(flags|flagSealed, 0, sequence)
		plain := append(append(make([]byte, 0, len(message)+wrapHeader), message...), h...)
		_, sealed, err := e.EncryptMessage(c.key.KeyValue, plain, keyusage.GSSAPI_INITIATOR_SEAL)
		if err != nil {
			return nil, err
		}
		return append(h, sealed...), nil
	}
	sum, err := e.GetChecksumHash(c.key.KeyValue, append(append(make([]byte, 0, len(message)+wrapHeader), message...), header(flags, 0, sequence)...), keyusage.GSSAPI_INITIATOR_SEAL)
	if err != nil {
		return nil, err
	}
	b := header(flags, uint16(len(sum)), sequence)
	return append(append(b, message...), sum...), nil
}

var errWrap = errors.New("its check code is wrong: it was changed on its way")

// unwrap reads a token of the acceptor.
func (c *gssContext) unwrap(b []byte, sealed bool) ([]byte, error) {
	if len(b) < wrapHeader || b[0] != 5 || b[1] != 4 || b[3] != 0xff {
		return nil, errors.New("it is no wrap token")
	}
	flags := b[2]
	ec, rrc, sequence := int(binary.BigEndian.Uint16(b[4:])), int(binary.BigEndian.Uint16(b[6:])), binary.BigEndian.Uint64(b[8:])
	switch {
	case flags&flagAcceptor == 0:
		return nil, errors.New("it is not from the server")
	case (flags&flagSealed != 0) != sealed:
		return nil, errors.New("it is not protected as was negotiated")
	case (flags&flagAcceptorKey != 0) != c.acceptorKey:
		return nil, errors.New("it is protected with another key than was agreed on")
	case sequence != c.in:
		return nil, fmt.Errorf("it has the number %d instead of %d: messages were lost, repeated or inserted", sequence, c.in)
	}
	body := rotateLeft(b[wrapHeader:], rrc)
	message, err := c.uncover(body, header(flags, 0, sequence), ec, sealed)
	if err != nil {
		return nil, err
	}
	c.in++
	return message, nil
}

// uncover checks and decrypts a token's body. plainHeader is its header with EC and RRC 0.
func (c *gssContext) uncover(body, plainHeader []byte, ec int, sealed bool) ([]byte, error) {
	if sealed {
		plain, err := decrypt(c.key, body, keyusage.GSSAPI_ACCEPTOR_SEAL)
		if err != nil {
			return nil, errWrap
		}
		n := len(plain) - wrapHeader - ec
		if n < 0 {
			return nil, errWrap
		}
		// The copy inside has the true EC (and RRC 0).
		binary.BigEndian.PutUint16(plainHeader[4:], uint16(ec))
		if !hmac.Equal(plain[n+ec:], plainHeader) {
			return nil, errWrap
		}
		return plain[:n], nil
	}
	e, err := crypto.GetEtype(c.key.KeyType)
	if err != nil {
		return nil, err
	}
	n := len(body) - ec
	if n < 0 || ec != e.GetHMACBitLength()/8 {
		return nil, errWrap
	}
	sum, err := e.GetChecksumHash(c.key.KeyValue, append(append(make([]byte, 0, n+wrapHeader), body[:n]...), plainHeader...), keyusage.GSSAPI_ACCEPTOR_SEAL)
	if err != nil {
		return nil, err
	}
	if !hmac.Equal(sum, body[n:]) {
		return nil, errWrap
	}
	return body[:n:n], nil
}

// rotateLeft undoes the rotation of a token (RFC 4121, section 4.2.5).
func rotateLeft(b []byte, n int) []byte {
	if len(b) == 0 || n%len(b) == 0 {
		return b
	}
	n %= len(b)
	return append(append(make([]byte, 0, len(b)), b[n:]...), b[:n]...)
}

// decrypt checks the length, over which gokrb5 would panic.
func decrypt(key types.EncryptionKey, b []byte, usage uint32) ([]byte, error) {
	e, err := crypto.GetEtype(key.KeyType)
	if err != nil {
		return nil, err
	}
	if len(b) < e.GetConfounderByteSize()+e.GetHMACBitLength()/8 {
		return nil, errors.New("it is too short")
	}
	return e.DecryptMessage(key.KeyValue, b, usage)
}
