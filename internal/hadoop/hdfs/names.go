package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	pb "google.golang.org/protobuf/proto"

	"holdfast/internal/backoff"
	"holdfast/internal/hadoop/hdfs/write"
	"holdfast/internal/hadoop/rpc"
	wire "holdfast/internal/hadoop/wire/hdfs"
)

// Status is what the NameNode knows of a file or directory.
type Status struct {
	Name        string // base name; "" where it was asked for by path
	Mode        fs.FileMode
	Size        int64
	ModTime     time.Time
	Owner       string
	Group       string
	Replication int
	Inode       uint64
	Policy      int  // of storage, perhaps of a directory above; 0: none
	ACL         bool // it has one
}

// flagACL is a bit of HdfsFileStatusProto.flags (HdfsFileStatusProto.Flags).
const flagACL = 1

func statusOf(p *wire.HdfsFileStatusProto) Status {
	s := Status{
		Name:        string(p.GetPath()),
		Mode:        modeOf(p.GetPermission()),
		Size:        int64(p.GetLength()),
		ModTime:     time.UnixMilli(int64(p.GetModificationTime())),
		Owner:       p.GetOwner(),
		Replication: int(p.GetBlockReplication()),
		Inode:       p.GetFileId(),
		Group:       p.GetGroup(),
		Policy:      int(p.GetStoragePolicy()),
		ACL:         p.GetFlags()&flagACL != 0,
	}
	switch p.GetFileType() {
	case wire.HdfsFileStatusProto_IS_DIR:
		s.Mode |= fs.ModeDir
		s.Size = 0
	case wire.HdfsFileStatusProto_IS_SYMLINK:
		s.Mode |= fs.ModeSymlink
	}
	return s
}

// Stat returns the status of a file or directory; ENOENT if there is none.
func (c *Client) Stat(ctx context.Context, name string) (Status, error) {
	st, err := c.status(ctx, name)
	if err != nil {
		return Status{}, Wrap("stat", name, err)
	}
	return statusOf(st), nil
}

func (c *Client) status(ctx context.Context, name string) (*wire.HdfsFileStatusProto, error) {
	resp := &wire.GetFileInfoResponseProto{}
	err := c.call(ctx, "getFileInfo", &wire.GetFileInfoRequestProto{Src: &name}, resp)
	if err == nil && resp.GetFs() == nil {
		err = syscall.ENOENT
	}
	return resp.GetFs(), err
}

// Access checks that this client's user may read (4), write (2) or execute (1) a file or
// directory: by owner, group and mode, by ACL entries, or as a superuser. It returns
// EACCES if not.
func (c *Client) Access(ctx context.Context, name string, mask uint32) error {
	err := c.call(ctx, "checkAccess", &wire.CheckAccessRequestProto{Path: &name, Mode: &mask}, &wire.CheckAccessResponseProto{})
	return Wrap("access", name, err)
}

// List returns a directory's entries, sorted by name.
func (c *Client) List(ctx context.Context, dir string) ([]Status, error) {
	var list []Status
	after := []byte{}
	for {
		resp := &wire.GetListingResponseProto{}
		err := c.call(ctx, "getListing", &wire.GetListingRequestProto{Src: &dir, StartAfter: after, NeedLocation: pb.Bool(false)}, resp)
		if err == nil && resp.GetDirList() == nil {
			err = syscall.ENOENT
		}
		if err != nil {
			return nil, Wrap("list", dir, err)
		}
		page := resp.GetDirList().GetPartialListing()
		for _, p := range page {
			if len(p.GetPath()) == 0 { // a file, as the only entry of itself
				return nil, Wrap("list", dir, syscall.ENOTDIR)
			}
			list = append(list, statusOf(p))
		}
		if resp.GetDirList().GetRemainingEntries() == 0 || len(page) == 0 {
			// The NameNode sorts by signed bytes (DFSUtil.compareBytes).
			slices.SortFunc(list, func(a, b Status) int { return strings.Compare(a.Name, b.Name) })
			return list, nil
		}
		after = page[len(page)-1].GetPath()
	}
}

// Mkdir makes one directory. The NameNode accepts one that exists, so Mkdir looks first:
// of two concurrent calls for the same directory, both may succeed.
func (c *Client) Mkdir(ctx context.Context, name string, perm fs.FileMode) error {
	_, err := c.Stat(ctx, name)
	if err == nil {
		err = syscall.EEXIST
	} else if Errno(err) == syscall.ENOENT {
		err = c.mkdir(ctx, name, perm, false)
	}
	return Wrap("mkdir", name, err)
}

// MkdirAll makes a directory and its missing parents.
func (c *Client) MkdirAll(ctx context.Context, name string, perm fs.FileMode) error {
	return Wrap("mkdir", name, c.mkdir(ctx, name, perm, true))
}

