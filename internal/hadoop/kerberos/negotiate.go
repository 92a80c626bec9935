package kerberos

import (
	"encoding/base64"
	"net/http"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/spnego"

	"holdfast/internal/hadoop/sasl"
)

// Negotiate puts a ticket for a service, such as HTTP/host, into a request
// (SPNEGO, RFC 4559), and returns it, for Refused.
func (u *User) Negotiate(r *http.Request, service string) (sasl.Ticket, error) {
	t, err := u.Ticket(service)
	if err != nil {
		return t, err
	}
	// gokrb5 takes the user's name of the client, and nothing else.
	token := spnego.SPNEGOToken{Init: true}
	token.NegTokenInit, err = spnego.NewNegTokenInitKRB5(&client.Client{Credentials: u.credentials}, t.Ticket, t.Key)
	var b []byte
	if err == nil {
		b, err = token.Marshal()
	}
	if err != nil {
		return t, explain("use the ticket for "+service+" as "+u.principal, u.realm, err)
	}
	r.Header.Set(spnego.HTTPHeaderAuthRequest, spnego.HTTPHeaderAuthResponseValueKey+" "+base64.StdEncoding.EncodeToString(b))
	return t, nil
}
