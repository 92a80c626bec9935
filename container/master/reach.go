package master

import (
	"context"
	"fmt"
	"strings"
	"time"

	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
	"holdfast/internal/backoff"
	"holdfast/proto"
)

// The wait between attempts to reach the AM: of an agent without a task, and of one whose
// task's lease runs. The latter is longer in a job with many tasks, so that all of its agents
// together look up the AM's address at most once per reachSpacing, however long a successor
// takes to start.
const (
	reachPause    = 150 * time.Millisecond
	reachPauseMin = 50 * time.Millisecond
	reachPauseMax = 2 * time.Second
	reachSpacing  = time.Millisecond
	// If no AM has started within reachSoon, YARN has to detect the loss of its node
	// first, which takes minutes: from then on the wait is reachSeldom times as long.
	reachSoon   = 15 * time.Second
	reachSeldom = 20
)

// Reach opens a stream to the job's present application master, for as long as
// ctx lasts, and returns it with the AM's address. An agent without a task, for
// which tasks is 0, tries for reachLimit only; else tasks is how many the job has.
// The first try goes to known, where the AM was last; later ones look up in the
// job's directory whether another has taken over.
func Reach(ctx context.Context, o Options, known string, tasks int) (*Conn, string, error) {
	pause := reachPause
	if tasks > 0 {
		pause = min(max(reachPauseMin, time.Duration(tasks)*reachSpacing), reachPauseMax)
	} else {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, reachLimit)
		defer cancel()
	}
	address := known
	file := addressFile{store: o.JobStore}
	var last error
	refused := map[string]bool{}
	begin, seldom := time.Now(), false
	for {
		c, err := dial(ctx, o, address)
		if err == nil {
			return c, address, nil
		}
		if foreign(err) && !refused[address] {
			refused[address] = true
			o.Log.WithError(err).Warnf("the server at %s is not this job's application master; it is ignored, and the search goes on", address)
		}
		if !seldom && time.Since(begin) > reachSoon {
			seldom, pause = true, pause*reachSeldom
		}
		if ctx.Err() == nil || last == nil {
			last = fmt.Errorf("connecting to the application master at %s: %w", address, err)
		}
		if !backoff.New(pause, pause).Wait(ctx) {
			return nil, known, last
		}
		if now, _, err := file.look(ctx); err == nil {
			address = now.Address
		}
	}
}

// foreign reports whether the server that answered lacks the keys of the job's master. gRPC
// marks errors of a handshake by their text only (http2_client.go), also when a master ends
// during it; errors about keys have crypto/tls's prefix, too.
func foreign(err error) bool {
	text := err.Error()
	return strings.Contains(text, "authentication handshake failed") && strings.Contains(text, "tls: ")
}

// addressFile reads AddressFile, which says where the job's application master is. It
// is for one goroutine.
type addressFile struct {
	store func(context.Context) (store.Store, error)
	last  store.Latest
}

// look returns the file's content, and its state in the store at that time.
func (f *addressFile) look(ctx context.Context) (proto.Address, store.Info, error) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	jobStore, err := f.store(ctx)
	if err == nil {
		err = f.last.Read(ctx, jobStore, proto.AddressFile)
	}
	if err != nil {
		return proto.Address{}, store.Info{}, err
	}
	said, err := proto.UnmarshalAddress(f.last.Text)
	return said, f.last.Info, err
}

// Watch reads AddressFile while no AM answers, which may renew the lease, until ctx ends.
// tasks is how many the job has. heartbeat writes the job's heartbeat in the stores that the
// task writes to, as the AM does otherwise.
func (l *Lease) Watch(ctx context.Context, o Options, tasks int, heartbeat func(ctx context.Context)) {
	pace := max(l.pace(), time.Duration(tasks)*reachSpacing)
	file := addressFile{store: o.JobStore}
	var last time.Time
	for {
		if !backoff.Sleep(ctx, pace) {
			return
		}
		if !l.unanswered() {
			continue
		}
		if time.Since(last) > writers.HeartbeatEvery {
			last = time.Now()
			heartbeat(ctx)
		}
		begin := sinceBoot()
		if said, info, err := file.look(ctx); err == nil {
			l.looked(begin, sinceBoot(), info, said)
		}
	}
}
