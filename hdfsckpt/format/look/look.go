// Package look reads what formats need to see of a checkpoint's files to judge it: in bounded
// memory, and with errors that show whether a file could not be read or is damaged. Its
// functions may be called by many goroutines.
package look

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/semaphore"

	"holdfast/hdfsckpt/store"
)

// What is read of checkpoints to look at them is bounded, however many are looked at,
// and whatever their files say.
const (
	// budget bounds the memory, in bytes, for all indexes and similar files that this
	// process reads at the same time; each takes about cost times its size.
	budget = 64 << 20
	cost   = 8
)

var looking = semaphore.NewWeighted(budget)

// Budgeted does what takes memory for a file of size bytes when there is room for it.
// One that takes more than the budget is looked at alone.
func Budgeted(ctx context.Context, size int64, do func() error) error {
	n := min(max(size, 1), budget/cost) * cost
	if err := looking.Acquire(ctx, n); err != nil {
		return err
	}
	defer looking.Release(n)
	return do()
}

// Damaged marks err as that of a file that was read and is not what it should be.
func Damaged(err error) error { return damagedError{err} }

type damagedError struct{ error }

func (e damagedError) Unwrap() error { return e.error }

// IsDamaged reports whether an error is marked so.
func IsDamaged(err error) bool {
	_, ok := err.(damagedError)
	return ok
}

// Reader keeps the first error of a file's reader that is not the end of the file, so that
// a file that could not be read can be distinguished from one that is damaged.
type Reader struct {
	r   store.Reader
	mu  sync.Mutex
	err error
}

// Watch returns a Reader of an opened file. Closing that is left to the caller.
func Watch(r store.Reader) *Reader { return &Reader{r: r} }

// ReadAt reads as the reader does.
func (w *Reader) ReadAt(b []byte, off int64) (int, error) {
	n, err := w.r.ReadAt(b, off)
	if err != nil && !errors.Is(err, io.EOF) {
		w.mu.Lock()
		if w.err == nil {
			w.err = err
		}
		w.mu.Unlock()
	}
	return n, err
}

// Failed returns the error that was kept.
func (w *Reader) Failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// ReadAt reads at most limit bytes of a file from an offset on.
func ReadAt(ctx context.Context, s store.Store, name string, from, limit int64) ([]byte, error) {
	r, err := s.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	b := make([]byte, max(0, min(r.Size()-from, limit)))
	n, err := r.ReadAt(b, from)
	if err == io.EOF {
		err = nil
	}
	return b[:n], err
}

// Lacking says which of the files that a checkpoint needs are missing or too short;
// empty if none is.
func Lacking(need, have map[string]int64) string {
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(need)) {
		switch size, ok := have[name]; {
		case !ok:
			wrong = append(wrong, name+" is missing")
		case size < need[name]:
			wrong = append(wrong, fmt.Sprintf("%s has %d bytes, %d are needed", name, size, need[name]))
		}
	}
	const most = 3
	if n := len(wrong) - most; n > 0 {
		wrong = append(wrong[:most], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(wrong, ", ")
}
