package kms

import (
	"bytes"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pavlo-v-chernykh/keystore-go/v4"

	"holdfast/internal/hadoop/conf"
)

// TestTrust: a server is believed whose authority is in the truststore that
// ssl-client.xml names, and no other.
func TestTrust(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"material":"MDEyMzQ1Njc4OWFiY2RlZg"}`)
	}))
	s.Config.ErrorLog = log.New(t.Output(), "", 0)
	s.StartTLS()
	defer s.Close()
	dir := t.TempDir()
	ks := keystore.New()
	if err := ks.SetTrustedCertificateEntry("authority", keystore.TrustedCertificateEntry{
		CreationTime: time.Now(), Certificate: keystore.Certificate{Type: "X509", Content: s.Certificate().Raw},
	}); err != nil {
		t.Fatal(err)
	}
	var jks bytes.Buffer
	if err := ks.Store(&jks, []byte("changeit")); err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"jks": jks.Bytes(), "pem": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), "other": []byte("PKCS12"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(conf.EnvDir, dir)
	for _, c := range []struct{ file, password, want string }{
		{"jks", "changeit", ""},
		{"pem", "", ""},
		{"jks", "wrong", "ssl.client.truststore.password"},
		{"other", "", "neither JKS nor PEM"},
		{"missing", "", "no such file"},
		{"", "", "SSL_CERT_FILE"},
	} {
		location := ""
		if c.file != "" {
			location = filepath.Join(dir, c.file)
		}
		text := "<configuration><property><name>ssl.client.truststore.location</name><value>" + location + "</value></property>" +
			"<property><name>ssl.client.truststore.password</name><value>" + c.password + "</value></property></configuration>"
		if err := os.WriteFile(filepath.Join(dir, "ssl-client.xml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		k, err := New("kms://https@"+strings.TrimPrefix(s.URL, "https://")+"/kms", conf.New(nil))
		if err != nil {
			t.Fatal(err)
		}
		key, err := k.Decrypt(t.Context(), EncryptedKey{Name: "k", Version: "k@0", IV: []byte("iv"), Key: []byte("key")})
		if (err == nil) != (c.want == "") || err == nil && string(key) != "0123456789abcdef" {
			t.Errorf("%+v: a key of %d bytes, %v", c, len(key), err)
		}
		if err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
		k.Close()
	}

	// A password that only a credential provider has is not read.
	text := "<configuration><property><name>ssl.client.truststore.location</name><value>" + filepath.Join(dir, "jks") + "</value></property></configuration>"
	if err := os.WriteFile(filepath.Join(dir, "ssl-client.xml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	got := newTrust(conf.New(map[string]string{"hadoop.security.credential.provider.path": "jceks://hdfs@nn/user/x.jceks"}))
	if got.err == nil || !strings.Contains(got.err.Error(), "may be in a credential provider (hadoop.security.credential.provider.path), none of which is read") {
		t.Errorf("a truststore whose password is in a credential provider: %v", got.err)
	}
}
