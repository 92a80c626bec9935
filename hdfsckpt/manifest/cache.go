package hdfsckpt

import (
	"sync"

	"holdfast/hdfsckpt/store"
)

// readManifests are the manifests that were read through one open store. A
// manifest is written in one step and never changed, so one whose file is the same
// says the same. Nobody may change them. The zero value is ready, and nil knows
// nothing.
type readManifests struct {
	mu sync.Mutex
	of map[store.Info]*Manifest
}

// manifestsKey is where they are in a store's memo.
type manifestsKey struct{}

// readBefore finds what is known of a store's manifests; nil if it keeps nothing.
func readBefore(s store.Store) *readManifests {
	memo := store.Memo(s)
	if memo == nil {
		return nil
	}
	r, _ := memo.LoadOrStore(manifestsKey{}, &readManifests{})
	return r.(*readManifests)
}

func (r *readManifests) get(i store.Info) *Manifest {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[i]
}

func (r *readManifests) put(i store.Info, m *Manifest) {
	if r == nil || i.Inode == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[store.Info]*Manifest{}
	}
	r.of[i] = m
}

// keep forgets those that are there no more.
func (r *readManifests) keep(there []store.Info) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := make(map[store.Info]*Manifest, len(there))
	for _, i := range there {
		if m := r.of[i]; m != nil {
			kept[i] = m
		}
	}
	r.of = kept
}
