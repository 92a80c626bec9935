package transfer

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

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

	r     *bufio.Reader
	frame bytes.Buffer // a message, as it came: its length, and what there is of it so far
	whole bool         // all of it was taken
	rest  []byte       // of its content
	bad   error        // ends reading

	out   []byte
	worse error // ends writing
}

func newWrapped(raw net.Conn, s *sasl.Session) *wrapped {
	return &wrapped{Conn: raw, session: s, r: bufio.NewReaderSize(raw, 64<<10)}
}

// Read returns the content of messages. A forged message ends the connection. A deadline does
// not: a later Read goes on in the message that it interrupted.
func (c *wrapped) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, c.bad
	}
	for len(c.rest) == 0 && c.bad == nil {
		rest, err := c.next()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return 0, err
		}
		c.rest, c.bad = rest, err
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	if n == 0 {
		return 0, c.bad
	}
	return n, nil
}

// next returns the content of the next message. After an error it can be called again, and
// goes on with what it has read.
func (c *wrapped) next() ([]byte, error) {
	const head = 4
	if c.whole {
		c.frame.Reset()
		c.whole = false
	}
	if err := c.fill(head); err != nil {
		return nil, err
	}
	n := int64(binary.BigEndian.Uint32(c.frame.Bytes()))
	if n > maxMessageIn {
		return nil, fmt.Errorf("a protected message of %d bytes is announced, which cannot be", n)
	}
	if err := c.fill(head + n); err != nil {
		return nil, err
	}
	c.whole = true
	return c.session.Unwrap(c.frame.Bytes()[head:])
}

// fill reads until n bytes of the message are there. The buffer grows as bytes arrive: a length
// alone must not cause an allocation.
func (c *wrapped) fill(n int64) error {
	missing := n - int64(c.frame.Len())
	if missing <= 0 {
		return nil
	}
	_, err := io.CopyN(&c.frame, c.r, missing)
	if err == io.EOF && c.frame.Len() > 0 {
		err = io.ErrUnexpectedEOF
	}
	return err
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
