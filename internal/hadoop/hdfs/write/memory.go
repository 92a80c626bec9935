package write

import "sync/atomic"

// Memory counts the bytes that open files hold together, and says when they are
// enough. Then each file that is written goes on only when DataNodes have acked
// what it has under way, and sends its packets before they are full: every file
// always gets on, and those that are open but idle hold no more than they were
// given.
type Memory struct {
	limit   int64
	held    atomic.Int64
	relieve func()
}

// NewMemory makes one with a limit in bytes. relieve, if it is not nil, frees memory
// that is held for nobody in particular, as far as it is short; it may be called from
// many goroutines.
func NewMemory(limit int64, relieve func()) *Memory { return &Memory{limit: limit, relieve: relieve} }

// Relieve has memory freed that is held for nobody in particular, if it is short. The
// caller may hold no lock that freeing needs.
func (m *Memory) Relieve() {
	if m.relieve != nil && m.Short() {
		m.relieve()
	}
}

// Add counts n bytes more, or less if it is negative.
func (m *Memory) Add(n int) { m.held.Add(int64(n)) }

// Held returns the number of bytes that are held now.
func (m *Memory) Held() int64 { return m.held.Load() }

// Short says that it is enough.
func (m *Memory) Short() bool { return m.held.Load() > m.limit }
