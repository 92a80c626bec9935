package kms

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/login"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/sasl"
	"holdfast/internal/hadoop/token"
)

// identity is who this process is to the servers.
type identity struct {
	conf      *conf.Conf
	tokens    bool // not only Kerberos
	provider  string
	addresses []string // of its servers
}

// localError is an error on the client's side, which is the same for every server.
type localError struct{ err error }

func (e *localError) Error() string { return e.err.Error() }
func (e *localError) Unwrap() error { return e.err }

const (
	tokenHeader = "X-Hadoop-Delegation-Token"
	negotiate   = "Negotiate"
)

// sign authenticates a request. It looks up the token each time, as it may have been replaced.
// Where that is by a ticket, another is User.Refused of it; else it is nil.
func (i identity) sign(r *http.Request, query url.Values, tokens bool) (another func() bool, err error) {
	if !i.conf.Secure() {
		query.Set("user.name", rpc.CurrentUser())
		return nil, nil
	}
	var tokenErr error
	if i.tokens && tokens {
		var t token.Token
		if t, tokenErr = i.token(); tokenErr == nil {
			r.Header.Set(tokenHeader, t.URLString())
			return nil, nil
		}
	}
	u, err := login.User()
	if err == nil {
		service := "HTTP/" + strings.ToLower(r.URL.Hostname())
		var t sasl.Ticket
		t, err = u.Negotiate(r, service)
		another = func() bool { return u.Refused(service, t) }
	}
	if err != nil && tokenErr != nil {
		err = fmt.Errorf("%w (and %w)", tokenErr, err)
	}
	return another, err
}

// token returns the token for the provider. Hadoop's older releases named it by the
// address of a server.
func (i identity) token() (token.Token, error) {
	credentials, err := token.FromEnvironment()
	if err != nil {
		return token.Token{}, err
	}
	if t, ok := credentials.Find(token.KindKMS, i.provider); ok {
		return t, nil
	}
	for _, a := range i.addresses {
		if t, ok := credentials.Find(token.KindKMS, i.conf.TokenService(a)); ok {
			return t, nil
		}
	}
	return token.Token{}, fmt.Errorf("this process has no KMS delegation token for %s (kind %s): submit the job with a login, after its directory has become part of an encryption zone", i.provider, token.KindKMS)
}

// explain converts an answer to an error (HttpExceptionUtils,
// KMSExceptionsProvider), or of a login page.
func (i identity) explain(resp *http.Response, body []byte) error {
	var answer struct {
		RemoteException struct {
			Message       string `json:"message"`
			JavaClassName string `json:"javaClassName"`
		}
	}
	if json.Unmarshal(body, &answer) == nil && answer.RemoteException.JavaClassName != "" {
		return &rpc.RemoteError{Class: answer.RemoteException.JavaClassName, Message: answer.RemoteException.Message}
	}
	switch {
	case resp.StatusCode == http.StatusUnauthorized && !i.conf.Secure() && strings.Contains(strings.Join(resp.Header.Values("WWW-Authenticate"), " "), negotiate):
		return errors.New("it demands Kerberos, and the Hadoop configuration here knows of none (hadoop.security.authentication)")
	case resp.StatusCode == http.StatusUnauthorized:
		return fmt.Errorf("it does not take this process's ticket or token (%s)", resp.Status)
	}
	return fmt.Errorf("it answers %s, which is not an answer of a KMS", resp.Status)
}
