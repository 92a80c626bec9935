package conf

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// DefaultFS returns the URI of the default file system, without a trailing slash.
func (c *Conf) DefaultFS() string { return strings.TrimSuffix(c.Get("fs.defaultFS"), "/") }

// defaultNameNodePort is what Hadoop 3 uses in hdfs://host/ (HdfsClientConfigKeys).
const defaultNameNodePort = "8020"

// NameNodes returns the RPC addresses of the NameNodes behind an hdfs:// URI.
// "" and a URI without a host mean the default file system. A logical name
// (dfs.nameservices) has several, one of which is active.
func (c *Conf) NameNodes(uri string) ([]string, error) {
	host, port, err := c.authority(uri)
	if err != nil {
		return nil, err
	}
	if port == "" && c.isNameService(host) {
		return c.nameService(host)
	}
	if port == "" {
		port = defaultNameNodePort
	}
	return []string{net.JoinHostPort(host, port)}, nil
}

// Logical reports whether the URI names a name service with HA rather than a host.
// A delegation token's service is then ha-hdfs:NAME; a name service of a single
// NameNode does not count (HAUtilClient.isLogicalUri).
func (c *Conf) Logical(uri string) (name string, ok bool) {
	host, port, err := c.authority(uri)
	if err != nil || port != "" || !c.isNameService(host) {
		return "", false
	}
	return host, len(c.List("dfs.ha.namenodes."+host)) > 0 || c.Get("dfs.client.failover.proxy.provider."+host) != ""
}

// TokenService returns the service of a delegation token for a server at an address,
// IP:PORT, or HOST:PORT where hadoop.security.token.service.use_ip is false
// (SecurityUtil.buildTokenService). A host whose address is not known keeps its
// name.
func (c *Conf) TokenService(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	if c.Bool("hadoop.security.token.service.use_ip", true) {
		if ips, err := net.LookupIP(host); err == nil && len(ips) > 0 {
			return net.JoinHostPort(ips[0].String(), port)
		}
	}
	return strings.ToLower(address)
}

func (c *Conf) authority(uri string) (host, port string, err error) {
	u, err := url.Parse(uri)
	if err != nil {
		return "", "", fmt.Errorf("not a URI: %w", err)
	}
	if u.Host == "" && (u.Scheme == "" || u.Scheme == "hdfs") {
		fs := c.DefaultFS()
		if u, err = url.Parse(fs); err != nil || u.Scheme != "hdfs" || u.Host == "" {
			return "", "", fmt.Errorf("the default file system is %q, not one on HDFS: set fs.defaultFS in core-site.xml, or write hdfs://HOST:PORT/PATH", fs)
		}
	}
	if u.Scheme != "hdfs" {
		return "", "", fmt.Errorf("%q is not on HDFS: write hdfs://HOST:PORT/PATH", uri)
	}
	return u.Hostname(), u.Port(), nil
}

func (c *Conf) isNameService(name string) bool {
	for _, key := range []string{"dfs.nameservices", "dfs.internal.nameservices"} {
		for _, s := range c.List(key) {
			if s == name {
				return true
			}
		}
	}
	return false
}

func (c *Conf) nameService(name string) ([]string, error) {
	ids := c.List("dfs.ha.namenodes." + name)
	if len(ids) == 0 { // a name service without HA
		if a := c.Get("dfs.namenode.rpc-address." + name); a != "" {
			return []string{withPort(a, defaultNameNodePort)}, nil
		}
		return nil, fmt.Errorf("the name service %q has no NameNodes: set dfs.ha.namenodes.%s, and dfs.namenode.rpc-address.%s.ID for each, in hdfs-site.xml", name, name, name)
	}
	var list []string
	for _, id := range ids {
		key := "dfs.namenode.rpc-address." + name + "." + id
		a := c.Get(key)
		if a == "" {
			return nil, fmt.Errorf("NameNode %q of the name service %q has no address: set %s in hdfs-site.xml", id, name, key)
		}
		list = append(list, withPort(a, defaultNameNodePort))
	}
	if c.Bool("dfs.client.failover.resolve-needed."+name, false) {
		return c.resolve(name, list)
	}
	return list, nil
}

