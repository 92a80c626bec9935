package rpc

import (
	"context"
	"net"
	"time"

	"google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/token"
)

// Caller calls methods of one protocol of a Hadoop service.
type Caller interface {
	// Call sends req and fills resp. For an exception of the server it returns an
	// error whose class IsRemote compares; for a server that cannot be reached one
	// for which Unreachable holds.
	Call(ctx context.Context, method string, req, resp proto.Message) error
}

// Options are the settings of a client.
type Options struct {
	// Protocol is the Java name, e.g. org.apache.hadoop.yarn.api.ApplicationClientProtocolPB.
	Protocol string
	// Version is the protocol's version; 0 means 1, which all of them have.
	Version uint64
	// Addresses are the host:port of the servers, one of which is active. They are tried
	// in order.
	Addresses []string
	// User is the user as whom calls are made if Login is nil.
	User string
	// Login authenticates each new connection; nil means SIMPLE.
	Login Login
	// Retry says what to do when no server answers.
	Retry Retry
	// Anywhere reports whether a method may be carried out by several servers, and again after
	// another one's answer was used, because it changes nothing or is known by an id of its own.
	// Nil: none may.
	Anywhere func(method string) bool
	// OneActive is the Java interface of a protocol, as the server's class path has it, that
	// only servers have of which one is active while the others refuse calls. "": it is not
	// known of any that they are so.
	OneActive string
	// Dial replaces the dialler, e.g. for tests.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Timeout limits one attempt of a call; 0 means 2 minutes, as
	// ipc.client.rpc-timeout.ms.
	Timeout time.Duration
	// Idle closes a connection without calls; 0 means 10 s, as
	// ipc.client.connection.maxidletime.
	Idle time.Duration
}

// Anything is Options.Anywhere of a protocol all of whose methods may be repeated.
func Anything(string) bool { return true }

// Retry says for how long Call is repeated. All servers that are in standby or refuse
// the connection are tried again in turn, with growing pauses: such a call has
// not been carried out. The caller's context limits it too.
type Retry struct {
	// Resend allows a call to be sent again when the connection was lost after
	// it had been sent, so that it may be carried out twice. It is sent under
	// its old call id, which the NameNode's retry cache recognises.
	Resend bool
	// Limit is for how long a call is tried; 0 means 20 s, negative once only
	// at each address.
	Limit time.Duration
	// Pause is the first pause, doubled up to MaxPause; 0 means 100 ms and 3 s.
	Pause, MaxPause time.Duration
}

// Login authenticates connections by SASL. One Login serves many connections,
// at the same time.
type Login interface {
	// Start chooses one of the methods that the server offers and begins it. It
	// is given the address as it was dialled, for the service's principal. A
	// Login that supports none of the offers returns an error that says so.
	Start(ctx context.Context, address string, offers []Auth) (Auth, Mechanism, error)
}

// Auth is a method that the server offers (RpcHeader.proto, RpcSaslProto.SaslAuth).
type Auth struct {
	Method    string // TOKEN, KERBEROS, SIMPLE
	Mechanism string // DIGEST-MD5, GSSAPI
	Protocol  string
	ServerID  string
	Challenge []byte // the first challenge, where the server has sent it along
}

// Mechanism is one SASL exchange.
type Mechanism interface {
	// Step answers a challenge; the first one is the offer's, maybe nil.
	Step(challenge []byte) (response []byte, err error)
	// Finish verifies what the server sent with its success and returns the session
	// that protects the following packets; nil if none was negotiated.
	Finish(token []byte) (Session, error)
}

// Session protects packets after a login. Wrap is called by one goroutine and
// Unwrap by one.
type Session interface {
	Wrap(packet []byte) ([]byte, error)
	Unwrap(packet []byte) ([]byte, error)
	// QOP is what was negotiated: auth-int or auth-conf.
	QOP() string
}

// TokenLogin authenticates by DIGEST-MD5 with a token. qop are the acceptable
// protections in order of preference (conf.RPCProtection); without any, the server's first
// offer is taken.
func TokenLogin(t token.Token, qop ...string) Login {
	return TokenLoginFunc(func() (token.Token, error) { return t, nil }, qop...)
}

// TokenLoginFunc is TokenLogin for tokens that may be replaced: get is called for each new
// connection.
func TokenLoginFunc(get func() (token.Token, error), qop ...string) Login {
	return tokenLogin{get, qop}
}

// New returns a client. It connects when it is first called.
func New(o Options) *Client { return newClient(o) }

type limitKey struct{}

// WithLimit returns a context whose calls have another limit than Options.Retry.Limit.
func WithLimit(ctx context.Context, limit time.Duration) context.Context {
	return context.WithValue(ctx, limitKey{}, limit)
}

// Limit returns the limit that WithLimit has set, or def.
func Limit(ctx context.Context, def time.Duration) time.Duration {
	if l, ok := ctx.Value(limitKey{}).(time.Duration); ok {
		return l
	}
	return def
}
