package hdfsckpt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/hdfsckpt/store"
)

// manifestDir is where manifests lie, one for each sealed checkpoint, called
// after it (entryName).
const manifestDir = store.OwnDir + "/manifests"

func manifestName(checkpoint string) string {
	return path.Join(manifestDir, entryName(checkpoint)+".json")
}

// Manifest says what a checkpoint was when it was found complete.
type Manifest struct {
	Version    int       `json:"version"` // 1
	Checkpoint string    `json:"checkpoint"`
	Kind       Kind      `json:"kind"`
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

// fits tells whether the files are still those that were sealed, as far as that
// shows without reading them.
func (m *Manifest) fits(c *Checkpoint) bool {
	now := map[string]File{}
	for _, f := range c.Files {
		now[f.Name] = f
	}
	for _, s := range m.Files {
		f, ok := now[s.Name]
		if !ok && strings.HasSuffix(s.Name, ".meta") {
			continue // a graph, which no restore needs
		}
		if !ok || f.Size != s.Size || !f.ModTime.Truncate(time.Millisecond).Equal(s.ModTime) {
			return false
		}
	}
	return m.Kind == c.Kind && (!c.isDir() || len(c.Files) == len(m.Files)) // more may have come to a directory
}

// Known are checksums of files whose bytes were seen when they were written. A
// name says nothing of what has it now: sums are found by the file itself.
type Known map[store.FileID]KnownSum

// KnownSum is the checksum of a whole file with that many bytes.
type KnownSum struct {
	Size   int64
	CRC32C uint32
}

// Of finds the checksum of a file as it was listed.
func (k Known) Of(f File) (uint32, bool) {
	if f.Inode == 0 {
		return 0, false
	}
	sum, ok := k[store.FileID{Inode: f.Inode}]
	if !ok {
		sum, ok = k[store.FileID{Inode: f.Inode, Modified: f.ModTime.UnixNano()}]
	}
	return sum.CRC32C, ok && sum.Size == f.Size
}

// Seal writes the manifest of a complete checkpoint, as Checkpoints has found
// it. Files whose checksum is not known are read.
func Seal(ctx context.Context, s store.Store, c Checkpoint, meta Meta, known Known) (*Manifest, error) {
	if !c.Whole() {
		return nil, fmt.Errorf("cannot seal the checkpoint %s, it is %s: %s: %w", c.Name, c.State, c.Why, syscall.EINVAL)
	}
	m := &Manifest{Version: 1, Checkpoint: c.Name, Kind: c.Kind, Step: c.Step, Sealed: time.Now().UTC().Truncate(time.Millisecond), Meta: meta}
	m.Files = make([]Sum, len(c.Files))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for i, f := range c.Files {
		m.Files[i] = Sum{Name: f.Name, Size: f.Size, ModTime: f.ModTime.Truncate(time.Millisecond).UTC()}
		if crc, ok := known.Of(f); ok {
			m.Files[i].CRC32C = crc
			continue
		}
		group.Go(func() (err error) {
			m.Files[i].CRC32C, err = sumFile(groupCtx, s, f)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, fmt.Errorf("cannot seal the checkpoint %s: %w", c.Name, err)
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err == nil {
		err = store.MkdirAll(ctx, s, manifestDir, 0o755)
	}
	if err == nil {
		err = store.WriteFile(ctx, s, manifestName(c.Name), append(text, '\n'), 0o644)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot seal the checkpoint %s: %w", c.Name, err)
	}
	return m, nil
}

// readManifest reads one; nil if there is none, or it is not readable.
func readManifest(ctx context.Context, s store.Store, name string) (*Manifest, error) {
	text, err := store.ReadFile(ctx, s, name)
	if vanished(err) {
		return nil, nil
	}
	m := &Manifest{}
	if err != nil || json.Unmarshal(text, m) != nil || m.Version != 1 {
		return nil, err
	}
	return m, nil
}

// Unseal removes a manifest; that there is none is no error.
func Unseal(ctx context.Context, s store.Store, name string) error {
	if err := s.Remove(ctx, manifestName(name)); err != nil && !vanished(err) {
		return err
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumFile reads a file, which must have the length that was listed.
func sumFile(ctx context.Context, s store.Store, f File) (uint32, error) {
	r, err := s.Open(ctx, f.Name)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	h := crc32.New(castagnoli)
	n, err := io.CopyBuffer(h, contextReader{ctx, io.NewSectionReader(r, 0, r.Size())}, make([]byte, 1<<20))
	if err == nil && f.Inode != 0 {
		var now store.Info // what was read may have taken the name since it was listed
		if now, err = s.Stat(ctx, f.Name); err == nil && (now.Inode != f.Inode || !now.ModTime.Equal(f.ModTime)) {
			err = fmt.Errorf("%s was replaced meanwhile: %w", f.Name, syscall.ESTALE)
		}
	}
	if err == nil && n != f.Size {
		err = fmt.Errorf("%s was changed meanwhile: %w", f.Name, syscall.ESTALE)
	}
	return h.Sum32(), err
}

// contextReader ends with its context.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (c contextReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(b)
}

// manifests reads all of them. One that is not readable counts as none: what it
// was to say is found by looking.
func (l *lister) manifests() (map[string]*Manifest, error) {
	var entries []store.Info
	err := l.limited(func() (err error) {
		entries, err = l.s.List(l.ctx, manifestDir)
		return err
	})
	if vanished(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	list := make([]*Manifest, len(entries))
	read := readBefore(l.s)
	read.keep(entries)
	var group errgroup.Group
	for i, e := range entries {
		if list[i] = read.get(e); list[i] != nil {
			continue
		}
		group.Go(func() error {
			return l.limited(func() error {
				text, err := store.ReadFile(l.ctx, l.s, path.Join(manifestDir, e.Name))
				if vanished(err) || errors.Is(err, syscall.EFBIG) {
					return nil
				}
				m := &Manifest{}
				if err == nil && json.Unmarshal(text, m) == nil && m.Version == 1 {
					list[i] = m
					read.put(e, m)
				}
				return err
			})
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
