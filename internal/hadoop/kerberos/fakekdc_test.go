package kerberos_test

import (
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/msgtype"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/iana/patype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"holdfast/internal/hadoop/kerberos"
)

const (
	fakeRealm = "FAKE.TEST"
	fakeEtype = etypeID.AES256_CTS_HMAC_SHA1_96
)

// fakeKDC is a KDC whose answers a test chooses. It knows alice, and demands a proof of her key.
type fakeKDC struct {
	t    *testing.T
	keys *keytab.Keytab // of alice and of the KDC
	life time.Duration  // of its tickets
	// login and ticket answer requests; nil: in order.
	login  func(r *messages.ASReq) []byte
	ticket func(r *messages.TGSReq) []byte

	logins  atomic.Int32 // that it was asked for
	proofs  atomic.Int32 // of them, with a proof
	tickets atomic.Int32 // that it was asked for
	address string
}

// newFakeKDC starts a KDC and makes it that of the default realm.
func newFakeKDC(t *testing.T) *fakeKDC {
	t.Helper()
	k := &fakeKDC{t: t, keys: keytab.New(), life: time.Hour}
	for _, name := range []string{"alice", "krbtgt/" + fakeRealm, "nn/localhost"} {
		k.knows(name, fakeRealm)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // too many open files
				time.Sleep(time.Millisecond)
				continue
			}
			go k.serve(c)
		}
	}()
	k.address = l.Addr().String()
	configure(t, k.address)
	return k
}

// newSwitchedKDC starts one that cannot serve as long as busy is true.
func newSwitchedKDC(t *testing.T) (k *fakeKDC, busy *atomic.Bool) {
	t.Helper()
	k, busy = newFakeKDC(t), new(atomic.Bool)
	k.login = func(r *messages.ASReq) []byte {
		if busy.Load() {
			return k.refuse(r.ReqBody, errorcode.KDC_ERR_SVC_UNAVAILABLE, nil)
		}
		return k.admit(r)
	}
	k.ticket = func(r *messages.TGSReq) []byte {
		if busy.Load() {
			return k.refuse(r.ReqBody, errorcode.KDC_ERR_SVC_UNAVAILABLE, nil)
		}
		return k.grant(r)
	}
	return k, busy
}

// knows has the KDC know a principal.
func (k *fakeKDC) knows(name, realm string) {
	k.t.Helper()
	if err := k.keys.AddEntry(name, realm, "secret of "+name, time.Now(), 1, fakeEtype); err != nil {
		k.t.Fatal(err)
	}
}

// configure makes KDCs at these addresses those of the default realm.
func configure(t *testing.T, kdcs ...string) {
	t.Helper()
	conf := filepath.Join(t.TempDir(), "krb5.conf")
	text := fmt.Sprintf("[libdefaults]\ndefault_realm = %s\nudp_preference_limit = 1\ndns_lookup_kdc = false\n[realms]\n%s = {\n", fakeRealm, fakeRealm)
	for _, kdc := range kdcs {
		text += "kdc = " + kdc + "\n"
	}
	if err := os.WriteFile(conf, []byte(text+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(kerberos.EnvConfig, conf)
}

var keytabs atomic.Int64

// keytab returns a keytab of alice, with this password: another one each time, so that one test's
// refusals are not another's.
func (k *fakeKDC) keytab(password string) []byte {
	k.t.Helper()
	keys := keytab.New()
	if err := keys.AddEntry("alice", fakeRealm, password, time.Unix(1e9+keytabs.Add(1), 0), 1, fakeEtype); err != nil {
		k.t.Fatal(err)
	}
	b, err := keys.Marshal()
	if err != nil {
		k.t.Fatal(err)
	}
	return b
}

func (k *fakeKDC) serve(c net.Conn) {
	defer c.Close()
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return
	}
	request := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(c, request); err != nil {
		return
	}
	var answer []byte
	var login messages.ASReq
	var ticket messages.TGSReq
	switch {
	case login.Unmarshal(request) == nil:
		k.logins.Add(1)
		if login.PAData.Contains(patype.PA_ENC_TIMESTAMP) {
			k.proofs.Add(1)
		}
		if k.login != nil {
			answer = k.login(&login)
		} else {
			answer = k.admit(&login)
		}
	case ticket.Unmarshal(request) == nil:
		k.tickets.Add(1)
		if k.ticket != nil {
			answer = k.ticket(&ticket)
		} else {
			answer = k.grant(&ticket)
		}
	}
	_, _ = c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(answer))), answer...)) // or the client has gone
}

// refuse answers with an error.
func (k *fakeKDC) refuse(r messages.KDCReqBody, code int32, data []byte) []byte {
	e := messages.NewKRBError(r.SName, r.Realm, code, "")
	e.EData = data
	return k.marshal(&e)
}

