package kerberos_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/internal/hadoop/kerberos"
	"holdfast/test/testcluster"
	"holdfast/test/testcluster/kdc"
)

// realm starts a KDC.
func realm(t *testing.T) (*testcluster.Cluster, *kdc.KDC) {
	t.Helper()
	c := testcluster.ForTest(t, testcluster.Options{KDCOnly: true})
	t.Setenv(kerberos.EnvConfig, c.KDC().Config())
	t.Setenv(kerberos.EnvCache, filepath.Join(t.TempDir(), "none"))
	return c, c.KDC()
}

const service = "nn/localhost@HOLDFAST.TEST"

// good checks that a user is alice and gets tickets.
func good(t *testing.T, u *kerberos.User, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
		return
	}
	defer u.Close()
	if u.Principal() != "alice@HOLDFAST.TEST" {
		t.Errorf("the principal is %s", u.Principal())
	}
	if name, err := kerberos.Name(u.Principal(), ""); err != nil || name != "alice" {
		t.Errorf("the name is %q, %v", name, err)
	}
	k, err := u.Ticket(service)
	if err != nil || k.Ticket.SName.PrincipalNameString() != "nn/localhost" || k.Key.KeyType != 18 {
		t.Errorf("ticket for %s, key of type %d: %v", k.Ticket.SName.PrincipalNameString(), k.Key.KeyType, err)
	}
}

// bad checks an error: its words, whose fault it is, and that it comes in seconds.
func bad(t *testing.T, began time.Time, err error, unreachable bool, want ...string) {
	t.Helper()
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%q is not in: %v", w, err)
			return
		}
	}
	if kerberos.Unreachable(err) != unreachable || kerberos.IsDenied(err) == unreachable {
		t.Errorf("unreachable: %v, denied: %v: %v", kerberos.Unreachable(err), kerberos.IsDenied(err), err)
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than a line: %v", err)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %s: %v", took, err)
	}
}

func TestKeytab(t *testing.T) {
	c, k := realm(t)
	u, err := kerberos.FromKeytab("alice", k.Keytab("alice"))
	good(t, u, err)
	u, err = kerberos.FromKeytab("alice@HOLDFAST.TEST", k.Keytab("alice"))
	good(t, u, err)

	junk := filepath.Join(t.TempDir(), "junk")
	if err := os.WriteFile(junk, []byte("not a keytab"), 0o600); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(k.Keytab("alice"))
	if err != nil {
		t.Fatal(err)
	}
	torn := filepath.Join(t.TempDir(), "torn")
	if err := os.WriteFile(torn, whole[:len(whole)-7], 0o600); err != nil {
		t.Fatal(err)
	}
	if err := k.Admin(t.Context(), "addprinc -randkey carol", "ktadd -k "+k.Keytab("carol")+" carol",
		"addprinc -randkey dave", "ktadd -k "+k.Keytab("dave")+" dave", "delprinc -force dave"); err != nil {
		t.Fatal(err)
	}
	if err := k.Admin(t.Context(), "cpw -randkey carol"); err != nil { // the keytab is now too old
		t.Fatal(err)
	}
	for _, try := range []struct{ principal, keytab, want string }{
		{"alice", k.Keytab("bob"), "has no key of alice@HOLDFAST.TEST; it has keys of bob@HOLDFAST.TEST"},
		{"alice", "/no/such/keytab", "there is no keytab /no/such/keytab"},
		{"alice", junk, "is not a keytab"},
		{"alice", torn, "is damaged"},
		{"alice@NOWHERE.TEST", k.Keytab("alice"), "has no key of alice@NOWHERE.TEST"},
		{"carol", k.Keytab("carol"), "create a new one"},
		{"dave", k.Keytab("dave"), "does not know the user's principal"},
	} {
		began := time.Now()
		_, err := kerberos.FromKeytab(try.principal, try.keytab)
		bad(t, began, err, false, try.want)
	}

	u, err = kerberos.FromKeytab("alice", k.Keytab("alice"))
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	began := time.Now()
	_, err = u.Ticket("nn/elsewhere@HOLDFAST.TEST")
	bad(t, began, err, false, "does not know the service's principal", "nn/elsewhere")

	k.SetSkew(20 * time.Minute)
	if err := c.Daemon("kdc").Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	_, err = kerberos.FromKeytab("alice", k.Keytab("alice"))
	bad(t, began, err, false, "clock skew", "set the clock")
	began = time.Now()
	_, err = u.Ticket("dn/localhost@HOLDFAST.TEST")
	bad(t, began, err, false, "clock skew")

	if err := c.Daemon("kdc").Kill(); err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	_, err = kerberos.FromKeytab("alice", k.Keytab("alice"))
	bad(t, began, err, true, "no KDC of the realm HOLDFAST.TEST answers", "connection refused")
	began = time.Now()
	_, err = u.Ticket("dn/localhost@HOLDFAST.TEST")
	bad(t, began, err, true, "no KDC of the realm HOLDFAST.TEST answers")
}

