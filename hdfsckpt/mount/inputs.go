package mount

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"holdfast/hdfsckpt/mount/errno"
	"holdfast/hdfsckpt/store"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// input is a file, link or directory of Options.Inputs. It does not change. A nil input has
// nothing in it.
type input struct {
	path    string // local
	info    store.Info
	target  string // of a symbolic link
	entries map[string]*input
}

// inputsOf reads Options.Inputs.
func inputsOf(dir string) (*input, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the files that the task is given: %w", err)
	}
	root, err := readInputs(dir, info)
	if err != nil {
		return nil, fmt.Errorf("reading the files that the task is given: %w", err)
	}
	if root.at(store.OwnDir) != nil {
		return nil, fmt.Errorf("no file of the task's can be called %s in its working directory, whose own checkpoints use that name: give it another", store.OwnDir)
	}
	return root, nil
}

// readInputs reads the tree below a local directory.
func readInputs(dir string, info fs.FileInfo) (*input, error) {
	in := &input{path: dir, info: inputInfo(info), entries: map[string]*input{}}
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range list {
		at := filepath.Join(dir, e.Name())
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		c := &input{path: at, info: inputInfo(info)}
		switch {
		case info.IsDir():
			c, err = readInputs(at, info)
		case info.Mode()&fs.ModeSymlink != 0:
			c.target, err = os.Readlink(at)
		case !info.Mode().IsRegular():
			err = fmt.Errorf("%s is a %v", at, info.Mode().Type())
		}
		if err != nil {
			return nil, err
		}
		in.entries[e.Name()] = c
	}
	return in, nil
}

func inputInfo(i fs.FileInfo) store.Info {
	return store.Info{Name: i.Name(), Size: i.Size(), Mode: i.Mode(), ModTime: i.ModTime()}
}

// at returns the input of a name in a directory of inputs, nil if there is none.
func (i *input) at(name string) *input {
	if i == nil {
		return nil
	}
	return i.entries[name]
}

// isFile reports whether the input is a file or a link, which hides what the store has.
func (i *input) isFile() bool { return i != nil && !i.info.IsDir() }

// merge returns what a directory's name stands for, given the store's answer: a directory of
// inputs is there whatever the store has.
func (i *input) merge(stored store.Info, err error) (store.Info, error) {
	switch {
	case i == nil || err == nil && stored.IsDir():
		return stored, err
	case err == nil || errno.Of(err) == syscall.ENOENT || errno.Of(err) == syscall.ENOTDIR:
		return i.info, nil
	}
	return stored, err
}

// inputFileLocked finds or makes the node of an input file or link.
func (f *FS) inputFileLocked(d *node, name string, in *input) *node {
	if c := d.children[name]; c != nil && c.input == in {
		return c
	}
	c := f.newNodeLocked(d, name, false)
	c.input, c.info, c.known = in, in.info, true
	return c
}

// isInput reports whether a node is an input file or link, or a directory below the root
// that holds some. Its name and attributes cannot be changed.
func (f *FS) isInput(n *node) bool { return n.input != nil && n != f.root }

var errInput = fmt.Errorf("it is one of the files given to the task, which cannot be written, renamed or removed in its working directory: %w", syscall.EROFS)

// refuseInput refuses a change of an input.
func (f *FS) refuseInput(op, name string) fuse.Status { return f.fail(op, name, errInput) }

// inputEntriesLocked adds the inputs in a directory to its entries.
func (f *FS) inputEntriesLocked(entries []fuse.DirEntry, d *node) []fuse.DirEntry {
	for name, in := range d.input.entries {
		e := fuse.DirEntry{Name: name, Mode: syscall.S_IFREG}
		switch {
		case in.info.IsDir():
			e.Mode = syscall.S_IFDIR
		case in.target != "":
			e.Mode = syscall.S_IFLNK
		}
		if c := d.children[name]; c != nil {
			e.Ino = c.id
		}
		entries = append(entries, e)
	}
	return entries
}

// openInput opens an input file.
func (f *FS) openInput(h *handle, flags uint32, out *fuse.OpenOut) fuse.Status {
	name := f.nameOf(h.n)
	if writable(flags) || flags&syscall.O_TRUNC != 0 {
		return f.refuseInput("open for writing", name)
	}
	var err error
	if h.input, err = os.Open(h.n.input.path); err != nil {
		return f.fail("open", name, err)
	}
	out.Fh, out.OpenFlags = f.newHandle(h), fuse.FOPEN_KEEP_CACHE
	return fuse.OK
}

// storeDirectory makes a directory in the store that may be one of inputs only: something is
// to be written in it.
func (f *FS) storeDirectory(ctx context.Context, d *node) error {
	if !f.isInput(d) {
		return nil
	}
	name, ok := f.path(d)
	if !ok {
		return syscall.ENOENT
	}
	return store.MkdirAll(ctx, f.store, name, d.input.info.Mode.Perm()|0o700)
}

// Readlink implements readlink(2): only inputs are links.
func (f *FS) Readlink(_ <-chan struct{}, in *fuse.InHeader) ([]byte, fuse.Status) {
	n := f.node(in.NodeId)
	switch {
	case n == nil:
		return nil, fuse.Status(syscall.ESTALE)
	case n.input == nil || n.input.target == "":
		return nil, fuse.EINVAL
	}
	return []byte(n.input.target), fuse.OK
}
