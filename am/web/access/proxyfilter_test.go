package access_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/am/web/access"

	"github.com/sirupsen/logrus"
)

func quiet() *logrus.Entry {
	l := logrus.New()
	l.SetOutput(io.Discard)
	return logrus.NewEntry(l)
}

// knock sends a request from an address and does not follow redirects.
func knock(t *testing.T, from, url, cookie string, config *tls.Config) (code int, text, location string) {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c := http.Client{
		Transport:     &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: config, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if cookie != "" {
		req.Header.Set("Cookie", cookie)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b), resp.Header.Get("Location")
}

// connectionEnds reports whether a server closes a connection from an address after its answer.
func connectionEnds(t *testing.T, from, url string) bool {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c := http.Client{
		Transport:     &http.Transport{DialContext: dialer.DialContext},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer c.CloseIdleConnections()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.Close
}

// inside is what a filter protects.
var inside = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "inside") })

func TestProxyFilter(t *testing.T) {
	down := httptest.NewServer(nil)
	down.Close()
	standby := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) }))
	defer standby.Close()
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer up.Close()
	d := &access.ProxyFilter{
		Proxies: []string{"127.0.0.7", "127.0.0.8"},
		URLs:    []string{down.URL + "/proxy/application_1_1", standby.URL + "/proxy/application_1_1", up.URL + "/proxy/application_1_1"},
		Allowed: func(user string) bool { return user == "alice@here" }, Log: quiet(),
	}
	s := httptest.NewServer(d.Wrap(inside))
	defer s.Close()
	for _, c := range []struct {
		name, from, cookie string
		code               int
		says               string
	}{
		{"the proxy, for one who may", "127.0.0.8", "proxy-user=alice%40here", 200, "inside"},
		{"the proxy, for one who may not", "127.0.0.8", "proxy-user=bob", 403, "bob may not see this job"},
		{"the proxy, for nobody known", "127.0.0.7", "", 403, "do not ask who you are"},
		{"the proxy, with another cookie", "127.0.0.7", "user=alice%40here", 403, "do not ask who you are"},
		{"another host that claims to be the proxy", "127.0.0.9", "proxy-user=alice%40here", 302, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, text, location := knock(t, c.from, s.URL+"/a%20b?c=d", c.cookie, nil)
			if code != c.code || !strings.Contains(text, c.says) {
				t.Errorf("%d: %s", code, text)
			}
			// The first does not answer, and the second is on standby.
			if want := up.URL + "/proxy/redirect/application_1_1/a%20b?c=d"; code == 302 && location != want {
				t.Errorf("sent to %s, want %s", location, want)
			}
			if closes := connectionEnds(t, c.from, s.URL); closes != (code == 302) {
				t.Errorf("the connection is closed after the answer: %v", closes)
			}
			if code == 302 && strings.Contains(text, "inside") {
				t.Error("it is shown all the same")
			}
		})
	}
}

func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "x"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// With TLS, an address proves nothing.
func TestProxyFilterWithTLS(t *testing.T) {
	proxy, other := certificate(t), certificate(t)
	d := &access.ProxyFilter{
		Proxies: []string{"127.0.0.1"}, URLs: []string{"http://rm:8088/proxy/application_1_1"},
		Certificate: proxy.Certificate[0], Allowed: func(user string) bool { return user == "alice" }, Log: quiet(),
	}
	s := httptest.NewUnstartedServer(d.Wrap(inside))
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	s.StartTLS()
	defer s.Close()
	for _, c := range []struct {
		name  string
		certs []tls.Certificate
		code  int
	}{{"the proxy", []tls.Certificate{proxy}, 200}, {"no certificate", nil, 302}, {"another's certificate", []tls.Certificate{other}, 302}} {
		code, text, _ := knock(t, "127.0.0.1", s.URL, "proxy-user=alice", &tls.Config{InsecureSkipVerify: true, Certificates: c.certs})
		if code != c.code || (text == "inside") != (c.code == 200) {
			t.Errorf("%s: %d %s", c.name, code, text)
		}
	}
}

func TestKeyed(t *testing.T) {
	s := httptest.NewServer(access.Keyed("secret", inside))
	defer s.Close()
	for path, want := range map[string]int{"/secret/": 200, "/secret/status.json": 200, "/": 403, "/secret": 403, "/secre/": 403, "//secret/": 403, "/other/secret/": 403} {
		if code, _, _ := knock(t, "127.0.0.1", s.URL+path, "", nil); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
}

// A browser that does not wait for its answer does not end the look-up, of which the
// others would get the result.
func TestALookUpOutlastsWhoAsked(t *testing.T) {
	var asked atomic.Bool // by the look-ups of both kinds of addresses
	before := net.DefaultResolver
	defer func() { net.DefaultResolver = before }()
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		if ctx.Err() == nil {
			asked.Store(true)
		}
		return nil, errors.New("there is no name server")
	}}
	d := &access.ProxyFilter{Proxies: []string{"rm.example.org"}, URLs: []string{"http://rm/proxy/a"}, Allowed: func(string) bool { return true }, Log: quiet()}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequest(http.MethodGet, "/", nil).WithContext(gone)
	r.RemoteAddr = "127.0.0.1:1234"
	d.Wrap(inside).ServeHTTP(httptest.NewRecorder(), r)
	if !asked.Load() {
		t.Error("nobody was asked where the proxy is")
	}
}

// A name that cannot be looked up for a while leads where it did.
func TestProxiesAreKnownWhileNamesCannotBeLookedUp(t *testing.T) {
	d := &access.ProxyFilter{Proxies: []string{"localhost"}, URLs: []string{"http://rm/proxy/a"}, Allowed: func(string) bool { return true }, Log: quiet()}
	s := httptest.NewServer(d.Wrap(inside))
	defer s.Close()
	for _, name := range []string{"localhost", "no.such.host.invalid"} {
		d.Proxies[0] = name
		access.Forget(d)
		if code, text, _ := knock(t, "127.0.0.1", s.URL, "", nil); code != http.StatusOK {
			t.Errorf("%s: %d %s", name, code, text)
		}
	}
}
