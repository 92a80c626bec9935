package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/am/status/samples"
	"holdfast/am/web"
	"holdfast/hdfsckpt/store"
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
	measured := samples.New("job", time.Now(), nil)
	site := web.Site{Status: asked{largeJob(300), times}, Polled: true, Samples: source(measured)}
	polled := web.Handler(site)
	for _, address := range []string{"/?sort=cpu", "/plots?sort=cpu"} {
		began := time.Now()
		// The shortest pause between two updates is a second.
		if n := all(polled, address); n == 0 || n > 1+int64(time.Since(began)/(time.Second/2)) {
			t.Errorf("%d readers had %s made %d times within %v", readers, address, n, time.Since(began))
		}
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

// awaited is a running job's status, and its samples, for which all who ask wait until a gate is
// open.
type awaited struct {
	*proto.JobStatus
	waiting *atomic.Int64
	gate    chan struct{}
}

func (c awaited) wait() {
	c.waiting.Add(1)
	defer c.waiting.Add(-1)
	<-c.gate
}

func (c awaited) Snapshot() (*proto.JobStatus, <-chan struct{}) {
	c.wait()
	return c.JobStatus, make(chan struct{})
}

// TestManyReadersDoNotTakeTheMemory: however many ask at the same time, and for what, few answers are
// made at a time, of which each takes memory; and all are made.
func TestManyReadersDoNotTakeTheMemory(t *testing.T) {
	logs, err := store.NewLocal(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close()
	log := path.Join(proto.LogsDir, "worker-0", proto.LogName(0, 0))
	if err = store.MkdirAll(t.Context(), logs, path.Dir(log), 0o700); err == nil {
		err = store.WriteFile(t.Context(), logs, log, []byte("a line\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for address, most := range map[string]int64{
		"/": 8, "/task?task=worker-0": 8, "/plots": 8, "/status.json": 8, "/samples.json?task=*": 1, "/samples.csv?name=step": 1,
		"/log?task=worker-0&attempt=0": 32,
	} {
		t.Run(address, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := awaited{largeJob(10), new(atomic.Int64), make(chan struct{})}
				measured := samples.New("job", time.Now(), nil)
				site := web.Site{Status: c, Files: logs, Samples: func(_ context.Context, r *proto.SamplesRequest) (*proto.JobSamples, error) {
					return measured.Select(r), nil
				}}
				pages := web.Handler(site)
				var all sync.WaitGroup
				for range 50 {
					all.Go(func() {
						w := httptest.NewRecorder()
						if pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, address, nil)); w.Code != http.StatusOK {
							t.Errorf("it answers %d: %s", w.Code, w.Body)
						}
					})
				}
				if synctest.Wait(); c.waiting.Load() != most {
					t.Errorf("%d answers are made at a time, want %d", c.waiting.Load(), most)
				}
				close(c.gate)
				all.Wait()
			})
		})
	}
	// Who waits in vain is told so.
	synctest.Test(t, func(t *testing.T) {
		c := awaited{largeJob(10), new(atomic.Int64), make(chan struct{})}
		pages := web.Handler(web.Site{Status: c})
		codes := make(chan int, 9)
		for range cap(codes) {
			go func() {
				w := httptest.NewRecorder()
				pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/status.json", nil))
				codes <- w.Code
			}()
		}
		if code := <-codes; code != http.StatusServiceUnavailable {
			t.Errorf("the ninth is answered %d", code)
		}
		close(c.gate)
		for range cap(codes) - 1 {
			<-codes
		}
	})
}

// stalled is the answer to somebody who does not take it before a gate is open.
type stalled struct {
	*httptest.ResponseRecorder
	gate chan struct{}
}

func (s stalled) Write(b []byte) (int, error) {
	<-s.gate
	return s.ResponseRecorder.Write(b)
}

// TestWhoTakesNoAnswerKeepsNobodyFromTheirs: a page that was made waits for its reader without
// others waiting for that.
func TestWhoTakesNoAnswerKeepsNobodyFromTheirs(t *testing.T) {
	for _, polled := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			pages := web.Handler(web.Site{Status: asked{largeJob(10), new(atomic.Int64)}, Polled: polled})
			gate := make(chan struct{})
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() {
					pages.ServeHTTP(stalled{httptest.NewRecorder(), gate}, httptest.NewRequest(http.MethodGet, "/", nil))
				})
			}
			synctest.Wait()
			w := httptest.NewRecorder()
			if pages.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil)); w.Code != http.StatusOK {
				t.Errorf("while 50 take no answer, another is answered %d", w.Code)
			}
			close(gate)
			all.Wait()
		})
	}
}
