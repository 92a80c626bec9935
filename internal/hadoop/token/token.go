// Package token reads and writes Hadoop's credentials: tokens, which let their
// bearer act as a user towards one service, and secrets, which are bytes under
// a name.
//
// # File format
//
// A credentials file (org.apache.hadoop.security.Credentials) is "HDTS", a
// version byte, and then
//
//   - version 0, Hadoop's Writable encoding: vint count of tokens, each an alias
//     (Text: vint length, UTF-8) and a Token (vint length and bytes of
//     identifier and of password, Text kind, Text service); then vint count of
//     secrets, each a Text alias, vint length, bytes. NodeManagers write it, and
//     they read nothing else from a ContainerLaunchContext.
//   - version 1, a length-delimited CredentialsProto.
//
// Credentials carry what must stay secret: String of a Token names its kind and
// service only, and files are written with mode 0600.
package token

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"holdfast/internal/hadoop/wire/common"
)

// EnvFile is the environment variable that names a process's credentials file.
// YARN sets it in every container.
const EnvFile = "HADOOP_TOKEN_FILE_LOCATION"

// Kinds of tokens that Hadoop's services issue.
const (
	KindHDFS     = "HDFS_DELEGATION_TOKEN"
	KindRM       = "RM_DELEGATION_TOKEN"
	KindAMRM     = "YARN_AM_RM_TOKEN"
	KindNM       = "NMToken"
	KindClientAM = "YARN_CLIENT_TOKEN"
	KindBlock    = "HDFS_BLOCK_TOKEN"
	KindKMS      = "kms-dt" // for key servers
)

// Token is a Hadoop token.
type Token struct {
	Identifier []byte
	Password   []byte
	Kind       string
	Service    string
}

// String names the token without what it contains.
func (t Token) String() string {
	return fmt.Sprintf("token of kind %q for service %q", t.Kind, t.Service)
}

// GoString keeps the password out of %#v.
func (t Token) GoString() string { return t.String() }

// Format keeps the password out of every other verb.
func (t Token) Format(f fmt.State, _ rune) { fmt.Fprint(f, t.String()) }

// FromProto converts from the wire's form (Security.proto, TokenProto).
func FromProto(p *common.TokenProto) Token {
	return Token{Identifier: p.GetIdentifier(), Password: p.GetPassword(), Kind: p.GetKind(), Service: p.GetService()}
}

// Proto converts to the wire's form.
func (t Token) Proto() *common.TokenProto {
	return &common.TokenProto{Identifier: bytesOf(t.Identifier), Password: bytesOf(t.Password), Kind: &t.Kind, Service: &t.Service}
}

// bytesOf makes an empty but present field: TokenProto's fields are required.
func bytesOf(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// Credentials are the tokens and secrets of a process, each under an alias. An
// alias of a token is usually its service.
type Credentials struct {
	Tokens  map[string]Token
	Secrets map[string][]byte
}

// New returns empty credentials.
func New() *Credentials {
	return &Credentials{Tokens: map[string]Token{}, Secrets: map[string][]byte{}}
}

// Clone returns a copy whose maps may be changed.
func (c *Credentials) Clone() *Credentials {
	n := New()
	for k, v := range c.Tokens {
		n.Tokens[k] = v
	}
	for k, v := range c.Secrets {
		n.Secrets[k] = v
	}
	return n
}

// Find returns the first token of the kind whose service is the given one; an
// empty service matches any. The order among several is that of their aliases.
func (c *Credentials) Find(kind, service string) (Token, bool) {
	for _, alias := range sortedKeys(c.Tokens) {
		if t := c.Tokens[alias]; t.Kind == kind && (service == "" || t.Service == service) {
			return t, true
		}
	}
	return Token{}, false
}

// RemoveKind deletes all tokens of a kind.
func (c *Credentials) RemoveKind(kind string) {
	for alias, t := range c.Tokens {
		if t.Kind == kind {
			delete(c.Tokens, alias)
		}
	}
}

// RemoveMasters deletes the tokens with which only an application master, or
// the one who submitted, has something to do.
func (c *Credentials) RemoveMasters() {
	for _, kind := range []string{KindAMRM, KindNM, KindRM, KindClientAM} {
		c.RemoveKind(kind)
	}
}

// ForPrograms returns what may be given to the user's own programs: the tokens of file
// systems and the like, without the masters' tokens and without secrets.
func (c *Credentials) ForPrograms() *Credentials {
	n := c.Clone()
	n.RemoveMasters()
	n.Secrets = map[string][]byte{}
	return n
}

// ReadFile reads a credentials file of either version.
func ReadFile(path string) (*Credentials, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read credentials: %w", err)
	}
	c, err := Parse(b)
	if err != nil {
		return nil, fmt.Errorf("read credentials from %s: %w", path, err)
	}
	return c, nil
}

// FromEnvironment reads the file that HADOOP_TOKEN_FILE_LOCATION names. Where
// the variable is not set it returns empty credentials.
func FromEnvironment() (*Credentials, error) {
	path := os.Getenv(EnvFile)
	if path == "" {
		return New(), nil
	}
	c, err := ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s names %s, which does not exist: unset it or write the tokens there: %w", EnvFile, path, err)
	}
	return c, err
}

// Replace puts the tokens of a credentials file, given as its content, into the
// file that HADOOP_TOKEN_FILE_LOCATION names, in place of those of the same kind
// and service. What else is in it stays.
func Replace(content []byte) error {
	fresh, err := Parse(content)
	if err != nil {
		return fmt.Errorf("replace tokens: %w", err)
	}
	path := os.Getenv(EnvFile)
	if path == "" {
		return fmt.Errorf("replace tokens: this process has no credentials file (%s is not set)", EnvFile)
	}
	all, err := ReadFile(path)
	if err != nil {
		return fmt.Errorf("replace tokens: %w", err)
	}
	all.Take(fresh)
	return all.WriteFile(path)
}

// Take replaces tokens by those of other credentials that have the same kind
// and service, and adds the rest of them.
func (c *Credentials) Take(other *Credentials) {
	for _, t := range other.Tokens {
		maps.DeleteFunc(c.Tokens, func(_ string, old Token) bool { return old.Kind == t.Kind && old.Service == t.Service })
	}
	maps.Copy(c.Tokens, other.Tokens)
}

// WriteFile writes a version 0 file readable by its owner only, in one step.
func (c *Credentials) WriteFile(path string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".credentials-*")
	if err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}
	_, err = f.Write(c.Marshal())
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
		return fmt.Errorf("write credentials to %s: %w", path, err)
	}
	return nil
}
