package transfer

import (
	"crypto/aes"
	"crypto/cipher"
	"fmt"
	"net"

	"holdfast/internal/hadoop/sasl"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// stream is a connection encrypted by AES in counter mode.
type stream struct {
	net.Conn
	in, out cipher.Stream

	buf   []byte
	worse error // ends writing
}

// bufferSize is what is encrypted and sent at a time: more than a packet.
const bufferSize = 128 << 10

// newStream takes the keys out of what the DataNode sent. They are wrapped in
// the session one after the other, inKey first (DataTransferSaslUtil.unwrap).
func newStream(raw net.Conn, s *sasl.Session, o *wire.CipherOptionProto) (net.Conn, error) {
	if o.GetSuite() != wire.CipherSuiteProto_AES_CTR_NOPADDING {
		return nil, fmt.Errorf("it chooses the cipher suite %s, and %s was offered", o.GetSuite(), aesName)
	}
	c := &stream{Conn: raw}
	for _, d := range []struct {
		stream      *cipher.Stream
		wrapped, iv []byte
	}{{&c.out, o.GetInKey(), o.GetInIv()}, {&c.in, o.GetOutKey(), o.GetOutIv()}} {
		key, err := s.Unwrap(d.wrapped)
		if err != nil {
			return nil, fmt.Errorf("its key for %s: %w", aesName, err)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("its key for %s: %w", aesName, err)
		}
		if len(d.iv) != aes.BlockSize {
			return nil, fmt.Errorf("it sends an IV of %d bytes for %s", len(d.iv), aesName)
		}
		*d.stream = cipher.NewCTR(block, d.iv)
	}
	return c, nil
}

func (c *stream) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.in.XORKeyStream(b[:n], b[:n])
	return n, err
}

// Write does not change b. After an error nothing more can be sent, since the other side's
// position in the key stream is not known.
func (c *stream) Write(b []byte) (int, error) {
	if c.worse != nil {
		return 0, c.worse
	}
	if c.buf == nil {
		c.buf = make([]byte, bufferSize)
	}
	sent := 0
	for len(b) > 0 {
		part := c.buf[:min(len(b), len(c.buf))]
		c.out.XORKeyStream(part, b[:len(part)])
		n, err := c.Conn.Write(part)
		sent += n
		if err != nil {
			c.worse = err
			return sent, err
		}
		b = b[len(part):]
	}
	return sent, nil
}
