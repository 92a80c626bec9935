package kms

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/kerberos"
	"holdfast/internal/hadoop/login"
	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/token"
	"holdfast/test/bound"
	"holdfast/test/testcluster"
	"holdfast/test/testcluster/kdc"
)

func TestProviders(t *testing.T) {
	for uri, want := range map[string]string{
		"kms://http@h:9600/kms":         "http://h:9600/kms/v1/",
		"kms://https@a;b;c:16000/kms":   "https://a:16000/kms/v1/ https://b:16000/kms/v1/ https://c:16000/kms/v1/",
		"kms://http@h/kms/":             "http://h:9600/kms/v1/",
		"kms://http@h:1":                "http://h:1/v1/",
		"jceks://file@/home/keys.jceks": "",
		"kms://h:9600/kms":              "",
		"kms://http@:9600/kms":          "",
		"kms://ftp@h:9600/kms":          "",
		"":                              "",
	} {
		got, err := parse(uri)
		if strings.Join(got, " ") != want || (err != nil) != (want == "") {
			t.Errorf("%q: %q, %v", uri, got, err)
		}
		if err != nil && (!errors.Is(err, syscall.ENOTSUP) || !strings.Contains(err.Error(), "kms://http@HOST1")) {
			t.Errorf("%q: the error does not tell what to do: %v", uri, err)
		}
	}
}

// TestAnswers: whatever a server says, an error comes of it that holds no key and
// no token.
func TestAnswers(t *testing.T) {
	const secret = "c2VjcmV0c2VjcmV0cw"
	for name, c := range map[string]struct {
		status int
		body   string
		want   string
	}{
		"a key":     {200, `{"material":"` + secret + `","name":"k","versionName":"EK"}`, ""},
		"padded":    {200, `{"material":"` + secret + `==\r\n"}`, ""},
		"no key":    {200, `{"material":""}`, "its answer has no key"},
		"null":      {200, `null`, "its answer has no key"},
		"no base64": {200, `{"material":"*` + secret + `"}`, "its answer has no key"},
		"no JSON":   {200, secret, "not that of a KMS"},
		"a list":    {200, `["` + secret + `"]`, "not that of a KMS"},
		"denied":    {403, `{"RemoteException":{"message":"User:bob not allowed to do 'DECRYPT_EEK' on 'k'","exception":"AuthorizationException","javaClassName":"org.apache.hadoop.security.authorize.AuthorizationException"}}`, "not allowed to do 'DECRYPT_EEK'"},
		"a page":    {404, `<html>` + secret, "404 Not Found"},
		"redirect":  {302, ``, "302 Found"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/kms/v1/keyversion/k@0/_eek" || r.URL.Query().Get("eek_op") != "decrypt" || r.URL.Query().Get("user.name") == "" {
				t.Errorf("asked for %s", r.URL)
			}
			if c.status == 302 {
				w.Header().Set("Location", "http://elsewhere/")
			}
			w.WriteHeader(c.status)
			io.WriteString(w, c.body)
		}))
		k, err := New("kms://http@"+strings.TrimPrefix(s.URL, "http://")+"/kms", conf.New(nil))
		if err != nil {
			t.Fatal(err)
		}
		key, err := k.Decrypt(t.Context(), EncryptedKey{Name: "k", Version: "k@0", IV: []byte("iv"), Key: []byte("key")})
		if (err == nil) != (c.want == "") || err == nil && string(key) != "secretsecrets" {
			t.Errorf("%s: %q, %v", name, key, err)
		}
		if err != nil && (!strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), k.URI()) || strings.Contains(err.Error(), secret)) {
			t.Errorf("%s: %v", name, err)
		}
		s.Close()
	}
}

// start starts key servers that have the key k.
func start(t *testing.T, o testcluster.Options) (*testcluster.Cluster, *conf.Conf) {
	t.Helper()
	c := testcluster.ForTest(t, o)
	cf, err := conf.Load(c.ConfDir())
	if err != nil {
		t.Fatal(err)
	}
	return c, cf
}

