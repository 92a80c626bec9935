package store

import "sync"

// Memo returns what users of an open store remember of its files, for as long as it
// is open; each uses a key of a type of its own, as with context.WithValue. It is
// nil for a store that keeps none.
func Memo(s Store) *sync.Map {
	if m, ok := s.(interface{ memory() *sync.Map }); ok {
		return m.memory()
	}
	return nil
}

func (s *hdfsStore) memory() *sync.Map { return &s.memo }

func (l *Local) memory() *sync.Map { return &l.memo }
