// Package access is who may see the pages of a job: those whom YARN's web proxy lets through,
// or on one machine those who know the address; and the bounds of what any of them can hold.
package access

import (
	"bytes"
	"cmp"
	"context"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/am/web"
)

// ProxyFilter passes on requests of YARN's web proxy, if the user may see the job. It
// redirects all others to the proxy. It follows AmIpFilter of
// hadoop-yarn-server-web-proxy.
//
// Without TLS, the proxy is recognized by its address alone, and is trusted to name the
// user: whoever can connect from the proxy's host can claim to be any user. With TLS, the
// proxy proves that it holds the key of the ResourceManager's authority
// (yarn.resourcemanager.application-https.policy).
type ProxyFilter struct {
	// Proxies are the hosts of the proxies, and URLs where browsers are redirected, each
	// with a proxy's /proxy/JOB at its end.
	Proxies, URLs []string
	// Certificate (DER) is what a proxy must present in TLS; nil: its address counts.
	Certificate []byte
	// Allowed reports whether a user may see the job. The name is empty where the proxy has
	// not authenticated anybody.
	Allowed func(user string) bool
	Log     *logrus.Entry

	mu        sync.Mutex
	addresses []netip.Addr
	resolved  time.Time
}

const (
	// userCookie is WebAppProxyServlet.PROXY_USER_COOKIE_NAME.
	userCookie = "proxy-user"
	// addressesValid is how long a host's addresses are used, and recheckAddresses how long
	// when a request comes from another address, since a proxy may have moved.
	addressesValid   = 5 * time.Minute
	recheckAddresses = 10 * time.Second
	// lookUpTimeout bounds the look-up of all of them.
	lookUpTimeout = 5 * time.Second
	// probeTimeout is how long a proxy may take to answer.
	probeTimeout = 2 * time.Second
)

// Wrap returns a handler that passes the filter's requests to next.
func (f *ProxyFilter) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if !f.fromProxy(r) {
			w.Header().Set("Connection", "close") // it goes elsewhere
			http.Redirect(w, r, f.redirect(r), http.StatusFound)
			return
		}
		user := ""
		if c, err := r.Cookie(userCookie); err == nil {
			if user, err = url.QueryUnescape(c.Value); err != nil {
				user = "" // not written by a proxy
			}
		}
		switch {
		case f.Allowed(user):
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
		case user == "":
			web.Fail(w, r, http.StatusForbidden, "This job may be seen by some users only, and the cluster's web pages do not ask who you are (hadoop.http.authentication.type). Use yarn-submit status.")
		default:
			f.Log.WithField("user", user).Info("the job's page was refused to a user whom its view ACL does not name")
			web.Fail(w, r, http.StatusForbidden, "The user "+user+" may not see this job: its user can name others with --view-acl when it is started.")
		}
	})
}

// userKey is the key of the user in a request's context.
type userKey struct{}

// User returns the user of a request that a ProxyFilter has passed on; empty where the proxy has
// not authenticated anybody.
func User(r *http.Request) string {
	user, _ := r.Context().Value(userKey{}).(string)
	return user
}

func (f *ProxyFilter) fromProxy(r *http.Request) bool {
	if f.Certificate != nil {
		return r.TLS != nil && len(r.TLS.PeerCertificates) > 0 && bytes.Equal(r.TLS.PeerCertificates[0].Raw, f.Certificate)
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	addr := from.Addr().Unmap().WithZone("")
	return slices.Contains(f.resolve(r.Context(), addressesValid), addr) ||
		slices.Contains(f.resolve(r.Context(), recheckAddresses), addr)
}

// resolve returns the proxies' addresses as of age ago or later.
func (f *ProxyFilter) resolve(ctx context.Context, age time.Duration) []netip.Addr {
	f.mu.Lock()
	known, at := f.addresses, f.resolved
	f.mu.Unlock()
	if !at.IsZero() && time.Since(at) < age {
		return known
	}
	// The addresses are for later requests, too: the end of this one must not matter.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookUpTimeout)
	defer cancel()
	var found []netip.Addr
	for _, host := range f.Proxies {
		list, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			f.Log.WithError(err).Warn("the host of YARN's web proxy cannot be found; where it was before counts, if that is known")
			found = append(found, known...)
			continue
		}
		for _, a := range list {
			found = append(found, a.Unmap())
		}
	}
	slices.SortFunc(found, netip.Addr.Compare)
	found = slices.Compact(found)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.addresses, f.resolved = found, time.Now()
	return found
}

// redirect returns the URL at which the proxy serves what was requested.
func (f *ProxyFilter) redirect(r *http.Request) string {
	// By /redirect the proxy can tell that it was redirected from here, and does not loop
	// (WebAppProxyServlet.handleRedirect).
	to := strings.Replace(f.activeProxy(r.Context()), "/proxy/", "/proxy/redirect/", 1) + r.URL.EscapedPath()
	if r.URL.RawQuery != "" {
		to += "?" + r.URL.RawQuery
	}
	return to
}

// activeProxy returns the URL to redirect browsers to: that of the active ResourceManager
// (IsResourceManagerActiveServlet), or else of the first that answers at all. Hadoop 3.1 has
// no such servlet: there, a ResourceManager on standby redirects (RMWebAppFilter), and the
// active one does not find it.
func (f *ProxyFilter) activeProxy(ctx context.Context) string {
	if len(f.URLs) == 1 {
		return f.URLs[0]
	}
	answering := ""
	for _, u := range f.URLs {
		root, _, _ := strings.Cut(u, "/proxy/")
		switch status := probe(ctx, root+"/isActive"); {
		case status == http.StatusOK, status == http.StatusNotFound:
			return u
		case status != 0 && answering == "":
			answering = u
		}
	}
	return cmp.Or(answering, f.URLs[0])
}

// probe returns the HTTP status that a server answers with; 0: it does not answer.
func probe(ctx context.Context, url string) int {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// Keyed serves a handler below /KEY/ only. It protects a page on a loopback address, to
// which every user of this machine can connect.
func Keyed(key string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, _, found := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if subtle.ConstantTimeCompare([]byte(given), []byte(key)) != 1 || !found {
			web.Fail(w, r, http.StatusForbidden, "Open this page at the address that yarn-submit status tells.")
			return
		}
		http.StripPrefix("/"+key, next).ServeHTTP(w, r)
	})
}
