package mount

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"holdfast/hdfsckpt/store"
	"holdfast/hdfsckpt/writers"
)

// area is the directory of the store for files that this mount has not completed, or is
// removing. It is created at the first write, and never again: once it has been removed,
// this mount has been fenced off.
type area struct {
	mu     sync.Mutex
	dir    *node             // below the root, but in no one's sight
	stages map[string]*stage // by what their files get (store.Info.Birth)
	made   []string          // directories of stages, of those before too
}

// stage is a directory in the area whose files inherit the same as those of their target
// directory: the group, the access control list, the storage policy.
type stage struct {
	dir  *node
	made time.Time
}

// stageLife bounds how long a change of a directory's access control list remains
// unnoticed: another stage is made then.
var stageLife = 30 * time.Second

// get returns the area's directory, creating it at the first call.
func (a *area) get(ctx context.Context, f *FS) (*node, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dir != nil {
		return a.dir, nil
	}
	name := writers.Dir(f.o.Writer)
	if err := store.MkdirAll(ctx, f.store, name, 0o755); err != nil {
		return nil, fmt.Errorf("making the directory for what %s writes, which fails if it was fenced off: %w", f.o.Writer, err)
	}
	info, err := f.store.Stat(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("looking at the directory for what %s writes: %w", f.o.Writer, err)
	}
	a.dir = &node{dir: true, name: name, parent: f.root}
	a.stages = map[string]*stage{info.Birth: {dir: a.dir}}
	return a.dir, nil
}

// stageFor finds or makes the stage for new files of d.
func (a *area) stageFor(ctx context.Context, f *FS, d *node) (*node, error) {
	area, err := a.get(ctx, f)
	if err != nil {
		return nil, err
	}
	birth, err := f.birth(ctx, d)
	if errors.Is(err, syscall.ENOENT) { // removed meanwhile: what is written to will not be published there
		return area, nil
	}
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.stages[birth]
	if s != nil && (s.made.IsZero() || time.Since(s.made) < stageLife) {
		return s.dir, nil
	}
	made, err := a.makeStage(ctx, f, d)
	if err != nil {
		return nil, err
	}
	a.stages[birth] = &stage{made, time.Now()}
	return made, nil
}

// makeStage makes a directory in d, so that it inherits what files in d do, and moves it
// into the area: this requires no permission but that to write in d.
func (a *area) makeStage(ctx context.Context, f *FS, d *node) (*node, error) {
	target, ok := f.path(d)
	if !ok {
		return a.dir, nil
	}
	born := store.TemporaryFor(path.Join(target, "stage"))
	if err := f.store.Mkdir(ctx, born, 0o755); err != nil {
		return nil, err
	}
	base := strings.TrimPrefix(path.Base(born), ".") // not a temporary file's
	err := f.store.Rename(ctx, born, path.Join(a.dir.name, base))
	if err != nil {
		_ = f.store.Remove(ctx, born)
		return nil, err
	}
	a.made = append(a.made, base)
	if err := store.SameStorage(ctx, f.store, target, path.Join(a.dir.name, base)); err != nil {
		f.log.WithField("store", f.store.URI()).Warnf("files for %s are written with the storage policy of %s: %v", target, a.dir.name, err)
	}
	return &node{dir: true, name: base, parent: a.dir}, nil
}

// birth returns what new files inherit from a directory. The kernel looks up each directory
// on the way to a file, except the root.
func (f *FS) birth(ctx context.Context, d *node) (string, error) {
	f.mu.Lock()
	birth := d.info.Birth
	if d == f.root && time.Since(f.rootAt) > stageLife {
		birth = ""
	}
	name, ok := f.pathLocked(d)
	f.mu.Unlock()
	if birth != "" || !ok {
		return birth, nil
	}
	info, err := f.store.Stat(ctx, name)
	if err != nil {
		return "", err
	}
	f.mu.Lock()
	d.info.Birth = info.Birth
	if d == f.root {
		f.rootAt = time.Now()
	}
	f.mu.Unlock()
	return info.Birth, nil
}

// makeEmpty puts an empty file under a name, in one step.
func (f *FS) makeEmpty(ctx context.Context, d *node, name string, perm fs.FileMode) error {
	_, hidden, err := f.temporaryFor(ctx, d, path.Base(name))
	if err != nil {
		return err
	}
	w, err := f.store.Stage(ctx, hidden, perm)
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := f.replace(ctx, hidden, name); err != nil {
		_ = f.store.Remove(ctx, hidden)
		return err
	}
	return nil
}

// removeLimit bounds the removal of empty directories at the end.
const removeLimit = 5 * time.Second

// remove removes the directory at the end. It ignores that the directory is not empty, or
// was removed by another process.
func (a *area) remove(f *FS) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dir == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), removeLimit)
	defer cancel()
	for _, base := range a.made {
		_ = f.store.Remove(ctx, path.Join(a.dir.name, base))
	}
	_ = f.store.Remove(ctx, a.dir.name)
}