func TestCache(t *testing.T) {
	_, k := realm(t)
	kinit := func(cache string, options ...string) {
		t.Helper()
		if err := k.Kinit(t.Context(), "alice", cache, options...); err != nil {
			t.Fatal(err)
		}
		t.Setenv(kerberos.EnvCache, cache)
	}
	began := time.Now()
	_, err := kerberos.FromCache()
	bad(t, began, err, false, "there is no Kerberos ticket", "run kinit")

	kinit("FILE:" + filepath.Join(t.TempDir(), "cache"))
	u, err := kerberos.FromCache()
	good(t, u, err)
	dir := t.TempDir()
	kinit("DIR:" + dir)
	u, err = kerberos.FromCache()
	good(t, u, err)
	t.Setenv(kerberos.EnvCache, "DIR::"+filepath.Join(dir, "tkt"))
	u, err = kerberos.FromCache()
	good(t, u, err)
	t.Setenv(kerberos.EnvCache, "KEYRING:persistent:1000")
	_, err = kerberos.FromCache()
	bad(t, time.Now(), err, false, "KEYRING:persistent:1000", "cannot be read", "FILE:/tmp/krb5cc_", "--keytab")

	plain := filepath.Join(t.TempDir(), "cache")
	kinit(plain, "-l", "2s")
	u, err = kerberos.FromCache()
	good(t, u, err)
	for deadline := time.Now().Add(time.Minute); err == nil && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		_, err = kerberos.FromCache()
	}
	bad(t, time.Now(), err, false, "the Kerberos ticket of alice@HOLDFAST.TEST", "expired", "run kinit")

	whole, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 1, 10, 50, len(whole) - 3} {
		if err := os.WriteFile(plain, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = kerberos.FromCache()
		bad(t, time.Now(), err, false, plain, "run kinit")
	}
}

