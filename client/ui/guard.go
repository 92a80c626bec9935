package ui

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"

	"holdfast/am/web"
)

// Guard admits to a page of this user's on a port to which all users of the machine, and all
// pages in the user's browser, can connect.
//
// A browser comes with a token in the page's address. It gets it back as a cookie, which
// scripts cannot read, and an address without it. Requests must be for a host that is an IP
// address or one of this machine's names: to a browser, a page of any other name whose
// address is changed to this machine's (DNS rebinding) would be of the same origin.
type Guard struct {
	token, cookie string
	hosts         []string
}

// tokenParameter is the parameter of the address that has the token.
const tokenParameter = "token"

// NewGuard returns a guard with a token of its own, for a server that listens on an address:
// host, as it was asked for, and port, as it was got.
func NewGuard(host, port string) *Guard {
	// Cookies are those of a host, whatever the port, so servers need different ones.
	g := &Guard{token: rand.Text(), cookie: "yarn-submit-ui-" + port, hosts: []string{"localhost", strings.ToLower(host)}}
	if name, err := os.Hostname(); err == nil {
		g.hosts = append(g.hosts, strings.ToLower(name))
	}
	return g
}

// Address returns the address to open, of a server at host:port.
func (g *Guard) Address(hostPort string) string {
	return (&url.URL{Scheme: "http", Host: hostPort, Path: "/", RawQuery: url.Values{tokenParameter: {g.token}}.Encode()}).String()
}

// Wrap returns a handler that passes on to next what is admitted.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	return web.Secured(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.knows(r.Host) {
			web.Fail(w, r, http.StatusForbidden, "This server is not "+r.Host+": open the address that yarn-submit ui has printed, or another of this machine.")
			return
		}
		p := r.URL.Query()
		if g.is(p.Get(tokenParameter)) && r.Method == http.MethodGet {
			http.SetCookie(w, &http.Cookie{Name: g.cookie, Value: g.token, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
			p.Del(tokenParameter)
			to := url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: p.Encode()}
			http.Redirect(w, r, to.String(), http.StatusSeeOther)
			return
		}
		if c, err := r.Cookie(g.cookie); err != nil || !g.is(c.Value) {
			web.Fail(w, r, http.StatusForbidden, "Open the address that yarn-submit ui has printed: it has a token in it, which this browser does not have.")
			return
		}
		next.ServeHTTP(w, r)
	}))
}

func (g *Guard) is(token string) bool {
	return subtle.ConstantTimeCompare([]byte(token), []byte(g.token)) == 1
}

// knows reports whether a request's host is an IP address, or one of this machine's names.
func (g *Guard) knows(hostPort string) bool {
	host := hostPort
	if h, _, err := net.SplitHostPort(hostPort); err == nil {
		host = h
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	return slices.Contains(g.hosts, strings.ToLower(host))
}
