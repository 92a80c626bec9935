package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"sort"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/hadoop/hdfs"
)

// Local is a store in a local directory.
type Local struct {
	dir  string
	root *os.Root // names, and symbolic links behind them, cannot leave it
	memo sync.Map
	// onSync, for tests, is called with each file and directory that is synced.
	onSync func(name string)
}

var (
	_ Store      = (*Local)(nil)
	_ fullLister = (*Local)(nil)
	_ lstater    = (*Local)(nil)
)

// NewLocal opens the store in a directory that exists.
func NewLocal(dir string) (*Local, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot use the directory %s as a checkpoint store: %w", dir, err)
	}
	return &Local{dir: dir, root: root}, nil
}

// URI returns the directory.
func (l *Local) URI() string { return l.dir }

// Close closes the directory.
func (l *Local) Close() error { return l.root.Close() }

func (l *Local) Stat(ctx context.Context, name string) (Info, error) {
	if err := begin(ctx, "stat", name, CheckName); err != nil {
		return Info{}, err
	}
	st, err := l.root.Stat(name)
	if err != nil {
		return Info{}, l.wrap("stat", name, err)
	}
	i := localInfo(path.Base(name), st)
	if i.IsDir() {
		i.Birth = l.birth(name, i)
	}
	return i, nil
}

// birth returns what files get from a directory: its group, if it has the set-group-ID
// bit, and what its default ACL says (acl(5)).
func (l *Local) birth(name string, i Info) string {
	b := "-"
	d, err := l.root.Open(name)
	if err != nil {
		return b
	}
	defer d.Close()
	st, err := d.Stat()
	if err != nil {
		return b
	}
	if s, ok := st.Sys().(*syscall.Stat_t); ok && st.Mode()&fs.ModeSetgid != 0 {
		b = fmt.Sprintf("group %d", s.Gid)
	}
	if n, err := unix.Fgetxattr(int(d.Fd()), "system.posix_acl_default", nil); err == nil && n > 0 {
		b += fmt.Sprintf(" %d", i.Inode)
	}
	return b
}

func (l *Local) List(ctx context.Context, dir string) ([]Info, error) {
	all, err := l.listAll(ctx, dir)
	return slices.DeleteFunc(all, func(i Info) bool { return IsTemporary(i.Name) || i.LeadsNowhere() }), err
}

// lstat is Stat of a link itself (lstater).
func (l *Local) lstat(ctx context.Context, name string) (Info, error) {
	if err := begin(ctx, "stat", name, CheckName); err != nil {
		return Info{}, err
	}
	st, err := l.root.Lstat(name)
	if err != nil {
		return Info{}, l.wrap("stat", name, err)
	}
	return localInfo(path.Base(name), st), nil
}

func (l *Local) listAll(ctx context.Context, dir string) ([]Info, error) {
	if err := begin(ctx, "list", dir, CheckName); err != nil {
		return nil, err
	}
	f, err := l.root.Open(dir)
	if err != nil {
		return nil, l.wrap("list", dir, err)
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, l.wrap("list", dir, err)
	}
	infos := make([]Info, 0, len(entries))
	for _, e := range entries {
		st, err := e.Info()
		if err != nil {
			continue // gone since
		}
		link := st.Mode()&fs.ModeSymlink != 0
		if link {
			if to, err := l.root.Stat(path.Join(dir, e.Name())); err == nil {
				st = to
			}
		}
		i := localInfo(e.Name(), st)
		i.Link = link
		infos = append(infos, i)
	}
	sort.Slice(infos, func(i, j int) bool { return infos[i].Name < infos[j].Name })
	return infos, nil
}

func (l *Local) Mkdir(ctx context.Context, name string, perm fs.FileMode) error {
	if name == "." {
		return l.wrap("mkdir", name, syscall.EEXIST)
	}
	if err := begin(ctx, "mkdir", name, CheckName); err != nil {
		return err
	}
	err := l.root.Mkdir(name, perm.Perm())
	if err == nil {
		err = l.asAsked(name, perm)
	}
	return l.wrap("mkdir", name, err)
}

// asAsked gives a new directory its permissions, regardless of the umask. It keeps the set-group-ID
// bit that the directory has inherited.
func (l *Local) asAsked(name string, perm fs.FileMode) error {
	const asked = fs.ModePerm | fs.ModeSticky
	st, err := l.root.Stat(name)
	if err != nil || st.Mode()&asked == perm&asked {
		return err
	}
	return l.root.Chmod(name, perm&asked|st.Mode()&fs.ModeSetgid)
}

func (l *Local) Rename(ctx context.Context, from, to string) error {
	if err := begin(ctx, "rename", from, CheckChange); err != nil {
		return err
	}
	if err := begin(ctx, "rename", to, CheckChange); err != nil {
		return err
	}
	return l.wrap("rename "+from+" to", to, l.rename(from, to, 0))
}

