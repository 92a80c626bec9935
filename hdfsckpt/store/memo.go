package store

import "sync"

// Memo returns a cache for users of an open store, which exists as long as the store is open. Each
// user uses keys of a type of its own, as with context.WithValue. It is nil for a store without
// a cache.
func Memo(s Store) *sync.Map {
	if m, ok := s.(interface{ memory() *sync.Map }); ok {
		return m.memory()
	}
	return nil
}

func (s *hdfsStore) memory() *sync.Map { return &s.memo }

func (l *Local) memory() *sync.Map { return &l.memo }
