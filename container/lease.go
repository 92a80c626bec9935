package container

import (
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// lease is how long the task may run, and commit to its checkpoint directory,
// without hearing from the application master, which waits for longer than that
// before it starts the task elsewhere. It may be used by many goroutines.
//
// The clock goes on while the machine sleeps, and is not set by anybody
// (CLOCK_BOOTTIME, clock_gettime(2)). A process that was stopped for a while
// therefore finds its lease over when it goes on.
type lease struct {
	length time.Duration // 0: without end
	until  atomic.Int64  // by clock
}

func newLease(length time.Duration) *lease {
	l := &lease{length: length}
	l.until.Store(clock() + int64(length))
	return l
}

// clock is in nanoseconds.
func clock() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return time.Now().UnixNano() // Linux before 2.6.39
	}
	return t.Nano()
}

// renew takes in that the AM has answered what was sent at a time.
func (l *lease) renew(sent int64) {
	until := sent + int64(l.length)
	for {
		old := l.until.Load()
		if until <= old || l.until.CompareAndSwap(old, until) {
			return
		}
	}
}

// over says why the task may not go on; nil if it may.
func (l *lease) over() error {
	if late := clock() - l.until.Load(); l.length > 0 && late > 0 {
		return fmt.Errorf("the application master has not been heard of for %v, so another may have this task by now",
			(l.length + time.Duration(late)).Round(time.Second/10))
	}
	return nil
}