func (l *Local) RenameNew(ctx context.Context, from, to string) error {
	if err := begin(ctx, "rename", from, CheckChange); err != nil {
		return err
	}
	if err := begin(ctx, "rename", to, CheckChange); err != nil {
		return err
	}
	err := l.rename(from, to, unix.RENAME_NOREPLACE)
	if err == unix.EINVAL { // not every file system can
		if _, statErr := l.root.Lstat(to); statErr == nil {
			err = unix.EEXIST
		} else {
			err = l.rename(from, to, 0)
		}
	}
	return l.wrap("rename "+from+" to", to, err)
}

// rename is rename(2): that of os.Root does not replace an empty directory. The rename is durable
// if the file system can sync directories.
func (l *Local) rename(from, to string, flags uint) error {
	fromDir, err := l.root.Open(path.Dir(from))
	if err != nil {
		return err
	}
	defer fromDir.Close()
	toDir, err := l.root.Open(path.Dir(to))
	if err != nil {
		return err
	}
	defer toDir.Close()
	err = unix.Renameat2(int(fromDir.Fd()), path.Base(from), int(toDir.Fd()), path.Base(to), flags)
	if err == unix.EEXIST && flags == 0 { // rename(2) may say so of a directory that is not empty
		return unix.ENOTEMPTY
	}
	if err == nil {
		l.sync(toDir)
		if path.Dir(from) != path.Dir(to) {
			l.sync(fromDir)
		}
	}
	return err
}

// sync makes a directory's names durable, unless the file system cannot do that.
func (l *Local) sync(dir *os.File) {
	if l.onSync != nil {
		l.onSync(dir.Name())
	}
	_ = dir.Sync()
}

func (l *Local) Remove(ctx context.Context, name string) error {
	if err := begin(ctx, "remove", name, CheckChange); err != nil {
		return err
	}
	return l.wrap("remove", name, l.root.Remove(name))
}

func (l *Local) Chmod(ctx context.Context, name string, mode fs.FileMode) error {
	if err := begin(ctx, "chmod", name, CheckName); err != nil {
		return err
	}
	return l.wrap("chmod", name, l.root.Chmod(name, mode&(fs.ModePerm|fs.ModeSticky|fs.ModeSetgid)))
}

func (l *Local) Chtimes(ctx context.Context, name string, atime, mtime time.Time) error {
	if err := begin(ctx, "set the times of", name, CheckName); err != nil {
		return err
	}
	return l.wrap("set the times of", name, l.root.Chtimes(name, atime, mtime))
}

func (l *Local) Space(ctx context.Context) (Space, error) {
	if err := begin(ctx, "statfs", ".", CheckName); err != nil {
		return Space{}, err
	}
	var st unix.Statfs_t
	if err := unix.Statfs(l.dir, &st); err != nil {
		return Space{}, l.wrap("statfs", ".", err)
	}
	return Space{
		Total: int64(st.Blocks) * st.Bsize, Free: int64(st.Bavail) * st.Bsize,
		FilesTotal: int64(st.Files), FilesFree: int64(st.Ffree),
	}, nil
}

// begin checks what every operation requires.
func begin(ctx context.Context, op, name string, check func(op, name string) error) error {
	if err := ctx.Err(); err != nil {
		return &fs.PathError{Op: op, Path: name, Err: errors.Join(err, syscall.EIO)}
	}
	if err := hdfs.Permitted(ctx); err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return check(op, name)
}

// wrap names the file in full and makes sure that the error wraps an errno.
func (l *Local) wrap(op, name string, err error) error {
	if err == nil {
		return nil
	}
	if e := new(fs.PathError); errors.As(err, &e) {
		err = e.Err
	}
	if e := new(os.LinkError); errors.As(err, &e) {
		err = e.Err
	}
	if e := new(os.SyscallError); errors.As(err, &e) {
		err = e.Err
	}
	if errno := syscall.Errno(0); !errors.As(err, &errno) {
		errno = syscall.EIO
		if err.Error() == "path escapes from parent" { // of os.Root, which exports no error
			errno = syscall.EACCES
		}
		err = fmt.Errorf("%w: %w", err, errno)
	}
	return &fs.PathError{Op: op, Path: path.Join(l.dir, name), Err: err}
}

func localInfo(name string, st fs.FileInfo) Info {
	i := Info{Name: name, Size: st.Size(), Mode: st.Mode(), ModTime: st.ModTime()}
	if i.IsDir() {
		i.Size = 0
	}
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		i.Inode = s.Ino
	}
	i.Link = i.LeadsNowhere()
	return i
}
