// Package zone encrypts and decrypts files in encryption zones of HDFS.
//
// Each file in a zone has a key of its own, by which all its bytes are encrypted
// as AES/CTR/NoPadding; the position in the file is the counter, so that reading
// and appending may begin anywhere. The NameNode keeps that key encrypted, and
// returns it as FileEncryptionInfoProto (hdfs.proto) to a client that opens or creates the
// file; only the key servers (package kms) can decrypt it. DataNodes, checksums and
// lengths are of the encrypted bytes.
package zone

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"syscall"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs/defaults"
	"holdfast/internal/hadoop/kms"
	"holdfast/internal/hadoop/rpc"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// Zones are those of one file system. Its methods may be called from many
// goroutines.
type Zones struct {
	nn       rpc.Caller
	defaults *defaults.Defaults
	conf     *conf.Conf

	mu   sync.Mutex
	keys *kms.Client
}

// New returns the zones of the file system whose ClientProtocol nn calls, and of which said are
// the defaults.
func New(nn rpc.Caller, said *defaults.Defaults, c *conf.Conf) *Zones {
	return &Zones{nn: nn, defaults: said, conf: c}
}

// Close closes connections to key servers.
func (z *Zones) Close() {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.keys != nil {
		z.keys.Close()
	}
}

// Provider returns the URI of the file system's key servers; "" if it has none, and therefore
// no zones. The NameNode's answer takes precedence over the configuration
// (HdfsKMSUtil.getKeyProviderUri).
func (z *Zones) Provider(ctx context.Context) (string, error) {
	said, err := z.defaults.Get(ctx)
	if err != nil {
		return "", fmt.Errorf("asking for the key provider: %w", err)
	}
	if said.KeyProviderUri == nil { // of an older release
		return z.conf.Get("hadoop.security.key.provider.path"), nil
	}
	return said.GetKeyProviderUri(), nil
}

// Zone is a directory under which all files are encrypted.
type Zone struct {
	Root string
	Key  string // the name of the key that protects the files' keys
}

// Of returns the zone that a path is in, or would be in if it were created; nil if none. If the
// user may not read the path, its parent is used.
func (z *Zones) Of(ctx context.Context, name string) (*Zone, error) {
	provider, err := z.Provider(ctx)
	if err != nil || provider == "" {
		return nil, err
	}
	for name = path.Clean("/" + name); ; name = path.Dir(name) {
		resp := &wire.GetEZForPathResponseProto{}
		err := z.nn.Call(ctx, "getEZForPath", &wire.GetEZForPathRequestProto{Src: &name}, resp)
		if (rpc.IsRemote(err, "java.io.FileNotFoundException") || rpc.IsRemote(err, "org.apache.hadoop.security.AccessControlException")) && name != "/" {
			continue
		}
		if err != nil || resp.GetZone() == nil {
			return nil, err
		}
		return &Zone{Root: resp.GetZone().GetPath(), Key: resp.GetZone().GetKeyName()}, nil
	}
}

// noKey is an error because of a file's key, not of the file.
type noKey struct{ err error }

func (e *noKey) Error() string { return e.err.Error() }
func (e *noKey) Unwrap() error { return e.err }

// IsNoKey reports whether a file cannot be read or written because its key cannot be obtained,
// independently of its permissions.
func IsNoKey(err error) bool {
	var e *noKey
	return errors.As(err, &e)
}

// Cipher obtains the key of a file with its encryption information; without that the file is in
// no zone, and Cipher returns nil.
func (z *Zones) Cipher(ctx context.Context, name string, info *wire.FileEncryptionInfoProto) (*Cipher, error) {
	if info == nil {
		return nil, nil
	}
	fail := func(err error) (*Cipher, error) {
		return nil, &noKey{fmt.Errorf("%s is in an encryption zone (its key is %q): %w", name, info.GetKeyName(), err)}
	}
	if v := info.GetCryptoProtocolVersion(); v != wire.CryptoProtocolVersionProto_ENCRYPTION_ZONES {
		return fail(fmt.Errorf("its protocol version %v is not known here: %w", v, syscall.ENOTSUP))
	}
	if s := info.GetSuite(); s != wire.CipherSuiteProto_AES_CTR_NOPADDING {
		return fail(fmt.Errorf("its cipher %v is not known here, only AES/CTR/NoPadding: %w", s, syscall.ENOTSUP))
	}
	keys, err := z.client(ctx)
	if err != nil {
		return fail(err)
	}
	key, err := keys.Decrypt(ctx, kms.EncryptedKey{
		Name: info.GetKeyName(), Version: info.GetEzKeyVersionName(), IV: info.GetIv(), Key: info.GetKey(),
	})
	if err != nil {
		return fail(err)
	}
	c, err := NewCipher(key, info.GetIv())
	if err != nil {
		return fail(err)
	}
	return c, nil
}

// client returns a client of the present provider's servers.
func (z *Zones) client(ctx context.Context) (*kms.Client, error) {
	provider, err := z.Provider(ctx)
	if err != nil {
		return nil, err
	}
	if provider == "" {
		return nil, fmt.Errorf("the NameNode names no key provider, and neither does the configuration here: have hadoop.security.key.provider.path set in the NameNode's core-site.xml: %w", syscall.ENOTSUP)
	}
	z.mu.Lock()
	keys := z.keys
	z.mu.Unlock()
	if keys != nil && keys.URI() == provider {
		return keys, nil
	}
	if keys, err = kms.New(provider, z.conf); err != nil {
		return nil, err
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	z.keys = keys
	return keys, nil
}
