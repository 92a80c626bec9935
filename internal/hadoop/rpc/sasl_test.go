package rpc_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"holdfast/internal/hadoop/rpc"
	"holdfast/internal/hadoop/token"
	"holdfast/internal/hadoop/wire/common"
)

// xorLogin is a mechanism of two steps whose session turns every bit over.
type xorLogin struct{}

func (xorLogin) Start(_ context.Context, _ string, offers []rpc.Auth) (rpc.Auth, rpc.Mechanism, error) {
	for _, o := range offers {
		if o.Mechanism == "XOR" {
			return o, xorLogin{}, nil
		}
	}
	return rpc.Auth{}, nil, errors.New("XOR is not on offer")
}

func (xorLogin) Step(challenge []byte) ([]byte, error) {
	return append([]byte("answer to "), challenge...), nil
}

func (xorLogin) Finish(b []byte) (rpc.Session, error) {
	if string(b) != "welcome" {
		return nil, errors.New("not welcome")
	}
	return xorLogin{}, nil
}

func (xorLogin) QOP() string { return "auth-conf" }

func (xorLogin) Wrap(b []byte) ([]byte, error) { return flip(b), nil }

func (xorLogin) Unwrap(b []byte) ([]byte, error) { return flip(b), nil }

func flip(b []byte) []byte {
	b = bytes.Clone(b)
	for i := range b {
		b[i] ^= 0xff
	}
	return b
}

// saslRead takes a SASL message from the client.
func (s *server) saslRead() *common.RpcSaslProto {
	h, m := &common.RpcRequestHeaderProto{}, &common.RpcSaslProto{}
	if _, err := s.read(h, m); err == nil && h.GetCallId() != -33 {
		s.t.Errorf("call %d instead of a SASL message", h.GetCallId())
	}
	return m
}

func (s *server) saslWrite(state common.RpcSaslProto_SaslState, token []byte, auths ...*common.RpcSaslProto_SaslAuth) {
	id := int32(-33)
	s.Write(join(&common.RpcResponseHeaderProto{CallId: proto.Uint32(uint32(id)), Status: common.RpcResponseHeaderProto_SUCCESS.Enum()},
		&common.RpcSaslProto{State: &state, Token: token, Auths: auths}))
}

func offer(method, mechanism, challenge string) *common.RpcSaslProto_SaslAuth {
	return &common.RpcSaslProto_SaslAuth{Method: &method, Mechanism: &mechanism, Protocol: proto.String(""), ServerId: proto.String("default"), Challenge: []byte(challenge)}
}

func TestSASL(t *testing.T) {
	f := newFarm(t, map[string]func(*server){"a:1": serveXOR(t)})
	c, end := f.client(rpc.Options{Addresses: []string{"a:1"}, Login: xorLogin{}})
	defer end()
	for range 3 {
		if err := call(c, "x"); err != nil {
			t.Fatal(err)
		}
	}
}

// serveXOR is an echo server that demands xorLogin.
func serveXOR(t *testing.T) func(s *server) {
	return func(s *server) {
		if s.hello[6] != 0xdf {
			t.Errorf("connection header %x", s.hello)
		}
		if m := s.saslRead(); m.GetState() != common.RpcSaslProto_NEGOTIATE {
			t.Errorf("first %v", m)
		}
		s.saslWrite(common.RpcSaslProto_NEGOTIATE, nil, offer("SIMPLE", "", ""), offer("TOKEN", "XOR", "one"))
		m := s.saslRead()
		if m.GetState() != common.RpcSaslProto_INITIATE || string(m.GetToken()) != "answer to one" || len(m.GetAuths()) != 1 ||
			m.GetAuths()[0].GetMethod() != "TOKEN" || m.GetAuths()[0].Challenge != nil {
			t.Errorf("then %v", m)
		}
		s.saslWrite(common.RpcSaslProto_CHALLENGE, []byte("two"))
		if m := s.saslRead(); m.GetState() != common.RpcSaslProto_RESPONSE || string(m.GetToken()) != "answer to two" {
			t.Errorf("then %v", m)
		}
		s.saslWrite(common.RpcSaslProto_SUCCESS, []byte("welcome"))
		first := true
		var held []byte
		for {
			m := s.saslRead()
			if m.GetState() != common.RpcSaslProto_WRAP {
				return
			}
			plain := flip(m.GetToken())
			h := &common.RpcRequestHeaderProto{}
			rest, err := split(plain[4:], h)
			if err != nil {
				t.Error(err)
				return
			}
			if first {
				first = false
				if h.GetCallId() != -3 {
					t.Errorf("call %d before the context", h.GetCallId())
				}
				c := &common.IpcConnectionContextProto{}
				if _, err := split(rest, c); err != nil || c.UserInfo != nil {
					t.Errorf("context %v, %v: a token says itself whose it is", c, err)
				}
				continue
			}
			r := request{h, &common.RequestHeaderProto{}, &common.UserInformationProto{}}
			if _, err := split(rest, r.method, r.body); err != nil {
				t.Error(err)
				return
			}
			// Packets need not agree with wrapped messages: send the first in
			// two parts, the rest of it together with the second.
			b := append(held, join(success(r), r.body)...)
			cut := len(b)
			if held == nil {
				cut = 5
			}
			held = nil
			s.saslWrite(common.RpcSaslProto_WRAP, flip(b[:cut]))
			if cut < len(b) {
				s.saslWrite(common.RpcSaslProto_WRAP, flip(b[cut:]))
			}
		}
	}
}

