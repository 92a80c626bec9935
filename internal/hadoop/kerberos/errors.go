package kerberos

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/messages"
)

// failure is an error that says what to do. Trying again does not help.
type failure struct {
	text        string
	unreachable bool
	until       time.Time // of a login that is not tried again before: RefusedUntil
}

func (f *failure) Error() string { return f.text }

func denied(format string, args ...any) error {
	return &failure{text: fmt.Sprintf(format, args...)}
}

// Unreachable reports whether no KDC answered.
func Unreachable(err error) bool {
	var f *failure
	return errors.As(err, &f) && f.unreachable
}

// IsDenied reports whether Kerberos refuses this process: it has no ticket or key, or no valid
// one.
func IsDenied(err error) bool {
	var f *failure
	return errors.As(err, &f) && !f.unreachable
}

// remedies are what to do about the KDC's errors (RFC 4120, section 7.5.9).
var remedies = map[int32]string{
	errorcode.KDC_ERR_C_PRINCIPAL_UNKNOWN: "the KDC does not know the user's principal: check --principal, or have it made",
	errorcode.KDC_ERR_S_PRINCIPAL_UNKNOWN: "the KDC does not know the service's principal: check dfs.namenode.kerberos.principal and yarn.resourcemanager.principal in the Hadoop configuration, and [domain_realm] in krb5.conf",
	errorcode.KDC_ERR_ETYPE_NOSUPP:        "the KDC supports none of the encryption types that are permitted here: see permitted_enctypes in krb5.conf",
	errorcode.KDC_ERR_POLICY:              "the KDC's policy refuses it: ask its administrator",
	errorcode.KDC_ERR_CLIENT_REVOKED:      "the account is locked: ask the KDC's administrator",
	errorcode.KDC_ERR_KEY_EXPIRED:         "the principal's key or password has expired: change it and create a new keytab",
	errorcode.KDC_ERR_PREAUTH_FAILED:      "the key is wrong: the keytab is older than the principal's key: create a new one",
	errorcode.KRB_AP_ERR_BAD_INTEGRITY:    "the key is wrong: the keytab is older than the principal's key: create a new one",
	errorcode.KRB_AP_ERR_TKT_EXPIRED:      "the ticket has expired: run kinit",
	errorcode.KRB_AP_ERR_TKT_NYV:          skewed,
	errorcode.KRB_AP_ERR_SKEW:             skewed,
}

const skewed = "clock skew: the clocks of this machine and of the KDC differ by more than Kerberos allows (5 minutes); set the clock that is wrong (chronyc tracking tells)"

// explain adds a cause and a remedy to an error of an exchange. gokrb5's are only texts.
func explain(what, realm string, err error) error {
	var refusal messages.KRBError
	var none *unanswered
	switch {
	case errors.As(err, &refusal):
		text := errorcode.Lookup(refusal.ErrorCode) // "(24) KDC_ERR_PREAUTH_FAILED Pre-authentication ..."
		if remedy, ok := remedies[refusal.ErrorCode]; ok {
			return denied("%s: %s (%s)", what, remedy, strings.Fields(text)[1])
		}
		return denied("%s: the KDC of %s refuses: %s", what, realm, oneLine(refusal.Error()))
	case errors.As(err, &none):
		return &failure{text: fmt.Sprintf("%s: no KDC of the realm %s answers (%s): check that one runs, that this machine reaches it, and its address under [realms] in krb5.conf",
			what, realm, none), unreachable: true}
	case errors.Is(err, errNoKDC):
		return denied("%s: no KDC of the realm %s is known: check the realm's spelling, or have it added under [realms] in krb5.conf", what, realm)
	case strings.Contains(err.Error(), "clock skew"):
		return denied("%s: %s", what, skewed)
	case strings.Contains(err.Error(), "Decrypting_Error"):
		return denied("%s: %s", what, remedies[errorcode.KDC_ERR_PREAUTH_FAILED])
	}
	return denied("%s: %s", what, oneLine(err.Error()))
}

// oneLine makes one line of a text of which a KDC may have written a part.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
