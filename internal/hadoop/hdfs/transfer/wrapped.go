package transfer

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"

	"holdfast/internal/hadoop/sasl"
)

const (
	// maxClear is how much goes into one message: with all that a session adds
	// it stays within the 64 KiB that a server takes (maxbuf of RFC 2831).
	maxClear = 64<<10 - 64
	// maxMessageIn bounds what comes in. DataNodes put a whole packet of a block
	// in one message, whatever maxbuf says.
	maxMessageIn = 32 << 20
)

// wrapped is a connection of messages that a SASL session protects.
type wrapped struct {
	net.Conn
	session *sasl.Session

	r    *bufio.Reader
	body bytes.Buffer // of the last message, as it came
	rest []byte       // of its content
	bad  error        // ends reading

	out   []byte
	worse error // ends writing
}

func newWrapped(raw net.Conn, s *sasl.Session) *wrapped {
	return &wrapped{Conn: raw, session: s, r: bufio.NewReaderSize(raw, 64<<10)}
}

// Read returns the content of messages. A forged message ends the connection.
func (c *wrapped) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, c.bad
	}
	for len(c.rest) == 0 && c.bad == nil {
		c.rest, c.bad = c.next()
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	if n == 0 {
		return 0, c.bad
	}
	return n, nil
}

func (c *wrapped) next() ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(c.r, length[:]); err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(length[:]))
	if n > maxMessageIn {
		return nil, fmt.Errorf("a protected message of %d bytes is announced, which cannot be", n)
	}
	// Grow as bytes arrive: a length alone must not cause an allocation.
	c.body.Reset()
	if _, err := io.CopyN(&c.body, c.r, n); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return c.session.Unwrap(c.body.Bytes())
}

// Write sends b in as many messages as it takes. After an error nothing more
// can be sent: part of a message may have left.
func (c *wrapped) Write(b []byte) (int, error) {
	if c.worse != nil {
		return 0, c.worse
	}
	c.out = c.out[:0]
	for rest := b; len(rest) > 0; {
		n := min(len(rest), maxClear)
		start := len(c.out)
		c.out = c.session.AppendWrap(append(c.out, 0, 0, 0, 0), rest[:n])
		binary.BigEndian.PutUint32(c.out[start:], uint32(len(c.out)-start-4))
		rest = rest[n:]
	}
	if _, c.worse = c.Conn.Write(c.out); c.worse != nil {
		return 0, c.worse
	}
	return len(b), nil
}
