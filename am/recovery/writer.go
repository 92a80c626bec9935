package am

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"google.golang.org/protobuf/encoding/protojson"

	"holdfast/am/core"
	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

const (
	journalVersion = 1
	journalRetry   = 500 * time.Millisecond
	// lastWords bounds the writing of the journal while the job ends.
	lastWords = 5 * time.Second
	// journalPace is how long a change waits to be written that no deed depends on.
	journalPace = 200 * time.Millisecond
)

// journalFile is a file in proto.JournalDir.
type journalFile struct {
	Version int `json:"version"`
	core.Journal
	Imported map[string]imported `json:"imported,omitempty"` // by role: what rehearsals know
}

// imported is a message whose JSON is protobuf's.
type imported struct{ *proto.ImportProfile }

func (i imported) MarshalJSON() ([]byte, error) { return protojson.Marshal(i.ImportProfile) }

func (i *imported) UnmarshalJSON(text []byte) error {
	i.ImportProfile = &proto.ImportProfile{}
	return protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(text, i.ImportProfile)
}

func journalName(attempt int) string {
	return path.Join(proto.JournalDir, fmt.Sprintf("%d.json", attempt))
}

// clerk gives agents their orders, in order, and keeps the journal: what an
// order does is written down before the order leaves. So the loop never waits
// for the store, and an AM that takes over never repeats what was ordered.
// Each AM attempt writes a file of its own: a late one spoils nothing. And it
// gives no order any longer once another has announced itself: that reads the
// journal after it has.
type clerk struct {
	dir  store.Store
	name string
	log  *logrus.Entry

	mu    sync.Mutex
	queue []errand
	wake  chan struct{} // capacity 1

	patient context.Context // ends when orders need not wait for the journal any longer
	hurry   context.CancelFunc

	written []byte // what the file holds

	attempt int // this AM's
	heirs   *Heirs
	heir    chan struct{} // closed once there is one
}

// errand is what one step of core wants said.
type errand struct {
	journal journalFile
	binding bool // an order must not leave before the journal is written
	orders  []func()
}

func newClerk(cfg Config) *clerk {
	c := &clerk{
		dir: cfg.Dir, name: journalName(cfg.Attempt), log: cfg.Log, wake: make(chan struct{}, 1),
		attempt: cfg.Attempt, heirs: NewHeirs(cfg.Dir), heir: make(chan struct{}),
	}
	c.patient, c.hurry = context.WithCancel(context.Background())
	return c
}

// post takes an errand up; it does not wait.
func (c *clerk) post(e errand) {
	c.mu.Lock()
	if n := len(c.queue); n > 0 {
		c.queue[n-1].journal = journalFile{} // of a large job, it is large, and only the latest is written
	}
	c.queue = append(c.queue, e)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run does the errands until ctx ends.
func (c *clerk) run(ctx context.Context) {
	if err := store.MkdirAll(ctx, c.dir, proto.JournalDir, 0o700); err != nil {
		c.log.WithError(err).Warn("making the directory of the job's journal") // writing says it again
	}
	var late <-chan time.Time
	var latest journalFile
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case <-late:
			late = nil
			c.write(ctx, latest)
			continue
		}
		c.mu.Lock()
		queue := c.queue
		c.queue = nil
		c.mu.Unlock()
		if len(queue) == 0 {
			continue
		}
		latest = queue[len(queue)-1].journal
		binding := false
		for _, e := range queue {
			binding = binding || e.binding
		}
		if binding {
			late = nil
			c.write(ctx, latest)
			if c.succeeded(ctx) || ctx.Err() != nil {
				return
			}
		} else if late == nil {
			late = time.After(journalPace)
		}
		for _, e := range queue {
			for _, order := range e.orders {
				order()
			}
		}
	}
}

// write writes the journal, trying until it is there, or ctx ends, or the job
// ends and the store does not answer.
func (c *clerk) write(ctx context.Context, j journalFile) {
	text, err := json.Marshal(j)
	if err != nil {
		panic(err) // numbers and strings, and a message that came as one
	}
	if bytes.Equal(text, c.written) {
		return
	}
	c.insist(ctx, "write the job's journal "+c.dir.URI()+"/"+c.name, func(ctx context.Context) error {
		err := store.WriteFile(ctx, c.dir, c.name, text, 0o600)
		if err == nil {
			c.written = text
		}
		return err
	})
}

// succeeded tells whether another AM has announced itself, as write tries.
func (c *clerk) succeeded(ctx context.Context) bool {
	last := 0
	c.insist(ctx, "look for another application master in "+c.dir.URI(), func(ctx context.Context) (err error) {
		last, err = c.heirs.Last(ctx)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	})
	if last <= c.attempt {
		return false
	}
	c.log.Warnf("application master attempt %d has announced itself; leaving the job", last)
	close(c.heir)
	return true
}

// insist does something with the store until it succeeds, or ctx ends, or the job
// ends and the store does not answer.
func (c *clerk) insist(ctx context.Context, what string, do func(context.Context) error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(c.patient, func() { time.AfterFunc(lastWords, cancel) })
	defer stop()
	said := false
	for {
		err := do(ctx)
		if err == nil && said {
			c.log.Info("the store of the job's journal answers again")
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		if !said {
			said = true
			c.log.WithError(err).Warnf("cannot %s; nothing is started or stopped until that is done", what)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(journalRetry):
		}
	}
}
