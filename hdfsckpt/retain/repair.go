package retain

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"syscall"

	"holdfast/hdfsckpt/format"
	"holdfast/hdfsckpt/manifest"
	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
)

// Repair restores what was being removed or replaced when its program was lost, where
// that left something visible that is not whole. While anybody may write, that is restored
// once nothing has happened to it for a while; while tasks may, only checkpoints of steady
// formats. It returns the names of what was restored.
func Repair(ctx context.Context, s store.Store, by writers.Activity) (restored []string, err error) {
	all, err := entries(ctx, s, nil)
	if err != nil {
		return nil, err
	}
	for _, b := range all {
		broken, err := b.broken(ctx, by)
		if err == nil && broken && by != writers.Nobody {
			broken, err = b.staysBroken(ctx, by)
		}
		if err != nil {
			return restored, err
		}
		if !broken {
			continue
		}
		if err := b.restore(ctx, true); err != nil {
			return restored, fmt.Errorf("restoring %s: %w", b.Name, err)
		}
		restored = append(restored, b.checkpoint())
	}
	return restored, nil
}

// broken reports whether the visible files are not whole, and would be together with the
// retained ones. If none is visible, the checkpoint was removed as the program wanted; or,
// if it was being replaced, all its files were moved and the new ones did not follow. An entry that makes nothing whole is removed,
// unless somebody may be writing it, or another rule of the store might find it whole.
// While tasks may write, only steady formats are judged.
func (b *backup) broken(ctx context.Context, by writers.Activity) (bool, error) {
	b.listed = nil
	c, err := b.look(ctx, visible)
	if err != nil {
		return false, err
	}
	if c != nil && c.Whole() {
		return false, b.clearEmpty(ctx, by)
	}
	if b.How == removed {
		if left, err := b.visibleFiles(ctx); err != nil || len(left) == 0 {
			return false, err
		}
	}
	if c, err = b.look(ctx, visible|retained); err != nil || c == nil {
		return false, err
	}
	if !c.Whole() && by == writers.Nobody && b.owner.Rule != (format.Rule{}) {
		return false, b.clear(ctx)
	}
	return c.Whole() && (by != writers.Tasks || c.Traits().Steady), nil
}

// clearEmpty removes an entry into which nothing was moved, or out of which all was
// restored.
func (b *backup) clearEmpty(ctx context.Context, by writers.Activity) error {
	if by != writers.Nobody {
		return nil
	}
	return b.clearEmptied(ctx)
}

// visibleFiles are the files of the checkpoint that are not retained.
func (b *backup) visibleFiles(ctx context.Context) ([]store.Info, error) {
	v := &view{Store: b.s, b: b, scope: visible}
	if b.Dir {
		var all []store.Info
		err := walk(ctx, v.List, b.Name, "", &all)
		return all, err
	}
	return v.List(ctx, path.Dir(b.Name))
}

// staysBroken watches it for a while.
func (b *backup) staysBroken(ctx context.Context, by writers.Activity) (bool, error) {
	return writers.StaysBroken(ctx, b.s, func() (bool, string, error) {
		broken, err := b.broken(ctx, by)
		if err != nil || !broken {
			return false, "", err
		}
		b.listed = nil
		left, err := b.visibleFiles(ctx)
		if err != nil {
			return false, "", err
		}
		moved, err := b.retainedFiles(ctx)
		var text strings.Builder
		for _, i := range slices.Concat(left, moved) {
			fmt.Fprintln(&text, i.Name, i.Size, i.ModTime.UnixNano(), i.Inode)
		}
		return true, text.String(), err
	})
}

// restore moves back what is retained. If it replaces a checkpoint that has the name meanwhile, the
// marker of that is removed first, and the retained marker is moved last, so that a mixture of
// old and new files never looks whole. Otherwise EEXIST for a name that is taken.
func (b *backup) restore(ctx context.Context, replaces bool) error {
	moved, err := b.retainedFiles(ctx)
	if err != nil {
		return err
	}
	marked := slices.ContainsFunc(moved, func(i store.Info) bool { return i.Name == b.Marker })
	if marked && replaces {
		if err := b.s.Remove(ctx, b.name(b.Marker)); err != nil && !store.Vanished(err) && !errors.Is(err, syscall.ENOTDIR) {
			return err
		}
	}
	for _, i := range moved {
		if i.Name == b.Marker || !slices.Contains(b.Files, i.Name) {
			continue
		}
		if err := b.putBack(ctx, i.Name, replaces); err != nil {
			return err
		}
	}
	if err := b.move(ctx, b.manifest(), manifest.Path(b.checkpoint())); err != nil {
		return err
	}
	if marked {
		if err := b.putBack(ctx, b.Marker, replaces); err != nil {
			return err
		}
	}
	return b.clearEmptied(ctx)
}

// putBack moves a file back, and makes its directory if that is missing.
func (b *backup) putBack(ctx context.Context, file string, replaces bool) error {
	rename, from, to := b.s.RenameNew, path.Join(b.entry, filesDir, file), b.name(file)
	if replaces {
		rename = b.s.Rename
	}
	err := rename(ctx, from, to)
	if store.Vanished(err) {
		if err = store.MkdirAll(ctx, b.s, path.Dir(to), 0o755); err == nil {
			err = rename(ctx, from, to)
		}
	}
	return err
}
