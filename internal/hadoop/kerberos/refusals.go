package kerberos

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/messages"
)

// refusalPause is for how long a login that the KDC has refused is not tried again: KDCs lock the
// accounts of those who fail too often.
const refusalPause = 5 * time.Minute

// refusals are the logins that KDCs have refused, by principal and keys. They are the process's,
// so that it does not matter how many Users are made of one keytab.
var refusals struct {
	sync.Mutex
	of map[[sha256.Size]byte]*failure
}

// secret identifies a principal with the content of a keytab.
func secret(principal string, keytab []byte) [sha256.Size]byte {
	return sha256.Sum256(append([]byte(principal+"\x00"), keytab...))
}

// refused returns the error of a login that is not to be tried again yet.
func refused(secret [sha256.Size]byte, now time.Time) error {
	refusals.Lock()
	defer refusals.Unlock()
	if f := refusals.of[secret]; f != nil && now.Before(f.until) {
		return f
	}
	delete(refusals.of, secret)
	return nil
}

// remember keeps the KDC's refusal of a login for a while, and returns err, which was made of it,
// with the time when that ends. Other errors, and clocks that differ, are tried again at once.
func remember(secret [sha256.Size]byte, cause, err error, now time.Time) error {
	var refusal messages.KRBError
	var f *failure
	if !errors.As(cause, &refusal) || refusal.ErrorCode == errorcode.KRB_AP_ERR_SKEW || !errors.As(err, &f) {
		return err
	}
	until := now.Add(refusalPause)
	f = &failure{text: fmt.Sprintf("%s; not tried again before %s, so that the account is not locked", f.text, until.Format(time.TimeOnly)), until: until}
	refusals.Lock()
	defer refusals.Unlock()
	if refusals.of == nil {
		refusals.of = map[[sha256.Size]byte]*failure{}
	}
	refusals.of[secret] = f
	return f
}

// RefusedUntil reports whether err is that a KDC has refused a login, and when the next attempt
// will ask it again; until then, attempts return the same error.
func RefusedUntil(err error) (until time.Time, refused bool) {
	var f *failure
	if !errors.As(err, &f) || f.until.IsZero() {
		return time.Time{}, false
	}
	return f.until, true
}
