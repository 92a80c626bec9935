package kms

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pavlo-v-chernykh/keystore-go/v4"

	"holdfast/internal/hadoop/conf"
)

// trust is the set of trusted authorities: the system's, and those of the truststore that
// ssl-client.xml names (hadoop.ssl.client.conf, SSLFactory). The file is that of this
// machine, in its HADOOP_CONF_DIR, as the truststore is.
type trust struct {
	config *tls.Config // nil: the system's alone
	err    error       // why there is no more
}

func newTrust(c *conf.Conf) trust {
	dir := os.Getenv(conf.EnvDir)
	if dir == "" {
		return trust{}
	}
	file, err := conf.LoadFile(filepath.Join(dir, cmp.Or(c.Get("hadoop.ssl.client.conf"), "ssl-client.xml")))
	if err != nil {
		return trust{err: err}
	}
	location := file.Get("ssl.client.truststore.location")
	if location == "" {
		return trust{}
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	b, err := os.ReadFile(location)
	if err == nil {
		err = addTrusted(pool, b, []byte(file.Get("ssl.client.truststore.password")))
	}
	if err != nil {
		err = fmt.Errorf("the truststore %s (ssl.client.truststore.location): %w", location, err)
		const providers = "hadoop.security.credential.provider.path"
		if file.Get("ssl.client.truststore.password") == "" && cmp.Or(file.Get(providers), c.Get(providers)) != "" {
			err = fmt.Errorf("%w; its password may be in a credential provider (%s), none of which is read: write it into ssl-client.xml, or name the certificates in PEM in SSL_CERT_FILE", err, providers)
		}
		return trust{err: err}
	}
	return trust{config: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
}

// magicJKS begins a key store in the form of the JDK's JKS.
var magicJKS = []byte{0xfe, 0xed, 0xfe, 0xed}

func addTrusted(pool *x509.CertPool, b, password []byte) error {
	if !bytes.HasPrefix(b, magicJKS) {
		if pool.AppendCertsFromPEM(b) {
			return nil
		}
		return errors.New("it is neither JKS nor PEM: convert it (keytool -importkeystore -deststoretype JKS), or name a file of certificates in SSL_CERT_FILE")
	}
	ks := keystore.New()
	if err := ks.Load(bytes.NewReader(b), password); err != nil {
		return fmt.Errorf("read it with ssl.client.truststore.password: %w", err)
	}
	for _, alias := range ks.Aliases() {
		if !ks.IsTrustedCertificateEntry(alias) {
			continue
		}
		entry, err := ks.GetTrustedCertificateEntry(alias)
		if err != nil {
			return err
		}
		if cert, err := x509.ParseCertificate(entry.Certificate.Content); err == nil { // others are of no use to anybody
			pool.AddCert(cert)
		}
	}
	return nil
}

// explain adds a remedy to the refusal of a server's certificate.
func (t trust) explain(err error) error {
	var unknown x509.UnknownAuthorityError
	switch {
	case !errors.As(err, &unknown):
		return err
	case t.err != nil:
		return fmt.Errorf("%w (only the system's authorities are known: %v)", err, t.err)
	}
	return fmt.Errorf("%w (known are the system's authorities, those of SSL_CERT_FILE, and those of ssl.client.truststore.location in ssl-client.xml)", err)
}
