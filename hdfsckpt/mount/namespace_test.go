package mount_test

import (
	"fmt"
	"os"
	"os/exec"
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
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
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

func receiveFD(t *testing.T, socket int) int {
	t.Helper()
	oob := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(socket, make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	m, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(m) != 1 {
		t.Fatalf("no descriptor came: %v", err)
	}
	fds, err := unix.ParseUnixRights(&m[0])
	if err != nil {
		t.Fatal(err)
	}
	return fds[0]
}

// TestServeFD mounts as an agent does: as nobody in particular, in a private
// namespace, invisible outside, and gone with its last process.
func TestServeFD(t *testing.T) {
	store, dir := t.TempDir(), t.TempDir()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pair[0])
	theirs := os.NewFile(uintptr(pair[1]), "socket")
	p := startProcess(t, func(cmd *exec.Cmd) {
		cmd.ExtraFiles = []*os.File{theirs} // 3
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getuid(), HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	})
	theirs.Close()
	p.do(call{Op: "mountfuse", Path: dir, Fd: 3})
	fs, err := mount.New(localStore(t, store), mount.Options{
		UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), SpoolDir: t.TempDir(),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := fs.ServeFD(receiveFD(t, pair[0])); err != nil {
		t.Fatal(err)
	}
	p.do(call{Op: "stat", Path: dir})
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

func init() {
	more["mountfuse"] = func(c call) error {
		if err := mountAndSend(c.Path, c.Fd); err != nil {
			fmt.Fprintln(os.Stderr, "mounting:", err)
			return err
		}
		return nil
	}
}
