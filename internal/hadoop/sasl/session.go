package sasl

import (
	"crypto/cipher"
	"crypto/des"
	"crypto/hmac"
	"crypto/md5"
	"crypto/rc4"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
)

// ciphers are the accepted ciphers, the strongest first, as in Java. Java's others, des, rc4-56
// and rc4-40, have keys that can be found by brute force.
var ciphers = []string{"3des", "rc4"}

const (
	macLength     = 10
	trailerLength = 6 // 00 01 and the sequence number
)

// Session protects messages. Each direction is used by one goroutine.
type Session struct {
	qop      string
	out, in  direction
	cipher   string
	negative error // the first bad message ends the session
}

// direction is the state of one of the two.
type direction struct {
	signing  hash.Hash // HMAC-MD5
	sequence uint32
	crypt    func(dst, src []byte) // nil: integrity only
	block    int                   // the cipher's block, 1 for RC4
}

// newSession derives the keys (RFC 2831, sections 2.3 and 2.4). client tells
// which side this is.
func newSession(ha1 []byte, qop, name string, client bool) (*Session, error) {
	s := &Session{qop: qop, cipher: name}
	toServer, toClient := &s.out, &s.in
	if !client {
		toServer, toClient = &s.in, &s.out
	}
	toServer.signing = hmac.New(md5.New, sum(string(ha1)+"Digest session key to client-to-server signing key magic constant"))
	toClient.signing = hmac.New(md5.New, sum(string(ha1)+"Digest session key to server-to-client signing key magic constant"))
	if qop != AuthConf {
		return s, nil
	}
	keyToServer := sum(string(ha1) + "Digest H(A1) to client-to-server sealing key magic constant")
	keyToClient := sum(string(ha1) + "Digest H(A1) to server-to-client sealing key magic constant")
	if err := toServer.setCipher(name, keyToServer, client); err != nil {
		return nil, err
	}
	return s, toClient.setCipher(name, keyToClient, !client)
}

func (d *direction) setCipher(name string, key []byte, encrypt bool) error {
	switch name {
	case "rc4":
		c, err := rc4.NewCipher(key)
		if err != nil {
			return fmt.Errorf("DIGEST-MD5: cipher %s: %w", name, err)
		}
		d.crypt, d.block = c.XORKeyStream, 1
		return nil
	case "3des":
		k1, k2 := desKey(key[:7]), desKey(key[7:14])
		b, err := des.NewTripleDESCipher(append(append(append([]byte{}, k1...), k2...), k1...))
		if err != nil {
			return fmt.Errorf("DIGEST-MD5: cipher %s: %w", name, err)
		}
		mode := cipher.NewCBCDecrypter(b, key[8:16])
		if encrypt {
			mode = cipher.NewCBCEncrypter(b, key[8:16])
		}
		d.crypt, d.block = mode.CryptBlocks, b.BlockSize()
		return nil
	}
	return fmt.Errorf("DIGEST-MD5: the cipher %q is not known", name)
}

// desKey spreads 56 bits over 8 bytes; DES does not look at the parity bits.
func desKey(b []byte) []byte {
	var v uint64
	for _, c := range b {
		v = v<<8 | uint64(c)
	}
	k := make([]byte, 8)
	for i := range k {
		k[i] = byte(v>>(49-7*i)) << 1
	}
	return k
}

// appendMAC appends a message's check code to b.
func (d *direction) appendMAC(b, message []byte) []byte {
	var sequence [4]byte
	binary.BigEndian.PutUint32(sequence[:], d.sequence)
	d.signing.Reset()
	d.signing.Write(sequence[:])
	d.signing.Write(message)
	return d.signing.Sum(b)[:len(b)+macLength]
}

// QOP is auth-int or auth-conf.
func (s *Session) QOP() string { return s.qop }

// Cipher returns the cipher of auth-conf.
func (s *Session) Cipher() string { return s.cipher }

// Wrap protects a message.
func (s *Session) Wrap(message []byte) ([]byte, error) {
	return s.AppendWrap(make([]byte, 0, len(message)+Overhead), message), nil
}

// Overhead is an upper bound of what Wrap adds to a message. (Sum appends a whole check code
// before it is cut.)
const Overhead = 8 + md5.Size + trailerLength

// AppendWrap appends a protected message to b.
func (s *Session) AppendWrap(b, message []byte) []byte {
	d, start := &s.out, len(b)
	b = append(b, message...)
	if d.crypt != nil && d.block > 1 {
		pad := d.block - (len(message)+macLength)%d.block
		for range pad {
			b = append(b, byte(pad))
		}
	}
	b = d.appendMAC(b, message)
	if d.crypt != nil {
		d.crypt(b[start:], b[start:])
	}
	b = append(b, 0, 1)
	b = binary.BigEndian.AppendUint32(b, d.sequence)
	d.sequence++
	return b
}

var errForged = errors.New("DIGEST-MD5: a message's check code is wrong: it was changed on its way, or messages were lost")

// Unwrap checks and decrypts a message in place: its result is a part of b. After an error the
// session cannot be used any more.
func (s *Session) Unwrap(b []byte) ([]byte, error) {
	if s.negative != nil {
		return nil, s.negative
	}
	m, err := s.in.unwrap(b)
	s.negative = err
	return m, err
}

func (d *direction) unwrap(b []byte) ([]byte, error) {
	if len(b) < macLength+trailerLength {
		return nil, errors.New("DIGEST-MD5: a message is too short")
	}
	body, trailer := b[:len(b)-trailerLength], b[len(b)-trailerLength:]
	if trailer[0] != 0 || trailer[1] != 1 || binary.BigEndian.Uint32(trailer[2:]) != d.sequence {
		return nil, errForged
	}
	if d.crypt != nil {
		if len(body)%d.block != 0 {
			return nil, errForged
		}
		d.crypt(body, body)
	}
	message, mac := body[:len(body)-macLength], body[len(body)-macLength:]
	if d.crypt != nil && d.block > 1 {
		if len(message) == 0 {
			return nil, errForged
		}
		pad := int(message[len(message)-1])
		if pad == 0 || pad > d.block || pad > len(message) {
			return nil, errForged
		}
		message = message[:len(message)-pad]
	}
	var want [md5.Size]byte
	if !hmac.Equal(mac, d.appendMAC(want[:0], message)) {
		return nil, errForged
	}
	d.sequence++
	return message, nil
}
