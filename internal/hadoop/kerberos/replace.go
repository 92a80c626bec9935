package kerberos

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"holdfast/internal/hadoop/sasl"
)

// replacePause is for how long no other ticket is asked for in the place of one that has replaced a
// refused one: it is not the ticket then that is wrong.
const replacePause = time.Minute

// Refused is to be called when a service has refused a ticket of Ticket's, as it does after its key
// was changed. It gets another one, and reports whether there is one now, so that the login may be
// tried again; until there is, the refused one is kept. None is asked for in the place of a new one,
// nor more often than once a minute for a service. Of those whose ticket is refused at a time, one
// asks for all.
func (u *User) Refused(service string, t sasl.Ticket) bool {
	if t.New {
		return false
	}
	of, realm := u.resolve(service)
	u.asking.Lock()
	defer u.asking.Unlock()
	if now, ok := u.cached(of, realm); ok && !now.is(t.Key) {
		return true
	}
	if !u.replace(of, realm) {
		return false
	}
	_, err := u.request(service, of, realm)
	return err == nil
}

// replace reports whether a ticket that was refused may be asked for anew, and records that it is.
func (u *User) replace(of types.PrincipalName, realm string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if time.Since(u.replaced[full(of, realm)]) < replacePause {
		return false
	}
	u.replaced[full(of, realm)] = time.Now()
	return true
}

// request gets a ticket for a service, and asks once more where a KDC refuses the ticket that it is
// shown and there is another one to show. Its caller holds u.asking.
func (u *User) request(service string, of types.PrincipalName, realm string) (ticket, error) {
	if err := u.ensure(); err != nil {
		return ticket{}, err
	}
	t, err := u.fetch(of, realm)
	if refusesShown(err) {
		other, failed := u.regain()
		if failed != nil {
			return ticket{}, failed
		}
		if other {
			t, err = u.fetch(of, realm)
		}
	}
	what := "get a ticket for " + service + " as " + u.principal + " with " + u.source
	switch {
	case err == nil:
		return t, nil
	case refusesShown(err) && !u.credentials.HasKeytab():
		return ticket{}, denied("%s: the KDC of %s does not take the ticket in it any more (%s): run kinit %s", what, realm, oneLine(err.Error()), u.principal)
	}
	return ticket{}, explain(what, realm, err)
}

// regain gets other tickets to show to KDCs, by a new login with the keytab, or of the ticket cache,
// if kinit has been run since. It reports whether there are any.
func (u *User) regain() (other bool, err error) {
	own := grantingName(u.realm)
	if u.replace(own, u.realm) {
		u.mu.Lock()
		n := len(u.tickets)
		maps.DeleteFunc(u.tickets, func(of string, _ ticket) bool { // those for other realms
			return strings.HasPrefix(of, "krbtgt/") && of != full(own, u.realm)
		})
		other = len(u.tickets) < n
		u.mu.Unlock()
		if u.credentials.HasKeytab() {
			return true, u.renew()
		}
	}
	if u.credentials.HasKeytab() {
		return false, nil
	}
	if now, err := u.Anew(); err == nil && !now.granting.is(u.by().key) {
		u.mu.Lock()
		u.granting, other = now.granting, true
		u.mu.Unlock()
	}
	return other, nil
}

// shownRefusals are the errors by which KDCs refuse the ticket that they are shown: it was revoked,
// has ended, or is under a key that the KDC does not have any more. Of a key that has been replaced,
// MIT's KDC says no more than KRB_ERR_GENERIC.
var shownRefusals = []int32{
	errorcode.KDC_ERR_TGT_REVOKED, errorcode.KRB_AP_ERR_BAD_INTEGRITY, errorcode.KRB_AP_ERR_TKT_EXPIRED, errorcode.KRB_AP_ERR_MODIFIED,
	errorcode.KRB_AP_ERR_BADKEYVER, errorcode.KRB_AP_ERR_NOKEY, errorcode.KRB_ERR_GENERIC,
}

// refusesShown reports whether an error of a request for a ticket may be of the ticket that was shown.
func refusesShown(err error) bool {
	var refusal messages.KRBError
	return errors.As(err, &refusal) && slices.Contains(shownRefusals, refusal.ErrorCode)
}
