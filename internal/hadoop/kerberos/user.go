package kerberos

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/types"
	"golang.org/x/sync/singleflight"

	"holdfast/internal/hadoop/sasl"
)

// User is a principal as which this process can act.
type User struct {
	principal   string
	realm       string
	source      string // where the keys are from, for messages
	secret      [sha256.Size]byte
	credentials *credentials.Credentials // the name, and the keytab

	cfg    *config.Config
	asked  singleflight.Group // tickets that are being asked for
	asking sync.Mutex         // held while KDCs are asked

	mu       sync.Mutex // not held while one waits for others
	granting ticket
	tickets  map[string]ticket    // by the service's principal
	replaced map[string]time.Time // when one was last asked for in a refused one's place, by the same
	hosts    map[string]string    // realms of those that tickets were asked for
}

// FromKeytab logs a principal in with its key in a keytab. Without a realm the
// principal is one of the default realm.
func FromKeytab(principal, path string) (*User, error) {
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, denied("there is no keytab %s: check --keytab", path)
	case err != nil:
		return nil, denied("read the keytab %s: %v: check its owner and mode", path, err)
	}
	return FromKeys(principal, b, path)
}

// FromKeys is FromKeytab with the content of a keytab; path says where that is
// from, for messages.
func FromKeys(principal string, content []byte, path string) (*User, error) {
	s, err := readSettings()
	if err != nil {
		return nil, err
	}
	cfg, err := s.gokrb5()
	if err != nil {
		return nil, err
	}
	name, realm, ok := cutPrincipal(principal)
	if !ok {
		if realm = cfg.LibDefaults.DefaultRealm; realm == "" {
			return nil, denied("the principal %s has no realm, and %s no default_realm: write %s@REALM", principal, strings.Join(s.files, ", "), principal)
		}
		principal = name + "@" + realm
	}
	keys, err := parseKeytab(content, path)
	if err != nil {
		return nil, err
	}
	newest := map[int32]int{} // of the keys of each type: its place
	var others []string
	for i, e := range keys.Entries {
		if p := e.Principal.String(); p != principal {
			if !slices.Contains(others, p) {
				others = append(others, p)
			}
			continue
		}
		j, ok := newest[e.Key.KeyType]
		if !ok || newer(e.KVNO, keys.Entries[j].KVNO, e.Timestamp, keys.Entries[j].Timestamp) {
			newest[e.Key.KeyType] = i
		}
	}
	if len(newest) == 0 {
		if len(others) == 0 {
			return nil, denied("the keytab %s is empty", path)
		}
		return nil, denied("the keytab %s has no key of %s; it has keys of %s: name one of them with --principal, or another keytab", path, principal, strings.Join(others, ", "))
	}
	types := slices.Sorted(maps.Keys(newest))
	entries := keys.Entries
	keys.Entries = nil // gokrb5 would take the one that was written last
	for _, id := range types {
		keys.Entries = append(keys.Entries, entries[newest[id]])
	}
	// Requests with a type of key that the keytab lacks would fail.
	cfg.LibDefaults.DefaultTktEnctypeIDs = slices.DeleteFunc(cfg.LibDefaults.DefaultTktEnctypeIDs, func(id int32) bool { return !slices.Contains(types, id) })
	if len(cfg.LibDefaults.DefaultTktEnctypeIDs) == 0 {
		return nil, denied("the keytab %s has only keys of %s of encryption types %v, which are not permitted here: have one made with AES keys", path, principal, types)
	}
	if err := knowsRealm(cfg, realm, s.files); err != nil {
		return nil, err
	}
	u := &User{
		principal: principal, realm: realm, source: "the keytab " + path, secret: secret(principal, content),
		credentials: credentials.New(name, realm).WithKeytab(keys), cfg: cfg, tickets: map[string]ticket{}, replaced: map[string]time.Time{}, hosts: map[string]string{},
	}
	if err := u.renew(); err != nil {
		return nil, err
	}
	return u, nil
}

// newer reports whether a key with this version, written at this time, is newer than another, as
// MIT's library has it (more_recent of kt_file.c): some count versions to 255 and begin anew.
func newer(version, than uint32, at, other time.Time) bool {
	const low, high = 128, 240
	switch {
	case version < low && than > high && !at.Before(other):
		return true
	case version > high && than < low && !other.Before(at):
		return false
	case version != than:
		return version > than
	}
	return at.After(other)
}

