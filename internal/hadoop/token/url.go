package token

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// URLString returns the token as a word for URLs and HTTP headers
// (org.apache.hadoop.security.token.Token.encodeToUrlString): its Writable form in
// base64 with the alphabet for URLs, without padding. It is secret.
func (t Token) URLString() string {
	b := appendBytes(nil, t.Identifier)
	b = appendBytes(b, t.Password)
	b = appendBytes(b, []byte(t.Kind))
	b = appendBytes(b, []byte(t.Service))
	return base64.RawURLEncoding.EncodeToString(b)
}

// ParseURLString parses the result of URLString, or of Hadoop.
func ParseURLString(s string) (Token, error) {
	b, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(s, "="))
	if err != nil {
		return Token{}, fmt.Errorf("not a token: %w", err)
	}
	r := &reader{b: b}
	t := Token{Identifier: r.bytes(), Password: r.bytes(), Kind: r.string(), Service: r.string()}
	if r.err != nil {
		return Token{}, fmt.Errorf("not a token: %w", r.err)
	}
	return t, nil
}
