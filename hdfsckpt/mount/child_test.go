package mount_test

import (
	"encoding/gob"
	"fmt"
	"os"
	"os/exec"
	"sort"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A process that serves a FUSE mount must not use it itself: Go's runtime may
// block a thread that is needed to answer. So each test does its file
// operations in other processes, which are this test binary again, told by this
// variable to carry out calls that come in on standard input.
const childVariable = "HOLDFAST_MOUNT_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		childMain()
		return
	}
	os.Exit(m.Run())
}

// call is one system call for a process to make.
type call struct {
	Op         string
	Path, To   string
	Fd, Flags  int
	Mode       uint32
	Off, Size  int64
	Data       []byte
	Fill       byte // Size bytes of it are written instead of Data
	Atime, Mti time.Time
}

type answer struct {
	Errno syscall.Errno
	N     int64
	Data  []byte
	Names []string
	Stat  unix.Stat_t
	Fs    unix.Statfs_t
}

func childMain() {
	in, out := gob.NewDecoder(os.Stdin), gob.NewEncoder(os.Stdout)
	for {
		var c call
		if err := in.Decode(&c); err != nil {
			os.Exit(0)
		}
		a := carryOut(c)
		if err := out.Encode(a); err != nil {
			os.Exit(0)
		}
	}
}

// more are calls that a file of tests adds.
var more = map[string]func(call, *answer) error{}

func carryOut(c call) (a answer) {
	var err error
	switch c.Op {
	case "open":
		var fd int
		fd, err = unix.Open(c.Path, c.Flags, c.Mode)
		a.N = int64(fd)
	case "write":
		a.N, err = writeAll(c, func(b []byte, _ int64) (int, error) { return unix.Write(c.Fd, b) })
	case "pwrite":
		a.N, err = writeAll(c, func(b []byte, off int64) (int, error) { return unix.Pwrite(c.Fd, b, off) })
	case "pread":
		a.Data = make([]byte, c.Size)
		var n int
		for int64(n) < c.Size && err == nil {
			var k int
			k, err = unix.Pread(c.Fd, a.Data[n:], c.Off+int64(n))
			if k <= 0 {
				break
			}
			n += k
		}
		a.Data = a.Data[:n]
	case "readall": // reads and drops
		b := make([]byte, 1<<20)
		for n := 1; n > 0 && err == nil; {
			n, err = unix.Read(c.Fd, b)
			a.N += int64(max(n, 0))
		}
	case "close":
		err = unix.Close(c.Fd)
	case "dup":
		var fd int
		fd, err = unix.Dup(c.Fd)
		a.N = int64(fd)
	case "fsync":
		err = unix.Fsync(c.Fd)
	case "ftruncate":
		err = unix.Ftruncate(c.Fd, c.Off)
	case "truncate":
		err = unix.Truncate(c.Path, c.Off)
	case "stat":
		err = unix.Lstat(c.Path, &a.Stat)
	case "fstat":
		err = unix.Fstat(c.Fd, &a.Stat)
	case "statfs":
		err = unix.Statfs(c.Path, &a.Fs)
	case "list":
		a.Names, err = listDir(c.Path)
	case "rename":
		err = unix.Renameat2(unix.AT_FDCWD, c.Path, unix.AT_FDCWD, c.To, uint(c.Flags))
	case "unlink":
		err = unix.Unlink(c.Path)
	case "mkdir":
		err = unix.Mkdir(c.Path, c.Mode)
	case "rmdir":
		err = unix.Rmdir(c.Path)
	case "chmod":
		err = unix.Chmod(c.Path, c.Mode)
	case "chown":
		err = unix.Chown(c.Path, c.Flags, c.Flags)
	case "utimes":
		err = os.Chtimes(c.Path, c.Atime, c.Mti)
	case "flock":
		err = unix.Flock(c.Fd, c.Flags)
	case "mmap":
		a.Data, err = readMapped(c.Fd, int(c.Size))
	case "mmapwrite":
		err = writeMapped(c)
	case "symlink":
		err = unix.Symlink(c.Path, c.To)
	case "link":
		err = unix.Link(c.Path, c.To)
	case "setxattr":
		err = unix.Setxattr(c.Path, "user.a", c.Data, 0)
	case "access":
		err = unix.Access(c.Path, c.Mode)
	case "setuid":
		err = syscall.Setresgid(c.Flags, c.Flags, c.Flags)
		if err == nil {
			err = syscall.Setresuid(c.Flags, c.Flags, c.Flags)
		}
	case "inherit":
		// A child that has the descriptor, does nothing, and ends.
		cmd := exec.Command("/bin/true")
		cmd.ExtraFiles = []*os.File{os.NewFile(uintptr(mustDup(c.Fd)), "inherited")}
		err = cmd.Run()
		cmd.ExtraFiles[0].Close()
	case "exit":
		os.Exit(c.Flags)
	default:
		if do := more[c.Op]; do != nil {
			err = do(c, &a)
		} else {
			err = syscall.ENOSYS
		}
	}
	if err != nil {
		errno, ok := err.(syscall.Errno)
		if !ok {
			if pe, isPath := err.(*os.PathError); isPath {
				errno, ok = pe.Err.(syscall.Errno)
			}
		}
		if !ok {
			fmt.Fprintln(os.Stderr, c.Op, err)
			errno = syscall.ENOTRECOVERABLE
		}
		a.Errno = errno
	}
	return a
}

func mustDup(fd int) int {
	n, err := unix.Dup(fd)
	if err != nil {
		panic(err)
	}
	return n
}

func writeAll(c call, write func([]byte, int64) (int, error)) (int64, error) {
	if c.Size == 0 {
		n, err := write(c.Data, c.Off)
		return int64(n), err
	}
	b := make([]byte, min(c.Size, 1<<20))
	for i := range b {
		b[i] = c.Fill + byte(i%251)
	}
	var done int64
	for done < c.Size {
		n, err := write(b[:min(int64(len(b)), c.Size-done)], c.Off+done)
		if err != nil {
			return done, err
		}
		done += int64(n)
	}
	return done, nil
}

func listDir(dir string) ([]string, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var names []string
	buf := make([]byte, 32<<10)
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err != nil {
			return nil, err
		}
		if n <= 0 {
			sort.Strings(names)
			return names, nil
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

func readMapped(fd, size int) ([]byte, error) {
	m, err := unix.Mmap(fd, 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, err
	}
	defer unix.Munmap(m)
	return append([]byte(nil), m...), nil
}

func writeMapped(c call) error {
	m, err := unix.Mmap(c.Fd, 0, int(c.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	copy(m[c.Off:], c.Data)
	return unix.Munmap(m)
}