func (c *Client) mkdir(ctx context.Context, name string, perm fs.FileMode, parents bool) error {
	resp := &wire.MkdirsResponseProto{}
	err := c.call(ctx, "mkdirs", &wire.MkdirsRequestProto{Src: &name, Masked: permission(perm), CreateParent: &parents}, resp)
	if err == nil && !resp.GetResult() {
		err = fmt.Errorf("the NameNode did not make the directory: %w", syscall.EIO)
	}
	return err
}

// stickyBit is the only bit of FsPermission beside the permissions. (Old releases set others in
// what they return, for ACLs and encryption: FsPermissionExtension.)
const stickyBit = 0o1000

// permission returns a mode as HDFS has it.
func permission(mode fs.FileMode) *wire.FsPermissionProto {
	bits := uint32(mode.Perm())
	if mode&fs.ModeSticky != 0 {
		bits |= stickyBit
	}
	return &wire.FsPermissionProto{Perm: &bits}
}

// modeOf is the reverse of permission.
func modeOf(p *wire.FsPermissionProto) fs.FileMode {
	mode := fs.FileMode(p.GetPerm()) & fs.ModePerm
	if p.GetPerm()&stickyBit != 0 {
		mode |= fs.ModeSticky
	}
	return mode
}

// bothDirectories is how the NameNode refuses a file in the place of a directory,
// and the other way round (FSDirRenameOp.validateRenameOverwrite).
const bothDirectories = "must both be directories"

// Rename renames a file or directory. It replaces a file by a file, and an empty directory
// by a directory.
func (c *Client) Rename(ctx context.Context, from, to string) error {
	if from == to { // the NameNode refuses what POSIX allows
		_, err := c.Stat(ctx, from)
		return Wrap("rename", from, err)
	}
	err := c.call(ctx, "rename2", &wire.Rename2RequestProto{Src: &from, Dst: &to, OverwriteDest: pb.Bool(true)}, &wire.Rename2ResponseProto{})
	if err != nil && strings.Contains(err.Error(), bothDirectories) {
		errno := syscall.ENOTDIR
		if st, statErr := c.Stat(ctx, to); statErr == nil && st.Mode.IsDir() {
			errno = syscall.EISDIR
		}
		err = &failure{err, errno}
	}
	return Wrap("rename "+from+" to", to, err)
}

// RenameNew is Rename that replaces nothing: it fails with EEXIST if the name is taken.
func (c *Client) RenameNew(ctx context.Context, from, to string) error {
	err := c.call(ctx, "rename2", &wire.Rename2RequestProto{Src: &from, Dst: &to, OverwriteDest: pb.Bool(false)}, &wire.Rename2ResponseProto{})
	if err != nil && strings.Contains(err.Error(), bothDirectories) {
		err = &failure{err, syscall.EEXIST}
	}
	return Wrap("rename "+from+" to", to, err)
}

// storagePolicies are the names of storage policies (HdfsConstants.StoragePolicy).
var storagePolicies = map[int]string{
	1: "PROVIDED", 2: "COLD", 5: "WARM", 7: "HOT", 10: "ONE_SSD", 12: "ALL_SSD", 14: "ALL_NVDIMM", 15: "LAZY_PERSIST",
}

// SetStoragePolicy gives a directory the policy with that number; 0 is HDFS's default.
func (c *Client) SetStoragePolicy(ctx context.Context, name string, policy int) error {
	if policy == 0 {
		policy = 7
	}
	called, ok := storagePolicies[policy]
	if !ok {
		return Wrap("set the storage policy of", name, fmt.Errorf("there is no name for number %d: %w", policy, syscall.EINVAL))
	}
	err := c.call(ctx, "setStoragePolicy", &wire.SetStoragePolicyRequestProto{Src: &name, PolicyName: &called}, &wire.SetStoragePolicyResponseProto{})
	return Wrap("set the storage policy of", name, err)
}

// Remove deletes a file or an empty directory.
func (c *Client) Remove(ctx context.Context, name string) error {
	resp := &wire.DeleteResponseProto{}
	err := c.call(ctx, "delete", &wire.DeleteRequestProto{Src: &name, Recursive: pb.Bool(false)}, resp)
	if err == nil && !resp.GetResult() {
		err = syscall.ENOENT
	}
	return Wrap("remove", name, err)
}

// Chmod sets the permissions and the sticky bit.
func (c *Client) Chmod(ctx context.Context, name string, mode fs.FileMode) error {
	err := c.call(ctx, "setPermission", &wire.SetPermissionRequestProto{Src: &name, Permission: permission(mode)}, &wire.SetPermissionResponseProto{})
	return Wrap("chmod", name, err)
}

