// Package manifest records what a checkpoint was when it was found complete: its
// files, their lengths and checksums, and what wrote it.
//
//	.holdfast/manifests/CHECKPOINT.json    CHECKPOINT as store.EntryName names it
package manifest

import (
	"context"
	"encoding/json"
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
// readable, or larger than what is read.
func Read(ctx context.Context, s store.Store, file string) (*Manifest, error) {
	r, err := s.Open(ctx, file)
	if store.Vanished(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer r.Close()
	release, err := limit.Take(ctx, memoryInEach*r.Size())
	if limit.IsExceeded(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer release()
	text, err := store.ReadOpened(r, file)
	m := &Manifest{}
	if err != nil || json.Unmarshal(text, m) != nil || m.Version != version {
		if limit.IsExceeded(err) {
			err = nil
		}
		return nil, err
	}
	return m, nil
}

// memoryInEach bounds the memory that each byte of a manifest takes: an entry of a hundred bytes
// takes two hundred, and the array of them grows.
const memoryInEach = 8

// parallelism bounds how many manifests are read at a time.
const parallelism = 16

// ReadAll reads all manifests of a store, by checkpoint; nobody may change them. One
// that is not readable counts as missing. Those that were read before through the
// same open store are not read again.
func ReadAll(ctx context.Context, s store.Store) (map[string]*Manifest, error) {
	entries, err := s.List(ctx, dir)
	if store.Vanished(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list := make([]*Manifest, len(entries))
	c := cacheOf(s)
	c.retain(entries)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelism)
	for i, e := range entries {
		if list[i] = c.get(e); list[i] != nil {
			continue
		}
		group.Go(func() error {
			m, err := Read(ctx, s, path.Join(dir, e.Name))
			if m != nil {
				list[i] = m
				c.put(e, m)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	found := map[string]*Manifest{}
	for _, m := range list {
		if m != nil {
			found[m.Checkpoint] = m
		}
	}
	return found, nil
}
