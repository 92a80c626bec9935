package mount_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"holdfast/hdfsckpt/mount"

	"golang.org/x/sys/unix"
)

// mountAndSend is what an agent's init stage does: in its own user and mount
// namespace it opens /dev/fuse, mounts it, and hands the descriptor over.
func mountAndSend(dir string, socket int) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	device := "/dev/fuse"
	if other := os.Getenv("HOLDFAST_TEST_FUSE_DEVICE"); other != "" {
		device = other
	}
	fd, err := unix.Open(device, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	o := mount.MountOptions(fd, uint32(os.Getuid()), uint32(os.Getgid()))
	if err := unix.Mount("store", dir, "fuse", unix.MS_NOSUID|unix.MS_NODEV, o); err != nil {
		return err
	}
	return unix.Sendmsg(socket, []byte{1}, unix.UnixRights(fd), nil, 0)
}

func receiveFD(socket int) (int, error) {
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return -1, err
	}
	m, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(m) != 1 {
		return -1, fmt.Errorf("no descriptor came: %w", err)
	}
	fds, err := unix.ParseUnixRights(&m[0])
	if err != nil {
		return -1, err
	}
	return fds[0], nil
}

// namespaced is a process in a private user and mount namespace, in which a
// store is mounted and served by us.
func namespaced(t *testing.T, store string, uid, gid int) (p *process, fs *mount.FS, dir string) {
	t.Helper()
	p, socket, dir := inNamespace(t, uid, gid)
	fs, err := mount.New(localStore(t, store), mount.Options{UID: uint32(uid), GID: uint32(gid), SpoolDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	p.do(call{Op: "mountfuse", Path: dir, Fd: 3})
	fd, err := receiveFD(int(socket.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if err := fs.ServeFD(fd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
		defer cancel()
		if err := fs.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	p.do(call{Op: "stat", Path: dir}) // as the init stage must: see ServeFD
	return p, fs, dir
}

// inNamespace starts a process that can mount, as descriptor 3 of which a
// socket is there for what it has mounted, and makes a directory for it.
func inNamespace(t *testing.T, uid, gid int) (p *process, socket *os.File, dir string) {
	t.Helper()
	dir = t.TempDir()
	letOthersIn(dir)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "socket"), os.NewFile(uintptr(pair[1]), "socket")
	t.Cleanup(func() { ours.Close() })
	p = startProcess(t, func(cmd *exec.Cmd) {
		as(t, uid, gid)(cmd)
		cmd.ExtraFiles = []*os.File{theirs} // 3
		a := cmd.SysProcAttr
		a.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	})
	theirs.Close()
	return p, ours, dir
}

// as makes a process another user's, who can open a FUSE device.
func as(t *testing.T, uid, gid int) func(*exec.Cmd) {
	t.Helper()
	return func(cmd *exec.Cmd) {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), NoSetGroups: true}
		if uid == os.Getuid() {
			return
		}
		cmd.Path = copyOf(t, cmd.Path) // who may not enter go test's directory
		cmd.Env = append(cmd.Env, "HOLDFAST_TEST_FUSE_DEVICE="+openDevice(t))
	}
}

// openDevice makes a node of our own where /dev/fuse may be closed to others: it
// stands in for one that an administrator has opened.
func openDevice(t *testing.T) string {
	t.Helper()
	device := filepath.Join(t.TempDir(), "fuse")
	if err := unix.Mknod(device, unix.S_IFCHR|0o666, int(unix.Mkdev(10, 229))); err != nil {
		t.Fatal(err)
	}
	os.Chmod(device, 0o666)
	letOthersIn(filepath.Dir(device))
	return device
}

const nobody = 65534

// ordinary is a user without any right: nobody if we are root, or ourselves.
func ordinary() (uid, gid int) {
	if os.Getuid() == 0 {
		return nobody, nobody
	}
	return os.Getuid(), os.Getgid()
}

// letOthersIn opens a directory of t.TempDir to other users.
func letOthersIn(dir string) {
	for ; dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
		os.Chmod(dir, 0o755)
	}
}

func copyOf(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	letOthersIn(dir)
	name := filepath.Join(dir, filepath.Base(file))
	if err := os.WriteFile(name, b, 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestServeFD mounts as an agent does: in a private namespace, invisible
// outside, and gone with its last process.
func TestServeFD(t *testing.T) {
	store := t.TempDir()
	p, fs, dir := namespaced(t, store, os.Getuid(), os.Getgid())
	p.put(dir+"/a", "from a private namespace")
	if got := p.get(dir + "/a"); got != "from a private namespace" {
		t.Errorf("got %q", got)
	}
	if b, err := os.ReadFile(store + "/a"); err != nil || string(b) != "from a private namespace" {
		t.Errorf("in the store: %q, %v", b, err)
	}
	if _, err := os.Stat(dir + "/a"); err == nil {
		t.Error("the mount is seen outside its namespace")
	}
	fd := p.open(dir+"/b", forNew)
	p.write(fd, "half")
	p.kill()
	select {
	case <-fs.Done():
	case <-time.After(60 * time.Second):
		t.Fatal("service goes on after the namespace is gone")
	}
	if err := fs.Close(t.Context()); err != nil {
		t.Error(err)
	}
	noLeftovers(t, store)
	if _, err := os.Stat(store + "/b"); err == nil {
		t.Error("a killed writer's file was published")
	}
}

// TestOrdinaryUser does the same as somebody without any right, who meets the
// permissions that root does not.
func TestOrdinaryUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("not root: TestServeFD has shown it for this user")
		return
	}
	p, _, dir := namespaced(t, t.TempDir(), nobody, nobody)
	p.do(call{Op: "mkdir", Path: dir + "/d", Mode: 0o755})
	p.put(dir+"/d/a", "content")
	st := p.do(call{Op: "stat", Path: dir + "/d/a"}).Stat
	if st.Uid != nobody || st.Gid != nobody {
		t.Errorf("owner %d:%d", st.Uid, st.Gid)
	}
	p.do(call{Op: "chmod", Path: dir + "/d/a", Mode: 0o444})
	p.fails(call{Op: "open", Path: dir + "/d/a", Flags: unix.O_WRONLY}, syscall.EACCES)
	p.fails(call{Op: "open", Path: dir + "/d/a", Flags: forNew, Mode: 0o644}, syscall.EACCES)
	p.fails(call{Op: "access", Path: dir + "/d/a", Mode: unix.W_OK}, syscall.EACCES)
	if got := p.get(dir + "/d/a"); got != "content" {
		t.Errorf("got %q", got)
	}
	p.do(call{Op: "chown", Path: dir + "/d/a", Flags: nobody})
	p.fails(call{Op: "chown", Path: dir + "/d/a", Flags: 0}, syscall.EPERM, syscall.EINVAL)
	p.do(call{Op: "unlink", Path: dir + "/d/a"})
	p.do(call{Op: "rmdir", Path: dir + "/d"})
}

func init() {
	more["mountfuse"] = func(c call, _ *answer) error {
		if err := mountAndSend(c.Path, c.Fd); err != nil {
			fmt.Fprintln(os.Stderr, "mounting:", err)
			return err
		}
		return nil
	}
}
