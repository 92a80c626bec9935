// Package kdc is an MIT Kerberos for a test cluster: its realm, its users, and their tickets.
package kdc

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/jcmturner/gokrb5/v8/spnego"

	"holdfast/test/testcluster/processes"
)

// Realm is the Kerberos realm of every secure cluster.
const Realm = "HOLDFAST.TEST"

// Users of a secure cluster. The service ACLs let Alice and Bob in and keep
// the Stranger out, who has a keytab too.
const (
	Alice    = "alice"
	Bob      = "bob"
	Stranger = "mallory"
)

// FarRealm is a realm beside the cluster's, which trusts it: the KDC serves both.
// Erin is its one user; on the cluster she is Bob (auth_to_local).
const (
	FarRealm = "FAR.TEST"
	Erin     = "erin"
)

// trust is the principal whose key the realms share, by which tickets of one count in the other.
const trust = "krbtgt/" + Realm + "@" + FarRealm

// services are the daemons' principals. DataNodes and NodeManagers share one
// each: the source of their connections is localhost whatever address they
// listen at, and with service ACLs on the NameNode and the ResourceManager
// compare it with the host in the principal.
var services = []string{"nn", "dn", "rm", "nm", "HTTP"}

// Service is the principal of a kind of daemon.
func Service(name string) string { return name + "/localhost@" + Realm }

// KDC is an MIT Kerberos of the cluster's own. Its files lie in the
// directory kdc of the cluster:
//
//	krb5.conf     for clients, with a further realm, DOWN.TEST, whose KDC does not run
//	NAME.keytab   of a service (nn, dn, rm, nm, HTTP) or user
//	NAME.tickets  the ticket cache that Tickets made
type KDC struct {
	Dir  string       // its files, below the cluster's directory
	Addr string       // host:port
	skew atomic.Int64 // seconds
}

// KeepTickets runs a daemon that keeps ticket caches (KCM:), Heimdal's, until stop
// or ctx ends it. Its socket is always in /var/run, which is here the KDC's
// directory for it.
func (k *KDC) KeepTickets(ctx context.Context) (stop func(), err error) {
	path, err := findTool("kcm")
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(k.Dir, ".heim_org.h5l.kcm-socket")
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, "unshare", "--map-root-user", "--mount",
		"sh", "-c", `mount --bind "$1" /run && exec "$2"`, "sh", k.Dir, path)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(k.env(), processes.MarkEnv+"="+filepath.Dir(k.Dir)), &said, &said
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed
	}()
	stop = func() {
		_ = cmd.Process.Kill()
		<-ended
	}
	for deadline := time.Now().Add(time.Minute); ; {
		if conn, err := net.Dial("unix", socket); err == nil { // it exists before the daemon listens
			conn.Close()
			return stop, nil
		}
		select {
		case <-ended:
			return nil, fmt.Errorf("kcm ended at once:\n%s", said.Bytes())
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			stop()
			return nil, fmt.Errorf("kcm does not listen at %s:\n%s", socket, said.Bytes())
		}
	}
}

// Config is the path of krb5.conf, for KRB5_CONFIG.
func (k *KDC) Config() string { return filepath.Join(k.Dir, "krb5.conf") }

// Keytab is the path of a keytab: that of a user, or of a service by its
// principal's first part.
func (k *KDC) Keytab(name string) string { return filepath.Join(k.Dir, name+".keytab") }

// SetSkew makes the KDC's clock wrong by so much from its next start on.
func (k *KDC) SetSkew(d time.Duration) { k.skew.Store(int64(d / time.Second)) }

// Tickets gets a ticket for a user or service from its keytab, as kinit with these
// options does (such as -l 5s), and returns the path of the cache.
func (k *KDC) Tickets(ctx context.Context, user string, options ...string) (string, error) {
	cache := k.TicketCache(user)
	return cache, k.Kinit(ctx, user, cache, options...)
}

// TicketCache is the path of the cache that Tickets makes.
func (k *KDC) TicketCache(user string) string { return filepath.Join(k.Dir, user+".tickets") }

// Kinit is like Tickets with a cache of the caller's choice, such as DIR:/path.
func (k *KDC) Kinit(ctx context.Context, user, cache string, options ...string) error {
	principal := user
	switch {
	case slices.Contains(services, user):
		principal = Service(user)
	case user == Erin:
		principal += "@" + FarRealm
	}
	_, err := k.tool(ctx, "", "kinit", append(slices.Clone(options), "-k", "-t", k.Keytab(user), "-c", cache, principal)...)
	return err
}

// Admin runs commands of kadmin, one a line, on the database of Realm.
func (k *KDC) Admin(ctx context.Context, commands ...string) error {
	return k.admin(ctx, Realm, commands...)
}

// NewKey changes the key of a kind of daemon, and replaces its keytab by one that has the new key
// only. Hadoop's daemons read that without a restart.
func (k *KDC) NewKey(ctx context.Context, service string) error {
	next := k.Keytab("next")
	if err := k.Admin(ctx, "ktadd -k "+next+" "+Service(service)); err != nil {
		return err
	}
	return os.Rename(next, k.Keytab(service))
}

// NewTrust changes the key that the realms share.
func (k *KDC) NewTrust(ctx context.Context) error {
	change := "cpw -pw " + rand.Text() + " " + trust
	if err := k.admin(ctx, FarRealm, change); err != nil {
		return err
	}
	return k.admin(ctx, Realm, change)
}

