package container

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// lease is how long a task may run, and its mounts may change the store,
// without word from an application master. It counts from the moment in which
// the last beat was sent that was answered, so that it ends before the AM takes
// it for ended, whatever becomes of the network. The clock is one that goes on
// while the machine sleeps. Its methods may be called from many goroutines.
type lease struct {
	mu   sync.Mutex
	span time.Duration // 0: no task yet, or no limit
	from time.Duration // since boot
	line time.Duration // when the present stream was opened, since boot
	sent map[int64]time.Duration
	next int64
}

func sinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(err) // there since Linux 2.6.39
	}
	return time.Duration(t.Nano())
}

// begin starts it.
func (l *lease) begin(span time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.span, l.from = span, sinceBoot()
}

// beat notes that a beat is sent now, and returns its number.
func (l *lease) beat() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sent == nil {
		l.sent = map[int64]time.Duration{}
	}
	l.next++
	l.sent[l.next] = sinceBoot()
	return l.next
}

// answered notes that the AM has got a beat, and returns when it was sent; 0
// for one of an earlier stream.
func (l *lease) answered(number int64) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	sent, ok := l.sent[number]
	if !ok {
		return 0
	}
	l.from = max(l.from, sent)
	for n := range l.sent {
		if n <= number {
			delete(l.sent, n)
		}
	}
	return sent
}

// reached notes that a stream was opened.
func (l *lease) reached() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.line = sinceBoot()
}

// broken forgets the beats of a stream that is gone: nobody will answer them.
func (l *lease) broken() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.sent)
}

// limited tells whether the task may run at all without a master.
func (l *lease) limited() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.span != 0
}

// left is what remains; it is not positive once the lease has ended.
func (l *lease) left() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.remains()
}

func (l *lease) remains() time.Duration {
	if l.span == 0 {
		return time.Hour
	}
	return l.span - (sinceBoot() - l.from)
}

// over is an error once the lease has ended.
func (l *lease) over() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.remains() > 0 {
		return nil
	}
	return fmt.Errorf("no application master has answered for %v, which is the task's lease", l.span)
}

// doubtful tells whether the AM has been silent for so long, on its present
// stream, that this had better be opened anew.
func (l *lease) doubtful() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.span != 0 && sinceBoot()-max(l.from, l.line) > l.span/2
}
