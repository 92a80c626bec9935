package writers

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"holdfast/hdfsckpt/store"
)

// nestedDepth is how many levels of directories are searched for stores: as many as are for
// checkpoints.
const nestedDepth = 5

// Nested returns the directories of a store that are stores of their own with writers, and
// those writers: what they have not completed is not this store's to judge. What may not be
// listed has none.
func Nested(ctx context.Context, s store.Store) (map[string][]string, error) {
	var (
		mu    sync.Mutex
		found = map[string][]string{}
		visit func(dir string, depth int) error
	)
	group, ctx := errgroup.WithContext(ctx)
	calls := make(chan struct{}, atOnce)
	visit = func(dir string, depth int) error {
		calls <- struct{}{}
		entries, err := s.List(ctx, dir)
		<-calls
		if isAbsent(err) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			switch name := path.Join(dir, e.Name); {
			case !e.IsDir():
			case e.Name == store.OwnDir && dir != ".":
				writers, err := listBelow(ctx, s, dir)
				if err != nil && !isAbsent(err) {
					return err
				}
				if len(writers) > 0 {
					mu.Lock()
					found[dir] = writers
					mu.Unlock()
				}
			case !strings.HasPrefix(e.Name, ".") && depth > 0:
				group.Go(func() error { return visit(name, depth-1) })
			}
		}
		return nil
	}
	group.Go(func() error { return visit(".", nestedDepth) })
	return found, group.Wait()
}

// isAbsent reports whether an error says that there is nothing, as far as this user may know.
func isAbsent(err error) bool { return store.Vanished(err) || errors.Is(err, fs.ErrPermission) }
