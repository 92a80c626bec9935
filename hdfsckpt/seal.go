package hdfsckpt

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/manifest"
	"holdfast/hdfsckpt/retain"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
)

// Known holds checksums of files whose bytes were seen when they were written. They are
// found by the file's identity: its name may be another file's by now.
type Known map[store.FileID]KnownSum

// KnownSum is the checksum of a whole file of that many bytes.
type KnownSum struct {
	Size   int64
	CRC32C uint32
}

// Of returns the checksum of a file as it was listed.
func (k Known) Of(f format.File) (uint32, bool) {
	if f.Inode == 0 {
		return 0, false
	}
	sum, ok := k[store.FileID{Inode: f.Inode}]
	if !ok {
		sum, ok = k[store.FileID{Inode: f.Inode, Modified: f.ModTime.UnixNano()}]
	}
	return sum.CRC32C, ok && sum.Size == f.Size
}

// Seal writes the manifest of a complete checkpoint, as List has found it. Files
// whose checksum is not known are read.
func Seal(ctx context.Context, s store.Store, c format.Checkpoint, meta manifest.Meta, known Known) (*manifest.Manifest, error) {
	if !c.Whole() {
		return nil, fmt.Errorf("cannot seal the checkpoint %s, it is %s: %s: %w", c.Name, c.State, c.Why, syscall.EINVAL)
	}
	m := &manifest.Manifest{Checkpoint: c.Name, Kind: string(c.Kind), Step: c.Step, Sealed: time.Now().UTC().Truncate(time.Millisecond), Meta: meta}
	m.Files = make([]manifest.Sum, len(c.Files))
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for i, f := range c.Files {
		m.Files[i] = manifest.Sum{Name: f.Name, Size: f.Size, ModTime: f.ModTime.Truncate(time.Millisecond).UTC()}
		if crc, ok := known.Of(f); ok {
			m.Files[i].CRC32C = crc
			continue
		}
		group.Go(func() (err error) {
			m.Files[i].CRC32C, err = sumFile(groupCtx, s, f)
			return err
		})
	}
	err := group.Wait()
	if err == nil {
		err = manifest.Write(ctx, s, m)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot seal the checkpoint %s: %w", c.Name, err)
	}
	return m, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumFile reads a file, which must have the length that was listed.
func sumFile(ctx context.Context, s store.Store, f format.File) (uint32, error) {
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

// Unfinished shows whether files may still be added to a complete checkpoint whose format
// has no marker. files lists the files of checkpoints in its directory, with lengths and
// times: a caller that asks again sees whether they have changed. writing reports whether
// any file is being written to the store.
func Unfinished(ctx context.Context, s store.Store, c format.Checkpoint) (files string, writing bool, err error) {
	var b strings.Builder
	dir := path.Dir(c.Name)
	if c.IsDir() {
		for _, f := range c.Files {
			fmt.Fprintf(&b, "%s %d %d\n", f.Name, f.Size, f.ModTime.UnixNano())
		}
	} else {
		entries, err := s.List(ctx, dir)
		if err != nil {
			return "", false, err
		}
		for _, e := range entries {
			if name := path.Join(dir, e.Name); !e.IsDir() && retain.Concerns(name) {
				fmt.Fprintf(&b, "%s %d %d\n", name, e.Size, e.ModTime.UnixNano())
			}
		}
	}
	writing, err = writers.Writing(ctx, s)
	return b.String(), writing, err
}
