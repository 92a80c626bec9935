package stage

import (
	"archive/tar"
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"holdfast/container/failure"
	"holdfast/internal/archive"
)

// unpack unpacks a local archive into a directory, unless that exists: tar, also compressed by
// gzip or bzip2, or zip, recognized by its content. Nothing is written outside of
// the directory, whatever names the archive has.
func unpack(ctx context.Context, name, dir string) error {
	if _, err := os.Lstat(dir); err == nil {
		return nil // it has got its name, so it is whole
	}
	f, err := os.Open(name)
	if err != nil {
		return failure.Store(fmt.Errorf("opening the job's archive: %w", err))
	}
	defer f.Close()
	tmp := dir + ".unpacking"
	fail := func(err error) error {
		os.RemoveAll(tmp)
		return failure.Node(fmt.Errorf("unpacking the job's archive %s: %w", name, err))
	}
	if err := os.RemoveAll(tmp); err != nil {
		return fail(err)
	}
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return fail(err)
	}
	root, err := os.OpenRoot(tmp)
	if err != nil {
		return fail(err)
	}
	defer root.Close()
	if err := unpackInto(ctx, f, root); isArchives(err) {
		return failure.Permanent(fail(err))
	} else if err != nil {
		return fail(err)
	}
	if err := os.Rename(tmp, dir); err != nil {
		return fail(err)
	}
	return nil
}

// isArchives reports whether an error of unpacking is the archive's own, which it has on every
// node: it is none of the system, nor of the end of the context, or names that do not go together in
// one directory.
func isArchives(err error) bool {
	if err == nil {
		return false
	}
	var system syscall.Errno
	if errors.As(err, &system) {
		return slices.Contains([]syscall.Errno{syscall.ENOTDIR, syscall.EISDIR, syscall.EEXIST, syscall.ENAMETOOLONG, syscall.ELOOP}, system)
	}
	return !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

func unpackInto(ctx context.Context, f *os.File, root *os.Root) error {
	a, err := archive.Open(f)
	switch {
	case err != nil:
		return err
	case a.Zip != nil:
		return unzip(ctx, a.Zip, root)
	}
	return untar(ctx, a.Tar, root)
}

func untar(ctx context.Context, t *tar.Reader, root *os.Root) error {
	for {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		name, err := inside(h.Name)
		if err != nil {
			return err
		}
		mode := h.FileInfo().Mode().Perm()
		switch h.Typeflag {
		case tar.TypeDir:
			err = root.MkdirAll(name, mode|0o700)
		case tar.TypeReg:
			err = unpackFile(root, name, mode, t)
		case tar.TypeSymlink:
			if err = root.MkdirAll(path.Dir(name), 0o755); err == nil {
				err = root.Symlink(h.Linkname, name) // it is never followed outside by root
			}
		case tar.TypeLink:
			var old string
			if old, err = inside(h.Linkname); err == nil {
				err = root.Link(old, name)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", h.Name, err)
		}
	}
}

func unzip(ctx context.Context, z *zip.Reader, root *os.Root) error {
	for _, e := range z.File {
		if err := ctx.Err(); err != nil {
			return err
		}
		name, err := inside(e.Name)
		if err != nil {
			return err
		}
		if err := unzipOne(e, name, root); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	return nil
}

func unzipOne(e *zip.File, name string, root *os.Root) error {
	mode := e.Mode()
	if mode.IsDir() {
		return root.MkdirAll(name, mode.Perm()|0o700)
	}
	r, err := e.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	if mode&fs.ModeSymlink != 0 {
		target, err := io.ReadAll(io.LimitReader(r, 4096))
		if err != nil {
			return err
		}
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		return root.Symlink(string(target), name)
	}
	return unpackFile(root, name, mode.Perm(), r)
}

func unpackFile(root *os.Root, name string, mode fs.FileMode, r io.Reader) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if mode == 0 {
		mode = 0o644
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode|0o400)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}

func inside(name string) (string, error) {
	clean := path.Clean(strings.TrimPrefix(name, "./"))
	if !filepath.IsLocal(filepath.FromSlash(clean)) {
		return "", fmt.Errorf("%q would stand outside of the archive's directory", name)
	}
	return clean, nil
}
