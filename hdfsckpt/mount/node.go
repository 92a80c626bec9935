package mount

import (
	"context"
	"io/fs"
	"path"
	"syscall"
	"time"

	"holdfast/hdfsckpt/store"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// node is an inode that the kernel knows. FS.mu guards its fields.
type node struct {
	id       uint64
	dir      bool
	parent   *node // nil: the root, or a node whose name is gone
	name     string
	children map[string]*node // known to the kernel, of a directory
	// input is the input file or link that the node is, or what is merged into the
	// directory. It is set when the node is made, and may be read without FS.mu.
	input *input
	// changes counts this mount's changes of a directory, so that an older answer of
	// the store is noticed.
	changes uint64

	lookups uint64 // that the kernel has not forgotten
	opens   int
	writers int // handles open for writing

	// info is the store's last answer. known is false after a commit through this mount
	// until the store is asked again: then the file that has the name is this node's.
	info  store.Info
	known bool
	// version counts the contents that this node got through this mount, so that open
	// readers notice.
	version uint64
	// work is the content while it is written; nil otherwise.
	work *work
	// removed is the name in the area of a file that was removed while it was open.
	removed string
}

// hidden reports whether the node's present content is not in the store under its name.
func (n *node) hidden() bool { return n.work != nil && n.work.local.Load() }

// pathLocked returns the node's name in the store; false if it has none any more.
func (f *FS) pathLocked(n *node) (string, bool) {
	if n == f.root {
		return ".", true
	}
	p := ""
	for ; n != f.root; n = n.parent {
		if n.parent == nil {
			return p, false
		}
		p = path.Join(n.name, p)
	}
	return p, true
}

func (f *FS) path(n *node) (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pathLocked(n)
}

// contentLocked returns where the store has a node's content: under its name, or, if it was
// removed while open, in the area.
func (f *FS) contentLocked(n *node) (string, bool) {
	if n.removed != "" {
		return n.removed, true
	}
	return f.pathLocked(n)
}

func (f *FS) node(id uint64) *node {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.nodes[id]
}

// dirEntry returns a directory by number and the path of a name in it. The store's own
// files do not exist for programs, since some of these empty directories.
func (f *FS) dirEntry(id uint64, name string) (*node, string, fuse.Status) {
	if len(name) > 255 {
		return nil, "", fuse.Status(syscall.ENAMETOOLONG)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.nodes[id]
	if d == nil || !d.dir {
		return nil, "", fuse.Status(syscall.ESTALE)
	}
	p, ok := f.pathLocked(d)
	if !ok || d == f.root && name == store.OwnDir {
		return nil, "", fuse.ENOENT
	}
	return d, path.Join(p, name), fuse.OK
}

// newEntry is dirEntry for a name that is about to be made, which may not be that of a
// temporary file or an input.
func (f *FS) newEntry(id uint64, name string) (*node, string, fuse.Status) {
	d, p, st := f.dirEntry(id, name)
	switch {
	case st != fuse.OK:
		return nil, "", st
	case store.IsTemporary(name):
		return nil, "", fuse.EPERM
	case d.input.at(name) != nil:
		return nil, "", fuse.Status(syscall.EEXIST)
	}
	return d, p, fuse.OK
}

// enterToMake enters the gate, to make something in d, which then is in the store.
func (f *FS) enterToMake(d *node) (ctx context.Context, leave func(), err error) {
	ctx, leave, err = f.gate.Enter()
	if err != nil {
		return nil, nil, err
	}
	if err := f.storeDirectory(ctx, d); err != nil {
		leave()
		return nil, nil, err
	}
	return ctx, leave, nil
}

// same reports whether two answers of the store are about the same file.
func same(a, b store.Info) bool {
	switch {
	case a.IsDir() || b.IsDir():
		return a.IsDir() && b.IsDir()
	case a.Inode != 0 && b.Inode != 0:
		return a.Inode == b.Inode
	}
	return a.Size == b.Size && a.ModTime.Equal(b.ModTime)
}

// childLocked finds or makes the node of what the store has under a name. A known node
// keeps the name if it is the same file; otherwise it loses the name, so that the kernel
// does not mix pages of two files.
func (f *FS) childLocked(d *node, name string, info store.Info) *node {
	if c := d.children[name]; c != nil {
		if c.dir == info.IsDir() && (!c.known || same(c.info, info)) {
			c.info, c.known = info, true
			return c
		}
		f.detachLocked(c)
	}
	c := f.newNodeLocked(d, name, info.IsDir())
	c.info, c.known = info, true
	return c
}

func (f *FS) newNodeLocked(d *node, name string, dir bool) *node {
	f.lastNode++
	c := &node{id: f.lastNode, dir: dir, parent: d, name: name}
	if dir {
		c.children = make(map[string]*node)
		c.input = d.input.at(name)
	}
	f.nodes[c.id] = c
	d.children[name] = c
	return c
}

// detachLocked removes a node's name.
func (f *FS) detachLocked(n *node) {
	if n.parent != nil && n.parent.children[n.name] == n {
		delete(n.parent.children, n.name)
	}
	if n.parent != nil {
		n.parent.changes++
	}
	n.parent = nil
	f.dropLocked(n)
}

func (f *FS) moveLocked(n, d *node, name string) {
	if old := d.children[name]; old != nil && old != n {
		f.detachLocked(old)
	}
	if n.parent != nil && n.parent.children[n.name] == n {
		delete(n.parent.children, n.name)
	}
	if n.parent != nil {
		n.parent.changes++
	}
	n.parent, n.name = d, name
	d.children[name] = n
	d.changes++
}

// dropLocked forgets a node that is not referenced.
func (f *FS) dropLocked(n *node) {
	if n == f.root || n.lookups > 0 || n.opens > 0 || len(n.children) > 0 || n.work != nil {
		return
	}
	delete(f.nodes, n.id)
	if p := n.parent; p != nil {
		n.parent = nil
		if p.children[n.name] == n {
			delete(p.children, n.name)
			f.dropLocked(p)
		}
	}
}

// Forget implements fuse.RawFileSystem.
func (f *FS) Forget(id, count uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.nodes[id]
	if n == nil {
		return
	}
	n.lookups -= min(count, n.lookups)
	f.dropLocked(n)
}

// attrLifetime returns how long the kernel may use a file's attributes. A name's
// lifetime is 0, so that every path is looked up, which returns current attributes; this
// only avoids a request at each read(2) of an open file, which on HDFS is a call of the
// NameNode. It does not hold for event files, which grow while they are open.
func (n *node) attrLifetime() time.Duration {
	switch {
	case n.input.isFile():
		return time.Hour
	case n.dir || eventFile(n.name):
		return 0
	}
	return time.Second
}

// entryLocked answers with a node and counts the lookup. The name's lifetime
// stays 0: nothing may be cached.
func (f *FS) entryLocked(n *node, out *fuse.EntryOut) {
	n.lookups++
	out.NodeId = n.id
	out.Generation = 1
	f.attrLocked(n, &out.Attr)
	out.SetAttrTimeout(n.attrLifetime())
}

// attrLocked fills in a node's attributes as this mount sees them.
func (f *FS) attrLocked(n *node, a *fuse.Attr) {
	size, mtime, mode := n.info.Size, n.info.ModTime, n.info.Mode
	if n.hidden() {
		size = n.work.size.Load()
		mtime = time.Unix(0, n.work.mtime.Load())
		mode = fs.FileMode(n.work.perm.Load())
	}
	a.Ino = n.id
	a.Owner = fuse.Owner{Uid: f.o.UID, Gid: f.o.GID}
	a.Nlink = 1
	// stdio and Python size their buffers by this: fewer, larger writes.
	a.Blksize = 128 << 10
	a.SetTimes(&mtime, &mtime, &mtime)
	if n.dir {
		a.Mode = syscall.S_IFDIR | permBits(mode)
		return // one link: how many directories are in it is not counted
	}
	if n.parent == nil {
		a.Nlink = 0
	}
	a.Mode = syscall.S_IFREG | permBits(mode)
	if mode&fs.ModeSymlink != 0 {
		a.Mode = syscall.S_IFLNK | permBits(mode)
	}
	a.Size = uint64(size)
	a.Blocks = (uint64(size) + 511) / 512
}

// permBits returns the bits of a mode that stores have, as chmod(2) takes them.
func permBits(m fs.FileMode) uint32 {
	p := uint32(m.Perm())
	if m&fs.ModeSticky != 0 {
		p |= syscall.S_ISVTX
	}
	if m&fs.ModeSetgid != 0 {
		p |= syscall.S_ISGID
	}
	return p
}

// modeOf is the reverse of permBits.
func modeOf(bits uint32) fs.FileMode {
	m := fs.FileMode(bits) & fs.ModePerm
	if bits&syscall.S_ISVTX != 0 {
		m |= fs.ModeSticky
	}
	if bits&syscall.S_ISGID != 0 {
		m |= fs.ModeSetgid
	}
	return m
}
