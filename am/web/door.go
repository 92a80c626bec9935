package web

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
)

// Door lets requests of YARN's web proxy in, and of them those of users who may
// see the job. Everybody else is sent to the proxy. It follows AmIpFilter of
// hadoop-yarn-server-web-proxy.
//
// Without TLS the proxy is known by its address alone, and its word on who the
// user is is believed: whoever can send from the host of the proxy can claim to
// be anybody. With TLS the proxy proves that it holds the key of the
// ResourceManager's authority (yarn.resourcemanager.application-https.policy).
type Door struct {
	// Proxies are the hosts that proxies send from, and URLs where browsers are
	// sent, each with a proxy's /proxy/JOB at its end.
	Proxies, URLs []string
	// Certificate (DER) is what a proxy must show in TLS; nil: its address counts.
	Certificate []byte
	// Allowed tells whether a user may see the job; the name is empty where the
	// proxy has not authenticated anybody.
	Allowed func(user string) bool
	Log     *logrus.Entry

	mu        sync.Mutex
	addresses []netip.Addr
	resolved  time.Time
}

const (
	// userCookie is WebAppProxyServlet.PROXY_USER_COOKIE_NAME.
	userCookie = "proxy-user"
	// keepAddresses is how long a host's addresses are believed, and
	// doubtAddresses how long if somebody else knocks: a proxy may have moved.
	keepAddresses  = 5 * time.Minute
	doubtAddresses = 10 * time.Second
	// lookUp is how long looking up all of them may take.
	lookUp = 5 * time.Second
	// tryProxy is how long a proxy may take to answer.
	tryProxy = 2 * time.Second
)

// Guard puts the door before a handler.
func (d *Door) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if !d.fromProxy(r) {
			http.Redirect(w, r, d.redirect(r), http.StatusFound)
			return
		}
		user := ""
		if c, err := r.Cookie(userCookie); err == nil {
			if user, err = url.QueryUnescape(c.Value); err != nil {
				user = "" // not written by a proxy
			}
		}
		switch {
		case d.Allowed(user):
			next.ServeHTTP(w, r)
		case user == "":
			http.Error(w, "This job may be seen by some users only, and the cluster's web pages do not ask who you are (hadoop.http.authentication.type). Use yarn-submit status.", http.StatusForbidden)
		default:
			d.Log.WithField("user", user).Info("the job's page was refused to a user whom its view ACL does not name")
			http.Error(w, "The user "+user+" may not see this job: its user can name others with --view-acl when it is started.", http.StatusForbidden)
		}
	})
}

func (d *Door) fromProxy(r *http.Request) bool {
	if d.Certificate != nil {
		return r.TLS != nil && len(r.TLS.PeerCertificates) > 0 && bytes.Equal(r.TLS.PeerCertificates[0].Raw, d.Certificate)
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	addr := from.Addr().Unmap().WithZone("")
	return slices.Contains(d.resolve(r.Context(), keepAddresses), addr) ||
		slices.Contains(d.resolve(r.Context(), doubtAddresses), addr)
}

// resolve returns the proxies' addresses, at most so old.
func (d *Door) resolve(ctx context.Context, age time.Duration) []netip.Addr {
	d.mu.Lock()
	known, at := d.addresses, d.resolved
	d.mu.Unlock()
	if !at.IsZero() && time.Since(at) < age {
		return known
	}
	// That one who asked has gone is no word on where the proxies are.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookUp)
	defer cancel()
	var found []netip.Addr
	for _, host := range d.Proxies {
		list, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			d.Log.WithError(err).Warn("the host of YARN's web proxy cannot be found; where it was before counts, if that is known")
			found = append(found, known...)
			continue
		}
		for _, a := range list {
			found = append(found, a.Unmap())
		}
	}
	slices.SortFunc(found, netip.Addr.Compare)
	found = slices.Compact(found)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.addresses, d.resolved = found, time.Now()
	return found
}

// redirect is where the proxy has what was asked for.
func (d *Door) redirect(r *http.Request) string {
	// By /redirect the proxy knows that it must not come back here for its own
	// request (WebAppProxyServlet.handleRedirect).
	to := strings.Replace(d.proxy(r.Context()), "/proxy/", "/proxy/redirect/", 1) + r.URL.EscapedPath()
	if r.URL.RawQuery != "" {
		to += "?" + r.URL.RawQuery
	}
	return to
}

// proxy is where browsers are sent: to the ResourceManager that says that it is
// the active one (IsResourceManagerActiveServlet), or else to the first that
// answers at all.
func (d *Door) proxy(ctx context.Context) string {
	if len(d.URLs) == 1 {
		return d.URLs[0]
	}
	answering := ""
	for _, u := range d.URLs {
		root, _, _ := strings.Cut(u, "/proxy/")
		switch status := ask(ctx, root+"/isActive"); {
		case status == http.StatusOK:
			return u
		case status != 0 && answering == "":
			answering = u
		}
	}
	return cmp.Or(answering, d.URLs[0])
}

// ask returns the status that a server answers with; 0: it does not answer.
func ask(ctx context.Context, url string) int {
	ctx, cancel := context.WithTimeout(ctx, tryProxy)
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

// Keyed serves a handler below /KEY/ only, for a page that nobody but those who
// know its address may see: on this machine everybody can connect.
func Keyed(key string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, _, found := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if subtle.ConstantTimeCompare([]byte(given), []byte(key)) != 1 || !found {
			http.Error(w, "Open this page at the address that yarn-submit status tells.", http.StatusForbidden)
			return
		}
		http.StripPrefix("/"+key, next).ServeHTTP(w, r)
	})
}
