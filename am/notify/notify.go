// Package notify posts a job's changes of state to a URL that the user has named. It never
// holds the job up: there is one request at a time, a bounded queue behind it, and a bound
// on the time for which each is tried again.
//
// The URL may hold a secret. What is logged has its scheme and host only.
package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/internal/backoff"
	"holdfast/proto"
)

// Events of notifications.
const (
	Failed    = "failed"    // the job has failed
	Stalled   = "stalled"   // it makes no steps any longer
	Straggler = "straggler" // a task is slower than the others, or does not move for that as was said
	Recovered = "recovered" // a task runs again, a stalled job makes steps again, or a straggler keeps up
	Ended     = "ended"     // it has succeeded or was killed
)

const (
	// maxQueue bounds the notifications that wait; of more, the oldest are dropped.
	maxQueue = 32
	// requestTimeout bounds one request, and tryTime all that is done for one notification.
	requestTimeout = 10 * time.Second
	tryTime        = 30 * time.Second
	// Between the attempts for one notification.
	firstPause = 500 * time.Millisecond
	maxPause   = 8 * time.Second
	// answerRead bounds what is read of an answer.
	answerRead = 4 << 10
)

// Config is what a Notifier needs.
type Config struct {
	URL string
	Log *logrus.Entry
	// Note tells the job's user, once, that notifications do not arrive.
	Note func(text string)
}

// Notifier posts notifications, in the order in which they were added. Run must be called
// for it to do anything; the other methods may be called concurrently.
type Notifier struct {
	cfg    Config
	shown  string // the URL, for people
	client *http.Client
	tries  time.Duration // tryTime, or a test's

	mu      sync.Mutex
	queue   []*proto.Notification
	sending bool
	added   chan struct{} // capacity 1: there may be something to send
	idle    chan struct{} // closed once nothing is left to be sent; nil: nobody waits for it

	noted bool // Run's: Note was called
}

// New returns a notifier.
func New(cfg Config) *Notifier {
	return &Notifier{
		cfg: cfg, shown: proto.ShownURL(cfg.URL), tries: tryTime, added: make(chan struct{}, 1),
		client: &http.Client{
			Timeout: requestTimeout,
			// Another place was not named by the user.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Add has a notification posted. It does not block.
func (n *Notifier) Add(what *proto.Notification) {
	n.mu.Lock()
	n.queue = append(n.queue, what)
	var dropped *proto.Notification
	if len(n.queue) > maxQueue {
		dropped = n.queue[0]
		n.queue = n.queue[1:]
	}
	n.mu.Unlock()
	select {
	case n.added <- struct{}{}:
	default:
	}
	if dropped != nil {
		n.cfg.Log.Warnf("%s takes too long: the notification that %s is dropped, as %d others wait", n.shown, sentence(dropped), maxQueue)
	}
}

// Run posts what is added until ctx ends, and logs what it has not posted by then.
func (n *Notifier) Run(ctx context.Context) {
	for ctx.Err() == nil {
		what := n.next()
		if what == nil {
			select {
			case <-ctx.Done():
			case <-n.added:
			}
			continue
		}
		switch err := n.deliver(ctx, what); {
		case err != nil && ctx.Err() != nil:
			n.tooLate(what)
		case err != nil:
			n.failed(what, err)
		}
	}
	for what := n.next(); what != nil; what = n.next() {
		n.tooLate(what)
	}
}

// Wait waits until all that was added was posted or given up, or for a time.
func (n *Notifier) Wait(limit time.Duration) {
	n.mu.Lock()
	if len(n.queue) == 0 && !n.sending {
		n.mu.Unlock()
		return
	}
	if n.idle == nil {
		n.idle = make(chan struct{})
	}
	idle := n.idle
	n.mu.Unlock()
	select {
	case <-idle:
	case <-time.After(limit):
	}
}

// next takes what is to be posted next off the queue; nil: nothing.
func (n *Notifier) next() *proto.Notification {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.sending = len(n.queue) > 0; !n.sending {
		if n.idle != nil {
			close(n.idle)
			n.idle = nil
		}
		return nil
	}
	what := n.queue[0]
	n.queue = n.queue[1:]
	return what
}

// tooLate records that a notification is not posted any longer.
func (n *Notifier) tooLate(what *proto.Notification) {
	n.cfg.Log.Warnf("%s was not notified that %s: there was no time left for it", n.shown, sentence(what))
}

// failed records that a notification was given up: for the user the first time, and in the
// master's log each time.
func (n *Notifier) failed(what *proto.Notification, err error) {
	n.cfg.Log.WithError(err).Warnf("%s was not notified that %s", n.shown, sentence(what))
	if !n.noted {
		n.noted = true
		n.cfg.Note(fmt.Sprintf("notifications do not reach %s (--notify): %v; this is told once, the log of the application master has the others", n.shown, err))
	}
}

// sentence says what a notification is about.
func sentence(what *proto.Notification) string {
	of := what.Task
	if of == "" {
		of = "the job"
	}
	return of + " " + what.Event
}

// permanentError is an answer by which another attempt is pointless.
type permanentError struct{ error }

// deliver posts a notification, and again if that fails in a way that may pass.
func (n *Notifier) deliver(ctx context.Context, what *proto.Notification) error {
	text, err := proto.JSON(what)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, n.tries)
	defer cancel()
	pause := backoff.New(firstPause, maxPause)
	for {
		err := n.post(ctx, text)
		if err == nil || errors.As(err, new(permanentError)) {
			return err
		}
		if !pause.Wait(ctx) {
			return err
		}
	}
}

// post posts once.
func (n *Notifier) post(ctx context.Context, text []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, n.cfg.URL, bytes.NewReader(text))
	if err != nil {
		return permanentError{withoutURL(err)}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "holdfast")
	answer, err := n.client.Do(r)
	if err != nil {
		return withoutURL(err)
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, answerRead)) // so that the connection can be used again
	switch c := answer.StatusCode; {
	case c >= 200 && c < 300:
		return nil
	case c >= 500, c == http.StatusTooManyRequests, c == http.StatusRequestTimeout:
		return fmt.Errorf("it answers %s", answer.Status)
	default:
		return permanentError{fmt.Errorf("it answers %s", answer.Status)}
	}
}

// withoutURL removes the URL from an error of net/http.
func withoutURL(err error) error {
	if e := (*url.Error)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}
