package kerberos

import (
	"net/http"

	"github.com/jcmturner/gokrb5/v8/spnego"
)

// Negotiate puts a ticket for a service, such as HTTP/host, into a request
// (SPNEGO, RFC 4559).
func (u *User) Negotiate(r *http.Request, service string) error {
	if _, err := u.Ticket(service); err != nil { // gokrb5 keeps it
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := spnego.SetSPNEGOHeader(u.client, r, service); err != nil {
		return explain("use the ticket for "+service+" as "+u.principal, u.client.Credentials.Domain(), err)
	}
	return nil
}
