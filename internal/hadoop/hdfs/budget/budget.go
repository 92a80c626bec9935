// Package budget bounds the memory that the open files of a client hold together.
package budget

import "sync/atomic"

// Memory bounds the bytes that all open files hold together. Above the limit, each writer
// sends packets before they are full, and waits until DataNodes have acked what it has in
// flight. So every file makes progress, and an idle open file holds at most what was written
// to it.
type Memory struct {
	limit   int64
	held    atomic.Int64
	relieve func()
}

// New returns a Memory with a limit in bytes. relieve, if it is not nil, frees cached data
// until the limit is met; it may be called from many goroutines.
func New(limit int64, relieve func()) *Memory { return &Memory{limit: limit, relieve: relieve} }

// Relieve frees cached data if the limit is exceeded. The caller may hold no lock that this
// needs.
func (m *Memory) Relieve() {
	if m.relieve != nil && m.Short() {
		m.relieve()
	}
}

// Add counts n bytes more, or less if it is negative.
func (m *Memory) Add(n int) { m.held.Add(int64(n)) }

// Held returns the number of bytes that are held now.
func (m *Memory) Held() int64 { return m.held.Load() }

// Short reports whether the limit is exceeded.
func (m *Memory) Short() bool { return m.held.Load() > m.limit }
