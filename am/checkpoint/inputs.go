package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// describeHidden returns, once for each directory, which of its files the tasks do not see because
// their working directory, in whose place it stands, is given files of the same names.
func (p *Preparer) describeHidden(ctx context.Context, s store.Store, c *proto.CheckpointSpec) ([]string, error) {
	if path.Clean(c.Path) != "." || len(p.cfg.Files) == 0 {
		return nil, nil
	}
	p.mu.Lock()
	described := slices.Contains(p.described, c.Uri)
	p.mu.Unlock()
	if described {
		return nil, nil
	}
	names, err := hiddenBy(ctx, s, p.cfg.Files)
	if err != nil {
		return nil, fmt.Errorf("comparing it with the job's files: %w", err)
	}
	p.mu.Lock()
	p.described = append(p.described, c.Uri)
	p.mu.Unlock()
	if len(names) == 0 {
		return nil, nil
	}
	const most = 5
	text := strings.Join(names[:min(most, len(names))], ", ")
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return []string{"the tasks read the job's own files of these names, and do not see or change those that are there: " + text}, nil
}

// hiddenBy returns what a store has under the names of a job's files, and is not the very file
// of that name. A directory of both is none.
func hiddenBy(ctx context.Context, s store.Store, files []*proto.FileSpec) ([]string, error) {
	inputs := map[string]*proto.FileSpec{} // by name; nil: a directory
	for _, f := range files {
		name := path.Clean(f.Name)
		inputs[name] = f
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			inputs[dir] = nil
		}
	}
	dirs := map[string]bool{}
	for name := range inputs {
		dirs[path.Dir(name)] = true
	}
	var hidden []string
	for dir := range dirs {
		list, err := s.List(ctx, dir)
		if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ENOTDIR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, i := range list {
			name := path.Join(dir, i.Name)
			f, given := inputs[name]
			if given && (f != nil || !i.IsDir()) && !isItself(f, s.URI(), name) {
				hidden = append(hidden, name)
			}
		}
	}
	slices.Sort(hidden)
	return hidden, nil
}

// isItself reports whether a job's file is the one of that name in a local store.
func isItself(f *proto.FileSpec, uri, name string) bool {
	if f == nil || f.Archive || strings.Contains(f.Uri, "://") || !filepath.IsAbs(uri) {
		return false
	}
	var infos [2]fs.FileInfo
	for i, at := range []string{f.Uri, filepath.Join(uri, filepath.FromSlash(name))} {
		var err error
		if infos[i], err = os.Stat(at); err != nil {
			return false
		}
	}
	return os.SameFile(infos[0], infos[1])
}
