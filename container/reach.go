package container

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"holdfast/hdfsckpt"
	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// The wait between tries to reach the AM: of an agent without a task, and of one
// whose task's lease runs. That is longer in a job of many tasks: all of its
// agents together are not to look up the AM's address more often than once in
// reachSpacing, however long another AM takes to come up.
const (
	reachPause    = 150 * time.Millisecond
	reachPauseMin = 50 * time.Millisecond
	reachPauseMax = 2 * time.Second
	reachSpacing  = time.Millisecond
	// Where no AM has come up for reachSoon, it is one whose node YARN has to miss
	// first, which takes minutes: the wait is reachSeldom times as long from then on.
	reachSoon   = 15 * time.Second
	reachSeldom = 20
)

// reach opens a stream to the job's present application master, for as long as
// ctx lasts. The first try goes to known, where the AM was last; later ones
// look up in the job's directory whether another has taken over. pause is the
// wait between two tries, more or less.
func reach(ctx context.Context, cfg Config, dir *jobStore, known string, pause time.Duration) (*line, string, error) {
	address := known
	sign := signpost{dir: dir}
	var last error
	refused := map[string]bool{}
	begin, seldom := time.Now(), false
	for {
		l, err := attend(ctx, cfg, address)
		if err == nil {
			return l, address, nil
		}
		if foreign(err) && !refused[address] {
			refused[address] = true
			cfg.Log.WithError(err).Warnf("who answers at %s is not this job's application master, and is not obeyed; looking on", address)
		}
		if !seldom && time.Since(begin) > reachSoon {
			seldom, pause = true, pause*reachSeldom
		}
		if ctx.Err() == nil || last == nil {
			last = fmt.Errorf("connecting to the application master at %s: %w", address, err)
		}
		select {
		case <-ctx.Done():
			return nil, known, last
		case <-time.After(pause/2 + rand.N(pause)): // not all agents at once
		}
		if now, _, err := sign.look(ctx); err == nil {
			address = now.Address
		}
	}
}

// foreign tells whether somebody answered who has not the keys of the job's master.
// gRPC tells of a handshake by its words only (http2_client.go), and so of a master
// that ended during one; of what is wrong with keys, crypto/tls says that it does.
func foreign(err error) bool {
	text := err.Error()
	return strings.Contains(text, "authentication handshake failed") && strings.Contains(text, "tls: ")
}

// signpost is the file that tells where the job's application master is. It is for
// one goroutine.
type signpost struct {
	dir  *jobStore
	file store.Latest
}

// look returns also what the file is like.
func (s *signpost) look(ctx context.Context) (proto.Address, store.Info, error) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	ckptStore, err := s.dir.open(ctx)
	if err == nil {
		err = s.file.Read(ctx, ckptStore, proto.AddressFile)
	}
	if err != nil {
		return proto.Address{}, store.Info{}, err
	}
	said, err := proto.UnmarshalAddress(s.file.Text)
	return said, s.file.Info, err
}

// keepVigil looks at that file while no AM answers, for the sake of the lease, until
// ctx ends. tasks is how many the job has. In place of the AM, heartbeat writes the
// job's heartbeat where the task writes.
func (l *lease) keepVigil(ctx context.Context, dir *jobStore, tasks int, heartbeat func(ctx context.Context)) {
	pace := max(l.pace(), time.Duration(tasks)*reachSpacing)
	sign := signpost{dir: dir}
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pace):
		}
		if !l.unanswered() {
			continue
		}
		if time.Since(last) > hdfsckpt.HeartbeatEvery {
			last = time.Now()
			heartbeat(ctx)
		}
		begin := sinceBoot()
		if said, info, err := sign.look(ctx); err == nil {
			l.looked(begin, sinceBoot(), info, said)
		}
	}
}
