package submit

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/encoding/protojson"
	pb "google.golang.org/protobuf/proto"

	"holdfast/client/cluster"
	"holdfast/client/localfile"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/yarn"
	"holdfast/internal/jobtls"
	"holdfast/proto"
)

// binaryName is the name of the binary in containers and in its directory on HDFS.
const binaryName = "yarn-submit"

// sharedTime is the modification time of binaries and archives on HDFS. A NodeManager
// refuses a file whose modification time differs from the one in the request, and
// concurrent submissions may both upload it.
var sharedTime = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// EnsureBinary uploads the binary to home unless it is there already.
func EnsureBinary(ctx context.Context, home store.Store, exe string) (yarn.LocalResource, error) {
	sum, err := localfile.Digest(ctx, exe)
	if err != nil {
		return yarn.LocalResource{}, err
	}
	return uploadBinary(ctx, home, exe, sum, nil)
}

// uploadBinary is EnsureBinary for a binary with a known digest. The digest is part of
// its path, so that it is uploaded once and nodes can cache it.
func uploadBinary(ctx context.Context, home store.Store, exe, sum string, t *transfer) (yarn.LocalResource, error) {
	r, err := ensureUploaded(ctx, home, path.Join("bin", sum, binaryName), exe, sum, 0o700, t)
	if err != nil {
		return r, fmt.Errorf("bring the program %s to %s: %w", exe, home.URI(), err)
	}
	r.Name = binaryName
	return r, nil
}

// uploadArchive uploads an archive, which NodeManagers unpack, unless an earlier job
// has uploaded it already.
func uploadArchive(ctx context.Context, home store.Store, f *proto.FileSpec, t *transfer) (yarn.LocalResource, error) {
	r, err := ensureUploaded(ctx, home, archiveName(f), f.Uri, f.Sha256, fs.FileMode(f.Mode)&0o777, t)
	if err != nil {
		return r, fmt.Errorf("bring the archive %s to %s: %w", f.Uri, home.URI(), err)
	}
	r.Name, r.Archive = proto.StoredName(f.Name), true
	return r, nil
}

// archiveName returns the path of an archive on HDFS: it contains the digest, and keeps
// the suffix by which the NodeManager chooses how to unpack it.
func archiveName(f *proto.FileSpec) string {
	return path.Join("archives", f.Sha256, proto.StoredName(path.Base(f.Uri)))
}

// ensureUploaded uploads a local file unless it is there already. name must be
// determined by sum, the digest of the content.
func ensureUploaded(ctx context.Context, home store.Store, name, file, sum string, mode fs.FileMode, t *transfer) (yarn.LocalResource, error) {
	local, err := os.Stat(file)
	if err != nil {
		return yarn.LocalResource{}, err
	}
	info, there, err := statComplete(ctx, home, name, local.Size())
	if err == nil && !there {
		t.expect(local.Size())
		if err = uploadShared(ctx, home, name, file, sum, local.Size(), mode, t); err == nil {
			info, err = home.Stat(ctx, name)
		}
	}
	if err != nil {
		return yarn.LocalResource{}, fmt.Errorf("%s: %w", name, err)
	}
	return resourceOf(home, name, path.Base(name), info), nil
}

// statComplete reports whether a file exists and has the given size.
func statComplete(ctx context.Context, home store.Store, name string, size int64) (store.Info, bool, error) {
	info, err := home.Stat(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return info, false, nil
	}
	return info, err == nil && info.Size == size, err
}

// uploadShared uploads a file beside its destination, sets its modification time, and
// renames it into place. If another client was faster, its file stays: NodeManagers may
// be reading it.
func uploadShared(ctx context.Context, home store.Store, name, file, sum string, size int64, mode fs.FileMode, t *transfer) error {
	if err := store.MkdirAll(ctx, home, path.Dir(name), 0o700); err != nil {
		return err
	}
	beside := path.Join(path.Dir(name), rand.Text())
	if err := uploadFile(ctx, home, beside, file, sum, mode, t); err != nil {
		return err
	}
	err := home.Chtimes(ctx, beside, sharedTime, sharedTime)
	there := false
	if err == nil {
		_, there, err = statComplete(ctx, home, name, size)
	}
	if err == nil && !there {
		err = home.Rename(ctx, beside, name)
	}
	if err != nil || there {
		cleaning, cancel := context.WithTimeout(context.WithoutCancel(ctx), cluster.Timeout)
		defer cancel()
		err = errors.Join(err, home.Remove(cleaning, beside))
	}
	return err
}

