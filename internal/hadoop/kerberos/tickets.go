package kerberos

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/iana/patype"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// ticket is one that the user has, with the session key.
type ticket struct {
	ticket     messages.Ticket
	key        types.EncryptionKey
	start, end time.Time
}

// is reports whether it is the ticket with this session key.
func (t ticket) is(key types.EncryptionKey) bool { return bytes.Equal(t.key.KeyValue, key.KeyValue) }

func ticketFrom(t messages.Ticket, part messages.EncKDCRepPart) ticket {
	start := part.StartTime
	if start.IsZero() {
		start = part.AuthTime
	}
	return ticket{ticket: t, key: part.Key, start: start, end: part.EndTime}
}

// grantingName is the name of a realm's ticket-granting service.
func grantingName(realm string) types.PrincipalName {
	return types.PrincipalName{NameType: nametype.KRB_NT_SRV_INST, NameString: []string{"krbtgt", realm}}
}

// full is the whole principal of a name.
func full(name types.PrincipalName, realm string) string {
	return name.PrincipalNameString() + "@" + realm
}

// login gets a ticket-granting ticket by the key in the keytab (RFC 4120, section 3.1). A KDC that
// demands a proof of the key is given one, once.
func (u *User) login() (ticket, error) {
	request, err := messages.NewASReqForTGT(u.realm, u.cfg, u.credentials.CName())
	if err != nil {
		return ticket{}, err
	}
	got, err := u.admission(request, false)
	var hint messages.KRBError
	if !errors.As(err, &hint) || hint.ErrorCode != errorcode.KDC_ERR_PREAUTH_REQUIRED && hint.ErrorCode != errorcode.KDC_ERR_PREAUTH_FAILED {
		return got, err
	}
	proof, err := u.proof(hint)
	if err != nil {
		return ticket{}, err
	}
	request.PAData = append(request.PAData, proof)
	return u.admission(request, true)
}

// admission sends a login's request. proven: with a proof of the key, so that an answer under
// another one is damaged.
func (u *User) admission(request messages.ASReq, proven bool) (ticket, error) {
	b, err := request.Marshal()
	if err != nil {
		return ticket{}, err
	}
	var got ticket
	err = exchange(u.cfg, u.realm, b, func(answer []byte) (err error) {
		got, err = u.admitted(request, answer, proven)
		return err
	})
	return got, err
}

// admitted reads the answer to a login's request.
func (u *User) admitted(request messages.ASReq, answer []byte, proven bool) (ticket, error) {
	var rep messages.ASRep
	if err := parse(answer, &rep); err != nil {
		return ticket{}, err
	}
	rep.EncPart.KVNO = 0 // any: a keytab may count its keys otherwise than the KDC does
	err := whole(func() error {
		_, err := rep.Verify(u.cfg, u.credentials, request)
		if err != nil && proven && strings.Contains(err.Error(), "Decrypting_Error") {
			return errDamagedAnswer
		}
		return err
	})
	if err != nil {
		return ticket{}, err
	}
	return ticketFrom(rep.Ticket, rep.DecryptedEncPart), nil
}

// proof returns the time under the user's key (PA-ENC-TIMESTAMP), of the first type that the KDC
// proposes and the keytab has.
func (u *User) proof(hint messages.KRBError) (types.PAData, error) {
	var key types.EncryptionKey
	var version int
	err := errors.New("the keytab has no key that the KDC proposes to use")
	for _, id := range append(proposed(hint), u.cfg.LibDefaults.DefaultTktEnctypeIDs...) {
		if key, version, err = u.credentials.Keytab().GetEncryptionKey(u.credentials.CName(), u.realm, 0, id); err == nil {
			break
		}
	}
	if err != nil {
		return types.PAData{}, err
	}
	now, err := types.GetPAEncTSEncAsnMarshalled()
	if err != nil {
		return types.PAData{}, err
	}
	sealed, err := crypto.GetEncryptedData(now, key, keyusage.AS_REQ_PA_ENC_TIMESTAMP, version)
	if err != nil {
		return types.PAData{}, err
	}
	b, err := sealed.Marshal()
	return types.PAData{PADataType: patype.PA_ENC_TIMESTAMP, PADataValue: b}, err
}

// proposed returns the types of keys with which the KDC takes a proof; none if that cannot be read.
func proposed(hint messages.KRBError) (ids []int32) {
	_ = whole(func() error {
		var list types.PADataSequence
		if err := list.Unmarshal(hint.EData); err != nil {
			return err
		}
		for _, pa := range list {
			if pa.PADataType != patype.PA_ETYPE_INFO2 {
				continue
			}
			info, err := pa.GetETypeInfo2()
			if err != nil {
				return err
			}
			for _, entry := range info {
				ids = append(ids, entry.EType)
			}
		}
		return nil
	})
	return ids
}

