package kerberos

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jcmturner/gokrb5/v8/credentials"

	"holdfast/internal/hadoop/sasl"
)

// EnvCache names the ticket cache.
const EnvCache = "KRB5CCNAME"

// cacheName returns the ticket cache's name: KRB5CCNAME, else default_ccache_name of
// krb5.conf, else FILE:/tmp/krb5cc_UID.
func (s *settings) cacheName() string {
	if name := os.Getenv(EnvCache); name != "" {
		return name
	}
	uid := strconv.Itoa(os.Getuid())
	name := s.defaults["default_ccache_name"]
	if name == "" {
		return "FILE:/tmp/krb5cc_" + uid
	}
	login := ""
	if u, err := user.Current(); err == nil {
		login = u.Username
	}
	// krb5.conf(5), parameter expansion.
	return strings.NewReplacer("%{uid}", uid, "%{euid}", strconv.Itoa(os.Geteuid()), "%{USERID}", uid,
		"%{username}", login, "%{TEMP}", os.TempDir(), "%{null}", "").Replace(name)
}

// cacheFile returns the file of a ticket cache (MIT's ccache types but KCM).
func cacheFile(name string) (string, error) {
	kind, path, ok := strings.Cut(name, ":")
	if !ok || strings.Contains(kind, "/") {
		return name, nil
	}
	switch kind {
	case "FILE", "WRFILE":
		return path, nil
	case "DIR":
		if file, ok := strings.CutPrefix(path, ":"); ok { // DIR::/path/tktNAME is one of the collection
			return file, nil
		}
		primary, err := os.ReadFile(filepath.Join(path, "primary"))
		if errors.Is(err, fs.ErrNotExist) {
			return filepath.Join(path, "tkt"), nil
		}
		if err != nil {
			return "", fmt.Errorf("read the ticket cache %s: %w", name, err)
		}
		return filepath.Join(path, filepath.Base(strings.TrimSpace(string(primary)))), nil
	}
	file := fmt.Sprintf("FILE:/tmp/krb5cc_%d", os.Getuid())
	return "", denied("ticket caches of the type %s, as %s is, cannot be read: run `export %s=%s; kinit`, or use --principal and --keytab", kind, name, EnvCache, file)
}

