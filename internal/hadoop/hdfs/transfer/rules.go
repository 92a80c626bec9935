package transfer

import (
	"fmt"

	wire "holdfast/internal/hadoop/wire/hdfs"
)

// rules are this side's configuration.
type rules struct {
	secure   bool     // hadoop.security.authentication is kerberos
	qop      []string // dfs.data.transfer.protection in SASL's words
	fallback bool     // ipc.client.fallback-to-simple-auth-allowed
}

// scheme is a kind of handshake.
type scheme int

const (
	plain       scheme = iota // none
	byToken                   // with the block token
	byKey                     // with a data encryption key
	unprotected               // none, where the DataNode may want one
)

// privilegedPorts are below it (SecurityUtil.isPrivilegedPort).
const privilegedPorts = 1024

var errNoToken = fmt.Errorf("%w: the NameNode gives no block access tokens, as on a cluster without security, and here hadoop.security.authentication is kerberos: "+
	"set it to simple, or ipc.client.fallback-to-simple-auth-allowed to true if data may go unprotected", ErrMismatch)

// choose decides on the handshake with the DataNode at a port.
func (r rules) choose(encrypted bool, port uint32, token *wire.BlockTokenProto) (scheme, error) {
	switch {
	case encrypted:
		return byKey, nil
	case !r.secure, port < privilegedPorts:
		return plain, nil
	case len(token.GetIdentifier()) == 0 && r.fallback:
		return plain, nil
	case len(r.qop) == 0:
		return unprotected, nil
	case len(token.GetIdentifier()) == 0:
		return plain, errNoToken
	}
	return byToken, nil
}
