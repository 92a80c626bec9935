package token

import (
	"bytes"
	"errors"
	"fmt"
	"sort"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/wire/common"
)

const (
	magic           = "HDTS"
	versionWritable = 0
	versionProto    = 1
)

var errShort = errors.New("the file ends in the middle of an entry")

// Parse reads credentials of either version.
func Parse(b []byte) (*Credentials, error) {
	if len(b) < len(magic)+1 || string(b[:len(magic)]) != magic {
		return nil, errors.New("not a Hadoop credentials file (it does not begin with HDTS)")
	}
	version, body := b[len(magic)], b[len(magic)+1:]
	switch version {
	case versionWritable:
		return parseWritable(body)
	case versionProto:
		return parseProto(body)
	}
	return nil, fmt.Errorf("credentials file version %d is unknown (0 and 1 are known)", version)
}

// Marshal writes version 0, the form that a ContainerLaunchContext's tokens
// field and every Hadoop release take.
func (c *Credentials) Marshal() []byte {
	b := append([]byte(magic), versionWritable)
	b = appendVLong(b, int64(len(c.Tokens)))
	for _, alias := range sortedKeys(c.Tokens) {
		t := c.Tokens[alias]
		b = appendBytes(b, []byte(alias))
		b = appendBytes(b, t.Identifier)
		b = appendBytes(b, t.Password)
		b = appendBytes(b, []byte(t.Kind))
		b = appendBytes(b, []byte(t.Service))
	}
	b = appendVLong(b, int64(len(c.Secrets)))
	for _, alias := range sortedKeys(c.Secrets) {
		b = appendBytes(b, []byte(alias))
		b = appendBytes(b, c.Secrets[alias])
	}
	return b
}

// MarshalProto writes version 1.
func (c *Credentials) MarshalProto() ([]byte, error) {
	p := &common.CredentialsProto{}
	for _, alias := range sortedKeys(c.Tokens) {
		p.Tokens = append(p.Tokens, &common.CredentialsKVProto{Alias: &alias, Token: c.Tokens[alias].Proto()})
	}
	for _, alias := range sortedKeys(c.Secrets) {
		p.Secrets = append(p.Secrets, &common.CredentialsKVProto{Alias: &alias, Secret: bytesOf(c.Secrets[alias])})
	}
	m, err := proto.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("write credentials: %w", err)
	}
	return protowire.AppendBytes(append([]byte(magic), versionProto), m), nil
}

func parseProto(b []byte) (*Credentials, error) {
	m, n := protowire.ConsumeBytes(b)
	if n < 0 {
		return nil, errShort
	}
	p := &common.CredentialsProto{}
	if err := proto.Unmarshal(m, p); err != nil {
		return nil, fmt.Errorf("damaged credentials: %w", err)
	}
	c := New()
	for _, kv := range p.GetTokens() {
		c.Tokens[kv.GetAlias()] = FromProto(kv.GetToken())
	}
	for _, kv := range p.GetSecrets() {
		c.Secrets[kv.GetAlias()] = kv.GetSecret()
	}
	return c, nil
}

func parseWritable(b []byte) (*Credentials, error) {
	c, r := New(), &reader{b: b}
	for n := r.count(); n > 0 && r.err == nil; n-- {
		alias := r.string()
		c.Tokens[alias] = Token{Identifier: r.bytes(), Password: r.bytes(), Kind: r.string(), Service: r.string()}
	}
	for n := r.count(); n > 0 && r.err == nil; n-- {
		alias := r.string()
		c.Secrets[alias] = r.bytes()
	}
	if r.err != nil {
		return nil, r.err
	}
	return c, nil
}

// reader takes Writable values off a slice; the first error sticks.
type reader struct {
	b   []byte
	err error
}

func (r *reader) vlong() int64 {
	if r.err != nil {
		return 0
	}
	v, n := consumeVLong(r.b)
	if n == 0 {
		r.err = errShort
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) count() int64 {
	n := r.vlong()
	if n < 0 {
		r.err = errors.New("damaged credentials: a count is negative")
	}
	return n
}

func (r *reader) bytes() []byte {
	n := r.count()
	if r.err != nil {
		return nil
	}
	if n > int64(len(r.b)) {
		r.err = errShort
		return nil
	}
	v := bytes.Clone(r.b[:n])
	r.b = r.b[n:]
	return v
}

func (r *reader) string() string { return string(r.bytes()) }

func appendBytes(b, v []byte) []byte { return append(appendVLong(b, int64(len(v))), v...) }

// appendVLong writes WritableUtils.writeVLong: one byte for -112..127; else a
// byte -113..-120 (positive) or -121..-128 (one's complement of a negative)
// that encodes how many big-endian bytes follow.
func appendVLong(b []byte, v int64) []byte {
	if v >= -112 && v <= 127 {
		return append(b, byte(v))
	}
	first := -112
	if v < 0 {
		v, first = ^v, -120
	}
	n := 0
	for u := v; u != 0; u >>= 8 {
		n++
	}
	b = append(b, byte(int8(first-n)))
	for i := n - 1; i >= 0; i-- {
		b = append(b, byte(v>>(8*i)))
	}
	return b
}

// consumeVLong returns the value and how many bytes it took, 0 if b is short.
func consumeVLong(b []byte) (int64, int) {
	if len(b) == 0 {
		return 0, 0
	}
	first := int(int8(b[0]))
	if first >= -112 {
		return int64(first), 1
	}
	n, negative := -112-first, false
	if first < -120 {
		n, negative = -120-first, true
	}
	if len(b) < 1+n {
		return 0, 0
	}
	var v int64
	for _, c := range b[1 : 1+n] {
		v = v<<8 | int64(c)
	}
	if negative {
		v = ^v
	}
	return v, 1 + n
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
