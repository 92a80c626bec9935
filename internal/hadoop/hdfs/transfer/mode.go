package transfer

import (
	"net"

	"holdfast/internal/hadoop/sasl"
)

// Mode is what protects a connection.
type Mode struct {
	// QOP is one of sasl's, or "" where there was no handshake.
	QOP string
	// Cipher is what auth-conf encrypts with: 3des, rc4 and so on, or
	// AES/CTR/NoPadding.
	Cipher string
	// Key: the handshake was made with a data encryption key
	// (dfs.encrypt.data.transfer), not with a block token.
	Key bool
}

// aesName is the name of the only cipher suite beside those of DIGEST-MD5
// (dfs.encrypt.data.transfer.cipher.suites).
const aesName = "AES/CTR/NoPadding"

// String is for logs: none, authentication, integrity, privacy (AES/CTR/NoPadding)
// and the like.
func (m Mode) String() string {
	s := "none"
	switch {
	case m.Key:
		s = "encryption"
	case m.QOP == sasl.Auth:
		s = "authentication"
	case m.QOP == sasl.AuthInt:
		s = "integrity"
	case m.QOP == sasl.AuthConf:
		s = "privacy"
	}
	if m.Cipher != "" {
		s += " (" + m.Cipher + ")"
	}
	return s
}

// conn knows its mode.
type conn struct {
	net.Conn
	mode Mode
}

func (c *conn) Mode() Mode { return c.mode }

// ModeOf returns what protects a connection that Dial has made.
func ModeOf(c net.Conn) Mode {
	if m, ok := c.(interface{ Mode() Mode }); ok {
		return m.Mode()
	}
	return Mode{}
}
