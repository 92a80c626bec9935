// Package errno turns errors of the store into what the kernel is answered, and logs them:
// the process that asked sees only the errno.
package errno

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/sirupsen/logrus"

	"holdfast/hdfsckpt/mount/gate"
)

// Of returns the errno for an error of the store.
func Of(err error) syscall.Errno {
	var errno syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &errno):
		return errno
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return syscall.EIO
	case errors.Is(err, fs.ErrNotExist):
		return syscall.ENOENT
	case errors.Is(err, fs.ErrExist):
		return syscall.EEXIST
	case errors.Is(err, fs.ErrPermission):
		return syscall.EACCES
	}
	return syscall.EIO
}

// ordinary errors are expected results: they are not logged.
func ordinary(errno syscall.Errno) bool {
	switch errno {
	case syscall.ENOENT, syscall.EEXIST, syscall.ENOTEMPTY, syscall.ENOTDIR,
		syscall.EISDIR, syscall.EINTR, syscall.EINVAL, syscall.ENAMETOOLONG:
		return true
	}
	return false
}

// Logged returns an error that repeats one which was logged when it happened.
func Logged(errno syscall.Errno) error { return &loggedError{errno} }

type loggedError struct{ errno syscall.Errno }

func (e *loggedError) Error() string { return "an earlier operation on it failed: " + e.errno.Error() }
func (e *loggedError) Unwrap() error { return e.errno }

// Log logs errors of operations on a store. Its methods may be called by many goroutines.
type Log struct {
	log   *logrus.Entry
	quiet logLimiter
}

// NewLog returns a Log of the store of that name.
func NewLog(log *logrus.Entry, uri string) *Log {
	return &Log{log: log.WithField("store", uri)}
}

// Fail turns an error of an operation on a file into a status, and logs it.
func (l *Log) Fail(op, name string, err error) fuse.Status {
	errno := Of(err)
	if errno == 0 {
		return fuse.OK
	}
	var told *loggedError
	switch {
	case ordinary(errno), gate.IsClosed(err), errors.As(err, &told):
		l.log.Debugf("%s %s: %v", op, name, err)
	case l.quiet.first(op + " " + name + " " + errno.Error()):
		l.log.Warnf("%s %s failed: %v", op, name, err)
	}
	return fuse.Status(errno)
}

// logLimiter lets through the first of similar messages within some time.
type logLimiter struct {
	mu   sync.Mutex
	seen map[string]time.Time
}

func (q *logLimiter) first(key string) bool {
	const (
		pause = 30 * time.Second
		most  = 1000
	)
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	if t, ok := q.seen[key]; ok && now.Sub(t) < pause {
		return false
	}
	if q.seen == nil || len(q.seen) >= most {
		q.seen = make(map[string]time.Time)
	}
	q.seen[key] = now
	return true
}
