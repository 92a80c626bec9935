// Package relay passes requests on to the pages that tasks serve by themselves (--ROLE-web), as
// TensorBoard's: they are below the job's own page, so whoever may see that reaches them, through
// YARN's web proxy too, and nobody needs to reach the node.
//
// What a task answers runs in the browser as a part of the job's page. Both are programs of the
// job's user, as YARN's proxy has them of all users below one address. But a task learns nothing
// of who looks: requests come to it without cookies, credentials and the address of the job's
// page, which on one machine has its key, and it sets no cookies, nor anything else that holds for
// the whole host. It says itself what its pages may load; where it does not, they load nothing from
// other hosts.
//
// YARN's proxy passes on GET and PUT only, and no connection is upgraded: programs that need
// forms or WebSockets (Jupyter) are reached at their node.
package relay

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"
)

const (
	// maxOpen bounds the requests that are passed on at a time, and waitOpen how long another
	// one waits.
	maxOpen  = 32
	waitOpen = 10 * time.Second
	// dialTimeout and headerTimeout bound what a task may take to answer, and stallTimeout the
	// time in which a reader accepts a part of the answer.
	dialTimeout   = 5 * time.Second
	headerTimeout = 40 * time.Second
	stallTimeout  = 20 * time.Second
	// addressValid is how long a task's address is taken for true.
	addressValid = time.Second
)

// policy is the Content-Security-Policy of answers that have none: whatever a page does, it
// loads from its own host only.
const policy = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'self'"

// Relay passes requests on. Its methods may be called concurrently.
type Relay struct {
	find  func(task string) string
	proxy *httputil.ReverseProxy
	open  chan struct{} // has an element for each request that is passed on

	mu    sync.Mutex
	known struct {
		task, address string
		until         time.Time
	}
}

// New returns a relay. find returns the host:port at which a task serves a page; "" if it serves
// none now.
func New(find func(task string) string) *Relay {
	r := &Relay{find: find, open: make(chan struct{}, maxOpen)}
	r.proxy = &httputil.ReverseProxy{
		Rewrite: rewrite, ModifyResponse: modify, ErrorHandler: failed,
		Transport: &http.Transport{
			DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
			ResponseHeaderTimeout: headerTimeout, MaxConnsPerHost: maxOpen, MaxIdleConns: maxOpen, IdleConnTimeout: time.Minute,
			DisableCompression: true, // the browser says what it takes
		},
	}
	return r
}

// Address returns where the relay has a page, relative to the job's page: of a task, at a path.
func Address(task, at string) string { return "web/" + url.PathEscape(task) + at }

// target is where a request goes.
type target struct{ task, address, path string }

type targetKey struct{}

// ServeHTTP passes on a request for web/TASK/PATH.
func (r *Relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	rest := strings.TrimPrefix(req.URL.EscapedPath(), "/web/")
	name, at, slash := strings.Cut(rest, "/")
	task, err := url.PathUnescape(name)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
	default:
		w.Header().Set("Allow", "GET, HEAD, POST")
		http.Error(w, req.Method+" is not passed on to tasks", http.StatusMethodNotAllowed)
		return
	}
	address := r.address(task)
	if address == "" {
		http.Error(w, fmt.Sprintf("%s serves no page now: it does not run, or its role has no --ROLE-web", task), http.StatusNotFound)
		return
	}
	if !slash { // the task's own relative addresses begin below it
		w.Header().Set("Location", name+"/")
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	ctx, cancel := context.WithTimeout(req.Context(), waitOpen)
	defer cancel()
	select {
	case r.open <- struct{}{}:
		defer func() { <-r.open }()
	case <-ctx.Done():
		http.Error(w, "too many requests are passed on to tasks; try again", http.StatusServiceUnavailable)
		return
	}
	// What the job's own pages say does not hold for the task's.
	clear(w.Header())
	req = req.WithContext(context.WithValue(req.Context(), targetKey{}, target{task, address, "/" + at}))
	r.proxy.ServeHTTP(&patient{w, http.NewResponseController(w)}, req)
}

// address returns the address of a task, as of a moment ago: a page asks for many files, and of a
// large job it costs something to find.
func (r *Relay) address(task string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); r.known.task != task || now.After(r.known.until) {
		r.known.task, r.known.address, r.known.until = task, r.find(task), now.Add(addressValid)
	}
	return r.known.address
}

// rewrite makes the request to the task of that to the job's page.
func rewrite(p *httputil.ProxyRequest) {
	to := p.In.Context().Value(targetKey{}).(target)
	u, err := url.ParseRequestURI(to.path)
	if err != nil {
		u = &url.URL{Path: to.path}
	}
	u.Scheme, u.Host, u.RawQuery = "http", to.address, p.In.URL.RawQuery
	p.Out.URL, p.Out.Host = u, to.address
	for _, name := range []string{"Cookie", "Authorization", "Proxy-Authorization", "Referer", "Origin", "Upgrade", "Connection"} {
		p.Out.Header.Del(name)
	}
}

// hostHeaders decide about more than the page that they come with: about its host, where other jobs
// and the cluster have theirs.
var hostHeaders = []string{"Set-Cookie", "Clear-Site-Data", "Strict-Transport-Security", "Service-Worker-Allowed", "Alt-Svc", "NEL", "Report-To"}

// modify makes the answer to the browser of that of the task.
func modify(answer *http.Response) error {
	h := answer.Header
	for _, name := range hostHeaders {
		h.Del(name)
	}
	for name, value := range map[string]string{"Content-Security-Policy": policy, "Cache-Control": "no-store", "Referrer-Policy": "same-origin"} {
		if h.Get(name) == "" {
			h.Set(name, value)
		}
	}
	h.Set("X-Content-Type-Options", "nosniff")
	if to := h.Get("Location"); to != "" {
		h.Set("Location", relative(answer.Request.Context().Value(targetKey{}).(target), to))
	}
	return nil
}

// relative returns where a redirect of a task leads, relative to what was asked for: the task
// does not know below which address it is shown. One to another host stays as it is.
func relative(from target, to string) string {
	u, err := url.Parse(to)
	if err != nil || u.Host != "" && u.Host != from.address {
		return to
	}
	if u.Host == "" && !strings.HasPrefix(u.Path, "/") {
		return to
	}
	up := strings.Repeat("../", strings.Count(from.path, "/")-1)
	u.Scheme, u.Host, u.User = "", "", nil
	return "./" + up + strings.TrimPrefix(u.String(), "/")
}

func failed(w http.ResponseWriter, r *http.Request, err error) {
	to := r.Context().Value(targetKey{}).(target)
	w.Header().Set("Content-Security-Policy", policy)
	http.Error(w, fmt.Sprintf("%s does not answer at http://%s%s: %v. It may still be starting: its log says more.", to.task, to.address, to.path, err), http.StatusBadGateway)
}

// patient allows each part of a long answer its own time, and leaves out what a task says before its
// answer (status 1xx): the headers of that do not come through modify.
type patient struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (p *patient) WriteHeader(status int) {
	if status >= http.StatusOK {
		p.ResponseWriter.WriteHeader(status)
	}
}

func (p *patient) Write(b []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(stallTimeout)) // a test's recorder has none
	return p.ResponseWriter.Write(b)
}

// Unwrap lets a ResponseController find what is wrapped.
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }
