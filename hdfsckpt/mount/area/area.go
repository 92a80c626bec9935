// Package area is where a mount writes: a directory of the store for files that the mount has
// not completed, or is removing. It is created at the first write, and never again: once it
// has been removed, the mount has been fenced off.
package area

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"

	"github.com/sirupsen/logrus"
)

// Area is the directory of one mount. Its methods may be called by many goroutines.
type Area struct {
	store  store.Store
	writer string
	log    *logrus.Entry

	mu     sync.Mutex
	dir    string            // "" until it is made
	stages map[string]*stage // by what their files get (store.Info.Birth)
	made   []*stage          // all that may still be there
}

// stage is a directory in the area whose files inherit the same as those of their target
// directory: the group, the access control list, the storage policy.
type stage struct {
	dir   string
	made  time.Time // zero: the area itself
	users int       // of For, that may be about to make a file in it
}

// live reports whether new files may be made in a stage.
func (s *stage) live() bool { return s.made.IsZero() || time.Since(s.made) < StageLife }

// New returns the area of the mount that is called writer (writers.Dir).
func New(s store.Store, writer string, log *logrus.Entry) *Area {
	return &Area{store: s, writer: writer, log: log.WithField("store", s.URI())}
}

// StageLife bounds how long a change of a directory's access control list remains
// unnoticed: another stage is made then. It is changed by tests only.
var StageLife = 30 * time.Second

// Dir returns the area's directory, creating it at the first call.
func (a *Area) Dir(ctx context.Context) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dir != "" {
		return a.dir, nil
	}
	name := writers.Dir(a.writer)
	if err := store.MkdirAll(ctx, a.store, name, 0o755); err != nil {
		return "", fmt.Errorf("making the directory for what %s writes, which fails if it was fenced off: %w", a.writer, err)
	}
	info, err := a.store.Stat(ctx, name)
	if err != nil {
		return "", fmt.Errorf("looking at the directory for what %s writes: %w", a.writer, err)
	}
	a.dir = name
	a.stages = map[string]*stage{info.Birth: {dir: a.dir}}
	return a.dir, nil
}

// For finds or makes the directory for new files of a target directory, which get by birth
// what it says (store.Info.Birth). target is empty if that directory is no longer there. The
// directory stays until release is called at least, and then as long as there is a file in it.
func (a *Area) For(ctx context.Context, target, birth string) (dir string, release func(), err error) {
	area, err := a.Dir(ctx)
	if err != nil {
		return "", nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.stages[birth]
	if s == nil || !s.live() {
		if target == "" {
			return area, func() {}, nil
		}
		a.removeOld(ctx)
		made, err := a.makeStage(ctx, target)
		if err != nil {
			return "", nil, err
		}
		s = &stage{dir: made, made: time.Now()}
		a.stages[birth] = s
		a.made = append(a.made, s)
	}
	s.users++
	return s.dir, func() {
		a.mu.Lock()
		s.users--
		a.mu.Unlock()
	}, nil
}

// removeOld removes the stages in which no file will be made any longer, and none is. Where each
// directory of the program's has an access control list, each has a stage of its own.
func (a *Area) removeOld(ctx context.Context) {
	ctx = store.Tidying(ctx)
	a.made = slices.DeleteFunc(a.made, func(s *stage) bool {
		if s.live() || s.users > 0 {
			return false
		}
		err := a.store.Remove(ctx, s.dir)
		return err == nil || errors.Is(err, fs.ErrNotExist) // else there is a file, or the next call tries again
	})
	maps.DeleteFunc(a.stages, func(_ string, s *stage) bool { return !s.live() && !slices.Contains(a.made, s) })
}

// makeStage makes a directory in target, so that it inherits what files there do, and moves
// it into the area: this requires no permission but that to write in target.
func (a *Area) makeStage(ctx context.Context, target string) (string, error) {
	born := store.TemporaryFor(path.Join(target, "stage"))
	if err := a.store.Mkdir(ctx, born, 0o755); err != nil {
		return "", err
	}
	base := strings.TrimPrefix(path.Base(born), ".") // not a temporary file's
	dir := path.Join(a.dir, base)
	err := a.store.Rename(ctx, born, dir)
	if err != nil {
		_ = a.store.Remove(ctx, born)
		return "", err
	}
	if err := store.SameStorage(ctx, a.store, target, dir); err != nil {
		a.log.Warnf("files for %s are written with the storage policy of %s: %v", target, a.dir, err)
	}
	return dir, nil
}

// removeLimit bounds the removal of empty directories at the end.
const removeLimit = 5 * time.Second

// Remove removes the directory at the end. It ignores that the directory is not empty, or
// was removed by another process.
func (a *Area) Remove() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), removeLimit)
	defer cancel()
	for _, s := range a.made {
		_ = a.store.Remove(ctx, s.dir)
	}
	_ = a.store.Remove(ctx, a.dir)
}
