package hdfsckpt

import "sync"

// readManifests are the manifests that were read through one open store. A
// manifest is written in one step and never changed, so one whose file is the same
// says the same. Nobody may change them. The zero value is ready, and nil knows
// nothing.
type readManifests struct {
	mu sync.Mutex
	of map[Info]*Manifest
}

// readBefore finds what is known of a store's manifests; nil if it keeps nothing.
func readBefore(s Store) *readManifests {
	switch s := s.(type) {
	case *hdfsStore:
		return &s.manifests
	case *Local:
		return &s.manifests
	}
	return nil
}

func (r *readManifests) get(i Info) *Manifest {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[i]
}

func (r *readManifests) put(i Info, m *Manifest) {
	if r == nil || i.Inode == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil {
		r.of = map[Info]*Manifest{}
	}
	r.of[i] = m
}

// keep forgets those that are there no more.
func (r *readManifests) keep(there []Info) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := make(map[Info]*Manifest, len(there))
	for _, i := range there {
		if m := r.of[i]; m != nil {
			kept[i] = m
		}
	}
	r.of = kept
}
