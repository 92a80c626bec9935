package relay_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"testing"

	"github.com/sirupsen/logrus"

	"holdfast/am/web"
	"holdfast/am/web/access"
	"holdfast/am/web/relay"
	"holdfast/proto"
)

type fixed struct{ *proto.JobStatus }

func (f fixed) Snapshot() (*proto.JobStatus, <-chan struct{}) { return f.JobStatus, nil }

// serve serves a job's page as on this machine, below a key, of a job whose tensorboard-0 serves
// a page with a handler. It returns the address of the job's page.
func serve(t *testing.T, task http.Handler) string {
	t.Helper()
	server := httptest.NewServer(task)
	t.Cleanup(server.Close)
	at := strings.TrimPrefix(server.URL, "http://")
	job := &proto.JobStatus{Name: "job", State: proto.JobState_JOB_STATE_RUNNING, Tasks: []*proto.TaskStatus{
		{Task: "tensorboard-0", State: proto.TaskState_TASK_STATE_RUNNING, RealAddress: at, WebUrl: "http://" + at + "/app/?dark=1"},
		{Task: "worker-0", State: proto.TaskState_TASK_STATE_RUNNING, RealAddress: at},
		{Task: "gone-0", State: proto.TaskState_TASK_STATE_RUNNING, RealAddress: "127.0.0.1:1", WebUrl: "http://127.0.0.1:1/"},
	}}
	page := httptest.NewServer(access.Keyed("k", web.Handler(web.Site{Status: fixed{job}, Relay: true})))
	t.Cleanup(page.Close)
	return page.URL + "/k/"
}

// ask sends a request and does not follow redirects.
func ask(t *testing.T, method, address, body string, header http.Header) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range header {
		r.Header[name] = values
	}
	c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

// TestAPageOfATaskIsPassedOn: whoever may see the job's page sees what a task serves, at any path
// and with any parameters; the task is not told who looks and with what.
func TestAPageOfATaskIsPassedOn(t *testing.T) {
	page := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Set-Cookie", "hadoop.auth=mine; Path=/")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		fmt.Fprintf(w, "%s %s host=%v cookie=%q authorization=%q referer=%q upgrade=%q body=%s", r.Method, r.RequestURI, r.Host == r.Context().Value(http.LocalAddrContextKey).(interface{ String() string }).String(),
			r.Header.Get("Cookie"), r.Header.Get("Authorization"), r.Header.Get("Referer"), r.Header.Get("Upgrade"), body)
	}))
	_, job := ask(t, "GET", page, "", nil)
	if !strings.Contains(job, `<a class="soft" href="web/tensorboard-0/app/?dark=1" rel="noreferrer">page</a>`) {
		t.Errorf("the job's page does not lead to the task's:\n%s", job)
	}
	secret := http.Header{"Cookie": {"proxy-user=amy; hadoop.auth=u"}, "Authorization": {"Negotiate x"}, "Referer": {page}, "Connection": {"Upgrade"}, "Upgrade": {"websocket"}}
	resp, text := ask(t, "GET", page+"web/tensorboard-0/data/a%2Fb?q=1&r=%20x", "", secret)
	if want := `GET /data/a%2Fb?q=1&r=%20x host=true cookie="" authorization="" referer="" upgrade="" body=`; resp.StatusCode != 200 || text != want {
		t.Errorf("the task was asked %d\n%s, want\n%s", resp.StatusCode, text, want)
	}
	if h := resp.Header; h.Get("Set-Cookie") != "" || len(h["Content-Security-Policy"]) != 1 || !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'self'") || len(h["X-Content-Type-Options"]) != 1 || h.Get("Cache-Control") != "no-store" {
		t.Errorf("the answer has %v", h)
	}
	if resp, text := ask(t, "POST", page+"web/tensorboard-0/data", "runs=1", nil); resp.StatusCode != 200 || !strings.HasSuffix(text, "body=runs=1") {
		t.Errorf("a form: %d %s", resp.StatusCode, text)
	}
	for _, c := range []struct {
		method, address string
		status          int
		says            string
	}{
		{"GET", "web/worker-0/", 404, "serves no page"}, {"GET", "web/other-0/", 404, "serves no page"},
		{"GET", "web/gone-0/x", 502, "gone-0 does not answer at http://127.0.0.1:1/x"}, {"DELETE", "web/tensorboard-0/", 405, "DELETE"},
		{"GET", "web/tensorboard-0", 303, ""}, {"GET", "web/", 404, "serves no page"}, {"GET", "web/https:example.org", 404, "serves no page"},
	} {
		if resp, text := ask(t, c.method, page+c.address, "", nil); resp.StatusCode != c.status || !strings.Contains(text, c.says) || c.status == 303 && resp.Header.Get("Location") != "tensorboard-0/" {
			t.Errorf("%s %s answers %d, %v: %s", c.method, c.address, resp.StatusCode, resp.Header, text)
		}
	}
	// The ACL of the job's page is before it.
	if resp, text := ask(t, "GET", strings.Replace(page, "/k/", "/x/", 1)+"web/tensorboard-0/", "", nil); resp.StatusCode != http.StatusForbidden {
		t.Errorf("without the key: %d %s", resp.StatusCode, text)
	}
	closed := access.ProxyFilter{Proxies: []string{"127.0.0.1"}, Allowed: func(user string) bool { return user == "amy" }}
	asked := 0
	filtered := httptest.NewServer(closed.Wrap(relay.New(func(string) string { asked++; return "" })))
	defer filtered.Close()
	for user, want := range map[string]int{"amy": http.StatusNotFound, "bob": http.StatusForbidden} {
		closed.Log = quiet()
		if resp, text := ask(t, "GET", filtered.URL+"/web/tensorboard-0/", "", http.Header{"Cookie": {"proxy-user=" + user}}); resp.StatusCode != want {
			t.Errorf("%s is answered %d %s", user, resp.StatusCode, text)
		}
	}
	if asked != 1 {
		t.Errorf("a task was looked for %d times", asked)
	}
}

