// Package manifest records what a checkpoint was when it was found complete: its
// files, their lengths and checksums, and what wrote it.
//
//	.holdfast/manifests/CHECKPOINT.json    CHECKPOINT as store.EntryName names it
package manifest

import (
	"context"
	"fmt"
	"path"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/hdfsckpt/limit"
	"holdfast/hdfsckpt/store"
)

const dir = store.OwnDir + "/manifests"

// version is the one that is written, and the only one that is read.
const version = 1

// Manifest is the record of a sealed checkpoint.
type Manifest struct {
	Version    int       `json:"version"` // 1
	Checkpoint string    `json:"checkpoint"`
	Kind       string    `json:"kind"` // format.Kind
	Step       int64     `json:"step"`
	Sealed     time.Time `json:"sealed"`
	Meta
	Files []Sum `json:"files"`
}

// Meta says what wrote a checkpoint.
type Meta struct {
	Job        string `json:"job,omitempty"`
	Generation int64  `json:"generation,omitempty"`
	After      string `json:"after,omitempty"` // the recovery before it
}

// Sum is a file's digest.
type Sum struct {
	Name    string    `json:"name"` // relative to the store's root
	Size    int64     `json:"size"`
	ModTime time.Time `json:"modified"` // to the millisecond
	CRC32C  uint32    `json:"crc32c"`
}

// Path returns the name of a checkpoint's manifest in the store.
func Path(checkpoint string) string {
	return path.Join(dir, store.EntryName(checkpoint)+".json")
}

// Write writes a checkpoint's manifest, in one step.
func Write(ctx context.Context, s store.Store, m *Manifest) error {
	m.Version = version
	return store.WriteRecord(ctx, s, Path(m.Checkpoint), m)
}

// Remove removes a checkpoint's manifest. It is no error if there is none.
func Remove(ctx context.Context, s store.Store, checkpoint string) error {
	if err := s.Remove(ctx, Path(checkpoint)); err != nil && !store.Vanished(err) {
		return err
	}
	return nil
}

// Read reads a manifest by its file's name; nil if there is none, or it is not
// readable. unread says why one counts as missing that is larger than what is read, with the
// file and the bound.
func Read(ctx context.Context, s store.Store, file string) (m *Manifest, unread, err error) {
	r, err := s.Open(ctx, file)
	if store.Vanished(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer r.Close()
	release, err := limit.Take(ctx, memoryInEach*r.Size())
	var text []byte
	if err == nil {
		defer release()
		text, err = store.ReadOpened(r, file)
	}
	if limit.IsExceeded(err) {
		return nil, fmt.Errorf("%s, of %d bytes, is not read: %w", file, r.Size(), err), nil
	}
	m = &Manifest{}
	if err != nil || store.ParseRecord(text, m) != nil || m.Version != version {
		return nil, nil, err
	}
	return m, nil, nil
}

// memoryInEach bounds the memory that each byte of a manifest takes: an entry of a hundred bytes
// takes two hundred, and the array of them grows.
const memoryInEach = 8

// parallelism bounds how many manifests are read at a time.
const parallelism = 16

// All are the manifests of a store; nobody may change them.
type All struct {
	of     map[string]*Manifest // by checkpoint
	unread map[string]error     // by file
}

// Of returns a checkpoint's manifest; nil if there is none. unread says why there may be one
// that counts as missing: it is larger than what is read.
func (a *All) Of(checkpoint string) (m *Manifest, unread error) {
	return a.of[checkpoint], a.unread[Path(checkpoint)]
}

// ReadAll reads all manifests of a store. One that is not readable counts as missing. Those
// that were read before through the same open store are not read again.
func ReadAll(ctx context.Context, s store.Store) (*All, error) {
	all := &All{of: map[string]*Manifest{}, unread: map[string]error{}}
	entries, err := s.List(ctx, dir)
	if store.Vanished(err) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	list, unread := make([]*Manifest, len(entries)), make([]error, len(entries))
	c := cacheOf(s)
	c.retain(entries)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelism)
	for i, e := range entries {
		if list[i] = c.get(e); list[i] != nil {
			continue
		}
		group.Go(func() error {
			m, tooLarge, err := Read(ctx, s, path.Join(dir, e.Name))
			if m != nil {
				list[i] = m
				c.put(e, m)
			}
			unread[i] = tooLarge
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i, m := range list {
		if m != nil {
			all.of[m.Checkpoint] = m
		}
		if unread[i] != nil {
			all.unread[path.Join(dir, entries[i].Name)] = unread[i]
		}
	}
	return all, nil
}
