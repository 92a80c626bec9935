package rpc

import (
	"errors"
	"fmt"
	"strings"
)

// Java classes that the RPC layer itself knows.
const (
	classStandby       = "org.apache.hadoop.ipc.StandbyException"
	classRetriable     = "org.apache.hadoop.ipc.RetriableException"
	classObserverRetry = "org.apache.hadoop.ipc.ObserverRetryOnActiveException"
	classAccessControl = "org.apache.hadoop.security.AccessControlException"
	classAuthorization = "org.apache.hadoop.security.authorize.AuthorizationException"
	classInvalidToken  = "org.apache.hadoop.security.token.SecretManager$InvalidToken"
	classSASL          = "javax.security.sasl.SaslException"
	classSafeMode      = "org.apache.hadoop.hdfs.server.namenode.SafeModeException"
)

// RemoteError is an exception that the server threw.
type RemoteError struct {
	// Class is the Java class's full name.
	Class string
	// Message is the exception's message; often the stack trace follows it.
	Message string
	// Code is RpcErrorCodeProto's name.
	Code string
	// Fatal says that the server closed the connection.
	Fatal bool
}

// Error returns the class's short name and the message's first line: the rest is the server's
// stack.
func (e *RemoteError) Error() string {
	class := e.Class[strings.LastIndexAny(e.Class, ".$")+1:]
	message, _, _ := strings.Cut(strings.TrimSpace(e.Message), "\n")
	if message == "" {
		return class
	}
	if strings.HasPrefix(message, e.Class) {
		return class + strings.TrimPrefix(message, e.Class)
	}
	return class + ": " + message
}

// unreachable wraps an error of dialling, or of a connection that was lost.
type unreachable struct {
	err  error
	sent bool // the request may have arrived
}

func (e *unreachable) Error() string { return e.err.Error() }
func (e *unreachable) Unwrap() error { return e.err }

// errHTTP is permanent.
var errHTTP = errors.New("it answers in HTTP: this is the port of a web server, and Hadoop RPC has another")

// loginError is a login that failed on the client's side: retrying would not help.
type loginError struct{ err error }

func (e *loginError) Error() string { return "log in: " + e.err.Error() }
func (e *loginError) Unwrap() error { return e.err }

// staleError is a login that the server has refused, and in whose ticket's place there is another
// one now.
type staleError struct{ err error }

func (e *staleError) Error() string { return e.err.Error() }
func (e *staleError) Unwrap() error { return e.err }

// IsRemote reports whether err is an exception of this Java class.
func IsRemote(err error, class string) bool {
	var r *RemoteError
	return errors.As(err, &r) && r.Class == class
}

// RemoteClass returns the Java class of the exception that err is, or "".
func RemoteClass(err error) string {
	var r *RemoteError
	if errors.As(err, &r) {
		return r.Class
	}
	return ""
}

// IsStandby reports whether the server is not the active one of its pair.
func IsStandby(err error) bool {
	return IsRemote(err, classStandby) || IsRemote(err, classObserverRetry) ||
		remoteMessageStarts(err, classStandby)
}

// IsRetriable reports whether the server asks for the same call again later.
func IsRetriable(err error) bool {
	return IsRemote(err, classRetriable) || remoteMessageStarts(err, classRetriable)
}

// IsSafeMode reports whether a NameNode refuses changes because it is in safe mode.
func IsSafeMode(err error) bool { return IsRemote(err, classSafeMode) }

// IsDenied reports whether the server refuses the user, or the user's request.
func IsDenied(err error) bool {
	var login *loginError
	return errors.As(err, &login) || IsRemote(err, classAccessControl) || IsRemote(err, classAuthorization) ||
		IsInvalidToken(err) || IsRemote(err, classSASL)
}

// Refusal returns why a login failed, on the server's or the client's side. It returns nil if
// err is anything else, such as the refusal of a single call.
func Refusal(err error) error {
	var login *loginError
	if errors.As(err, &login) {
		return login.err
	}
	var remote *RemoteError
	if errors.As(err, &remote) && remote.Fatal && IsDenied(remote) {
		return remote
	}
	return nil
}

// IsInvalidToken reports whether the server does not accept the token: expired,
// cancelled, or of another cluster.
func IsInvalidToken(err error) bool { return IsRemote(err, classInvalidToken) }

// Unreachable reports whether no server could be reached.
func Unreachable(err error) bool {
	var u *unreachable
	return errors.As(err, &u)
}

// remoteMessageStarts recognises a class that the server has wrapped: the
// message of the outer exception then begins with the name of the inner one.
func remoteMessageStarts(err error, class string) bool {
	var r *RemoteError
	return errors.As(err, &r) && strings.HasPrefix(r.Message, class)
}

// gaveUp adds to an error what to do about servers that do not answer.
func (o *Options) gaveUp(method string, tries int, err error) error {
	hint := "check that the service runs there and that the Hadoop configuration names the right address"
	if IsStandby(err) {
		hint = "none of the servers is active: see why on their own pages or in their logs"
	} else if !Unreachable(err) {
		hint = "the server asks to come back later"
	}
	return fmt.Errorf("call %s at %s (tried %d times): %w; %s", method, strings.Join(o.Addresses, ", "), tries, err, hint)
}
