package stage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"

	"holdfast/container/failure"
	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

const (
	fetchAtOnce = 4
	// copyUpTo is the size up to which a local file is copied; a larger one
	// is linked.
	copyUpTo = 256 << 20
)

// fetchFiles copies or links the job's files into the working directory.
func fetchFiles(ctx context.Context, o Options, work string, files []*proto.FileSpec) error {
	f := &fetcher{options: o, work: work, stores: map[string]store.Store{}}
	defer f.close()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(fetchAtOnce)
	for _, file := range files {
		g.Go(func() error { return f.fetch(ctx, file) })
	}
	return g.Wait()
}

type fetcher struct {
	options Options
	work    string

	mu     sync.Mutex
	stores map[string]store.Store
}

func (f *fetcher) close() {
	for _, s := range f.stores {
		_ = s.Close() // nothing is open
	}
}

func (f *fetcher) fetch(ctx context.Context, file *proto.FileSpec) error {
	if !filepath.IsLocal(filepath.FromSlash(file.Name)) {
		return failure.Permanent(fmt.Errorf("the job's file %q would stand outside of the working directory", file.Name))
	}
	to := filepath.Join(f.work, filepath.FromSlash(file.Name))
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return failure.Node(fmt.Errorf("making the directory of %s: %w", file.Name, err))
	}
	remote := strings.Contains(file.Uri, "://") && !strings.HasPrefix(file.Uri, "file://")
	local := strings.TrimPrefix(file.Uri, "file://")
	if file.Archive {
		// The NodeManager has unpacked it into the container's directory.
		unpacked := filepath.Join(f.options.WorkDir, filepath.FromSlash(proto.StoredName(file.Name)))
		if _, err := os.Stat(unpacked); err == nil {
			return link(unpacked, to)
		}
		if remote {
			return failure.Node(fmt.Errorf("the archive %s was not unpacked in this container by its NodeManager: %s is missing", file.Uri, unpacked))
		}
		unpacked = filepath.Join(f.options.WorkDir, "archives", filepath.FromSlash(file.Name))
		if err := unpack(ctx, local, unpacked); err != nil {
			return err
		}
		return link(unpacked, to)
	}
	if !remote && file.Size > copyUpTo {
		return link(local, to)
	}
	from, size, err := f.open(ctx, file, remote, local)
	if err != nil {
		return err
	}
	defer from.Close()
	if file.Sha256 != "" && size != file.Size {
		return failure.Permanent(changed(file, fmt.Sprintf("it has %d bytes instead of %d", size, file.Size)))
	}
	return save(file, from, to)
}

func changed(file *proto.FileSpec, how string) error {
	return fmt.Errorf("the job's file %s (%s) has changed since the job was submitted: %s; submit the job again", file.Name, file.Uri, how)
}

func (f *fetcher) open(ctx context.Context, file *proto.FileSpec, remote bool, local string) (io.ReadCloser, int64, error) {
	if !remote {
		r, err := os.Open(local)
		if err != nil {
			return nil, 0, failure.Store(fmt.Errorf("opening the job's file %s: %w", file.Name, err))
		}
		st, err := r.Stat()
		if err != nil {
			r.Close()
			return nil, 0, failure.Node(fmt.Errorf("opening the job's file %s: %w", file.Name, err))
		}
		return r, st.Size(), nil
	}
	dir, name := path.Split(file.Uri)
	store, err := f.store(ctx, strings.TrimSuffix(dir, "/"))
	if err != nil {
		return nil, 0, failure.Store(fmt.Errorf("opening the directory of the job's file %s: %w", file.Name, err))
	}
	r, err := store.Open(ctx, name)
	if err != nil {
		return nil, 0, failure.Store(fmt.Errorf("opening the job's file %s at %s: %w", file.Name, file.Uri, err))
	}
	return &wholeReader{io.NewSectionReader(r, 0, r.Size()), r}, r.Size(), nil
}

type wholeReader struct {
	io.Reader
	io.Closer
}

func (f *fetcher) store(ctx context.Context, uri string) (store.Store, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := f.stores[uri]; s != nil {
		return s, nil
	}
	s, err := f.options.Stores.Open(ctx, uri)
	if err == nil {
		f.stores[uri] = s
	}
	return s, err
}

// save writes a file under a temporary name, checks it, and gives it its name.
func save(file *proto.FileSpec, from io.Reader, to string) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(to), ".fetch-*")
	if err != nil {
		return failure.Node(fmt.Errorf("writing the job's file %s: %w", file.Name, err))
	}
	defer func() {
		tmp.Close()
		if err != nil {
			os.Remove(tmp.Name())
		}
	}()
	digest := sha256.New()
	if _, err := io.Copy(io.MultiWriter(tmp, digest), from); err != nil {
		return failure.Node(fmt.Errorf("copying the job's file %s (%s) to %s: %w", file.Name, file.Uri, to, err))
	}
	if sum := hex.EncodeToString(digest.Sum(nil)); file.Sha256 != "" && !strings.EqualFold(sum, file.Sha256) {
		return failure.Permanent(changed(file, "its SHA-256 is "+sum+" instead of "+file.Sha256))
	}
	mode := fs.FileMode(file.Mode) & fs.ModePerm
	if mode == 0 {
		mode = 0o644
	}
	if err := errors.Join(tmp.Chmod(mode|0o400), tmp.Close(), os.Rename(tmp.Name(), to)); err != nil {
		return failure.Node(fmt.Errorf("writing the job's file %s: %w", to, err))
	}
	return nil
}

// link makes a symbolic link, unless it exists.
func link(target, at string) error {
	if old, err := os.Readlink(at); err == nil && old == target {
		return nil
	}
	err := os.Symlink(target, at)
	if errors.Is(err, syscall.EEXIST) {
		// An empty directory may be replaced by the link; a file or another link may
		// not.
		if syscall.Rmdir(at) == nil {
			err = os.Symlink(target, at)
		}
	}
	if err != nil {
		return failure.Node(fmt.Errorf("linking %s to %s: %w", at, target, err))
	}
	return nil
}
