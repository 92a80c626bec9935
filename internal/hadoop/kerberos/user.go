package kerberos

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"

	"holdfast/internal/hadoop/sasl"
)

// User is a principal as which this process can act.
type User struct {
	mu        sync.Mutex // gokrb5 changes its lists of KDCs and domains unguarded
	client    *client.Client
	principal string
	source    string    // where the keys are from, for messages
	end       time.Time // of a ticket cache's ticket
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
	var types []int32
	var others []string
	for _, e := range keys.Entries {
		if p := e.Principal.String(); p != principal {
			if !slices.Contains(others, p) {
				others = append(others, p)
			}
			continue
		}
		types = append(types, e.Key.KeyType)
	}
	if len(types) == 0 {
		if len(others) == 0 {
			return nil, denied("the keytab %s is empty", path)
		}
		return nil, denied("the keytab %s has no key of %s; it has keys of %s: name one of them with --principal, or another keytab", path, principal, strings.Join(others, ", "))
	}
	// Requests with a type of key that the keytab lacks would fail.
	cfg.LibDefaults.DefaultTktEnctypeIDs = slices.DeleteFunc(cfg.LibDefaults.DefaultTktEnctypeIDs, func(id int32) bool { return !slices.Contains(types, id) })
	if len(cfg.LibDefaults.DefaultTktEnctypeIDs) == 0 {
		return nil, denied("the keytab %s has only keys of %s of encryption types %v, which are not permitted here: have one made with AES keys", path, principal, types)
	}
	if err := knowsRealm(cfg, realm, s.files); err != nil {
		return nil, err
	}
	if err := bounded(cfg, realm); err != nil {
		return nil, err
	}
	u := &User{
		client:    client.NewWithKeytab(name, realm, keys, cfg, client.DisablePAFXFAST(true)),
		principal: principal, source: "the keytab " + path,
	}
	if err := u.client.Login(); err != nil {
		return nil, explain("log in as "+principal+" with "+u.source, realm, err)
	}
	return u, nil
}

// parseKeytab parses a keytab; gokrb5 panics on damaged ones.
func parseKeytab(b []byte, path string) (k *keytab.Keytab, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = denied("the keytab %s is damaged: create a new one", path)
		}
	}()
	if len(b) < 2 || b[0] != 5 {
		return nil, denied("%s is not a keytab: check --keytab", path)
	}
	k = keytab.New()
	if err := k.Unmarshal(b); err != nil {
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
func (u *User) Expired() bool { return !u.end.IsZero() && time.Now().After(u.end) }

// Source returns where the user's keys are from, in words.
func (u *User) Source() string { return u.source }

// Ticket obtains a ticket for a service, host@REALM of its principal service/host@REALM.
// Without a realm, the host determines it (domain_realm).
func (u *User) Ticket(service string) (sasl.Ticket, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	name, realm, _ := cutPrincipal(service)
	if _, host, ok := strings.Cut(name, "/"); ok && realm != "" {
		// This sets the realm of a service in gokrb5.
		u.client.Config.DomainRealm[host] = realm
	}
	if u.Expired() {
		return sasl.Ticket{}, denied("the Kerberos ticket of %s in %s expired %s: run kinit", u.principal, u.source, u.end.Format(time.DateTime))
	}
	t, key, err := u.client.GetServiceTicket(name)
	if err != nil {
		if realm == "" {
			realm = u.client.Credentials.Domain()
		}
		return sasl.Ticket{}, explain("get a ticket for "+service+" as "+u.principal+" with "+u.source, realm, err)
	}
	return sasl.Ticket{Ticket: t, Key: key, Realm: u.client.Credentials.Domain(), Name: u.client.Credentials.CName()}, nil
}

// Close discards the tickets.
func (u *User) Close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.client.Destroy()
}

// cutPrincipal splits name@REALM; ok reports whether there is a realm.
func cutPrincipal(p string) (name, realm string, ok bool) {
	if i := strings.LastIndexByte(p, '@'); i >= 0 {
		return p[:i], p[i+1:], true
	}
	return p, "", false
}
