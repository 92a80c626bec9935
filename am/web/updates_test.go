package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/am/web"
	"holdfast/proto"
)

// asked counts how often a running job's status is asked for: once for each page that is made.
type asked struct {
	*proto.JobStatus
	times *atomic.Int64
}

func (a asked) Snapshot() (*proto.JobStatus, <-chan struct{}) {
	a.times.Add(1)
	return a.JobStatus, make(chan struct{})
}

// TestOpenPagesShareWhatIsMade: a job's page is made once for all who ask for it at about the
// same time in the same way, and anew after a while; but each time for those who are told of
// each change.
func TestOpenPagesShareWhatIsMade(t *testing.T) {
	const readers = 20
	times := new(atomic.Int64)
	fetch := func(pages http.Handler, address string) {
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, address, nil))
		if w.Code != http.StatusOK || w.Body.Len() == 0 {
			t.Errorf("%s answers %d with %d bytes", address, w.Code, w.Body.Len())
		}
	}
	all := func(pages http.Handler, address string) int64 {
		before := times.Load()
		var wg sync.WaitGroup
		for range readers {
			wg.Go(func() { fetch(pages, address) })
		}
		wg.Wait()
		return times.Load() - before
	}
	site := web.Site{Status: asked{largeJob(300), times}, Polled: true}
	polled := web.Handler(site)
	began := time.Now()
	// The shortest pause between two updates is a second.
	if n := all(polled, "/?sort=cpu"); n == 0 || n > 1+int64(time.Since(began)/(time.Second/2)) {
		t.Errorf("%d readers had the page made %d times within %v", readers, n, time.Since(began))
	}
	if n := all(polled, "/?sort=memory"); n == 0 {
		t.Error("another order of the tasks is answered by the page of the first")
	}
	for before, end := times.Load(), time.Now().Add(time.Minute); times.Load() == before; time.Sleep(10 * time.Millisecond) {
		if fetch(polled, "/?sort=memory"); time.Now().After(end) {
			t.Fatal("the page is never made anew")
		}
	}
	site.Polled = false
	if n := all(web.Handler(site), "/"); n != readers {
		t.Errorf("of %d readers who are told of changes, %d have a page of their own", readers, n)
	}
}

// TestStreamsAreForThosePagesThatHaveThem: through YARN's proxy, which would spend a thread on each
// for as long as somebody waits, there are none; nor do requests that want no body wait.
func TestStreamsAreForThosePagesThatHaveThem(t *testing.T) {
	site := web.Site{Status: asked{largeJob(1), new(atomic.Int64)}}
	ask := func(method string) int {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w := httptest.NewRecorder()
		web.Handler(site).ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, "/changes", nil))
		if ctx.Err() != nil {
			t.Errorf("%s of changes waits", method)
		}
		return w.Code
	}
	if code := ask(http.MethodHead); code != http.StatusOK {
		t.Errorf("HEAD of changes answers %d", code)
	}
	site.Polled = true
	if code := ask(http.MethodGet); code != http.StatusNotFound {
		t.Errorf("through a proxy changes answer %d", code)
	}
}
