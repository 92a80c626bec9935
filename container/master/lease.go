package master

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// Lease is how long a task may run, and its mounts may change the store,
// without contact to an application master. It counts from the sending of the last
// heartbeat that was answered, so that it expires before the AM considers it expired,
// independently of the network. It is also renewed while there is no AM that could consider
// it expired (proto/lease.go). Its clock includes the time for which the machine is
// suspended. Its methods may be called from many goroutines.
type Lease struct {
	mu   sync.Mutex
	span time.Duration // 0: no task yet, or no limit
	from time.Duration // since boot
	open time.Duration // when the present stream was opened, since boot
	sent map[int64]time.Duration
	next int64

	master int32         // the attempt of the application whose AM answered last
	answer time.Duration // when the heartbeat was sent that it answered, since boot
	file   store.Info    // AddressFile, as it was seen last
	seen   time.Duration // when it was first seen like that, since boot; 0: not yet
	named  int           // the attempt that it named when it was seen last; 0: none yet
	look   time.Duration // when that look began, since boot
}

// aloneLimit is how long a task may run with no AM at all: longer than YARN waits
// before it starts another, unless it is configured to wait for more than its
// default of 10 minutes.
const aloneLimit = 15 * time.Minute

func sinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(err) // there since Linux 2.6.39
	}
	return time.Duration(t.Nano())
}

// Begin starts the lease. With a span of 0 it has no limit.
func (l *Lease) Begin(span time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.span, l.from = span, sinceBoot()
	l.answer = l.from
}

// Heartbeat records that a heartbeat is sent now, and returns its number.
func (l *Lease) Heartbeat() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sent == nil {
		l.sent = map[int64]time.Duration{}
	}
	l.next++
	l.sent[l.next] = sinceBoot()
	return l.next
}

// Answered records that the AM has answered a heartbeat, and returns when that was sent; 0
// for one of an earlier stream.
func (l *Lease) Answered(number int64, master int32) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	sent, ok := l.sent[number]
	if !ok {
		return 0
	}
	l.from = max(l.from, sent)
	l.answer, l.master, l.seen = l.from, master, 0
	for n := range l.sent {
		if n <= number {
			delete(l.sent, n)
		}
	}
	return sent
}

// pace returns the time between two looks at AddressFile.
func (l *Lease) pace() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return proto.PollInterval(l.span)
}

// unanswered reports whether the AM has been silent for so long that its file should be
// read.
func (l *Lease) unanswered() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.span != 0 && sinceBoot()-l.answer > l.span*3/10
}

// looked takes the state and content of AddressFile, read between two moments, into
// account. An AM that lives touches the file, and a successor replaces it.
func (l *Lease) looked(begin, end time.Duration, file store.Info, said proto.Address) {
	l.mu.Lock()
	defer l.mu.Unlock()
	alone := begin-l.answer < aloneLimit && l.remains() > 0
	switch {
	case said.Ended || int32(said.Attempt) < l.master:
		l.seen = 0
	case l.seen == 0 || file != l.file:
		if alone && l.named != 0 && said.Attempt > l.named { // the successor has come since the last look
			l.from = max(l.from, l.look)
		}
		l.file, l.seen = file, end
	case begin-l.seen >= proto.Untouched(l.span) && alone:
		l.from = max(l.from, begin)
	}
	l.named, l.look = said.Attempt, begin
}

// Connected records that a stream was opened.
func (l *Lease) Connected() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = sinceBoot()
}

// Disconnected forgets the heartbeats of a stream that has ended: they are not answered.
func (l *Lease) Disconnected() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.sent)
}

// Limited reports whether the task may run at all without a master.
func (l *Lease) Limited() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.span != 0
}

// Remaining returns the time until the lease expires; it is not positive afterwards.
func (l *Lease) Remaining() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.remains()
}

func (l *Lease) remains() time.Duration {
	if l.span == 0 {
		return time.Hour
	}
	return l.span - (sinceBoot() - l.from)
}

// Err returns nil until the lease has expired.
func (l *Lease) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.remains() > 0 {
		return nil
	}
	return fmt.Errorf("no application master has answered for %v, which is the task's lease", l.span)
}

// Stale reports whether the AM has been silent for so long, on its present
// stream, that it should be reopened.
func (l *Lease) Stale() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.span != 0 && sinceBoot()-max(l.from, l.open) > proto.StreamTimeout(l.span)
}
