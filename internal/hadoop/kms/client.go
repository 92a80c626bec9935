package kms

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"holdfast/internal/backoff"
	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/token"
)

// Client asks the servers of one provider. Its methods may be called from many
// goroutines.
type Client struct {
	uri     string
	servers []string
	who     identity
	trust   trust
	http    *http.Client
	first   atomic.Int32 // the server that answered last
}

// Limits of a request.
const (
	connectLimit = 5 * time.Second
	// outageLimit is how long a request is repeated while no server can be reached or is
	// able to answer.
	outageLimit = 15 * time.Second
	answerSize  = 1 << 20
)

// New makes a client of the servers in a provider's URI. It connects when it is first used.
func New(uri string, c *conf.Conf) (*Client, error) { return open(uri, c, true) }

// NewKerberos is New without delegation tokens: a new token is given only to clients that have
// authenticated by Kerberos.
func NewKerberos(uri string, c *conf.Conf) (*Client, error) { return open(uri, c, false) }

func open(uri string, c *conf.Conf, tokens bool) (*Client, error) {
	servers, err := parse(uri)
	if err != nil {
		return nil, err
	}
	timeout, err := c.Duration("hadoop.security.kms.client.timeout", time.Second, time.Minute)
	if err != nil {
		return nil, err
	}
	k := &Client{uri: uri, servers: servers, who: identity{conf: c, tokens: tokens, provider: uri}}
	for _, s := range servers {
		if u, err := url.Parse(s); err == nil {
			k.who.addresses = append(k.who.addresses, u.Host)
		}
	}
	if strings.HasPrefix(servers[0], "https:") {
		k.trust = newTrust(c)
	}
	k.http = &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			DialContext:           (&net.Dialer{Timeout: connectLimit}).DialContext,
			TLSClientConfig:       k.trust.config,
			TLSHandshakeTimeout:   connectLimit,
			IdleConnTimeout:       time.Minute,
			MaxIdleConnsPerHost:   4,
			ResponseHeaderTimeout: timeout,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return k, nil
}

// URI returns the provider's URI, which is also the service of its tokens.
func (k *Client) URI() string { return k.uri }

// Close closes idle connections.
func (k *Client) Close() { k.http.CloseIdleConnections() }

// EncryptedKey is a file's key as the NameNode stores it.
type EncryptedKey struct {
	Name    string // of the key that protects it
	Version string // of that key
	IV      []byte
	Key     []byte // encrypted
}

// Decrypt returns a file's key in clear.
func (k *Client) Decrypt(ctx context.Context, e EncryptedKey) ([]byte, error) {
	body, err := json.Marshal(map[string]string{
		"name": e.Name, "iv": base64.StdEncoding.EncodeToString(e.IV), "material": base64.StdEncoding.EncodeToString(e.Key),
	})
	if err != nil {
		return nil, err
	}
	var answer struct {
		Material string `json:"material"`
	}
	err = k.call(ctx, request{
		method: http.MethodPost, path: "keyversion/" + url.PathEscape(e.Version) + "/_eek",
		query: url.Values{"eek_op": {"decrypt"}}, body: body, tokens: true,
	}, &answer)
	var key []byte
	if err == nil {
		if key, err = decode(answer.Material); err != nil || len(key) == 0 {
			err = errors.New("its answer has no key") // without the answer
		}
	}
	if err != nil {
		return nil, fmt.Errorf("no key for the file from %s, by the key %q (version %s): %w", k.uri, e.Name, e.Version, err)
	}
	return key, nil
}

// decode accepts both alphabets of base64, with and without padding, since releases differ.
func decode(s string) ([]byte, error) {
	s = strings.NewReplacer("-", "+", "_", "/", "\r", "", "\n", "").Replace(strings.TrimRight(s, "=\r\n"))
	return base64.RawStdEncoding.DecodeString(s)
}

// Check returns an error if the servers do not answer or refuse this process.
func (k *Client) Check(ctx context.Context) error {
	var names []string
	err := k.call(ctx, request{method: http.MethodGet, path: "keys/names", tokens: true}, &names)
	if answered := new(refused); errors.As(err, &answered) && answered.status == http.StatusForbidden && !rpc.IsInvalidToken(err) {
		return nil // permission to list all names is rare
	}
	if err != nil {
		return fmt.Errorf("the key servers %s cannot be asked: %w", k.uri, err)
	}
	return nil
}

// DelegationToken obtains a token that lets its bearer act as this process's user, who must
// have authenticated by Kerberos.
func (k *Client) DelegationToken(ctx context.Context, renewer string) (token.Token, error) {
	var answer struct {
		Token struct {
			URLString string `json:"urlString"`
		}
	}
	err := k.call(ctx, request{method: http.MethodGet, query: url.Values{"op": {"GETDELEGATIONTOKEN"}, "renewer": {renewer}}}, &answer)
	if err != nil {
		return token.Token{}, err
	}
	t, err := token.ParseURLString(answer.Token.URLString)
	if err != nil {
		return token.Token{}, errors.New("the KMS gave a token that cannot be read")
	}
	t.Service = k.uri // KMSClientProvider.getDelegationToken
	return t, nil
}