// TestLoginFails: what fails on our side is not tried again.
func TestLoginFails(t *testing.T) {
	f := newFarm(t, map[string]func(*server){
		"simple:1": func(s *server) {
			s.saslRead()
			s.saslWrite(common.RpcSaslProto_SUCCESS, nil) // SIMPLE only
			s.saslRead()
		},
		"kerberos:1": func(s *server) {
			s.saslRead()
			s.saslWrite(common.RpcSaslProto_NEGOTIATE, nil, offer("KERBEROS", "GSSAPI", ""))
			s.saslRead()
		},
		"impostor:1": func(s *server) {
			s.saslRead()
			s.saslWrite(common.RpcSaslProto_NEGOTIATE, nil, offer("TOKEN", "DIGEST-MD5", `realm="default",nonce="n",qop="auth",charset=utf-8,algorithm=md5-sess`))
			s.saslRead()
			s.saslWrite(common.RpcSaslProto_SUCCESS, []byte("rspauth=0123456789abcdef0123456789abcdef"))
			s.saslRead()
		},
		"denies:1": func(s *server) {
			s.saslRead()
			id := int32(-33)
			s.Write(join(&common.RpcResponseHeaderProto{CallId: proto.Uint32(uint32(id)), Status: common.RpcResponseHeaderProto_FATAL.Enum(),
				ExceptionClassName: proto.String("org.apache.hadoop.security.token.SecretManager$InvalidToken"), ErrorMsg: proto.String("token is expired")}))
		},
	})
	for address, want := range map[string]string{
		"simple:1": "without authentication", "kerberos:1": "takes only KERBEROS",
		"impostor:1": "did not prove", "denies:1": "InvalidToken: token is expired",
	} {
		c, end := f.client(rpc.Options{Addresses: []string{address}, Login: rpc.TokenLogin(token.Token{Identifier: []byte("i"), Password: []byte("p")})})
		err := call(c, "x")
		if err == nil || !strings.Contains(err.Error(), want) || !rpc.IsDenied(err) || rpc.Unreachable(err) {
			t.Errorf("%s: %v", address, err)
		}
		if rpc.IsInvalidToken(err) != (address == "denies:1") {
			t.Errorf("%s: IsInvalidToken", address)
		}
		end()
	}
	if d := f.dialled(); len(d) != 4 {
		t.Errorf("%d connections: a login that failed was tried again", len(d))
	}
}

// TestUnprotectedErrorIsRefused: once messages are protected, an exception in clear
// is not the server's: anybody on the way could make a file not be there.
func TestUnprotectedErrorIsRefused(t *testing.T) {
	f := newFarm(t, map[string]func(*server){"a:1": func(s *server) {
		s.saslRead()
		s.saslWrite(common.RpcSaslProto_NEGOTIATE, nil, offer("TOKEN", "XOR", "one"))
		s.saslRead()
		s.saslWrite(common.RpcSaslProto_SUCCESS, []byte("welcome"))
		s.saslRead() // the context
		plain := flip(s.saslRead().GetToken())
		r := request{header: &common.RpcRequestHeaderProto{}}
		if _, err := split(plain[4:], r.header); err != nil {
			t.Error(err)
			return
		}
		s.throw(r, "java.io.FileNotFoundException", "there is none", false)
		s.saslRead() // until the client hangs up
	}})
	c, end := f.client(rpc.Options{Addresses: []string{"a:1"}, Login: xorLogin{}, Retry: rpc.Retry{Limit: -1}})
	defer end()
	err := call(c, "x")
	if rpc.RemoteClass(err) != "" || err == nil || !strings.Contains(err.Error(), "without the protection") {
		t.Errorf("an exception in clear was taken: %v", err)
	}
}