func resourceOf(home store.Store, name, as string, info store.Info) yarn.LocalResource {
	return yarn.LocalResource{
		Name: as, URI: home.URI() + "/" + name, Size: info.Size, Timestamp: info.ModTime.UnixMilli(),
		Visibility: yarn.Private,
	}
}

// upload fills dir, the job's directory in home, and returns the archives, which
// NodeManagers unpack. The stored spec has the files' URIs on HDFS.
func upload(ctx context.Context, home store.Store, dir string, spec *proto.JobSpec, set jobtls.Set, t *transfer) ([]yarn.LocalResource, error) {
	if err := store.MkdirAll(ctx, home, path.Dir(dir), 0o700); err != nil {
		return nil, err
	}
	if err := home.Mkdir(ctx, dir, 0o700); err != nil {
		return nil, err
	}
	stored := pb.Clone(spec).(*proto.JobSpec)
	names := make([]string, len(stored.Files))
	made := map[string]bool{}
	for i, f := range stored.Files {
		if f.Archive {
			continue
		}
		t.expect(f.Size)
		names[i] = path.Join(dir, "files", proto.StoredName(f.Name))
		if below := path.Dir(names[i]); !made[below] {
			if err := store.MkdirAll(ctx, home, below, 0o700); err != nil {
				return nil, err
			}
			made[below] = true
		}
	}
	archives := make([]yarn.LocalResource, len(stored.Files))
	g, uploading := errgroup.WithContext(ctx)
	g.SetLimit(4)
	for i, f := range spec.Files {
		at := stored.Files[i]
		if f.Archive {
			names[i] = archiveName(f)
			at.Sha256 = ""
		}
		at.Uri = home.URI() + "/" + names[i]
		g.Go(func() (err error) {
			if f.Archive {
				archives[i], err = uploadArchive(uploading, home, f, t)
				return err
			}
			return uploadFile(uploading, home, names[i], f.Uri, f.Sha256, fs.FileMode(f.Mode)&0o777, t)
		})
	}
	g.Go(func() error { return writeKeys(uploading, home, dir, set) })
	g.Go(func() error { return writeSpec(uploading, home, dir, stored) })
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(archives, func(a yarn.LocalResource) bool { return a.Name == "" }), nil
}

func writeSpec(ctx context.Context, home store.Store, dir string, spec *proto.JobSpec) error {
	text, err := protojson.MarshalOptions{Multiline: true}.Marshal(spec)
	if err != nil {
		return fmt.Errorf("write the job's spec: %w", err)
	}
	return store.WriteFile(ctx, home, path.Join(dir, proto.SpecFile), text, 0o600)
}

// writeKeys writes the keys with which clients call the job's application master.
func writeKeys(ctx context.Context, home store.Store, dir string, set jobtls.Set) error {
	return store.WriteFile(ctx, home, path.Join(dir, proto.KeysFile), set.Client.Marshal(), 0o600)
}

// uploadFile uploads a local file. It fails, and nothing is there, if what it has read does not have
// the SHA-256 digest sum, in hexadecimal; "": it was not read before.
func uploadFile(ctx context.Context, s store.Store, name, local, sum string, mode fs.FileMode, t *transfer) error {
	f, err := localfile.Open(ctx, local)
	if err != nil {
		return err
	}
	defer f.Close()
	w, err := s.Create(ctx, name, mode)
	if err != nil {
		return err
	}
	digest := sha256.New()
	_, err = io.CopyBuffer(t.counted(onlyWriter{w}), io.TeeReader(f, digest), make([]byte, 1<<20))
	if read := hex.EncodeToString(digest.Sum(nil)); err == nil && sum != "" && read != sum {
		err = fmt.Errorf("%s has changed since this command began (its SHA-256 is %s now, and was %s): start the job again once nothing writes to it", local, read, sum)
	}
	if err != nil {
		return errors.Join(err, w.Abort())
	}
	return w.Close()
}

// onlyWriter hides io.ReaderFrom, so that io.CopyBuffer uses its buffer.
type onlyWriter struct{ io.Writer }
