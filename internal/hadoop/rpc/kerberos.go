package rpc

import (
	"context"
	"fmt"
	"net"
	"strings"

	"holdfast/internal/hadoop/sasl"
)

// Tickets obtains Kerberos tickets.
type Tickets interface {
	// Ticket is for a service's principal, name/host@REALM.
	Ticket(service string) (sasl.Ticket, error)
	// Refused is told that the service has refused a ticket, and reports whether there is another
	// one now in its place.
	Refused(service string, t sasl.Ticket) bool
	// Realm returns the realm of the services on a host.
	Realm(host string) string
}

// Principal is the service's principal, from the client's configuration.
type Principal struct {
	Key     string // the property it stands in, for messages
	Name    string // name/host@REALM, or name/_HOST@REALM
	Pattern string // a glob that stands in Name's place (Key.pattern); "" for none
}

// KerberosLogin authenticates by GSSAPI as the user whose tickets these are. qop
// are the acceptable protections, as for TokenLogin.
//
// The server sends its principal's name and host; that must be the principal of
// the configuration, where _HOST stands for the server's host, or match the pattern
// there, with the realm that the host has by krb5.conf
// (SaslRpcClient.getServerPrincipal). So this client logs in to no other service.
func KerberosLogin(t Tickets, p Principal, qop ...string) Login {
	return kerberosLogin{t, p, qop}
}

type kerberosLogin struct {
	tickets Tickets
	p       Principal
	qop     []string
}

func (l kerberosLogin) Start(ctx context.Context, address string, offers []Auth) (Auth, Mechanism, error) {
	for _, a := range offers {
		if a.Method != "KERBEROS" || a.Mechanism != "GSSAPI" {
			continue
		}
		service, err := l.p.check(ctx, address, a.Protocol, a.ServerID, l.tickets.Realm)
		if err != nil {
			return Auth{}, nil, err
		}
		t, err := l.tickets.Ticket(service)
		if err != nil {
			return Auth{}, nil, err
		}
		return a, gss{sasl.NewGSSAPI(t, l.qop), func() bool { return l.tickets.Refused(service, t) }}, nil
	}
	return Auth{}, nil, fmt.Errorf("%s takes only %s, not Kerberos", address, methods(offers))
}

// check returns the principal that the server claims, if it is the right one.
func (p Principal) check(ctx context.Context, address, name, host string, realmOf func(host string) string) (string, error) {
	if p.Name == "" && p.Pattern == "" {
		return "", fmt.Errorf("%s has Kerberos on, and its principal is not known: set %s in the Hadoop configuration", address, p.Key)
	}
	if p.Pattern != "" {
		return p.match(address, name+"/"+host+"@"+realmOf(host))
	}
	want, realm, _ := strings.Cut(p.Name, "@")
	claimed := name + "/" + host
	if realm != "" {
		claimed += "@" + realm
	}
	wantName, wantHost, _ := strings.Cut(want, "/")
	hosts := []string{wantHost}
	if wantHost == "_HOST" {
		hosts = hostNames(ctx, address)
	}
	if wantName == name {
		for _, h := range hosts {
			if strings.EqualFold(h, host) {
				return claimed, nil
			}
		}
	}
	return "", fmt.Errorf("%s says that it is %s, and %s names %s (_HOST would be %s): the configuration is another cluster's, or the host's name in DNS is another one",
		address, claimed, p.Key, p.Name, strings.Join(hosts, " or "))
}

// match returns the principal that the server claims, if it matches the pattern.
func (p Principal) match(address, claimed string) (string, error) {
	pattern, err := glob(p.Pattern)
	if err != nil {
		return "", fmt.Errorf("%s has Kerberos on, and %s.pattern in the Hadoop configuration, which is to say who it is, is %q: %w", address, p.Key, p.Pattern, err)
	}
	if !pattern.MatchString(claimed) {
		return "", fmt.Errorf("%s says that it is %s, which %s.pattern (%s) does not match: the configuration is another cluster's, or [domain_realm] in krb5.conf does not name the host's realm",
			address, claimed, p.Key, p.Pattern)
	}
	return claimed, nil
}

// At returns the principal of the server at an address: _HOST replaced by its host's
// name.
func (p Principal) At(ctx context.Context, address string) string {
	if names := hostNames(ctx, address); len(names) > 0 {
		return strings.Replace(p.Name, "_HOST", strings.ToLower(names[0]), 1)
	}
	return p.Name
}

// hostNames returns the names of the host of an address: as it was given, and those
// that its IP addresses have, as Java's getCanonicalHostName.
func hostNames(ctx context.Context, address string) []string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	ips := []string{host}
	var names []string
	if net.ParseIP(host) == nil {
		names = append(names, host)
		if ips, err = net.DefaultResolver.LookupHost(ctx, host); err != nil {
			return names
		}
	}
	for _, ip := range ips {
		found, err := net.DefaultResolver.LookupAddr(ctx, ip)
		if err != nil {
			continue
		}
		for _, n := range found {
			names = append(names, strings.TrimSuffix(n, "."))
		}
	}
	return names
}

// gss adapts sasl.GSSAPI to Mechanism.
type gss struct {
	*sasl.GSSAPI
	refused func() bool // Tickets.Refused, of its ticket
}

func (g gss) Finish(b []byte) (Session, error) {
	s, err := g.GSSAPI.Finish(b)
	if s == nil || err != nil { // not a Session that holds a nil
		return nil, err
	}
	return s, nil
}
