package sasl

import (
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/gssapi"
	"github.com/jcmturner/gokrb5/v8/iana/chksumtype"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// Ticket is a Kerberos ticket for a service, with the client's name.
type Ticket struct {
	Ticket messages.Ticket
	Key    types.EncryptionKey // the session key
	Realm  string              // of the client
	Name   types.PrincipalName // of the client
	New    bool                // it was obtained for this login, and not kept from an earlier one
}

// GSSAPI is one exchange of the mechanism GSSAPI (RFC 4752) with Kerberos 5
// (RFC 4121), with mutual authentication. It is used by one goroutine.
type GSSAPI struct {
	ticket Ticket
	qops   []string

	auth types.Authenticator // what the server was shown, and must prove to have read
	next func([]byte) ([]byte, error)
	c    *gssContext
	qop  string
	done bool
}

// NewGSSAPI begins an exchange. qop are the acceptable qualities of protection, in order of
// preference; without any, the strongest that the server offers is taken.
func NewGSSAPI(t Ticket, qop []string) *GSSAPI {
	if len(qop) == 0 {
		qop = []string{AuthConf, AuthInt, Auth}
	}
	g := &GSSAPI{ticket: t, qops: qop}
	g.next = g.request
	return g
}

// Step answers the server's messages: the first, which is empty, by the ticket;
// the server's proof by nothing; its offer of layers by the choice of one.
func (g *GSSAPI) Step(b []byte) ([]byte, error) {
	var r []byte
	err := Guard(func() (err error) {
		r, err = g.next(b)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("GSSAPI: %w", err)
	}
	return r, nil
}

// Tokens' identifiers (RFC 4121, section 4.1).
var (
	tokenAPReq = []byte{1, 0}
	tokenAPRep = []byte{2, 0}
	tokenError = []byte{3, 0}
)

// request returns the initial token: an AP-REQ with the checksum of RFC 4121 section
// 4.1.1, which has the context's flags.
func (g *GSSAPI) request([]byte) ([]byte, error) {
	auth, err := types.NewAuthenticator(g.ticket.Realm, g.ticket.Name)
	if err != nil {
		return nil, err
	}
	sum := binary.LittleEndian.AppendUint32(nil, 16) // length of the channel bindings
	sum = append(sum, make([]byte, 16)...)           // of which there are none
	sum = binary.LittleEndian.AppendUint32(sum, gssapi.ContextFlagMutual|gssapi.ContextFlagReplay|
		gssapi.ContextFlagSequence|gssapi.ContextFlagConf|gssapi.ContextFlagInteg)
	auth.Cksum = types.Checksum{CksumType: chksumtype.GSSAPI, Checksum: sum}
	// A subkey, so that the session key protects no messages. It has the session key's
	// length: gokrb5's GetKeyByteSize is wrong for one type.
	if err := auth.GenerateSeqNumberAndSubKey(g.ticket.Key.KeyType, len(g.ticket.Key.KeyValue)); err != nil {
		return nil, err
	}
	req, err := messages.NewAPReq(g.ticket.Ticket, g.ticket.Key, auth)
	if err != nil {
		return nil, err
	}
	types.SetFlag(&req.APOptions, flags.APOptionMutualRequired)
	b, err := req.Marshal()
	if err != nil {
		return nil, err
	}
	oid, err := asn1.Marshal(asn1.ObjectIdentifier(gssapi.OIDKRB5.OID()))
	if err != nil {
		return nil, err
	}
	g.auth, g.next = auth, g.proof
	return asn1tools.AddASNAppTag(slices.Concat(oid, tokenAPReq, b), 0), nil
}

// proof reads the AP-REP, which proves that the server has the service's key.
func (g *GSSAPI) proof(b []byte) ([]byte, error) {
	kind, body, err := unframe(b)
	if err != nil {
		return nil, err
	}
	if slices.Equal(kind, tokenError) {
		var e messages.KRBError
		if err := e.Unmarshal(body); err != nil {
			return nil, errors.New("the server sent an error that cannot be read")
		}
		return nil, fmt.Errorf("the server refuses the ticket: %w", e)
	}
	var rep messages.APRep
	if !slices.Equal(kind, tokenAPRep) {
		return nil, fmt.Errorf("the server sent a token of the unexpected kind %x", kind)
	}
	if err := rep.Unmarshal(body); err != nil {
		return nil, fmt.Errorf("the server's proof: %w", err)
	}
	plain, err := decrypt(g.ticket.Key, rep.EncPart.Cipher, keyusage.AP_REP_ENCPART)
	if err != nil {
		return nil, fmt.Errorf("the server did not prove that it has the service's key: %w", err)
	}
	var part messages.EncAPRepPart
	if err := part.Unmarshal(plain); err != nil {
		return nil, fmt.Errorf("the server's proof: %w", err)
	}
	if part.CTime.Unix() != g.auth.CTime.Unix() || part.Cusec != g.auth.Cusec {
		return nil, errors.New("the server's proof is for another login")
	}
	g.c = &gssContext{key: g.auth.SubKey, out: uint64(g.auth.SeqNumber), in: uint64(uint32(part.SequenceNumber))}
	if part.Subkey.KeyType != 0 {
		g.c.key, g.c.acceptorKey = part.Subkey, true
	}
	if err := g.c.check(); err != nil {
		return nil, err
	}
	g.next = g.layers
	return []byte{}, nil
}

// layerBits are the bits of security layers (RFC 4752, section 3.3).
var layerBits = map[string]byte{Auth: 1, AuthInt: 2, AuthConf: 4}

// layers chooses one of the server's layers.
func (g *GSSAPI) layers(b []byte) ([]byte, error) {
	offer, err := g.c.unwrap(b, false)
	if err != nil {
		return nil, fmt.Errorf("the server's offer of protections: %w", err)
	}
	if len(offer) != 4 {
		return nil, fmt.Errorf("the server's offer of protections has %d bytes instead of 4", len(offer))
	}
	var offered []string
	for _, q := range []string{Auth, AuthInt, AuthConf} {
		if offer[0]&layerBits[q] != 0 {
			offered = append(offered, q)
		}
	}
	if g.qop = choose(g.qops, offered, offered); g.qop == "" {
		return nil, fmt.Errorf("the server offers the protection %s, and %s is wanted: compare hadoop.rpc.protection here and there",
			strings.Join(offered, ","), strings.Join(g.qops, ","))
	}
	size := uint32(maxBuffer)
	if g.qop == Auth {
		size = 0
	}
	answer := binary.BigEndian.AppendUint32(nil, size)
	answer[0] = layerBits[g.qop]
	g.done = true
	g.next = func([]byte) ([]byte, error) {
		return nil, errors.New("the server sent another message after the last one")
	}
	return g.c.wrap(answer, false)
}

// Finish returns the session that protects the following messages; nil if the protection is
// "auth". The server's message of success must be empty.
func (g *GSSAPI) Finish(b []byte) (*GSSSession, error) {
	switch {
	case !g.done:
		return nil, errors.New("GSSAPI: the server ended the login before both sides had authenticated")
	case len(b) > 0:
		return nil, fmt.Errorf("GSSAPI: the server sent %d bytes more than the login has", len(b))
	case g.qop == Auth:
		return nil, nil
	}
	return &GSSSession{c: g.c, qop: g.qop}, nil
}

// QOP returns what was negotiated, after the last Step.
func (g *GSSAPI) QOP() string { return g.qop }

// unframe removes the frame of a token (RFC 2743, section 3.1): an
// application tag 0 with the mechanism's OID, a kind of two bytes, and the rest.
func unframe(b []byte) (kind, body []byte, err error) {
	var frame asn1.RawValue
	if rest, err := asn1.Unmarshal(b, &frame); err != nil || len(rest) > 0 || frame.Class != asn1.ClassApplication || frame.Tag != 0 {
		return nil, nil, errors.New("the server sent something that is no GSSAPI token")
	}
	var oid asn1.ObjectIdentifier
	rest, err := asn1.Unmarshal(frame.Bytes, &oid)
	if err != nil || !oid.Equal(asn1.ObjectIdentifier(gssapi.OIDKRB5.OID())) || len(rest) < 2 {
		return nil, nil, errors.New("the server sent a token of another mechanism than Kerberos 5")
	}
	return rest[:2], rest[2:], nil
}
