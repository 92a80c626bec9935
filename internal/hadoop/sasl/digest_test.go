package sasl

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"holdfast/test/bound"
)

// TestRFCExample is the example of RFC 2831, section 4.
func TestRFCExample(t *testing.T) {
	d := NewDigest(Options{Username: "chris", Password: "secret", Protocol: "imap", Server: "elwood.innosoft.com"})
	d.qop = Auth
	c, err := parseChallenge([]byte(`realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",algorithm=md5-sess,charset=utf-8`))
	if err != nil {
		t.Fatal(err)
	}
	r := string(d.respond(c, "OA6MHXh6VqTrRk"))
	if !strings.Contains(r, "response=d388dad90d4bbd760a152321f2143af7,") {
		t.Errorf("response %s", r)
	}
	d.stepped = true
	if s, err := d.Finish([]byte("rspauth=ea40f60335c427b5527b84dbabcdfffd")); err != nil || s != nil {
		t.Errorf("Finish: %v, %v", s, err)
	}
	if _, err := d.Finish([]byte("rspauth=ea40f60335c427b5527b84dbabcdfffe")); err == nil {
		t.Error("a wrong proof was taken")
	}
}

// vector is a login recorded with Java 17's own server as the other side.
type vector struct {
	QOP, Cipher, Challenge, Response, Proof string
	FromServer, ToServer                    []string
}

var (
	toServer   = []string{"what the client says", "and once more, over several blocks"}
	fromServer = []string{"first message", "", "a third, longer message of the server"}
)

func vectorOptions(v vector) Options {
	o := Options{
		Username: "aWRlbnRpZmllcg==", Password: "cGFzc3dvcmQ=", Server: "default",
		QOP: []string{v.QOP}, Rand: bytes.NewReader(make([]byte, 24)),
	}
	if v.Cipher != "" {
		o.Ciphers = []string{v.Cipher}
	}
	return o
}