func open1(t *testing.T, uri string, c *conf.Conf) *Client {
	t.Helper()
	k, err := New(uri, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Close)
	return k
}

// generate has a server make a file's key, as the NameNode does.
func generate(t *testing.T, k *Client) EncryptedKey {
	t.Helper()
	var list []struct {
		VersionName         string
		IV                  string
		EncryptedKeyVersion struct{ Material string }
	}
	r := request{method: http.MethodGet, path: "key/k/_eek", query: url.Values{"eek_op": {"generate"}, "num_keys": {"1"}}, tokens: true}
	if err := k.call(t.Context(), r, &list); err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	e := EncryptedKey{Name: "k", Version: list[0].VersionName}
	var err error
	if e.IV, err = decode(list[0].IV); err == nil {
		e.Key, err = decode(list[0].EncryptedKeyVersion.Material)
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// wantKey decrypts a key twice, by different clients.
func wantKey(t *testing.T, e EncryptedKey, clients ...*Client) {
	t.Helper()
	var first []byte
	for _, k := range clients {
		key, err := k.Decrypt(t.Context(), e)
		if err != nil || len(key) != 16 || bytes.Equal(key, e.Key) || first != nil && !bytes.Equal(key, first) {
			t.Fatalf("a key of %d bytes, %v", len(key), err)
		}
		first = key
	}
}

// TestServers: two of Hadoop's key servers, of which one goes away, and then both.
func TestServers(t *testing.T) {
	c, cf := start(t, testcluster.Options{
		KMS:  &testcluster.KMS{Servers: 2, Keys: []string{"k"}, Alone: true},
		Conf: map[string]string{"hadoop.kms.blacklist.DECRYPT_EEK": "mallory"},
	})
	k := open1(t, c.KeyProvider(), cf)
	e := generate(t, k)
	wantKey(t, e, k, open1(t, c.KeyProvider(), cf))
	if err := k.Check(t.Context()); err != nil {
		t.Error(err)
	}

	t.Setenv("HADOOP_USER_NAME", "mallory")
	_, err := k.Decrypt(t.Context(), e)
	if !rpc.IsDenied(err) || strings.Count(err.Error(), "http://") != 1+strings.Count(c.KeyProvider(), "http://") {
		t.Errorf("a user who may not: %v", err)
	}
	t.Setenv("HADOOP_USER_NAME", "alice")

	wrong := e
	wrong.Version = "k@7"
	if _, err := k.Decrypt(t.Context(), wrong); err == nil || !strings.Contains(err.Error(), "k@7") {
		t.Errorf("a version that is not there: %v", err)
	}

	if err := c.Daemon("kms0").Kill(); err != nil {
		t.Fatal(err)
	}
	wantKey(t, e, k, open1(t, c.KeyProvider(), cf))
	if err := c.Daemon("kms1").Kill(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = k.Decrypt(ctx, e)
	for _, want := range []string{`"k"`, e.Version, c.KeyProvider(), "http://localhost:", "http://127.0.0.3:", "connection refused", "see that the KMS runs"} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("the error does not tell %q: %v", want, err)
		}
	}

	done := make(chan error, 1)
	go func() {
		_, err := k.Decrypt(t.Context(), e)
		done <- err
	}()
	if err := c.Daemon("kms1").Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Logf("the restart took longer than %s: %v", outageLimit, err)
		wantKey(t, e, k)
	}
}

