package store

import (
	"context"
	"fmt"
	"path"
	"syscall"

	"holdfast/internal/hadoop/hdfs"
	"holdfast/internal/hadoop/hdfs/zone"
)

// mover is a store in which some files cannot be moved to some directories.
type mover interface {
	movable(ctx context.Context, from, to string) error
}

var _ mover = (*hdfsStore)(nil)

// Movable returns why no file of the directory from can be renamed to a name: HDFS
// does not move files across the boundary of an encryption zone. It is called before a file is
// written, so that this is not noticed only once the file is complete.
func Movable(ctx context.Context, s Store, from, to string) error {
	if m, ok := s.(mover); ok {
		return m.movable(ctx, from, to)
	}
	return nil
}

func (s *hdfsStore) movable(ctx context.Context, from, to string) error {
	var zones [2]*zone.Zone
	for i, dir := range []string{s.at(from), path.Dir(s.at(to))} {
		z, err := s.c.Zone(ctx, dir)
		if err != nil {
			return err
		}
		zones[i] = z
	}
	if a, b := zones[0], zones[1]; a == nil && b == nil || a != nil && b != nil && a.Root == b.Root {
		return nil
	}
	return hdfs.Wrap("create", s.at(to), fmt.Errorf("%s and %s are not in the same encryption zone, and HDFS moves nothing across the edge of one, by which files get their names once they are complete: name a checkpoint directory within a single zone, or outside of any: %w",
		placeIn(zones[0], s.root), placeIn(zones[1], path.Dir(s.at(to))), syscall.EXDEV))
}

func placeIn(z *zone.Zone, dir string) string {
	if z == nil {
		return dir + " (in none)"
	}
	return fmt.Sprintf("%s (in %s, with the key %q)", dir, z.Root, z.Key)
}
