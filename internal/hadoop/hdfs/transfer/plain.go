package transfer

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
)

// plainConn is a connection without a handshake to a DataNode that may expect one: such a
// DataNode reads the first bytes and closes the connection.
type plainConn struct {
	net.Conn
	answered bool
}

func (c *plainConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.answered || n > 0 {
		c.answered = true
		return n, err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		err = fmt.Errorf("%w: the DataNode closes the connection without an answer (%w), as it does if it requires SASL: "+
			"set dfs.data.transfer.protection in this side's hdfs-site.xml as it is there", ErrMismatch, err)
	}
	return n, err
}