// TestKerberos: tickets, and tokens that are got by them.
func TestKerberos(t *testing.T) {
	const life = 4 * time.Minute
	c, cf := start(t, testcluster.Options{
		KMS:      &testcluster.KMS{Keys: []string{"k"}, Alone: true},
		Security: &testcluster.Security{TokenLife: life},
		Conf:     map[string]string{"hadoop.kms.blacklist.DECRYPT_EEK": kdc.Stranger},
	})
	t.Setenv(kerberos.EnvConfig, c.KDC().Config())
	t.Setenv(kerberos.EnvCache, filepath.Join(t.TempDir(), "none"))
	u, err := kerberos.FromKeytab(kdc.Alice, c.KDC().Keytab(kdc.Alice))
	if err != nil {
		t.Fatal(err)
	}
	login.As(u)
	defer login.As(nil)
	byTicket, err := NewKerberos(c.KeyProvider(), cf)
	if err != nil {
		t.Fatal(err)
	}
	e := generate(t, byTicket)
	wantKey(t, e, byTicket, open1(t, c.KeyProvider(), cf))
	if err := byTicket.Check(t.Context()); err != nil {
		t.Error(err)
	}
	k, err := byTicket.DelegationToken(t.Context(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	d, err := k.Delegation()
	if err != nil || k.Kind != token.KindKMS || k.Service != c.KeyProvider() || d.Owner != "alice" || d.Renewer != "alice" || d.Max.Sub(d.Issued) != life {
		t.Errorf("got %v, which says %+v, %v", k, d, err)
	}
	end, err := byTicket.RenewToken(t.Context(), k)
	if left := time.Until(end); err != nil || left > life/2+time.Second || left < life/4 {
		t.Errorf("renewed for %s, %v", left, err)
	}

	// A server with a new key refuses tickets under the old one.
	if err := c.KDC().NewKey(t.Context(), "HTTP"); err != nil {
		t.Fatal(err)
	}
	wantKey(t, e, byTicket)
	// What it refuses to a user whom it knows is not the ticket's fault.
	stranger, err := kerberos.FromKeytab(kdc.Stranger, c.KDC().Keytab(kdc.Stranger))
	if err != nil {
		t.Fatal(err)
	}
	login.As(stranger)
	for range 2 {
		if _, err := byTicket.Decrypt(t.Context(), e); !rpc.IsDenied(err) {
			t.Errorf("a user who may not: %v", err)
		}
	}
	if n := strings.Count(c.Daemon("kdc").Log(), kdc.Stranger+"@"+kdc.Realm+" for "+kdc.Service("HTTP")); n != 1 {
		t.Errorf("the user who may not has asked for %d tickets", n)
	}

	login.As(nil)
	if _, err := login.User(); err == nil {
		t.Fatal("there is still a ticket")
	}
	t.Setenv("CONTAINER_ID", "container_1_1_01_1")
	file := filepath.Join(t.TempDir(), "tokens")
	t.Setenv(token.EnvFile, file)
	use := func(tokens ...token.Token) {
		t.Helper()
		all := token.New()
		for _, k := range tokens {
			all.Tokens[k.Service] = k
		}
		if err := all.WriteFile(file); err != nil {
			t.Fatal(err)
		}
	}
	use(k)
	byToken := open1(t, c.KeyProvider(), cf)
	wantKey(t, e, byToken)
	if err := byToken.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := byToken.DelegationToken(t.Context(), "alice"); err == nil {
		t.Error("a token is given to one who has only a token")
	}
	use()
	if _, err := byToken.Decrypt(t.Context(), e); err == nil || !strings.Contains(err.Error(), token.KindKMS) || !strings.Contains(err.Error(), c.KeyProvider()) {
		t.Errorf("without a token: %v", err)
	}
	forged := k
	forged.Password = bytes.Repeat([]byte("x"), 20)
	use(forged)
	_, err = byToken.Decrypt(t.Context(), e)
	if err == nil || strings.Contains(err.Error(), forged.URLString()[:20]) {
		t.Errorf("with a forged token: %v", err)
	}
	t.Log(err)

	plain := open1(t, c.KeyProvider(), conf.New(nil))
	if _, err := plain.Decrypt(t.Context(), e); err == nil || !strings.Contains(err.Error(), "demands Kerberos") {
		t.Errorf("with a configuration without security: %v", err)
	}
}

func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"RemoteException":{"message":"m","javaClassName":"c"}}`), 403)
	f.Add([]byte(`{`), 401)
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		defer bound.Memory(t, len(body), 64)()
		err := identity{conf: conf.New(nil)}.explain(&http.Response{StatusCode: status, Header: http.Header{}}, body)
		if err == nil {
			t.Error("no error comes of a refusal")
		}
	})
}