func (k *KDC) admin(ctx context.Context, realm string, commands ...string) error {
	out, err := k.tool(ctx, strings.Join(commands, "\n")+"\n", "kadmin.local", "-r", realm)
	if err == nil && strings.Contains(out, "kadmin.local: ") && strings.Contains(out, " while ") {
		err = errors.New("kadmin.local: " + out) // its exit code is 0 all the same
	}
	return err
}

// Make creates the realms with their principals and keytabs.
func (k *KDC) Make(ctx context.Context) error {
	if err := os.MkdirAll(k.Dir, 0o755); err != nil {
		return fmt.Errorf("making the KDC's directory: %w", err)
	}
	for name, text := range map[string]string{"krb5.conf": clientConf, "kdc.conf": serverConf} {
		text = strings.NewReplacer("@DIR@", k.Dir, "@ADDR@", k.Addr, "@REALM@", Realm, "@FAR@", FarRealm).Replace(text)
		if err := os.WriteFile(filepath.Join(k.Dir, name), []byte(text), 0o644); err != nil {
			return fmt.Errorf("writing the KDC's configuration: %w", err)
		}
	}
	for _, realm := range []string{Realm, FarRealm} {
		if _, err := k.tool(ctx, "", "kdb5_util", "create", "-s", "-r", realm, "-P", "of no use to anybody"); err != nil {
			return err
		}
	}
	add := func(principal, name string) []string {
		return []string{"addprinc -randkey " + principal, "ktadd -k " + k.Keytab(name) + " " + principal}
	}
	share := "addprinc -pw " + rand.Text() + " " + trust
	if err := k.admin(ctx, FarRealm, append(add(Erin+"@"+FarRealm, Erin), share)...); err != nil {
		return err
	}
	commands := []string{share}
	for _, name := range services {
		commands = append(commands, add(Service(name), name)...)
	}
	for _, name := range []string{Alice, Bob, Stranger} {
		commands = append(commands, add(name, name)...)
	}
	return k.Admin(ctx, commands...)
}

// Command is the daemon's process.
func (k *KDC) Command() (*exec.Cmd, error) {
	path, err := findTool("krb5kdc")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, "-n", "-r", Realm, "-r", FarRealm, "-P", filepath.Join(k.Dir, "pid"), "-T", strconv.FormatInt(k.skew.Load(), 10))
	cmd.Env = append(k.env(), processes.MarkEnv+"="+filepath.Dir(k.Dir))
	return cmd, nil
}

// env is what the programs of Kerberos need to know.
func (k *KDC) env() []string {
	return append(os.Environ(), "KRB5_CONFIG="+k.Config(), "KRB5_KDC_PROFILE="+filepath.Join(k.Dir, "kdc.conf"))
}

func (k *KDC) tool(ctx context.Context, stdin, name string, args ...string) (string, error) {
	path, err := findTool(name)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = k.env()
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	out = bytes.TrimSpace(out)
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// Superuser is a browser of the NameNode's principal, which is HDFS's superuser.
func (k *KDC) Superuser(own http.Client) (*spnego.Client, error) {
	cfg, err := config.Load(k.Config())
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", k.Config(), err)
	}
	keys, err := keytab.Load(k.Keytab("nn"))
	if err != nil {
		return nil, fmt.Errorf("reading the NameNode's keytab: %w", err)
	}
	login := client.NewWithKeytab("nn/localhost", Realm, keys, cfg, client.DisablePAFXFAST(true))
	return spnego.NewClient(login, &own, "HTTP/localhost"), nil
}

// findTool finds a program of MIT Kerberos; administrators' programs are often
// not on the PATH.
func findTool(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/sbin", "/usr/local/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no %s on the PATH or in /usr/sbin, which a cluster with Kerberos needs: install MIT Kerberos (on Debian: apt-get install krb5-kdc krb5-admin-server krb5-user heimdal-kcm)", name)
}

const clientConf = `[libdefaults]
  default_realm = @REALM@
  dns_lookup_kdc = false
  dns_lookup_realm = false
  dns_canonicalize_hostname = false
  rdns = false
  forwardable = true
  ticket_lifetime = 10h
  renew_lifetime = 7d
  udp_preference_limit = 1
  default_ccache_name = FILE:@DIR@/%{uid}.tickets
  kcm_socket = @DIR@/.heim_org.h5l.kcm-socket
[realms]
  @REALM@ = {
    kdc = @ADDR@
  }
  @FAR@ = {
    kdc = @ADDR@
  }
  DOWN.TEST = {
    kdc = 127.0.0.1:1
  }
[domain_realm]
  localhost = @REALM@
  .holdfast.test = @REALM@
`

const serverConf = `[kdcdefaults]
  kdc_listen = @ADDR@
  kdc_tcp_listen = @ADDR@
[realms]
  @REALM@ = {
    database_name = @DIR@/principals
    key_stash_file = @DIR@/stash
    acl_file = @DIR@/acl
    max_life = 10h
    max_renewable_life = 7d
    default_principal_flags = +preauth
    supported_enctypes = aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal
  }
  @FAR@ = {
    database_name = @DIR@/far-principals
    key_stash_file = @DIR@/far-stash
    acl_file = @DIR@/acl
    max_life = 10h
    default_principal_flags = +preauth
    supported_enctypes = aes256-cts-hmac-sha1-96:normal aes128-cts-hmac-sha1-96:normal
  }
[logging]
  kdc = STDERR
`