// hint is the error that demands a proof, made with a key of one of these types.
func (k *fakeKDC) hint(r messages.KDCReqBody, ids ...int32) []byte {
	info := types.ETypeInfo2{}
	for _, id := range ids {
		info = append(info, types.ETypeInfo2Entry{EType: id})
	}
	b, err := asn1.Marshal(info)
	if err == nil {
		b, err = asn1.Marshal(types.PADataSequence{{PADataType: patype.PA_ETYPE_INFO2, PADataValue: b}})
	}
	if err != nil {
		k.t.Error(err)
	}
	return k.refuse(r, errorcode.KDC_ERR_PREAUTH_REQUIRED, b)
}

// admit answers a login: it demands a proof, refuses a wrong one, and gives a ticket for a right one.
func (k *fakeKDC) admit(r *messages.ASReq) []byte {
	key := k.key("alice")
	for _, pa := range r.PAData {
		if pa.PADataType != patype.PA_ENC_TIMESTAMP {
			continue
		}
		var proof types.EncryptedData
		if err := proof.Unmarshal(pa.PADataValue); err != nil {
			k.t.Error(err)
		}
		if _, err := crypto.DecryptEncPart(proof, key, keyusage.AS_REQ_PA_ENC_TIMESTAMP); err != nil {
			return k.refuse(r.ReqBody, errorcode.KDC_ERR_PREAUTH_FAILED, nil)
		}
		rep := messages.ASRep{KDCRepFields: k.reply(r.ReqBody, r.ReqBody.CName, msgtype.KRB_AS_REP, key, keyusage.AS_REP_ENCPART)}
		return k.marshal(&rep)
	}
	return k.hint(r.ReqBody, fakeEtype)
}

// grant answers a request for a ticket, if who asks is whose the shown ticket is: RFC 4120,
// section 3.2.3.
func (k *fakeKDC) grant(r *messages.TGSReq) []byte {
	shown := k.shown(r)
	if err := shown.DecryptAuthenticator(shown.Ticket.DecryptedEncPart.Key); err != nil {
		k.t.Error(err)
	}
	of, by := shown.Ticket.DecryptedEncPart, shown.Authenticator
	if !of.CName.Equal(by.CName) || of.CRealm != by.CRealm {
		return k.refuse(r.ReqBody, errorcode.KRB_AP_ERR_BADMATCH, nil)
	}
	rep := k.granted(r)
	return k.marshal(&rep)
}

// shown returns what a request shows, with the ticket opened.
func (k *fakeKDC) shown(r *messages.TGSReq) (shown messages.APReq) {
	err := shown.Unmarshal(r.PAData[0].PADataValue)
	if err == nil {
		err = shown.Ticket.DecryptEncPart(k.keys, nil)
	}
	if err != nil {
		k.t.Error(err)
	}
	return shown
}

// granted is a ticket of alice's.
func (k *fakeKDC) granted(r *messages.TGSReq) messages.TGSRep {
	alice := types.NewPrincipalName(nametype.KRB_NT_PRINCIPAL, "alice")
	session := k.shown(r).Ticket.DecryptedEncPart.Key
	return messages.TGSRep{KDCRepFields: k.reply(r.ReqBody, alice, msgtype.KRB_TGS_REP, session, keyusage.TGS_REP_ENCPART_SESSION_KEY)}
}

// reply makes a ticket, and what the client is told of it under a key.
func (k *fakeKDC) reply(r messages.KDCReqBody, client types.PrincipalName, kind int, key types.EncryptionKey, usage uint32) messages.KDCRepFields {
	now := time.Now().UTC()
	none := types.NewKrbFlags()
	ticket, session, err := messages.NewTicket(client, fakeRealm, r.SName, r.Realm, none, k.keys, fakeEtype, 1, now, now, now.Add(k.life), now.Add(k.life))
	if err != nil {
		k.t.Error(err)
	}
	part := messages.EncKDCRepPart{
		Key: session, Nonce: r.Nonce, Flags: none, AuthTime: now, StartTime: now,
		EndTime: now.Add(k.life), SRealm: r.Realm, SName: r.SName,
		LastReqs: []messages.LastReq{{LRValue: now}}, KeyExpiration: now.Add(k.life), RenewTill: now.Add(k.life),
	}
	sealed, err := crypto.GetEncryptedData(k.marshal(&part), key, usage, 1)
	if err != nil {
		k.t.Error(err)
	}
	return messages.KDCRepFields{PVNO: 5, MsgType: kind, CRealm: fakeRealm, CName: client, Ticket: ticket, EncPart: sealed}
}

func (k *fakeKDC) key(name string) types.EncryptionKey {
	key, _, err := k.keys.GetEncryptionKey(types.NewPrincipalName(nametype.KRB_NT_PRINCIPAL, name), fakeRealm, 0, fakeEtype)
	if err != nil {
		k.t.Error(err)
	}
	return key
}

func (k *fakeKDC) marshal(m interface{ Marshal() ([]byte, error) }) []byte {
	b, err := m.Marshal()
	if err != nil {
		k.t.Error(err)
	}
	return b
}