// maxReferrals is how many realms a request is sent on to.
const maxReferrals = 5

// by returns the ticket by which others are asked for.
func (u *User) by() ticket {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.granting
}

// granted gets a ticket for a service of a realm (RFC 4120, section 3.3), by the way of the
// ticket-granting services between the user's realm and that.
func (u *User) granted(name types.PrincipalName, realm string) (ticket, error) {
	by, at := u.by(), u.realm
	if realm != at {
		var err error
		if by, err = u.obtain(grantingName(realm), at); err != nil {
			return ticket{}, err
		}
		at = realm
	}
	for range maxReferrals {
		got, err := u.ask(by, at, name)
		if err != nil {
			return ticket{}, err
		}
		next := got.ticket.SName
		if next.NameString[0] != "krbtgt" || next.Equal(name) {
			return got, nil
		}
		by, at = got, next.NameString[1] // a realm on the way: RFC 6806, section 8
	}
	return ticket{}, fmt.Errorf("more than %d realms refer to each other", maxReferrals)
}

// cached returns the ticket for a service that the user has, if it is still valid.
func (u *User) cached(name types.PrincipalName, realm string) (ticket, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	t, ok := u.tickets[full(name, realm)]
	return t, ok && t.end.After(time.Now())
}

// obtain returns the ticket for a service that the user has, or else gets one.
func (u *User) obtain(name types.PrincipalName, realm string) (ticket, error) {
	if t, ok := u.cached(name, realm); ok {
		return t, nil
	}
	return u.fetch(name, realm)
}

// fetch gets a ticket for a service, in the place of the one that the user may have.
func (u *User) fetch(name types.PrincipalName, realm string) (ticket, error) {
	t, err := u.granted(name, realm)
	if err == nil {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.tickets[full(name, realm)] = t
	}
	return t, err
}

// ask asks a realm's KDCs for a ticket.
func (u *User) ask(by ticket, realm string, name types.PrincipalName) (ticket, error) {
	request, err := messages.NewTGSReq(u.credentials.CName(), realm, u.cfg, by.ticket, by.key, name, false)
	if err == nil {
		// A KDC refers to another realm only those who ask for that: RFC 6806, section 3.
		types.SetFlag(&request.ReqBody.KDCOptions, flags.Canonicalize)
		request.PAData, err = u.shown(by, request.ReqBody)
	}
	if err != nil {
		return ticket{}, err
	}
	b, err := request.Marshal()
	if err != nil {
		return ticket{}, err
	}
	var got ticket
	err = exchange(u.cfg, realm, b, func(answer []byte) (err error) {
		got, err = u.given(request, by, answer)
		return err
	})
	return got, err
}

// shown returns a ticket with the proof that it is the user's, for a request of a ticket (RFC 4120,
// section 5.4.1). gokrb5's proof names the realm that has given the ticket as the user's, which is
// another one from the second realm on the way.
func (u *User) shown(by ticket, body messages.KDCReqBody) (types.PADataSequence, error) {
	b, err := body.Marshal()
	if err != nil {
		return nil, err
	}
	kind, err := crypto.GetEtype(by.key.KeyType)
	if err != nil {
		return nil, err
	}
	sum, err := kind.GetChecksumHash(by.key.KeyValue, b, keyusage.TGS_REQ_PA_TGS_REQ_AP_REQ_AUTHENTICATOR_CHKSUM)
	if err != nil {
		return nil, err
	}
	of, err := types.NewAuthenticator(u.realm, u.credentials.CName())
	if err != nil {
		return nil, err
	}
	of.Cksum = types.Checksum{CksumType: kind.GetHashID(), Checksum: sum}
	request, err := messages.NewAPReq(by.ticket, by.key, of)
	if err != nil {
		return nil, err
	}
	b, err = request.Marshal()
	return types.PADataSequence{{PADataType: patype.PA_TGS_REQ, PADataValue: b}}, err
}

// given reads the answer to a request for a ticket.
func (u *User) given(request messages.TGSReq, by ticket, answer []byte) (ticket, error) {
	var rep messages.TGSRep
	if err := parse(answer, &rep); err != nil {
		return ticket{}, err
	}
	err := whole(func() error {
		if rep.DecryptEncPart(by.key) != nil {
			return errDamagedAnswer
		}
		_, err := rep.Verify(u.cfg, request)
		return err
	})
	if err != nil {
		return ticket{}, err
	}
	name := rep.Ticket.SName.NameString
	if len(name) == 0 || name[0] == "krbtgt" && len(name) != 2 {
		return ticket{}, errDamagedAnswer
	}
	return ticketFrom(rep.Ticket, rep.DecryptedEncPart), nil
}