// readCache reads a ticket cache in the form of a file. It returns fs.ErrNotExist if there is
// none.
func (s *settings) readCache(name string) ([]byte, error) {
	if cache, ok := strings.CutPrefix(name, "KCM:"); ok {
		socket := s.defaults["kcm_socket"]
		if socket == "" {
			socket = kcmDefaultSocket
		}
		return readKCM(socket, cache)
	}
	path, err := cacheFile(name)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// FromCache returns the user whose tickets kinit has put into the ticket cache.
func FromCache() (*User, error) {
	s, err := readSettings()
	if err != nil {
		return nil, err
	}
	cfg, err := s.gokrb5()
	if err != nil {
		return nil, err
	}
	name := s.cacheName()
	b, err := s.readCache(name)
	if IsDenied(err) {
		return nil, err
	}
	var c *credentials.CCache
	if err == nil {
		c, err = parseCache(b)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, denied("there is no Kerberos ticket: the ticket cache %s does not exist; run kinit, or use --principal and --keytab", name)
	case err != nil:
		return nil, denied("the ticket cache %s cannot be read: %v; run kinit again", name, err)
	}
	realm := c.GetClientRealm()
	principal := c.GetClientPrincipalName().PrincipalNameString() + "@" + realm
	tgt := ticketOf(c, "krbtgt/"+realm)
	switch {
	case tgt == nil:
		return nil, denied("the ticket cache %s has no ticket-granting ticket of %s: run kinit", name, realm)
	case time.Now().After(tgt.EndTime):
		return nil, denied("the Kerberos ticket of %s in %s expired %s: run kinit", principal, name, tgt.EndTime.Format(time.DateTime))
	}
	u := &User{
		principal: principal, realm: realm, source: "the ticket cache " + name,
		credentials: c.GetClientCredentials(), cfg: cfg, tickets: map[string]ticket{}, replaced: map[string]time.Time{}, hosts: map[string]string{},
	}
	err = sasl.Guard(func() (err error) {
		if u.granting, err = ticketIn(tgt); err != nil {
			return err
		}
		for _, e := range c.GetEntries() {
			if u.tickets[e.Server.PrincipalName.PrincipalNameString()+"@"+e.Server.Realm], err = ticketIn(e); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, denied("the ticket cache %s cannot be used: %v; run kinit again", name, err)
	}
	return u, nil
}

// Anew returns the same user with the tickets that are in the ticket cache now. Somebody else's there
// are an error.
func (u *User) Anew() (*User, error) {
	now, err := FromCache()
	if err == nil && now.principal != u.principal {
		return nil, denied("this process has begun as %s, whose ticket expired %s, and %s has tickets of %s now: run kinit %s, or start again as %s",
			u.principal, u.by().end.Format(time.DateTime), now.source, now.principal, u.principal, now.principal)
	}
	return now, err
}

// ticketIn returns the ticket of an entry.
func ticketIn(e *credentials.Credential) (ticket, error) {
	t := ticket{key: e.Key, start: e.StartTime, end: e.EndTime}
	return t, t.ticket.Unmarshal(e.Ticket)
}

func ticketOf(c *credentials.CCache, server string) *credentials.Credential {
	for _, e := range c.GetEntries() {
		if e.Server.PrincipalName.PrincipalNameString() == server {
			return e
		}
	}
	return nil
}

// parseCache parses a cache.
func parseCache(b []byte) (*credentials.CCache, error) {
	if len(b) < 2 {
		return nil, errors.New("it is empty")
	}
	b, err := soundCache(b)
	if err != nil {
		return nil, err
	}
	c := &credentials.CCache{}
	if err = sasl.Guard(func() error { return c.Unmarshal(b) }); errors.Is(err, sasl.ErrMalformed) {
		err = errDamaged
	}
	return c, err
}

var errDamaged = errors.New("it is damaged")

// soundCache checks that a cache has what its lengths say, because gokrb5 allocates as many
// addresses as they say, up to 64 GB. It returns the cache without its header (the KDC's
// clock), whose end gokrb5 does not find in every case. The
// form is that of MIT's ccache_file_format, versions 3 and 4; those before are
// of MIT krb5 1.0 and older.
func soundCache(b []byte) ([]byte, error) {
	if b[0] != 5 || b[1] < 3 || b[1] > 4 {
		return nil, fmt.Errorf("it is none, or of a version that is not 3 or 4: %d.%d", b[0], b[1])
	}
	version, r := b[1], cacheReader{b: b[2:]}
	out := []byte{5, version}
	if version == 4 {
		r.skip(r.number(2))
		out = append(out, 0, 0)
	}
	out = append(out, r.b...)
	r.principal()
	for len(r.b) > 0 && !r.short {
		r.principal() // the client
		r.principal() // the server
		if version == 3 {
			r.skip(2) // the key's type, twice
		}
		r.skip(2)
		r.data()            // the key
		r.skip(4*4 + 1 + 4) // times, is_skey, flags
		r.pairs()           // addresses
		r.pairs()           // authorization data
		r.data()            // the ticket
		r.data()            // the second one
	}
	if r.short {
		return nil, errDamaged
	}
	return out, nil
}

// cacheReader reads a cache; short is set if it ends too early.
type cacheReader struct {
	b     []byte
	short bool
}

func (r *cacheReader) skip(n uint32) {
	if uint64(n) > uint64(len(r.b)) {
		r.short, r.b = true, nil
		return
	}
	r.b = r.b[n:]
}

// number reads one of so many bytes, big endian.
func (r *cacheReader) number(bytes uint32) (n uint32) {
	b := r.b
	if r.skip(bytes); r.short {
		return 0
	}
	for _, x := range b[:bytes] {
		n = n<<8 | uint32(x)
	}
	return n
}

func (r *cacheReader) data() { r.skip(r.number(4)) }

func (r *cacheReader) principal() {
	r.skip(4) // its type
	n := r.number(4)
	r.data() // the realm
	for ; n > 0 && !r.short; n-- {
		r.data()
	}
}

// pairs skips counted pairs of a type and data.
func (r *cacheReader) pairs() {
	for n := r.number(4); n > 0 && !r.short; n-- {
		r.skip(2)
		r.data()
	}
}