// unset is -1, which leaves a time as it is (ClientProtocol.setTimes).
const unset = math.MaxUint64

// Chtimes sets the times, in milliseconds. The access time is left where the
// file system does not keep it (dfs.namenode.accesstime.precision 0).
func (c *Client) Chtimes(ctx context.Context, name string, atime, mtime time.Time) error {
	req := &wire.SetTimesRequestProto{Src: &name, Mtime: milli(mtime), Atime: milli(atime)}
	err := c.call(ctx, "setTimes", req, &wire.SetTimesResponseProto{})
	if err != nil && strings.Contains(err.Error(), "Access time for hdfs is not configured") {
		req.Atime = pb.Uint64(unset)
		err = c.call(ctx, "setTimes", req, &wire.SetTimesResponseProto{})
	}
	return Wrap("set the times of", name, err)
}

func milli(t time.Time) *uint64 {
	if t.IsZero() {
		return pb.Uint64(unset)
	}
	return pb.Uint64(uint64(t.UnixMilli()))
}

// Create makes a new file for writing. The parent must exist.
func (c *Client) Create(ctx context.Context, name string, perm fs.FileMode) (*write.File, error) {
	f, err := c.files.Create(ctx, name, perm, false)
	return f, Wrap("create", name, err)
}

// takeOverLimit bounds the wait for a file whose last writer did not close it.
const takeOverLimit = 60 * time.Second

// Append opens an existing file for appending. It takes the lease of another writer that
// has the file open, which is assumed to be dead.
func (c *Client) Append(ctx context.Context, name string) (*write.File, error) {
	limited, cancel := context.WithTimeout(ctx, takeOverLimit)
	defer cancel()
	open := c.files.Append
	for {
		f, err := open(ctx, name)
		if errors.Is(err, write.ErrNotResumed) {
			c.log.Warnf("appending to %s: a new block is begun: %v", name, err)
			open = c.files.AppendBlock
			continue
		}
		if Errno(err) != syscall.EBUSY {
			return f, Wrap("append to", name, err)
		}
		if recoverErr := c.recoverLease(limited, name); recoverErr != nil {
			return nil, Wrap("append to", name, fmt.Errorf("%w; taking it over: %w", err, recoverErr))
		}
		if !backoff.Sleep(limited, 500*time.Millisecond) {
			return nil, Wrap("append to", name, fmt.Errorf("its last writer's lease could not be ended within %s: %w", takeOverLimit, err))
		}
	}
}

// recoverLease has the NameNode begin to recover a file's last block; it takes the
// lease away from its writer when that is done (FSNamesystem.recoverLease).
func (c *Client) recoverLease(ctx context.Context, name string) error {
	holder := "holdfast"
	return c.call(ctx, "recoverLease", &wire.RecoverLeaseRequestProto{Src: &name, ClientName: &holder}, &wire.RecoverLeaseResponseProto{})
}

// Space is the capacity of the file system, in bytes of all replicas.
type Space struct{ Total, Free int64 }

// Space returns the capacity of the file system as a whole.
func (c *Client) Space(ctx context.Context) (Space, error) {
	resp := &wire.GetFsStatsResponseProto{}
	if err := c.call(ctx, "getFsStats", &wire.GetFsStatusRequestProto{}, resp); err != nil {
		return Space{}, Wrap("statfs", "/", err)
	}
	return Space{Total: int64(resp.GetCapacity()), Free: int64(resp.GetRemaining())}, nil
}

// Quota is the limit of one directory; negative: none.
type Quota struct {
	Files, FilesLimit int64 // directories too
	Bytes, BytesLimit int64 // of all replicas
}

// Quota returns a directory's use and limits. The NameNode counts the files under it,
// which takes some time for a large tree.
func (c *Client) Quota(ctx context.Context, dir string) (Quota, error) {
	resp := &wire.GetContentSummaryResponseProto{}
	err := c.call(ctx, "getContentSummary", &wire.GetContentSummaryRequestProto{Path: &dir}, resp)
	if err != nil {
		return Quota{}, Wrap("quota of", dir, err)
	}
	s := resp.GetSummary()
	return Quota{
		Files: int64(s.GetFileCount() + s.GetDirectoryCount()), FilesLimit: int64(s.GetQuota()),
		Bytes: int64(s.GetSpaceConsumed()), BytesLimit: int64(s.GetSpaceQuota()),
	}, nil
}

// inodePath returns a path that does not depend on the file's name (FSDirectory.DOT_INODES_STRING).
func inodePath(inode uint64) string {
	return path.Join("/.reserved/.inodes", fmt.Sprint(inode))
}

// gone reports whether a file was deleted.
func gone(err error) bool { return rpc.IsRemote(err, "java.io.FileNotFoundException") }
