package kerberos

import (
	"encoding/binary"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/msgtype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"holdfast/test/bound"
)

// cacheOf is a ticket cache of version 4 (MIT's ccache_file_format) with one
// ticket for a user whose name has the given length.
func cacheOf(name string) []byte {
	text := func(b []byte, s string) []byte { return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...) }
	principal := func(b []byte, words ...string) []byte {
		b = binary.BigEndian.AppendUint32(b, 1)
		b = text(binary.BigEndian.AppendUint32(b, uint32(len(words))), "EXAMPLE.COM")
		for _, w := range words {
			b = text(b, w)
		}
		return b
	}
	b := principal([]byte{5, 4, 0, 12, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0}, name)
	b = principal(principal(b, name), "krbtgt", "EXAMPLE.COM")
	b = text(append(b, 0, 18), "a key of thirty-two bytes, as is")
	b = append(b, make([]byte, 4*4+1+4+4+4)...) // times, skey, flags, no addresses, no authorization data
	return text(text(b, "a ticket"), "")
}

func FuzzCache(f *testing.F) {
	f.Add(cacheOf("alice"))
	f.Add([]byte{5, 4, 0, 0, 0, 0, 0, 1, 0x7f, 0xff, 0xff, 0xff})
	f.Add([]byte{5, 3, 0, 0, 0, 1, 0x7f, 0xff, 0xff, 0xff})
	many := cacheOf("alice")
	many[len(many)-24] = 1 // 16 million addresses
	f.Add(many)
	if c, err := parseCache(cacheOf("alice")); err != nil || c.GetClientRealm() != "EXAMPLE.COM" || ticketOf(c, "krbtgt/EXAMPLE.COM") == nil {
		f.Fatalf("the first of the seeds is not read: %+v, %v", c, err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer bound.Memory(t, len(b), 1000)()
		c, err := parseCache(b)
		if err != nil {
			return
		}
		_ = c.GetClientPrincipalName().PrincipalNameString() + c.GetClientRealm()
		ticketOf(c, "krbtgt/EXAMPLE.COM")
	})
}

func FuzzKeytab(f *testing.F) {
	f.Add([]byte("\x05\x02\x00\x00\x00\x29\x00\x01\x00\x07EXAMPLE\x00\x05alice\x00\x00\x00\x01\x00\x00\x00\x00\x02\x00\x12\x00\x04keys\x00\x00\x00\x02"))
	f.Add([]byte{5, 2, 0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		defer bound.Memory(t, len(b), 1000)()
		if _, err := parseKeytab(b, "k"); err != nil && !IsDenied(err) {
			t.Error(err)
		}
	})
}

func FuzzConfig(f *testing.F) {
	f.Add([]byte("[libdefaults]\n default_realm = A\n clockskew = 300\n permitted_enctypes = aes -rc4\n[realms]\n A = {\n  kdc = a:88\n  v4 = {\n   x = y\n  }\n }\n[domain_realm]\n .a = A\n"))
	f.Add([]byte("[libdefaults]\nticket_lifetime = 10h\nforwardable = maybe\n[realms]\nA = {\nkdc = https://x\n"))
	f.Add([]byte("[realms]\nA} = {\nkdc = x\n}\n[domain_realm]\n.a\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		file := filepath.Join(t.TempDir(), "krb5.conf")
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		defer bound.Memory(t, len(b), 1000)()
		s := &settings{defaults: map[string]string{}, realms: map[string][]string{}, domains: map[string]string{}}
		if s.read(file) != nil {
			return
		}
		s.cacheName()
		if c, err := s.gokrb5(); err == nil && len(c.LibDefaults.DefaultTGSEnctypeIDs) == 0 {
			t.Error("no encryption is left")
		}
	})
}

func FuzzKCM(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00x"))
	f.Add([]byte("\x00\x9f\xff\xff\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		defer bound.Memory(t, len(answer), 10)()
		near, far := net.Pipe()
		defer near.Close()
		go func() {
			request := make([]byte, 8)
			if _, err := io.ReadFull(far, request); err == nil {
				_, _ = far.Write(answer)
			}
			far.Close()
		}()
		_, _ = kcm{near}.call(kcmGetDefault, nil)
	})
}

// FuzzAnswer reads what a KDC may answer to a login and to a request for a ticket.
func FuzzAnswer(f *testing.F) {
	alice, service := types.NewPrincipalName(1, "alice"), grantingName("A")
	ticketOf := messages.Ticket{TktVNO: 5, Realm: "A", SName: service, EncPart: types.EncryptedData{EType: 18, Cipher: []byte{1}}}
	fields := messages.KDCRepFields{PVNO: 5, MsgType: msgtype.KRB_AS_REP, CRealm: "A", CName: alice, Ticket: ticketOf, EncPart: ticketOf.EncPart}
	login := messages.ASRep{KDCRepFields: fields}
	fields.MsgType = msgtype.KRB_TGS_REP
	ticketRep := messages.TGSRep{KDCRepFields: fields}
	refusal := messages.NewKRBError(service, "A", errorcode.KRB_ERR_RESPONSE_TOO_BIG, "")
	for _, m := range []interface{ Marshal() ([]byte, error) }{&login, &ticketRep, &refusal} {
		b, err := m.Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)/2])
	}
	f.Add([]byte("\x30\x0d\x30\x0b\xa1\x03\x02\x01\x13\xa2\x04\x04\x02\x30\x00")) // ETYPE-INFO2 of none

	keys := keytab.New()
	if err := keys.AddEntry("alice", "A", "secret", time.Unix(1e9, 0), 1, 18); err != nil {
		f.Fatal(err)
	}
	u := &User{realm: "A", credentials: credentials.New("alice", "A").WithKeytab(keys), cfg: config.New()}
	body := messages.KDCReqBody{CName: alice, SName: service, Realm: "A"}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer bound.Memory(t, len(b), 1000)()
		if _, err := u.admitted(messages.ASReq{KDCReqFields: messages.KDCReqFields{ReqBody: body}}, b, true); err == nil {
			t.Error("a login is taken that was never granted")
		}
		if _, err := u.given(messages.TGSReq{KDCReqFields: messages.KDCReqFields{ReqBody: body}}, ticket{key: keys.Entries[0].Key}, b); err == nil {
			t.Error("a ticket is taken that was never given")
		}
		tooLong(b)
		proposed(messages.KRBError{EData: b})
	})
}
