package container

import (
	"context"
	"sync"

	"holdfast/hdfsckpt/store"
)

// jobStore is the job's directory, opened at its first use, so that a slow store does not
// delay the start. Its methods may be called from many goroutines.
type jobStore struct {
	uri    string
	stores *store.Opener

	mu    sync.Mutex
	store store.Store
}

func (j *jobStore) open(ctx context.Context) (store.Store, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.store == nil {
		s, err := j.stores.Open(ctx, j.uri)
		if err != nil {
			return nil, err
		}
		j.store = s
	}
	return j.store, nil
}

// append appends to a file of the directory.
func (j *jobStore) append(ctx context.Context, name string, text []byte) error {
	s, err := j.open(ctx)
	if err != nil {
		return err
	}
	return store.AppendFile(ctx, s, name, text, 0o600)
}

func (j *jobStore) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.store != nil {
		_ = j.store.Close() // nothing is open
		j.store = nil
	}
}
