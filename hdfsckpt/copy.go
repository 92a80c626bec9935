package hdfsckpt

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/dustin/go-humanize"
	"golang.org/x/sync/errgroup"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/store"
)

// Copied says what Copy has done.
type Copied struct {
	Files, Present int   // written; found there as they should be
	Bytes          int64 // written
}

// copyPlan is a file to be copied.
type copyPlan struct {
	format.File
	to      string // its name there
	sum     uint32 // if sealed or compared
	know    bool   // sum is right
	present bool   // it is there already
}

// CheckDestination returns an error if a local directory is the one that a checkpoint is to be
// copied from, or lies in that: by whatever path or links it is reached, a copy there would be
// one of the program's checkpoints, and change what its pointer names. The directory need not
// exist.
func CheckDestination(from store.Store, c format.Checkpoint, dir string) error {
	for _, own := range []string{".", path.Dir(c.Name)} {
		within, err := store.Contains(from, own, dir)
		if err != nil {
			return err
		}
		if within {
			return fmt.Errorf("cannot copy the checkpoint %s to %s: that is in the checkpoint directory %s itself, whose programs would take the copy for a checkpoint of theirs: name a directory outside of it", c.Name, dir, from.URI())
		}
	}
	return nil
}

// Copy copies a checkpoint that is whole, or cannot be checked, into another store, by
// its name without the directory that it lies in here. If its format has a pointer, that
// of the other store's root names it then. Files that are there with the same bytes are
// left as they are, so that Copy, once interrupted, goes on where it was. If any other
// file is in the way, nothing is written (EEXIST). The bytes are compared with the
// manifest of a sealed one. CheckDestination says where it cannot be copied to. progress may be nil; it is called by several goroutines.
func Copy(ctx context.Context, from, to store.Store, c format.Checkpoint, progress func(done, total int64)) (Copied, error) {
	var done Copied
	fail := func(err error) (Copied, error) {
		return done, fmt.Errorf("cannot copy the checkpoint %s from %s to %s: %w", c.Name, from.URI(), to.URI(), err)
	}
	if !c.Whole() && c.State != format.Unchecked {
		return fail(fmt.Errorf("it is %s, and cannot be restored from: %s: %w", c.State, c.Why, syscall.EINVAL))
	}
	if progress == nil {
		progress = func(int64, int64) {}
	}
	if err := CheckDestination(from, c, to.URI()); err != nil {
		return done, err
	}
	plan, pointer, err := planCopy(ctx, from, to, c)
	if err != nil {
		return fail(err)
	}
	var seen, written atomic.Int64
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for _, f := range plan {
		if f.present {
			done.Present++
			progress(seen.Add(f.Size), c.Size)
			continue
		}
		done.Files++
		group.Go(func() error {
			return copyFile(groupCtx, from, to, f, func(n int64) {
				written.Add(n)
				progress(seen.Add(n), c.Size)
			})
		})
	}
	err = group.Wait()
	done.Bytes = written.Load()
	if err == nil && pointer != nil {
		err = store.WriteFile(ctx, to, c.Pointer().PointerFile(), pointer, 0o644)
	}
	if err != nil {
		return fail(err)
	}
	return done, nil
}

// planCopy looks what is there already, and refuses what is in the way. It returns what
// the pointer is to say; nil if the format has none.
func planCopy(ctx context.Context, from, to store.Store, c format.Checkpoint) ([]*copyPlan, []byte, error) {
	sealed := map[string]uint32{}
	if c.Manifest != nil {
		for _, s := range c.Manifest.Files {
			sealed[s.Name] = s.CRC32C
		}
	}
	var plan []*copyPlan
	var inTheWay []string
	missing := int64(0)
	for _, f := range c.Files {
		p := &copyPlan{File: f, to: strings.TrimPrefix(f.Name, path.Dir(c.Name)+"/")}
		p.sum, p.know = sealed[f.Name]
		there, err := p.compare(ctx, from, to)
		if err != nil {
			return nil, nil, err
		}
		if there && !p.present {
			inTheWay = append(inTheWay, p.to)
		}
		if !there {
			missing += f.Size
		}
		plan = append(plan, p)
	}
	pointer, err := pointerAfterCopy(ctx, to, c)
	if err != nil {
		inTheWay = append(inTheWay, err.Error())
	}
	if len(inTheWay) > 0 {
		return nil, nil, fmt.Errorf("there are other files by these names already: %s; name another directory, or remove them: %w", strings.Join(inTheWay, ", "), syscall.EEXIST)
	}
	if space, err := to.Space(ctx); err == nil && space.Free < missing {
		return nil, nil, fmt.Errorf("it needs %s, and %s are free: %w", humanize.IBytes(uint64(missing)), humanize.IBytes(uint64(max(0, space.Free))), syscall.ENOSPC)
	}
	return plan, pointer, nil
}

// compare reports whether something has the file's name there, and sets present if
// it is the file.
func (p *copyPlan) compare(ctx context.Context, from, to store.Store) (bool, error) {
	i, err := to.Stat(ctx, p.to)
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR) {
		return false, nil
	}
	if err != nil || i.IsDir() || i.Size != p.Size {
		return true, err
	}
	have, err := sumFile(ctx, to, format.File{Name: p.to, Size: i.Size})
	if err != nil {
		return true, err
	}
	if !p.know {
		if p.sum, err = sumFile(ctx, from, p.File); err != nil {
			return true, err
		}
		p.know = true
	}
	p.present = have == p.sum
	return true, nil
}

// pointerAfterCopy is what the pointer in the root of a store is to say after a copy.
func pointerAfterCopy(ctx context.Context, to store.Store, c format.Checkpoint) ([]byte, error) {
	p := c.Pointer()
	if p == nil {
		return nil, nil
	}
	before, err := p.ReadPointer(ctx, to, ".")
	switch {
	case err != nil:
		return nil, err
	case before.Foreign:
		return nil, fmt.Errorf("%s is no file that can be read", p.PointerFile())
	case before.Err != nil:
		return nil, before.Err
	}
	return p.CopiedPointer(before, &c), nil
}

func copyFile(ctx context.Context, from, to store.Store, p *copyPlan, progress func(n int64)) error {
	if err := store.MkdirAll(ctx, to, path.Dir(p.to), 0o755); err != nil {
		return err
	}
	r, err := from.Open(ctx, p.Name)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := to.Create(ctx, p.to, 0o644)
	if err != nil {
		return err
	}
	sum := crc32.New(castagnoli)
	in := contextReader{ctx, io.NewSectionReader(r, 0, r.Size())}
	n, err := io.CopyBuffer(io.MultiWriter(w, sum, counter(progress)), in, make([]byte, 1<<20))
	switch {
	case err != nil:
	case n != p.Size:
		err = fmt.Errorf("%s was changed meanwhile: %w", p.Name, syscall.ESTALE)
	case p.know && sum.Sum32() != p.sum:
		err = fmt.Errorf("%s is damaged: its checksum is %08x, the manifest says %08x; see yarn-submit ckpt verify: %w", p.Name, sum.Sum32(), p.sum, syscall.EIO)
	}
	if err != nil {
		return errors.Join(err, w.Abort())
	}
	return w.Close()
}

type counter func(n int64)

func (c counter) Write(b []byte) (int, error) {
	c(int64(len(b)))
	return len(b), nil
}
