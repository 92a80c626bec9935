package sasl

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Qualities of protection.
const (
	Auth     = "auth"
	AuthInt  = "auth-int"
	AuthConf = "auth-conf"
)

// maxBuffer is the largest message that the client declares to accept; Java's default.
const maxBuffer = 65536

// Options of a Digest.
type Options struct {
	Username string
	Password string
	// Protocol and Server make the digest-uri PROTOCOL/SERVER. Hadoop's RPC has
	// "" and "default", its data transfer "hdfs" and "0".
	Protocol string
	Server   string
	// QOP are the acceptable qualities of protection, in order of preference. Without
	// any, the first that the server offers is taken.
	QOP []string
	// Property is the name of the property that they are from, for messages.
	Property string
	// Ciphers likewise; nil means Java's order, the strongest first.
	Ciphers []string
	// Rand makes the client's nonce; nil means crypto/rand.
	Rand io.Reader
}

// TokenUser returns the user name and password that Hadoop derives from a
// token's identifier and password (SaslRpcServer.encodeIdentifier, encodePassword).
func TokenUser(identifier, password []byte) (string, string) {
	return base64.StdEncoding.EncodeToString(identifier), base64.StdEncoding.EncodeToString(password)
}

// Digest is one exchange. It is used by one goroutine.
type Digest struct {
	o       Options
	stepped bool
	qop     string
	cipher  string
	ha1     []byte // H(A1), raw
	proof   string // the rspauth that the server must send
}

// NewDigest begins an exchange.
func NewDigest(o Options) *Digest {
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	return &Digest{o: o}
}

// Step answers the server's challenge. There is one step only.
func (d *Digest) Step(b []byte) ([]byte, error) {
	if d.stepped {
		return nil, errors.New("DIGEST-MD5: the server sent a second challenge")
	}
	if len(b) == 0 {
		return nil, errors.New("DIGEST-MD5: the server sent no challenge")
	}
	c, err := parseChallenge(b)
	if err != nil {
		return nil, fmt.Errorf("DIGEST-MD5: %w", err)
	}
	known := []string{Auth, AuthInt, AuthConf}
	if d.qop = choose(d.o.QOP, c.qops, known); d.qop == "" {
		return nil, fmt.Errorf("DIGEST-MD5: the server offers the protection %s, and %s is wanted: compare %s here and there",
			strings.Join(c.qops, ","), strings.Join(d.o.QOP, ","), d.o.Property)
	}
	if d.qop == AuthConf {
		want := d.o.Ciphers
		if want == nil {
			want = ciphers
		}
		if d.cipher = choose(want, c.ciphers, ciphers); d.cipher == "" {
			return nil, fmt.Errorf("DIGEST-MD5: of the ciphers %s that the server offers none can be used: only %s are taken, as the keys of the others can be searched", strings.Join(c.ciphers, ","), strings.Join(ciphers, " and "))
		}
	}
	raw := make([]byte, 24)
	if _, err := io.ReadFull(d.o.Rand, raw); err != nil {
		return nil, fmt.Errorf("DIGEST-MD5: make a nonce: %w", err)
	}
	d.stepped = true
	return d.respond(c, base64.StdEncoding.EncodeToString(raw)), nil
}

const nonceCount = "00000001"

func (d *Digest) respond(c challenge, cnonce string) []byte {
	uri := d.o.Protocol + "/" + d.o.Server
	secret := sum(d.o.Username + ":" + c.realm + ":" + d.o.Password)
	d.ha1 = sum(string(secret) + ":" + c.nonce + ":" + cnonce)
	suffix := ""
	if d.qop != Auth {
		suffix = ":" + strings.Repeat("0", 32)
	}
	value := func(method string) string {
		return hexSum(hex.EncodeToString(d.ha1) + ":" + c.nonce + ":" + nonceCount + ":" + cnonce + ":" + d.qop + ":" +
			hexSum(method+":"+uri+suffix))
	}
	d.proof = value("")
	var b strings.Builder
	fmt.Fprintf(&b, `charset=utf-8,username=%s,realm=%s,nonce=%s,nc=%s,cnonce=%s,digest-uri=%s,maxbuf=%d,response=%s,qop=%s`,
		quote(d.o.Username), quote(c.realm), quote(c.nonce), nonceCount, quote(cnonce), quote(uri), maxBuffer, value("AUTHENTICATE"), d.qop)
	if d.qop == AuthConf {
		fmt.Fprintf(&b, `,cipher="%s"`, d.cipher)
	}
	return []byte(b.String())
}

// Finish checks that the server knows the password, too, and returns the session; nil if the
// protection is "auth".
func (d *Digest) Finish(b []byte) (*Session, error) {
	if !d.stepped {
		return nil, errors.New("DIGEST-MD5: the server ended the login before its challenge")
	}
	list, err := parseDirectives(b)
	if err != nil {
		return nil, fmt.Errorf("DIGEST-MD5: the server's proof: %w", err)
	}
	for _, x := range list {
		if x.name == "rspauth" {
			if !hmac.Equal([]byte(x.value), []byte(d.proof)) {
				return nil, errors.New("DIGEST-MD5: the server did not prove that it knows the token's password: it is not the server that the token is for")
			}
			if d.qop == Auth {
				return nil, nil
			}
			return newSession(d.ha1, d.qop, d.cipher, true)
		}
	}
	return nil, errors.New("DIGEST-MD5: the server sent no proof (rspauth)")
}

// QOP returns what was negotiated, after Step.
func (d *Digest) QOP() string { return d.qop }

// choose returns the first of want that is offered; without want the first known one that is
// offered.
func choose(want, offered, known []string) string {
	if len(want) == 0 {
		want = offered
	}
	for _, w := range want {
		if slices.Contains(offered, w) && slices.Contains(known, w) {
			return w
		}
	}
	return ""
}

func sum(s string) []byte {
	x := md5.Sum([]byte(s))
	return x[:]
}

func hexSum(s string) string { return hex.EncodeToString(sum(s)) }
