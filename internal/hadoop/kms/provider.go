package kms

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"
)

// defaultPort is the servers' port if the URI has none
// (KMSConfiguration.HTTP_PORT_DEFAULT).
const defaultPort = "9600"

// parse returns the addresses of a provider's servers, http://HOST:PORT/kms/v1/.
func parse(provider string) ([]string, error) {
	fail := func(why string) ([]string, error) {
		return nil, fmt.Errorf("the key provider %q %s: it should be like kms://http@HOST1;HOST2:9600/kms (hadoop.security.key.provider.path in the NameNode's core-site.xml): %w", provider, why, syscall.ENOTSUP)
	}
	rest, ok := strings.CutPrefix(provider, "kms://")
	if !ok {
		return fail("is not a KMS: no other key provider is supported")
	}
	scheme, rest, ok := strings.Cut(rest, "@")
	if !ok || scheme != "http" && scheme != "https" {
		return fail("names neither http@ nor https@")
	}
	authority, path, _ := strings.Cut(rest, "/")
	path = "/" + strings.Trim(path, "/")
	hosts, port, ok := strings.Cut(authority, ":")
	if !ok {
		port = defaultPort
	}
	var list []string
	for _, h := range strings.Split(hosts, ";") {
		if h = strings.TrimSpace(h); h == "" {
			continue
		}
		u := &url.URL{Scheme: scheme, Host: net.JoinHostPort(h, port), Path: strings.TrimSuffix(path, "/") + "/v1/"}
		if _, err := url.Parse(u.String()); err != nil {
			return fail("has an address that is none")
		}
		list = append(list, u.String())
	}
	if len(list) == 0 {
		return fail("names no host")
	}
	return list, nil
}
