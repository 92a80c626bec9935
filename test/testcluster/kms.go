package testcluster

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"

	"holdfast/test/testcluster/kdc"
	"holdfast/test/testcluster/properties"
)

const kmsClass = "org.apache.hadoop.crypto.key.kms.server.KMSWebServer"

// KMS adds Hadoop's key servers, kms0, kms1 ..., and with them encryption zones
// (MakeZone). The servers share their keys by a file that each reads when it
// starts. On a secure cluster they want Kerberos or a delegation token.
type KMS struct {
	Servers int      // 1 if 0; those after the first have an address of their own each, and no principal
	Keys    []string // made before the servers start
	Alone   bool     // without the rest of Hadoop
}

// kmsHost is where a server listens: all at the same port (KMSClientProvider's
// Factory). By its name the first one is known to Kerberos.
func kmsHost(i int) string {
	if i == 0 {
		return "localhost"
	}
	return nodeHost(i)
}

func (c *Cluster) kmsServers() int { return max(1, c.opts.KMS.Servers) }

func (c *Cluster) portKMS() int { return c.ports.Base + portsNeeded(c.opts) - 1 }

// KeyProvider is the URI of the key servers, kms://http@localhost;127.0.0.3:port/kms.
func (c *Cluster) KeyProvider() string {
	var hosts []string
	for i := range c.kmsServers() {
		hosts = append(hosts, kmsHost(i))
	}
	return fmt.Sprintf("kms://http@%s:%d/kms", strings.Join(hosts, ";"), c.portKMS())
}

func (c *Cluster) keyStore() string { return "jceks://file" + filepath.Join(c.dir, "keys.jceks") }

// addKMS lists the servers.
func (c *Cluster) addKMS(add func(name, class string, own properties.Set) error) error {
	if c.opts.KMS == nil {
		return nil
	}
	for i := range c.kmsServers() {
		own := properties.Set{
			"hadoop.kms.http.host":           kmsHost(i),
			"hadoop.kms.http.port":           strconv.Itoa(c.portKMS()),
			"hadoop.kms.key.provider.uri":    c.keyStore(),
			"hadoop.kms.authentication.type": "simple",
			// Without these, nobody may use a key that has no ACL of its own.
			"default.key.acl.MANAGEMENT":   "*",
			"default.key.acl.GENERATE_EEK": "*",
			"default.key.acl.DECRYPT_EEK":  "*",
			"default.key.acl.READ":         "*",
		}
		if s := c.opts.Security; s != nil {
			own["hadoop.kms.authentication.type"] = "kerberos"
			own["hadoop.kms.authentication.kerberos.principal"] = kdc.Service("HTTP")
			own["hadoop.kms.authentication.kerberos.keytab"] = c.kdc.Keytab("HTTP")
			own["hadoop.kms.acl.DECRYPT_EEK"] = "*"
			if s.TokenLife > 0 { // in seconds
				life, renew := strconv.Itoa(int(s.TokenLife.Seconds())), strconv.Itoa(int(s.TokenLife.Seconds()/2))
				own["hadoop.kms.authentication.delegation-token.max-lifetime.sec"] = life
				own["hadoop.kms.authentication.delegation-token.renew-interval.sec"] = renew
				own["hadoop.kms.authentication.delegation-token.update-interval.sec"] = life
			}
		}
		if err := add(fmt.Sprintf("kms%d", i), kmsClass, own); err != nil {
			return err
		}
	}
	return nil
}

// kmsOptions are the properties that the server's script would set.
func (d *Daemon) kmsOptions() []string {
	return []string{
		"-Dkms.config.dir=" + d.confDir(), "-Dkms.log.dir=" + d.dir,
		"-Dlog4j.configuration=file:" + filepath.Join(d.confDir(), "log4j.properties"),
	}
}

// makeKeys makes the keys in the file that the servers will read.
func (c *Cluster) makeKeys(ctx context.Context) error {
	if c.opts.KMS == nil {
		return nil
	}
	for _, key := range c.opts.KMS.Keys {
		cmd := c.HadoopCommand(ctx, "key", "create", key, "-size", "128", "-provider", c.keyStore())
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("making the key %s: %w\n%s", key, err, out)
		}
	}
	return nil
}

// MakeZone makes a directory on HDFS, for a user, with all that is put into it
// encrypted by keys that the key of that name protects.
func (c *Cluster) MakeZone(ctx context.Context, path, key, owner string) error {
	if err := c.makeDirectory(ctx, directory{path, "755", owner}); err != nil {
		return err
	}
	_, err := c.Hadoop(ctx, "crypto", "-createZone", "-keyName", key, "-path", path)
	return err
}

// kmsServes reports whether the server answers, be it that it asks who one is.
func (d *Daemon) kmsServes(ctx context.Context) (bool, string) {
	i, _ := strconv.Atoi(strings.TrimPrefix(d.name, "kms"))
	address := net.JoinHostPort(kmsHost(i), strconv.Itoa(d.cluster.portKMS()))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/kms/v1/keys/names?user.name="+d.cluster.user, nil)
	if err != nil {
		return false, err.Error()
	}
	resp, err := web.Do(req)
	if err != nil {
		return false, err.Error()
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusUnauthorized, resp.Status
}
