package browser

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"holdfast/am/web"
	"holdfast/proto"
)

// running is a job that runs, and of which nothing new is heard.
type running struct{ *proto.JobStatus }

func (r running) Snapshot() (*proto.JobStatus, <-chan struct{}) {
	return r.JobStatus, make(chan struct{})
}

// TestWhatIsNotThePage: where a proxy answers in place of a page, as YARN's does with the
// ResourceManager's own pages once a job has ended or a session has, the page says that what it
// shows is old.
func TestWhatIsNotThePage(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var elsewhere atomic.Bool
	pages := web.Handler(web.Site{Status: running{&proto.JobStatus{Name: "mnist", State: proto.JobState_JOB_STATE_RUNNING, StartedUnixMs: 1}}, Polled: true})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !elsewhere.Load() {
			pages.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<!DOCTYPE html><title>Application application_1_0001</title><body><div id="rows">the ResourceManager's own</div></body>`)) // the browser went away
	}))
	defer server.Close()
	b := newBrowser(ctx, t, true)
	b.open(server.URL + "/#50%")
	b.waitFor(".title .state", "running")
	elsewhere.Store(true)
	b.until("the page to say that it is old", `!document.getElementById("connection").hidden`)
	b.until("the page to be the job's", `document.title.startsWith("mnist") && !document.body.textContent.includes("own")`)
	elsewhere.Store(false)
	b.until("the page to be present again", `document.getElementById("connection").hidden`)
}

// TestPagesThatNobodySees: a page that is told of changes has a connection for that only while it
// can be seen. Browsers open six to a host, and tabs stay open for days.
func TestPagesThatNobodySees(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	opened, closed := make(chan struct{}, 100), make(chan struct{}, 100)
	pages := web.Handler(web.Site{Status: running{&proto.JobStatus{Name: "mnist", State: proto.JobState_JOB_STATE_RUNNING, StartedUnixMs: 1}}})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/changes") {
			opened <- struct{}{}
			defer func() { closed <- struct{}{} }()
		}
		pages.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close) // after the browser has ended
	b := newBrowser(ctx, t, true)
	b.open(server.URL)
	wait := func(what string, c chan struct{}) {
		t.Helper()
		select {
		case <-c:
		case <-ctx.Done():
			t.Fatalf("the stream of changes is never %s", what)
		}
	}
	see := func(hidden string) {
		b.until("the page to be seen or not", `Object.defineProperty(document, "hidden", { value: `+hidden+`, configurable: true }), document.dispatchEvent(new Event("visibilitychange")), true`)
	}
	wait("opened", opened)
	for range 2 {
		see("true")
		wait("closed", closed)
		see("false")
		wait("opened", opened)
	}
	if len(opened) != 0 || len(closed) != 0 {
		t.Errorf("%d more streams were opened, and %d closed", len(opened), len(closed))
	}
}
