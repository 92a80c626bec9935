package transfer

import (
	"bytes"
	"context"
	"net"

	"holdfast/internal/hadoop/hdfs/defaults"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/sasl"
)

// Login is what a handshake is made with.
type Login struct {
	User, Password string
	QOP, Ciphers   []string
}

// KeyLogin is the login with a data encryption key of the NameNode.
func KeyLogin(ctx context.Context, nn rpc.Caller) (Login, error) {
	key, err := (&keys{nn: nn, defaults: defaults.New(nn)}).get(ctx)
	user, password := keyLogin(key)
	return Login{user, password, []string{sasl.AuthConf}, []string{key.GetEncryptionAlgorithm()}}, err
}

// Handshake makes a handshake whose nonce is 0, so that it can be repeated.
func (l Login) Handshake(raw net.Conn) (net.Conn, error) {
	c, err := handshake(raw, sasl.Options{
		Protocol: "hdfs", Server: "0", Username: l.User, Password: l.Password, QOP: l.QOP, Ciphers: l.Ciphers,
		Rand: bytes.NewReader(make([]byte, 24)),
	}, nil)
	if err != nil {
		return nil, err
	}
	return c, nil
}