func vectors(t testing.TB) []vector {
	b, err := os.ReadFile("testdata/java.json")
	if err != nil {
		t.Fatal(err)
	}
	var list []vector
	if err := json.Unmarshal(b, &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// weak are the ciphers that Java offers and that are refused.
func weak(cipher string) bool { return cipher == "des" || strings.HasPrefix(cipher, "rc4-") }

func TestAgainstJava(t *testing.T) {
	for _, v := range vectors(t) {
		t.Run(v.QOP+" "+v.Cipher, func(t *testing.T) {
			d := NewDigest(vectorOptions(v))
			r, err := d.Step([]byte(v.Challenge))
			if weak(v.Cipher) {
				if err == nil {
					t.Errorf("the cipher was taken")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if string(r) != v.Response {
				t.Errorf("response\n%s, recorded\n%s", r, v.Response)
			}
			s, err := d.Finish([]byte(v.Proof))
			if err != nil {
				t.Fatal(err)
			}
			if v.QOP == Auth {
				if s != nil {
					t.Error("a session where only authentication was negotiated")
				}
				return
			}
			if s.QOP() != v.QOP || s.Cipher() != v.Cipher {
				t.Errorf("negotiated %s %s", s.QOP(), s.Cipher())
			}
			for i, m := range toServer {
				w, err := s.Wrap([]byte(m))
				if err != nil {
					t.Fatal(err)
				}
				if hex.EncodeToString(w) != v.ToServer[i] {
					t.Errorf("message %d is wrapped as %x, recorded %s", i, w, v.ToServer[i])
				}
			}
			for i, want := range fromServer {
				w, _ := hex.DecodeString(v.FromServer[i])
				if len(w) == 0 { // Java makes nothing of an empty message
					continue
				}
				m, err := s.Unwrap(w)
				if err != nil || string(m) != want {
					t.Errorf("message %d is unwrapped as %q, %v", i, m, err)
				}
			}
		})
	}
}

// TestForged changes each byte of a recorded message in turn.
func TestForged(t *testing.T) {
	for _, v := range vectors(t) {
		if v.QOP == Auth || weak(v.Cipher) {
			continue
		}
		good, _ := hex.DecodeString(v.FromServer[0])
		for i := range good {
			d := NewDigest(vectorOptions(v))
			if _, err := d.Step([]byte(v.Challenge)); err != nil {
				t.Fatal(err)
			}
			s, err := d.Finish([]byte(v.Proof))
			if err != nil {
				t.Fatal(err)
			}
			bad := bytes.Clone(good)
			bad[i] ^= 0x40
			if m, err := s.Unwrap(bad); err == nil {
				t.Fatalf("%s %s: with byte %d changed the message was taken, as %q", v.QOP, v.Cipher, i, m)
			}
			if _, err := s.Unwrap(good); err == nil {
				t.Fatalf("%s %s: after a forged message the session went on", v.QOP, v.Cipher)
			}
		}
	}
}

func TestNegotiation(t *testing.T) {
	challenge := `realm="default",nonce="abc",algorithm=md5-sess,charset=utf-8,cipher="3des,rc4",qop=` // a second list counts
	for _, c := range []struct {
		name, qop string
		o         Options
		want      string
	}{
		{"the server's first", `"auth-int,auth"`, Options{}, AuthInt},
		{"ours", `"auth,auth-int,auth-conf"`, Options{QOP: []string{AuthConf, Auth}}, AuthConf},
		{"our second", `"auth"`, Options{QOP: []string{AuthConf, Auth}}, Auth},
		{"none in common", `"auth"`, Options{QOP: []string{AuthConf}}, ""},
		{"unknown passed over", `"auth-x,auth-int"`, Options{}, AuthInt},
		{"no cipher in common", `"auth-conf"`, Options{Ciphers: []string{"des"}}, ""},
		{"the server has only weak ones", `"auth-conf",cipher="des,rc4-56,rc4-40"`, Options{}, ""},
	} {
		d := NewDigest(c.o)
		_, err := d.Step([]byte(challenge + c.qop))
		if c.want == "" {
			if err == nil {
				t.Errorf("%s: no error", c.name)
			}
			continue
		}
		if err != nil || d.QOP() != c.want {
			t.Errorf("%s: %s, %v; want %s", c.name, d.QOP(), err, c.want)
		}
	}
}

func TestBadChallenges(t *testing.T) {
	for _, c := range []string{
		"", "nonce", `nonce="a`, `nonce="a"b,algorithm=md5-sess`, `nonce="a",nonce="b",algorithm=md5-sess`,
		`algorithm=md5-sess`, `nonce="a",algorithm=md5`, `="x"`,
	} {
		if _, err := NewDigest(Options{}).Step([]byte(c)); err == nil {
			t.Errorf("the challenge %q was taken", c)
		}
	}
	d := NewDigest(Options{})
	if _, err := d.Finish([]byte("rspauth=00")); err == nil {
		t.Error("a success before the challenge was taken")
	}
}

func FuzzChallenge(f *testing.F) {
	for _, v := range vectors(f) {
		f.Add([]byte(v.Challenge))
		f.Add([]byte(v.Proof))
	}
	f.Add([]byte(`realm="a\"b",nonce=x,qop="auth , auth-int",cipher=rc4,algorithm=md5-sess`))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer bound.Memory(t, len(b), 100)()
		d := NewDigest(Options{Username: "u", Password: "p"})
		r, err := d.Step(b)
		if err != nil {
			return
		}
		if _, err := parseDirectives(r); err != nil {
			t.Errorf("our own response to %q cannot be read: %v\n%s", b, err, r)
		}
		_, _ = d.Finish(b)
	})
}

func FuzzUnwrap(f *testing.F) {
	for _, v := range vectors(f) {
		for _, m := range v.FromServer {
			b, _ := hex.DecodeString(m)
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer bound.Memory(t, len(b), 100)()
		for _, name := range append([]string{""}, ciphers...) {
			qop := AuthConf
			if name == "" {
				qop = AuthInt
			}
			s, err := newSession(make([]byte, 16), qop, name, true)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Unwrap(bytes.Clone(b)); err == nil {
				t.Errorf("%s: unauthenticated bytes were taken", name)
			}
		}
	})
}
