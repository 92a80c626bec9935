package spec

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

	"golang.org/x/sync/errgroup"

	"holdfast/client"
	"holdfast/client/localfile"
	"holdfast/internal/archive"
	"holdfast/proto"
)

// Input is a file, directory or archive that tasks need beside the command.
type Input struct {
	Path    string // here, absolute
	Name    string // below the tasks' working directory, slash-separated
	Archive bool   // unpacked into a directory called Name
}

// archiveSuffixes are the suffixes of archives that NodeManagers (FSDownload.unpack)
// and the agent can unpack.
var archiveSuffixes = []string{".tar.gz", ".tgz", ".tar", ".zip"}

// ParseInput parses PATH or PATH#NAME. A relative path is relative to dir, or to the
// working directory if dir is empty. NAME defaults to the last element of PATH.
func ParseInput(s, dir string, archive bool) (Input, error) {
	p, name, _ := strings.Cut(s, "#")
	if p == "" {
		return Input{}, client.Usagef("%q names no file: write PATH or PATH#NAME", s)
	}
	if !filepath.IsAbs(p) {
		p = filepath.Join(dir, p)
	}
	abs, err := filepath.Abs(p)
	if err != nil {
		return Input{}, fmt.Errorf("find %s: %w", p, err)
	}
	if name == "" {
		name = filepath.Base(abs)
	}
	in := Input{Path: abs, Name: path.Clean(name), Archive: archive}
	if !fs.ValidPath(in.Name) || in.Name == "." {
		return Input{}, client.Usagef("%s cannot be called %q in the tasks' working directory: give it a name below that, as PATH#NAME", p, name)
	}
	if archive && !slices.ContainsFunc(archiveSuffixes, func(s string) bool { return strings.HasSuffix(abs, s) }) {
		return Input{}, client.Usagef("%s is not an archive that can be unpacked: %s are", p, strings.Join(archiveSuffixes, ", "))
	}
	return in, nil
}

// Collect returns all files of the inputs, including those below directories. Their
// URIs are local paths. None of them may be where a checkpoint directory is to be.
func Collect(ctx context.Context, inputs []Input, checkpoints []*proto.CheckpointSpec) ([]*proto.FileSpec, error) {
	var list []*proto.FileSpec
	for _, in := range inputs {
		info, err := os.Stat(in.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			what := "--files"
			if in.Archive {
				what = "--archives"
			}
			return nil, client.Usagef("there is no %s, which %s names: check the path", in.Path, what)
		case err != nil:
			return nil, fmt.Errorf("look at an input of the job: %w", err)
		case info.Mode().IsRegular():
			list = append(list, fileSpec(in.Path, in.Name, info, in.Archive))
		case info.IsDir() && !in.Archive:
			more, err := listTree(in)
			if err != nil {
				return nil, err
			}
			list = append(list, more...)
		default:
			return nil, client.Usagef("%s is a %s: files, directories and archives can be given to tasks", in.Path, fileType(info))
		}
		if in.Archive {
			if err := archive.Check(in.Path); err != nil {
				return nil, client.Usagef("%s, which --archives names, cannot be unpacked: %w; make it anew", in.Path, err)
			}
		}
	}
	names := map[string]string{}
	for _, f := range list {
		if other, ok := names[f.Name]; ok {
			return nil, client.Usagef("%s and %s would both stand at %s in the tasks' working directory: rename one of them by PATH#NAME", other, f.Uri, f.Name)
		}
		names[f.Name] = f.Uri
	}
	for name := range names {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if file, ok := names[dir]; ok {
				return nil, client.Usagef("%s would stand at %s in the tasks' working directory, which is a directory of other inputs: rename it by PATH#NAME", file, dir)
			}
		}
	}
	for _, c := range checkpoints {
		for dir := path.Clean(c.Path); dir != "." && dir != "/"; dir = path.Dir(dir) {
			if file, ok := names[dir]; ok {
				return nil, client.Usagef("the checkpoint directory %s cannot be made, since %s stands at %s in the tasks' working directory: write PATH=URI, PATH as the script spells the directory, or rename the file by PATH#NAME", c.Path, file, dir)
			}
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(2)
	for _, f := range list {
		g.Go(func() (err error) {
			f.Sha256, err = localfile.Digest(ctx, f.Uri)
			return err
		})
	}
	return list, g.Wait()
}

func fileSpec(local, name string, info fs.FileInfo, archive bool) *proto.FileSpec {
	return &proto.FileSpec{
		Name: name, Uri: local, Size: info.Size(), Mode: uint32(info.Mode().Perm()), Archive: archive,
	}
}

// listTree lists the files below a directory. Links to files are followed; links to
// directories are refused, since they could form cycles.
func listTree(in Input) ([]*proto.FileSpec, error) {
	var list []*proto.FileSpec
	err := filepath.WalkDir(in.Path, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("look at an input of the job: %w", err)
		}
		if e.IsDir() {
			return nil
		}
		info, err := os.Stat(p)
		if err != nil {
			return fmt.Errorf("look at an input of the job: %w", err)
		}
		if !info.Mode().IsRegular() {
			return client.Usagef("%s, below %s, is a %s: only files can be given to tasks; name what it points at with --files, or remove it", p, in.Path, fileType(info))
		}
		rel, err := filepath.Rel(in.Path, p)
		if err != nil {
			return err
		}
		list = append(list, fileSpec(p, path.Join(in.Name, filepath.ToSlash(rel)), info, false))
		return nil
	})
	return list, err
}

func fileType(info fs.FileInfo) string {
	switch m := info.Mode(); {
	case m.IsDir():
		return "directory"
	case m&fs.ModeSymlink != 0:
		return "link"
	case m&fs.ModeNamedPipe != 0:
		return "pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}