// renew logs in with the keytab, unless the KDC has just refused that.
func (u *User) renew() error {
	if err := refused(u.secret, time.Now()); err != nil {
		return err
	}
	t, err := u.login()
	if err != nil {
		return remember(u.secret, err, explain("log in as "+u.principal+" with "+u.source, u.realm, err), time.Now())
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.granting = t
	return nil
}

// ensure sees to it that a keytab's ticket-granting ticket is valid. It is replaced when a sixth of
// its time is left; if that fails, it is used as long as it lasts.
func (u *User) ensure() error {
	by := u.by()
	left := time.Until(by.end)
	if !u.credentials.HasKeytab() || left > by.end.Sub(by.start)/6 {
		return nil
	}
	if err := u.renew(); err != nil && left <= 0 {
		return err
	}
	return nil
}

// parseKeytab parses a keytab.
func parseKeytab(b []byte, path string) (*keytab.Keytab, error) {
	if len(b) < 2 || b[0] != 5 {
		return nil, denied("%s is not a keytab: check --keytab", path)
	}
	k := keytab.New()
	if sasl.Guard(func() error { return k.Unmarshal(b) }) != nil {
		// gokrb5's error may contain bytes of the keys.
		return nil, denied("the keytab %s is damaged: create a new one", path)
	}
	return k, nil
}

// knowsRealm reports whether there is a KDC to ask.
func knowsRealm(cfg *config.Config, realm string, files []string) error {
	n, _, err := cfg.GetKDCs(realm, true)
	if n > 0 {
		return nil
	}
	var known []string
	for _, r := range cfg.Realms {
		known = append(known, r.Realm)
	}
	slices.Sort(known)
	reason := ""
	if err != nil && cfg.LibDefaults.DNSLookupKDC {
		reason = ", and DNS neither"
	}
	return denied("no KDC of the realm %s is known: %s names none%s (it knows %s); check the realm's spelling, or have it added under [realms]",
		realm, strings.Join(files, ", "), reason, strings.Join(known, ", "))
}

// Principal returns name@REALM.
func (u *User) Principal() string { return u.principal }

// Expired reports whether a ticket cache's ticket has ended, which only kinit can
// renew. A keytab's tickets are replaced in time.
func (u *User) Expired() bool {
	return !u.credentials.HasKeytab() && time.Now().After(u.by().end)
}

// Source returns where the user's keys are from, in words.
func (u *User) Source() string { return u.source }

// Ticket obtains a ticket for a service, host@REALM of its principal service/host@REALM.
// Without a realm, the host determines it (domain_realm). Those who want the same one at a time
// get it by one request.
func (u *User) Ticket(service string) (sasl.Ticket, error) {
	of, realm := u.resolve(service)
	if u.Expired() {
		return sasl.Ticket{}, denied("the Kerberos ticket of %s in %s expired %s: run kinit", u.principal, u.source, u.by().end.Format(time.DateTime))
	}
	t, ok := u.cached(of, realm)
	if !ok {
		got, err, _ := u.asked.Do(full(of, realm), func() (any, error) {
			u.asking.Lock()
			defer u.asking.Unlock()
			if t, ok := u.cached(of, realm); ok {
				return t, nil
			}
			return u.request(service, of, realm)
		})
		if err != nil {
			return sasl.Ticket{}, err
		}
		t = got.(ticket)
	}
	return sasl.Ticket{Ticket: t.ticket, Key: t.key, Realm: u.realm, Name: u.credentials.CName(), New: !ok}, nil
}

// resolve returns a service's name and its realm.
func (u *User) resolve(service string) (of types.PrincipalName, realm string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	name, realm, _ := cutPrincipal(service)
	_, host, _ := strings.Cut(name, "/")
	switch {
	case realm == "":
		realm = cmp.Or(u.hosts[host], u.cfg.ResolveRealm(host), u.realm)
	case host != "":
		u.hosts[host] = realm // its other services are of that realm, too
	}
	return types.NewPrincipalName(nametype.KRB_NT_SRV_HST, name), realm // of others, KDCs know no further realm
}

// Realm returns the realm of the services on a host: that of [domain_realm] in krb5.conf, or else the
// default one, or else the user's.
func (u *User) Realm(host string) string {
	return cmp.Or(u.cfg.ResolveRealm(host), u.cfg.LibDefaults.DefaultRealm, u.realm)
}

// Close discards the tickets.
func (u *User) Close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.granting, u.tickets = ticket{}, map[string]ticket{}
}

// cutPrincipal splits name@REALM; ok reports whether there is a realm.
func cutPrincipal(p string) (name, realm string, ok bool) {
	if i := strings.LastIndexByte(p, '@'); i >= 0 {
		return p[:i], p[i+1:], true
	}
	return p, "", false
}