// TestCacheOfADaemon reads tickets that kinit has given to a daemon to keep.
func TestCacheOfADaemon(t *testing.T) {
	_, k := realm(t)
	t.Setenv(kerberos.EnvCache, "KCM:")
	_, err := kerberos.FromCache()
	bad(t, time.Now(), err, false, "KCM:", "no daemon", "sssd-kcm")

	stop, err := k.KeepTickets(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	_, err = kerberos.FromCache()
	bad(t, time.Now(), err, false, "there is no Kerberos ticket", "KCM:", "run kinit")
	for _, cache := range []string{"KCM:", "KCM:" + strconv.Itoa(os.Getuid()) + ":other"} {
		if err := k.Kinit(t.Context(), "alice", cache); err != nil {
			t.Fatal(err)
		}
		t.Setenv(kerberos.EnvCache, cache)
		u, err := kerberos.FromCache()
		good(t, u, err)
	}
	t.Setenv(kerberos.EnvCache, "KCM:nobody's")
	_, err = kerberos.FromCache()
	bad(t, time.Now(), err, false, "there is no Kerberos ticket", "KCM:nobody's", "run kinit")
}

// TestConfiguration reads krb5.conf as sites write it.
func TestConfiguration(t *testing.T) {
	_, k := realm(t)
	text, err := os.ReadFile(k.Config())
	if err != nil {
		t.Fatal(err)
	}
	_, kdc, _ := strings.Cut(string(text), " kdc = ")
	kdc, _, _ = strings.Cut(kdc, "\n")
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("conf.d/realm", "[realms]\n  HOLDFAST.TEST = {\n    kdc = "+kdc+"\n    auth_to_local_names = {\n      a = b\n    }\n    pkinit_anchors = FILE:/etc/ipa/kdc-ca-bundle.pem\n  }\n")
	write("conf.d/crypto-policies.conf", "[libdefaults]\npermitted_enctypes = aes256-cts-hmac-sha384-192 camellia256-cts-cmac aes -rc4\n")
	write("conf.d/.hidden.conf", "[libdefaults]\ndefault_realm = WRONG.TEST\n")
	write("conf.d/backup~", "this is no configuration")
	write("domains", "[domain_realm]\n.test = HOLDFAST.TEST\n")
	main := write("krb5.conf", "# of the site\ninclude "+filepath.Join(dir, "domains")+"\nincludedir "+filepath.Join(dir, "conf.d")+`
[logging]
  default = FILE:/var/log/krb5libs.log
[libdefaults]
  default_realm = HOLDFAST.TEST
  default_realm = SECOND.TEST
  dns_lookup_kdc = false
  renew_lifetime = 7d
  spake_preauth_groups = edwards25519
[realms]
  HOLDFAST.TEST = {
    admin_server = kdc.holdfast.test
    kdc = https://proxy.holdfast.test/KdcProxy
  }
[plugins]
  localauth = {
    module = sssd:/usr/lib/sssd/modules/sssd_krb5_localauth_plugin.so
  }
`)
	t.Setenv(kerberos.EnvConfig, filepath.Join(dir, "missing")+":"+main)
	u, err := kerberos.FromKeytab("alice", k.Keytab("alice"))
	good(t, u, err)

	t.Setenv(kerberos.EnvConfig, filepath.Join(dir, "missing"))
	if _, err := kerberos.FromKeytab("alice", k.Keytab("alice")); err == nil || !strings.Contains(err.Error(), "have krb5.conf installed") {
		t.Errorf("without a configuration: %v", err)
	}
	t.Setenv(kerberos.EnvConfig, write("loop", "include "+filepath.Join(dir, "loop")))
	if _, err := kerberos.FromKeytab("alice", k.Keytab("alice")); err == nil || !strings.Contains(err.Error(), "included by itself") {
		t.Errorf("a file that includes itself: %v", err)
	}
	t.Setenv(kerberos.EnvConfig, write("other", "[libdefaults]\ndefault_realm = HOLDFAST.TEST\ndns_lookup_kdc = false\n[realms]\nOTHER.TEST = {\nkdc = 127.0.0.1:1\n}\n"))
	_, err = kerberos.FromKeytab("alice", k.Keytab("alice"))
	bad(t, time.Now(), err, false, "no KDC of the realm HOLDFAST.TEST is known", "it knows OTHER.TEST")
}

// TestTrust: a user of another realm, which the services' realm trusts, gets
// tickets for them by way of a ticket for that realm, and another one of these
// when the key of the trust was changed.
func TestTrust(t *testing.T) {
	_, k := realm(t)
	for _, login := range []struct {
		name string
		user func() (*kerberos.User, error)
	}{
		{"keytab", func() (*kerberos.User, error) {
			return kerberos.FromKeytab("erin@"+kdc.FarRealm, k.Keytab(kdc.Erin))
		}},
		{"cache", func() (*kerberos.User, error) {
			cache, err := k.Tickets(t.Context(), kdc.Erin)
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv(kerberos.EnvCache, cache)
			return kerberos.FromCache()
		}},
	} {
		t.Run(login.name, func(t *testing.T) {
			u, err := login.user()
			if err != nil {
				t.Fatal(err)
			}
			defer u.Close()
			ticket, err := u.Ticket("nn/localhost@" + kdc.Realm)
			if err != nil {
				t.Fatal(err)
			}
			if u.Principal() != "erin@FAR.TEST" || ticket.Realm != kdc.FarRealm || ticket.Ticket.Realm != kdc.Realm {
				t.Errorf("%s of realm %s has a ticket of %s", u.Principal(), ticket.Realm, ticket.Ticket.Realm)
			}
			if err := k.NewTrust(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := u.Ticket("dn/localhost@" + kdc.Realm); err != nil {
				t.Errorf("with the new key of the trust: %v", err)
			}
		})
	}
}

// TestAKDCWhoseKeyHasChanged: a KDC whose own key was changed, or that has lost it, refuses the
// tickets by which others are asked for. Who has a keytab logs in anew, once for all that are asked
// for at a time; who has a ticket cache is told to run kinit, and goes on when that has been done.
func TestAKDCWhoseKeyHasChanged(t *testing.T) {
	c, k := realm(t)
	for name, change := range map[string][]string{
		"changed": {"cpw -randkey krbtgt/" + kdc.Realm},
		"lost":    {"delprinc -force krbtgt/" + kdc.Realm, "addprinc -randkey krbtgt/" + kdc.Realm},
	} {
		t.Run(name, func(t *testing.T) {
			cache := filepath.Join(t.TempDir(), "cache")
			t.Setenv(kerberos.EnvCache, cache)
			kinit := func(user string) {
				t.Helper()
				if err := k.Kinit(t.Context(), user, cache); err != nil {
					t.Fatal(err)
				}
			}
			kinit(kdc.Alice)
			byCache, err := kerberos.FromCache()
			if err != nil {
				t.Fatal(err)
			}
			defer byCache.Close()
			byKeytab, err := kerberos.FromKeytab(kdc.Alice, k.Keytab(kdc.Alice))
			if err != nil {
				t.Fatal(err)
			}
			defer byKeytab.Close()
			logins := func() int {
				return strings.Count(c.Daemon("kdc").Log(), "alice@"+kdc.Realm+" for krbtgt/"+kdc.Realm+"@"+kdc.Realm+"\n")
			}

			if err := k.Admin(t.Context(), change...); err != nil {
				t.Fatal(err)
			}
			before := logins()
			var wg sync.WaitGroup
			for _, daemon := range []string{"nn", "dn", "rm", "nm"} {
				wg.Go(func() {
					if _, err := byKeytab.Ticket(kdc.Service(daemon)); err != nil {
						t.Errorf("with a keytab: %v", err)
					}
				})
			}
			wg.Wait()
			if n := logins() - before; n != 1 {
				t.Errorf("%d logins with the keytab", n)
			}
			for _, user := range []string{"", kdc.Bob} {
				if user != "" {
					kinit(user)
				}
				for range 2 {
					began := time.Now()
					_, err := byCache.Ticket(service)
					bad(t, began, err, false, "get a ticket for "+service, cache, "run kinit alice@"+kdc.Realm)
				}
			}
			kinit(kdc.Alice)
			if _, err := byCache.Ticket(service); err != nil {
				t.Errorf("with kinit's new ticket: %v", err)
			}
		})
	}
}

// TestHostOfAnotherRealm: where [domain_realm] says nothing of a host, the user's KDC says which
// realm its services are of (RFC 6806, section 8), as it does to MIT Kerberos and to Java.
func TestHostOfAnotherRealm(t *testing.T) {
	_, k := realm(t)
	conf, err := os.ReadFile(k.Config())
	if err != nil {
		t.Fatal(err)
	}
	own, _, _ := strings.Cut(string(conf), "[domain_realm]")
	file := filepath.Join(t.TempDir(), "krb5.conf")
	own = strings.ReplaceAll(own, "default_realm = "+kdc.Realm, "default_realm = "+kdc.FarRealm)
	if err := os.WriteFile(file, []byte(own), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv(kerberos.EnvConfig, file)
	const name = "HTTP/keys.holdfast.test"
	if err := k.Admin(t.Context(), "addprinc -randkey "+name); err != nil {
		t.Fatal(err)
	}
	u, err := kerberos.FromKeytab("erin@"+kdc.FarRealm, k.Keytab(kdc.Erin))
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	ticket, err := u.Ticket(name)
	if err != nil {
		t.Fatal(err)
	}
	if ticket.Ticket.Realm != kdc.Realm || ticket.Ticket.SName.PrincipalNameString() != name {
		t.Errorf("the ticket is for %s of %s", ticket.Ticket.SName.PrincipalNameString(), ticket.Ticket.Realm)
	}
}
