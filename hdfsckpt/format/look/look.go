// Package look reads what formats need to see of a checkpoint's files to judge it: in bounded
// memory, and with errors that show whether a file could not be read, is damaged, or was not
// looked into because that would exceed a bound. Its functions may be called by many goroutines.
package look

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"holdfast/hdfsckpt/limit"
	"holdfast/hdfsckpt/store"
)

// Memory says how many bytes of memory a parser may take for a file of size bytes. It may read
// what says how long the part is that is parsed.
type Memory func(r io.ReaderAt, size int64) (int64, error)

// File has parse read a file when the process has the memory for that (limit.Take). An error of
// the store is returned as it is, one that limit.IsExceeded finds names the file and its size
// and is noted (Noting), and any other is Damaged.
func File(ctx context.Context, s store.Store, name string, memory Memory, parse func(r io.ReaderAt, size int64) error) error {
	r, err := s.Open(ctx, name)
	if err != nil {
		return err
	}
	defer r.Close()
	return Opened(ctx, r, name, memory, parse)
}

// Opened is File of a file that is open.
func Opened(ctx context.Context, r store.Reader, name string, memory Memory, parse func(r io.ReaderAt, size int64) error) error {
	w := Watch(r)
	bytes, err := memory(w, r.Size())
	if err == nil {
		release, taken := limit.Take(ctx, bytes)
		switch {
		case taken == nil:
			err = parse(w, r.Size())
			release()
		case limit.IsExceeded(taken):
			err = taken
		default:
			return taken
		}
	}
	switch {
	case w.Failed() != nil:
		return w.Failed()
	case limit.IsExceeded(err):
		return exceeded(ctx, name, r.Size(), err)
	case err != nil:
		return Damaged(err)
	}
	return nil
}

// Taking calls do, which takes so many bytes of memory to read a file of that name and size, and
// what this names. What exceeds a bound is as File says; other errors are returned as they are.
func Taking(ctx context.Context, name string, size, bytes int64, do func() error) error {
	release, err := limit.Take(ctx, bytes)
	if err == nil {
		err = do()
		release()
	}
	if limit.IsExceeded(err) {
		return exceeded(ctx, name, size, err)
	}
	return err
}

// JSON has a file of at most mostJSON bytes decoded as File does.
func JSON(ctx context.Context, s store.Store, name string, into any) error {
	memory := func(_ io.ReaderAt, size int64) (int64, error) {
		if size > mostJSON {
			return 0, limit.Exceeded("files of JSON are read up to %d bytes", mostJSON)
		}
		return memoryOfJSON * size, nil
	}
	return File(ctx, s, name, memory, func(r io.ReaderAt, size int64) error {
		text := make([]byte, size)
		if n, err := r.ReadAt(text, 0); n < len(text) {
			return fmt.Errorf("it ends at byte %d: %w", n, err)
		}
		return json.Unmarshal(text, into)
	})
}

const (
	mostJSON = 64 << 20
	// memoryOfJSON is how many bytes of memory each of a file may take: a short key and a value
	// take a hundred.
	memoryOfJSON = 16
)

// exceeded notes that a file was not looked into.
func exceeded(ctx context.Context, name string, size int64, why error) error {
	err := fmt.Errorf("%s, of %d bytes, is not looked into: %w", name, size, why)
	if n, ok := ctx.Value(noteKey{}).(*Note); ok {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.err == nil {
			n.err = err
		}
	}
	return err
}

// Note has what was not looked into because it exceeds a bound.
type Note struct {
	mu  sync.Mutex
	err error
}

type noteKey struct{}

// Noting returns a context with which a Note is kept of what exceeds a bound: whatever the
// caller makes of it, of such a checkpoint it is not known whether it is complete.
func Noting(ctx context.Context) (context.Context, *Note) {
	n := &Note{}
	return context.WithValue(ctx, noteKey{}, n), n
}

// Exceeded returns the first that exceeded a bound; nil if nothing did.
func (n *Note) Exceeded() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

// Damaged marks err as that of a file that was read and is not what it should be. What exceeds a
// bound was not read, and is returned as it is.
func Damaged(err error) error {
	if limit.IsExceeded(err) {
		return err
	}
	return damagedError{err}
}

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
