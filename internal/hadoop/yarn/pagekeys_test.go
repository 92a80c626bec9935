package yarn

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"testing"

	"github.com/pavlo-v-chernykh/keystore-go/v4"

	"holdfast/internal/hadoop/token"
	"holdfast/test/bound"
)

// FuzzPageKeys reads key stores as the ResourceManager makes them.
func FuzzPageKeys(f *testing.F) {
	password := []byte("password")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		f.Fatal(err)
	}
	cert := keystore.Certificate{Type: "X.509", Content: []byte("certificate")}
	own, trusted := keystore.New(), keystore.New()
	if err := own.SetPrivateKeyEntry("own", keystore.PrivateKeyEntry{PrivateKey: private, CertificateChain: []keystore.Certificate{cert}}, password); err != nil {
		f.Fatal(err)
	}
	if err := trusted.SetTrustedCertificateEntry("proxy", keystore.TrustedCertificateEntry{Certificate: cert}); err != nil {
		f.Fatal(err)
	}
	var a, b bytes.Buffer
	if err := own.Store(&a, password); err != nil {
		f.Fatal(err)
	}
	if err := trusted.Store(&b, password); err != nil {
		f.Fatal(err)
	}
	read := func(keys, trust []byte) (*PageKeys, error) {
		return ReadPageKeys(&token.Credentials{Secrets: map[string][]byte{
			secretKeystore: keys, secretKeystorePassword: password, secretTruststore: trust, secretTruststorePassword: password,
		}})
	}
	if k, err := read(a.Bytes(), b.Bytes()); err != nil || string(k.Proxy) != "certificate" {
		f.Fatalf("the seed is not read: %v", err)
	}
	f.Add(a.Bytes(), b.Bytes())
	f.Fuzz(func(t *testing.T, keys, trust []byte) {
		defer bound.Memory(t, len(keys)+len(trust), 1000)()
		_, _ = read(keys, trust)
	})
}