// TestAPolicyOfATaskHolds: one that a task's page has is kept, in place of the job's.
func TestAPolicyOfATaskHolds(t *testing.T) {
	page := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'")
		w.Header().Set("Cache-Control", "max-age=60")
	}))
	resp, _ := ask(t, "GET", page+"web/tensorboard-0/", "", nil)
	if h := resp.Header; len(h["Content-Security-Policy"]) != 1 || h.Get("Content-Security-Policy") != "default-src 'none'" || len(h["Cache-Control"]) != 1 || h.Get("Cache-Control") != "max-age=60" {
		t.Errorf("the answer has %v", h)
	}
}

// TestATaskDecidesAboutItsPagesOnly: what an answer says of its host, and of what browsers keep of
// that, would hold for all jobs' pages and the cluster's own.
func TestATaskDecidesAboutItsPagesOnly(t *testing.T) {
	ofHost := []string{"Set-Cookie", "Strict-Transport-Security", "Clear-Site-Data", "Service-Worker-Allowed", "Alt-Svc", "NEL", "Report-To"}
	page := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, name := range append(ofHost, "X-Own") {
			w.Header().Set(name, "x")
		}
	}))
	resp, _ := ask(t, "GET", page+"web/tensorboard-0/", "", nil)
	for _, name := range ofHost {
		if resp.Header.Get(name) != "" {
			t.Errorf("a task sets %s", name)
		}
	}
	if resp.Header.Get("X-Own") == "" {
		t.Error("a header of the page alone is gone")
	}
}

// TestATaskSaysNothingBeforeItsAnswer: what it sends ahead, as hints to load, would come with headers that
// nobody has looked through.
func TestATaskSaysNothingBeforeItsAnswer(t *testing.T) {
	page := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Set-Cookie", "hadoop.auth=mine; Path=/")
		w.Header().Set("Clear-Site-Data", "x")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("Set-Cookie")
		w.Header().Del("Clear-Site-Data")
		_, _ = io.WriteString(w, "answer")
	}))
	ahead := http.Header{}
	r, err := http.NewRequest(http.MethodGet, page+"web/tensorboard-0/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r = r.WithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(_ int, h textproto.MIMEHeader) error {
		ahead = http.Header(h)
		return nil
	}}))
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || string(text) != "answer" {
		t.Errorf("the answer is %q, %v", text, err)
	}
	if len(ahead) > 0 {
		t.Errorf("before its answer a task says %v", ahead)
	}
	if h := resp.Header; h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'self'") {
		t.Errorf("the answer after it has %v", h)
	}
}

// TestRedirectsOfATask: they stay below the task's address, of which the task knows nothing.
func TestRedirectsOfATask(t *testing.T) {
	page := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", strings.ReplaceAll(r.URL.Query().Get("to"), "HOST", r.Host))
		w.WriteHeader(http.StatusFound)
	}))
	for _, c := range []struct{ from, to, want string }{
		{"", "/lab", "web/tensorboard-0/lab"}, {"", "lab/?x=1", "web/tensorboard-0/lab/?x=1"}, {"a/b/c", "/lab?x=1#y", "web/tensorboard-0/lab?x=1#y"}, {"a/b/", "/", "web/tensorboard-0/"},
		{"a/b/c", "http://HOST/d", "web/tensorboard-0/d"}, {"a", "../a/", "web/a/"},
	} {
		resp, _ := ask(t, "GET", page+"web/tensorboard-0/"+c.from+"?to="+url.QueryEscape(c.to), "", nil)
		got, err := resp.Location()
		if err != nil || got.String() != page+c.want {
			t.Errorf("a redirect of %q to %q leads to %v (%v), want %s", c.from, c.to, got, err, c.want)
		}
	}
	if resp, _ := ask(t, "GET", page+"web/tensorboard-0/?to=https://example.org/x", "", nil); resp.Header.Get("Location") != "https://example.org/x" {
		t.Errorf("a redirect to another host leads to %q", resp.Header.Get("Location"))
	}
}

func quiet() *logrus.Entry {
	l := logrus.New()
	l.SetOutput(io.Discard)
	return logrus.NewEntry(l)
}

// TestPathsOfATask: what a task is asked for is as the browser asks for it, whatever the paths are
// like that it has chosen.
func TestPathsOfATask(t *testing.T) {
	page := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RequestURI) }))
	for _, path := range []string{"/", "//", "/a//b", "/a//b.json?x=//", "/a%2F%2Fb", "/a/./b", "/..%2Fx", "/a%20b;c"} {
		if resp, text := ask(t, "GET", page+"web/tensorboard-0"+path, "", nil); resp.StatusCode != 200 || text != path {
			t.Errorf("%s is asked for as %d %s (%v)", path, resp.StatusCode, text, resp.Header["Location"])
		}
	}
}
