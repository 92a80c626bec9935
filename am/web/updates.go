package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"holdfast/proto"
)

const (
	// maxStreams bounds the open streams of changes. A page that gets none asks for changes
	// every few seconds.
	maxStreams = 64
	// minPace is the shortest time between two updates of a page, and maxPace the longest.
	minPace = time.Second
	maxPace = 15 * time.Second
	// paceCost is the time between two updates of a page in terms of the time that it takes
	// to make one. Since the open pages share what is made (recent), all together cost twice
	// its inverse, of a core, and what sending them and collecting their garbage takes besides.
	paceCost = 80
	// endPace is the time between two updates while a job ends: its pages end with it.
	endPace = 200 * time.Millisecond
	// aliveInterval is how often something is sent on a stream without changes, so that the
	// end of a reader is noticed.
	aliveInterval = 20 * time.Second
	// sendTimeout is how long a reader may take to accept an event.
	sendTimeout = 10 * time.Second
)

// pace is how often pages are updated, by what they cost. Its methods may be called
// concurrently.
type pace struct{ cost atomic.Int64 }

// took takes in how long it took to make a page.
func (p *pace) took(d time.Duration) { p.cost.Store((3*p.cost.Load() + int64(d)) / 4) }

func (p *pace) get() time.Duration {
	return min(max(minPace, paceCost*time.Duration(p.cost.Load())), maxPace)
}

const (
	// maxMade is how many answers of a kind are made at a time: each takes memory by the size of
	// the job, of which the application master has little. waitMade is how long another one waits.
	maxMade  = 8
	waitMade = 20 * time.Second
	// maxLogs is how many whole logs are read at a time: each has a connection to a DataNode for as
	// long as its reader takes.
	maxLogs = 32
)

// errTooMany is returned to those who have waited for so long.
var errTooMany = errors.New("too many ask for it at the same time; try again")

// turns has an element for each answer that is being made, of as many as are made at a time.
type turns chan struct{}

// wait waits for a turn, and returns what ends it.
func (t turns) wait(ctx context.Context) (over func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, waitMade)
	defer cancel()
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-ctx.Done():
		return nil, errTooMany
	}
}

// handler returns a handler that answers with f when its turn has come. The turn is over when the
// answer was taken: it is large.
func (t turns) handler(f http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		over, err := t.wait(r.Context())
		if err != nil {
			failWith(w, r, err)
			return
		}
		defer over()
		f(w, r)
	})
}

// changes is a stream of server-sent events, one for each change of the job, with a pause
// after each. The last one is "end".
func (s *server) changes(w http.ResponseWriter, r *http.Request) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		http.Error(w, "too many pages are open; this one is updated less often", http.StatusServiceUnavailable)
		return
	}
	control := http.NewResponseController(w)
	send := func(text string) bool {
		// The server's own timeouts are for whole responses.
		_ = control.SetWriteDeadline(time.Now().Add(sendTimeout)) // a test's recorder has none
		_, err := fmt.Fprint(w, text)
		return err == nil && control.Flush() == nil
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if !send("retry: 3000\n\n") || r.Method == http.MethodHead {
		return
	}
	for {
		status, changed := s.Status.Snapshot()
		if changed == nil || status.State.Done() {
			send("event: end\ndata: \n\n")
			return
		}
		pause := s.pace.get()
		if status.State == proto.JobState_JOB_STATE_STOPPING {
			pause = endPace
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(pause):
		}
		select {
		case <-r.Context().Done():
			return
		case <-changed:
			if !send("event: change\ndata: \n\n") {
				return
			}
		case <-time.After(aliveInterval):
			if !send(": \n\n") {
				return
			}
		}
	}
}

// Open pages poll. Requests for the same address within half of the pause between two updates get
// the same page, and pages are made one at a time: the cost does not grow with how many are open.

// recentKept bounds the pages that are kept for others.
const recentKept = 4

// recent are pages that were made a short while ago.
type recent struct {
	mu    sync.Mutex // held while one is made
	pages []recentPage
}

type recentPage struct {
	address string
	begun   time.Time
	text    []byte
}

// get returns a page that was begun less than valid ago, or has it made.
func (c *recent) get(address string, valid time.Duration, makePage func() ([]byte, error)) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	begin := time.Now()
	c.pages = slices.DeleteFunc(c.pages, func(p recentPage) bool { return begin.Sub(p.begun) >= valid })
	for _, p := range c.pages {
		if p.address == address {
			return p.text, nil
		}
	}
	text, err := makePage()
	if err != nil {
		return nil, err
	}
	if len(c.pages) == recentKept {
		c.pages = slices.Delete(c.pages, 0, 1)
	}
	c.pages = append(c.pages, recentPage{address, begin, text})
	return text, nil
}

// shared returns a handler that shows a view which depends on nothing but the job and the query.
// Pages that are told of each change get one that was made after it.
func (s *server) shared(t turns, v view) http.Handler {
	if !s.Polled {
		return s.page(t, v)
	}
	return serve(func(r *http.Request) ([]byte, error) {
		return s.recent.get(r.URL.Path+"?"+r.URL.RawQuery, s.pace.get()/2, func() ([]byte, error) {
			return s.makePage(v, s.snapshot, r.WithContext(context.WithoutCancel(r.Context()))) // others wait for it
		})
	})
}