// RenewToken renews a token whose renewer this process's user is, and returns until
// when it expires now.
func (k *Client) RenewToken(ctx context.Context, t token.Token) (time.Time, error) {
	var answer struct {
		Long int64 `json:"long"`
	}
	err := k.call(ctx, request{method: http.MethodPut, query: url.Values{"op": {"RENEWDELEGATIONTOKEN"}, "token": {t.URLString()}}}, &answer)
	return time.UnixMilli(answer.Long), err
}

// request is a request, without the server.
type request struct {
	method, path string
	query        url.Values
	body         []byte
	tokens       bool // a delegation token will do
}

// call tries one server after the other, beginning with the one that answered last, until one
// answers or refuses this user. If none can be reached, or all fail, it tries them again until
// outageLimit.
func (k *Client) call(ctx context.Context, r request, answer any) error {
	begun := time.Now()
	failed := make([]error, len(k.servers)) // why, the last time
	for wait := backoff.New(100*time.Millisecond, 2*time.Second); ; {
		again := false
		from := int(k.first.Load())
		for i := range k.servers {
			n := (from + i) % len(k.servers)
			err := k.ask(ctx, k.servers[n], r, answer)
			if err == nil {
				k.first.Store(int32(n))
				return nil
			}
			if local := new(localError); errors.As(err, &local) {
				return err
			}
			if ctx.Err() != nil && failed[n] != nil {
				continue // that says more than that the time is over
			}
			failed[n] = fmt.Errorf("%s: %w", strings.TrimSuffix(k.servers[n], "/v1/"), err)
			answered := new(refused)
			if errors.As(err, &answered) && answered.final() {
				return failed[n]
			}
			var certificate *tls.CertificateVerificationError
			again = again || answered.status == 0 && !errors.As(err, &certificate) || answered.status >= http.StatusInternalServerError
		}
		if !again && ctx.Err() == nil {
			return errors.Join(failed...)
		}
		if ctx.Err() != nil || time.Since(begun) > outageLimit {
			return fmt.Errorf("%w; see that the KMS runs, that this machine reaches it, and that the provider's URI is right (the NameNode's hadoop.security.key.provider.path)", errors.Join(failed...))
		}
		wait.Wait(ctx)
	}
}

// refused is an answer that is an error.
type refused struct {
	status  int
	err     error
	another func() bool // identity.sign's
}

func (e *refused) Error() string { return e.err.Error() }
func (e *refused) Unwrap() error { return e.err }

// final reports whether the other servers would give the same answer: they share keys and ACLs,
// but not always the secrets of tokens.
func (e *refused) final() bool {
	return rpc.IsDenied(e.err) && !rpc.IsInvalidToken(e.err) || e.status == http.StatusNotFound || e.status == http.StatusBadRequest
}

// ofTicket reports whether the server may have refused the ticket, and not what was asked for, of
// which it says so itself. A ticket under another key is answered by 403 (AuthenticationFilter).
func (e *refused) ofTicket() bool {
	return e.another != nil && rpc.RemoteClass(e.err) == "" && (e.status == http.StatusUnauthorized || e.status == http.StatusForbidden)
}

// ask sends the request to one server, and once more if that has refused the ticket and there is
// another one.
func (k *Client) ask(ctx context.Context, server string, r request, answer any) error {
	err := k.send(ctx, server, r, answer)
	if answered := new(refused); errors.As(err, &answered) && answered.ofTicket() && answered.another() {
		err = k.send(ctx, server, r, answer)
	}
	return err
}

// send sends the request to one server, once.
func (k *Client) send(ctx context.Context, server string, r request, answer any) error {
	query := url.Values{}
	for key, values := range r.query {
		query[key] = values
	}
	req, err := http.NewRequestWithContext(ctx, r.method, server+r.path, bytes.NewReader(r.body))
	if err != nil {
		return err
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	another, err := k.who.sign(req, query, r.tokens)
	if err != nil {
		return &localError{err}
	}
	req.URL.RawQuery = query.Encode()
	resp, err := k.http.Do(req)
	if err != nil {
		if e := new(url.Error); errors.As(err, &e) {
			err = e.Err // without the URL, which may hold a token
		}
		return k.trust.explain(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerSize))
	if err != nil {
		return fmt.Errorf("reading its answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return &refused{resp.StatusCode, k.who.explain(resp, body), another}
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return &refused{resp.StatusCode, errors.New("its answer is not that of a KMS"), nil} // without the answer, which may hold a key
	}
	return nil
}
