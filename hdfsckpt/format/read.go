package hdfsckpt

import (
	"context"
	"errors"
	"sync"

	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/tfbundle"
)

// ReadIndex reads the index of a TensorFlow checkpoint.
func ReadIndex(ctx context.Context, s store.Store, prefix string) (*tfbundle.Index, error) {
	return readIndex(ctx, s, tfbundle.IndexFile(prefix))
}

// readIndex tells a file that is no index (contentError) from one that could
// not be read.
func readIndex(ctx context.Context, s store.Store, name string) (*tfbundle.Index, error) {
	r, err := s.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	w := &watched{r: r}
	var x *tfbundle.Index
	outOfTime := budgeted(ctx, r.Size(), func() error {
		x, err = tfbundle.Parse(w, r.Size())
		return nil
	})
	if outOfTime != nil {
		return nil, outOfTime
	}
	if err == nil {
		return x, nil
	}
	if w.failed() != nil {
		return nil, errors.Join(err, w.failed())
	}
	return nil, contentError{err}
}

// watched keeps the first error of a reader that is not the end of the file.
type watched struct {
	r   store.Reader
	mu  sync.Mutex
	err error
}

func (w *watched) ReadAt(b []byte, off int64) (int, error) {
	n, err := w.r.ReadAt(b, off)
	if err != nil && !isEOF(err) {
		w.mu.Lock()
		if w.err == nil {
			w.err = err
		}
		w.mu.Unlock()
	}
	return n, err
}

func (w *watched) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