// resolve puts all hosts that DNS has for a name in its place: one name may stand
// for all NameNodes or Routers (AbstractNNFailoverProxyProvider.getResolvedHostsIfNecessary).
// Kerberos needs their own names, which they are asked back for unless
// dfs.client.failover.resolver.useFQDN is false.
func (c *Conf) resolve(service string, addresses []string) ([]string, error) {
	var list []string
	for _, a := range addresses {
		host, port, err := net.SplitHostPort(a)
		if err != nil {
			return nil, fmt.Errorf("the NameNode's address %q: %w", a, err)
		}
		ips, err := net.LookupHost(host)
		if err != nil {
			return nil, fmt.Errorf("look the NameNodes of the name service %q up, which dfs.client.failover.resolve-needed.%s demands: %w", service, service, err)
		}
		for _, ip := range ips {
			if c.Bool("dfs.client.failover.resolver.useFQDN", true) {
				if names, err := net.LookupAddr(ip); err == nil && len(names) > 0 {
					ip = strings.TrimSuffix(names[0], ".")
				}
			}
			if address := net.JoinHostPort(ip, port); !slices.Contains(list, address) {
				list = append(list, address)
			}
		}
	}
	return list, nil
}

// ResourceManagers are the addresses of the ResourceManagers, in the order of
// their ids where there are several.
type ResourceManagers struct {
	Client    []string // for clients: ApplicationClientProtocol
	Scheduler []string // for application masters: ApplicationMasterProtocol
	Web       []string // host:port of the web application
	HTTPS     bool     // of the web application
}

// ResourceManagers returns where the ResourceManagers are.
func (c *Conf) ResourceManagers() (ResourceManagers, error) {
	rms := ResourceManagers{HTTPS: c.Get("yarn.http.policy") == "HTTPS_ONLY"}
	ids := []string{""}
	if c.Bool("yarn.resourcemanager.ha.enabled", false) {
		if ids = c.List("yarn.resourcemanager.ha.rm-ids"); len(ids) == 0 {
			return rms, fmt.Errorf("yarn.resourcemanager.ha.enabled is true, but yarn.resourcemanager.ha.rm-ids names none: set it in yarn-site.xml")
		}
	}
	web := "yarn.resourcemanager.webapp.address"
	if rms.HTTPS {
		web = "yarn.resourcemanager.webapp.https.address"
	}
	for _, id := range ids {
		for _, a := range []struct {
			key  string
			list *[]string
		}{
			{"yarn.resourcemanager.address", &rms.Client},
			{"yarn.resourcemanager.scheduler.address", &rms.Scheduler},
			{web, &rms.Web},
		} {
			address, err := c.rmAddress(a.key, id)
			if err != nil {
				return rms, err
			}
			*a.list = append(*a.list, address)
		}
	}
	return rms, nil
}

// rmAddress finds an address of one ResourceManager: with HA under key.ID, or
// from yarn.resourcemanager.hostname.ID and the default's port.
func (c *Conf) rmAddress(key, id string) (string, error) {
	port := defaults[key][strings.LastIndexByte(defaults[key], ':')+1:]
	if id != "" {
		if a := c.Get(key + "." + id); a != "" {
			return withPort(a, port), nil
		}
		host := c.Get("yarn.resourcemanager.hostname." + id)
		if host == "" {
			return "", fmt.Errorf("the ResourceManager %q has no address: set yarn.resourcemanager.hostname.%s or %s.%s in yarn-site.xml", id, id, key, id)
		}
		return net.JoinHostPort(host, port), nil
	}
	return withPort(c.Get(key), port), nil
}

func withPort(address, port string) string {
	if _, _, err := net.SplitHostPort(address); err == nil {
		return address
	}
	return net.JoinHostPort(strings.Trim(address, "[]"), port)
}

// Ports returns the TCP ports that the configuration names, in values of the form
// HOST:PORT or lists of them, with or without a scheme: those of daemons, running
// or not. What cannot be resolved is left out.
func (c *Conf) Ports() map[int]bool {
	ports := map[int]bool{}
	for key := range c.values {
		text, ok := c.Lookup(key)
		if !ok {
			continue
		}
		for _, one := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(",; \t\n", r) }) {
			if _, after, ok := strings.Cut(one, "://"); ok {
				one = after
			}
			one, _, _ = strings.Cut(one, "/")
			_, port, err := net.SplitHostPort(one)
			if err != nil {
				continue
			}
			if n, err := strconv.Atoi(port); err == nil && 0 < n && n <= 65535 {
				ports[n] = true
			}
		}
	}
	return ports
}
