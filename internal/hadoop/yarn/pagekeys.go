package yarn

import (
	"bytes"
	"crypto/sha1"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/pavlo-v-chernykh/keystore-go/v4"

	"holdfast/internal/hadoop/token"
)

// PageKeys are the keys with which an AM serves its page by TLS.
type PageKeys struct {
	Certificate tls.Certificate
	// Proxy (DER) is the certificate that the ResourceManager's proxy shows: of
	// the authority that signed ours.
	Proxy []byte
}

// Secrets that the RM gives an AM where yarn.resourcemanager.application-https.policy
// is LENIENT or STRICT (AMSecretKeys, AMLauncher.setupTokens): key stores in the
// form of the JDK's JKS, and their passwords.
const (
	secretKeystore           = "yarn.application.am.keystore"
	secretKeystorePassword   = "yarn.application.am.keystore.password"
	secretTruststore         = "yarn.application.am.truststore"
	secretTruststorePassword = "yarn.application.am.truststore.password"
)

// ReadPageKeys returns the keys in an AM's credentials; nil if there are none. The
// certificate has no time in which it is valid: the proxy looks at who signed it
// only (ProxyCA.createTrustManager).
func ReadPageKeys(c *token.Credentials) (*PageKeys, error) {
	if c.Secrets[secretKeystore] == nil {
		return nil, nil
	}
	k := &PageKeys{}
	err := each(c, secretKeystore, secretKeystorePassword, func(ks keystore.KeyStore, alias string, password []byte) error {
		if !ks.IsPrivateKeyEntry(alias) {
			return nil
		}
		entry, err := ks.GetPrivateKeyEntry(alias, password)
		if err != nil {
			return err
		}
		if k.Certificate.PrivateKey, err = x509.ParsePKCS8PrivateKey(entry.PrivateKey); err != nil {
			return err
		}
		k.Certificate.Certificate = nil
		for _, cert := range entry.CertificateChain {
			k.Certificate.Certificate = append(k.Certificate.Certificate, cert.Content)
		}
		return nil
	})
	if err == nil {
		err = each(c, secretTruststore, secretTruststorePassword, func(ks keystore.KeyStore, alias string, _ []byte) error {
			if !ks.IsTrustedCertificateEntry(alias) {
				return nil
			}
			entry, err := ks.GetTrustedCertificateEntry(alias)
			k.Proxy = entry.Certificate.Content
			return err
		})
	}
	if err == nil && (k.Certificate.PrivateKey == nil || k.Proxy == nil) {
		err = errors.New("a key or a certificate is missing in them")
	}
	if err != nil {
		return nil, fmt.Errorf("read the key stores that the ResourceManager made for the application's page: %w", err)
	}
	return k, nil
}

func each(c *token.Credentials, store, password string, f func(keystore.KeyStore, string, []byte) error) error {
	if !whole(c.Secrets[store], c.Secrets[password]) {
		return errors.New("one is damaged, or its password is another's")
	}
	ks := keystore.New(keystore.WithOrderedAliases())
	if err := ks.Load(bytes.NewReader(c.Secrets[store]), c.Secrets[password]); err != nil {
		return err
	}
	for _, alias := range ks.Aliases() {
		if err := f(ks, alias, c.Secrets[password]); err != nil {
			return err
		}
	}
	return nil
}

// whole compares the digest at a key store's end (sun.security.provider.JavaKeyStore):
// keystore-go does so too, but only after it has allocated what the lengths in
// the store say.
func whole(store, password []byte) bool {
	at := len(store) - sha1.Size
	if at < 0 {
		return false
	}
	h := sha1.New()
	for _, b := range password {
		h.Write([]byte{0, b})
	}
	h.Write([]byte("Mighty Aphrodite"))
	h.Write(store[:at])
	return bytes.Equal(h.Sum(nil), store[at:])
}

// Server returns the configuration of the page's server. It requests a
// certificate; the handler must check it.
func (k *PageKeys) Server() *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{k.Certificate},
		ClientAuth:   tls.RequestClientCert,
	}
}
