package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"sync"
	"syscall"
	"time"

	"holdfast/internal/hadoop/conf"
	"holdfast/internal/hadoop/hdfs"
)

// hdfsStore is a store in an HDFS directory.
type hdfsStore struct {
	c    *hdfs.Client
	uri  string
	root string // absolute path

	memo sync.Map

	mu      sync.Mutex
	space   Space // as of spaceAt
	spaceAt time.Time
}

var (
	_ Store      = (*hdfsStore)(nil)
	_ Accesser   = (*hdfsStore)(nil)
	_ fullLister = (*hdfsStore)(nil)
)

func (o *Opener) openHDFS(ctx context.Context, u *url.URL, create bool) (Store, error) {
	if o.conf == nil {
		return nil, fmt.Errorf("cannot open the checkpoint store %s: no Hadoop configuration is there; set %s", u, conf.EnvDir)
	}
	client, err := hdfs.New(u.String(), o.conf, o.hdfs)
	if err != nil {
		return nil, fmt.Errorf("cannot open the checkpoint store %s: %w", u, err)
	}
	s := &hdfsStore{c: client, uri: u.String(), root: path.Clean(u.Path)}
	if err := s.begin(ctx, create); err != nil {
		client.Close()
		return nil, fmt.Errorf("cannot open the checkpoint store %s: %w", u, err)
	}
	return s, nil
}

// begin checks that the root is a directory.
func (s *hdfsStore) begin(ctx context.Context, create bool) error {
	st, err := s.c.Stat(ctx, s.root)
	switch {
	case errors.Is(err, fs.ErrNotExist) && create:
		return s.c.MkdirAll(ctx, s.root, 0o755)
	case err != nil:
		return err
	case !st.Mode.IsDir():
		return hdfs.Wrap("open", s.root, syscall.ENOTDIR)
	}
	return nil
}

func (s *hdfsStore) URI() string { return s.uri }

func (s *hdfsStore) Close() error { return s.c.Close() }

func (s *hdfsStore) at(name string) string { return path.Join(s.root, name) }

func (s *hdfsStore) Stat(ctx context.Context, name string) (Info, error) {
	if err := CheckName("stat", name); err != nil {
		return Info{}, err
	}
	st, err := s.c.Stat(ctx, s.at(name))
	if err != nil {
		return Info{}, err
	}
	st.Name = path.Base(name)
	return hdfsInfo(st), nil
}

func hdfsInfo(st hdfs.Status) Info {
	i := Info{Name: st.Name, Size: st.Size, Mode: st.Mode, ModTime: st.ModTime, Inode: st.Inode}
	if i.IsDir() {
		i.Birth = fmt.Sprintf("%s %d", st.Group, st.Policy)
		if st.ACL { // it may have a default for what is made in it
			i.Birth += fmt.Sprintf(" %d", st.Inode)
		}
	}
	return i
}

// sameStorage gives a directory the storage policy of another, which may have it
// from those above.
func (s *hdfsStore) sameStorage(ctx context.Context, as, dir string) error {
	want, err := s.c.Stat(ctx, s.at(as))
	if err != nil {
		return err
	}
	has, err := s.c.Stat(ctx, s.at(dir))
	if err != nil || has.Policy == want.Policy {
		return err
	}
	return s.c.SetStoragePolicy(ctx, s.at(dir), want.Policy)
}

func (s *hdfsStore) List(ctx context.Context, dir string) ([]Info, error) {
	all, err := s.listAll(ctx, dir)
	return slices.DeleteFunc(all, func(i Info) bool { return IsTemporary(i.Name) }), err
}

func (s *hdfsStore) listAll(ctx context.Context, dir string) ([]Info, error) {
	if err := CheckName("list", dir); err != nil {
		return nil, err
	}
	all, err := s.c.List(ctx, s.at(dir))
	if err != nil {
		return nil, err
	}
	infos := make([]Info, 0, len(all))
	for _, st := range all {
		infos = append(infos, hdfsInfo(st))
	}
	return infos, nil
}

func (s *hdfsStore) Mkdir(ctx context.Context, name string, perm fs.FileMode) error {
	if err := CheckName("mkdir", name); err != nil {
		return err
	}
	return s.c.Mkdir(ctx, s.at(name), perm)
}

func (s *hdfsStore) Access(ctx context.Context, name string, mask uint32) error {
	if err := CheckName("access", name); err != nil {
		return err
	}
	return s.c.Access(ctx, s.at(name), mask)
}

func (s *hdfsStore) Rename(ctx context.Context, from, to string) error {
	for _, name := range []string{from, to} {
		if err := CheckChange("rename", name); err != nil {
			return err
		}
	}
	return s.c.Rename(Committing(ctx), s.at(from), s.at(to))
}

func (s *hdfsStore) RenameNew(ctx context.Context, from, to string) error {
	for _, name := range []string{from, to} {
		if err := CheckChange("rename", name); err != nil {
			return err
		}
	}
	return s.c.RenameNew(Committing(ctx), s.at(from), s.at(to))
}

func (s *hdfsStore) Remove(ctx context.Context, name string) error {
	if err := CheckChange("remove", name); err != nil {
		return err
	}
	return s.c.Remove(ctx, s.at(name))
}

func (s *hdfsStore) Chmod(ctx context.Context, name string, mode fs.FileMode) error {
	if err := CheckName("chmod", name); err != nil {
		return err
	}
	return s.c.Chmod(ctx, s.at(name), mode)
}

func (s *hdfsStore) Chtimes(ctx context.Context, name string, atime, mtime time.Time) error {
	if err := CheckName("set the times of", name); err != nil {
		return err
	}
	return s.c.Chtimes(ctx, s.at(name), atime, mtime)
}
