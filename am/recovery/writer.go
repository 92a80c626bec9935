package recovery

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/hdfsckpt/store"
	"holdfast/internal/backoff"
	"holdfast/internal/mailbox"
	"holdfast/proto"
)

const (
	// retryInterval is the wait between two attempts to reach the store.
	retryInterval = 500 * time.Millisecond
	// finalWriteTimeout bounds the writing of the journal once the job ends.
	finalWriteTimeout = 5 * time.Second
	// batchDelay is how long an entry waits to be written on which no message depends.
	batchDelay = 200 * time.Millisecond
)

// JournalWriter writes the journal ahead of the messages that depend on it: a message is
// sent only after the entry that it belongs to is durable, so that a successor never
// repeats what was already ordered. It runs on its own goroutine, so the event loop never
// blocks on the store. Once a successor has announced itself, it sends nothing more.
type JournalWriter struct {
	dir     store.Store
	name    string // of the file
	attempt int    // this master's
	log     *logrus.Entry

	latest  atomic.Pointer[Journal] // only this is written, and a large job's takes memory
	entries *mailbox.Mailbox[Entry] // without their journals

	jobEnds context.Context // done when messages need not wait for the journal any longer
	expire  context.CancelFunc

	written []byte         // the file's content
	sent    chan time.Time // capacity 1: the latest

	address    *AddressReader
	superseded chan struct{} // closed once there is a successor
}

// Entry is the journal after one step of core, and the messages that the step sends.
type Entry struct {
	Journal Journal
	// WriteAhead: the messages must not be sent before the journal is durable.
	WriteAhead bool
	Send       []func()  // in order; they must not block
	Decided    time.Time // when the last of what Send tells was decided
}

// NewJournalWriter returns the writer of a master attempt's journal in the job's
// directory. Run must be called for it to do anything.
func NewJournalWriter(dir store.Store, attempt int, log *logrus.Entry) *JournalWriter {
	w := &JournalWriter{
		dir: dir, name: journalName(attempt), attempt: attempt, log: log, entries: mailbox.New[Entry](),
		address: NewAddressReader(dir), superseded: make(chan struct{}), sent: make(chan time.Time, 1),
	}
	w.jobEnds, w.expire = context.WithCancel(context.Background())
	return w
}

// Sent returns a channel of when what was sent last had been decided: all that was decided until
// then has been sent.
func (w *JournalWriter) Sent() <-chan time.Time { return w.sent }

// Superseded returns a channel that is closed once a successor has announced itself.
func (w *JournalWriter) Superseded() <-chan struct{} { return w.superseded }

// JobEnds bounds what is left to be written: a store that does not answer must not keep
// the job from ending.
func (w *JournalWriter) JobEnds() { w.expire() }

// Enqueue takes an entry. It does not block. It is for one goroutine.
func (w *JournalWriter) Enqueue(e Entry) {
	w.latest.Store(&e.Journal) // first: the journal is never older than an entry that Run takes
	w.entries.Put(Entry{WriteAhead: e.WriteAhead, Send: e.Send, Decided: e.Decided})
}

// Run writes entries and sends their messages until ctx ends or the master is superseded.
func (w *JournalWriter) Run(ctx context.Context) {
	if err := store.MkdirAll(ctx, w.dir, proto.JournalDir, 0o700); err != nil {
		w.log.WithError(err).Warn("creating the directory of the job's journal") // each write reports it again
	}
	var batched <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.entries.Ready():
		case <-batched:
			batched = nil
			w.write(ctx, w.latest.Load())
			continue
		}
		queue := w.entries.Take()
		if len(queue) == 0 {
			continue
		}
		writeAhead := false
		for _, e := range queue {
			writeAhead = writeAhead || e.WriteAhead
		}
		if writeAhead {
			batched = nil
			w.write(ctx, w.latest.Load())
			if w.checkSuccessor(ctx) || ctx.Err() != nil {
				return
			}
		} else if batched == nil {
			batched = time.After(batchDelay)
		}
		var sent time.Time
		for _, e := range queue {
			for _, send := range e.Send {
				send()
				sent = e.Decided
			}
		}
		if !sent.IsZero() {
			select {
			case <-w.sent:
			default:
			}
			w.sent <- sent
		}
	}
}

// write writes the journal. It returns once it is durable, or as retry does.
func (w *JournalWriter) write(ctx context.Context, j *Journal) {
	text, err := json.Marshal(j)
	if err != nil {
		panic(err) // numbers and strings, and messages that were received
	}
	if bytes.Equal(text, w.written) {
		return
	}
	w.retry(ctx, "write the job's journal "+w.dir.URI()+"/"+w.name, func(ctx context.Context) error {
		err := store.WriteFile(ctx, w.dir, w.name, text, 0o600)
		if err == nil {
			w.written = text
		}
		return err
	})
}

// checkSuccessor reports whether a successor has announced itself. It returns false, too,
// where that could not be found out before retry gave up.
func (w *JournalWriter) checkSuccessor(ctx context.Context) bool {
	latest := 0
	w.retry(ctx, "look for another application master in "+w.dir.URI(), func(ctx context.Context) (err error) {
		latest, err = w.address.LatestAttempt(ctx)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	})
	if latest <= w.attempt {
		return false
	}
	w.log.Warnf("application master attempt %d has announced itself; leaving the job", latest)
	close(w.superseded)
	return true
}

// retry calls f until it succeeds, until ctx ends, or until finalWriteTimeout after the
// job's end.
func (w *JournalWriter) retry(ctx context.Context, what string, f func(context.Context) error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(w.jobEnds, func() { time.AfterFunc(finalWriteTimeout, cancel) })
	defer stop()
	warned := false
	for {
		err := f(ctx)
		if err == nil && warned {
			w.log.Info("the store of the job's journal answers again")
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		if !warned {
			warned = true
			w.log.WithError(err).Warnf("cannot %s; nothing is started or stopped until that is done", what)
		}
		backoff.Sleep(ctx, retryInterval)
	}
}
