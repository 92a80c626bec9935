package manifest

import (
	"sync"

	"holdfast/hdfsckpt/store"
)

// cache holds the manifests that were read through one open store. A manifest is
// written in one step and never changed, so one whose file is the same has the same
// content. The zero value is ready to use; nil caches nothing.
type cache struct {
	mu sync.Mutex
	of map[store.Info]*Manifest
}

// cacheKey is the key of the cache in a store's memo.
type cacheKey struct{}

// cacheOf returns a store's cache; nil for a store without a memo.
func cacheOf(s store.Store) *cache {
	memo := store.Memo(s)
	if memo == nil {
		return nil
	}
	c, _ := memo.LoadOrStore(cacheKey{}, &cache{})
	return c.(*cache)
}

func (c *cache) get(i store.Info) *Manifest {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.of[i]
}

func (c *cache) put(i store.Info, m *Manifest) {
	if c == nil || i.Inode == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[store.Info]*Manifest{}
	}
	c.of[i] = m
}

// retain drops those whose files are not listed any longer.
func (c *cache) retain(listed []store.Info) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	retained := make(map[store.Info]*Manifest, len(listed))
	for _, i := range listed {
		if m := c.of[i]; m != nil {
			retained[i] = m
		}
	}
	c.of = retained
}
