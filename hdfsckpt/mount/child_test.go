package mount_test

import (
	"encoding/gob"
	"fmt"
	"io"
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
var more = map[string]func(call) error{}

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
		cmd.ExtraFiles[0] = nil
	case "exit":
		os.Exit(c.Flags)
	default:
		if do := more[c.Op]; do != nil {
			err = do(c)
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

// process is a process that makes system calls for a test.
type process struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	enc *gob.Encoder
	dec *gob.Decoder
}

func newProcess(t *testing.T) *process {
	t.Helper()
	return startProcess(t, func(*exec.Cmd) {})
}

func startProcess(t *testing.T, prepare func(*exec.Cmd)) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.Command(exe)}
	p.cmd.Env = append(os.Environ(), childVariable+"=1")
	p.cmd.Stderr = os.Stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	prepare(p.cmd)
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.enc, p.dec = gob.NewEncoder(p.in), gob.NewDecoder(out)
	t.Cleanup(p.kill)
	return p
}

// kill is kill -9; it returns when the process is gone.
func (p *process) kill() {
	if p.cmd.ProcessState != nil {
		return
	}
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// exit makes the process exit by itself, leaving its files open.
func (p *process) exit(code int) {
	p.enc.Encode(call{Op: "exit", Flags: code})
	p.cmd.Wait()
}

// send starts a call; receive gets its answer.
func (p *process) send(c call) {
	p.t.Helper()
	if err := p.enc.Encode(c); err != nil {
		p.t.Fatalf("%s: %v", c.Op, err)
	}
}

func (p *process) receive(c call) answer {
	p.t.Helper()
	var a answer
	done := make(chan error, 1)
	go func() { done <- p.dec.Decode(&a) }()
	select {
	case err := <-done:
		if err != nil {
			p.t.Fatalf("%s %s: the process is gone: %v", c.Op, c.Path, err)
		}
	case <-time.After(2 * time.Minute):
		p.t.Fatalf("%s %s hangs", c.Op, c.Path)
	}
	return a
}

func (p *process) try(c call) (answer, error) {
	p.t.Helper()
	p.send(c)
	a := p.receive(c)
	if a.Errno != 0 {
		return a, a.Errno
	}
	return a, nil
}

func (p *process) do(c call) answer {
	p.t.Helper()
	a, err := p.try(c)
	if err != nil {
		p.t.Fatalf("%s %s %s: %v", c.Op, c.Path, c.To, err)
	}
	return a
}

// fails checks that a call fails with one of some errors.
func (p *process) fails(c call, want ...syscall.Errno) {
	p.t.Helper()
	_, err := p.try(c)
	for _, w := range want {
		if err == w {
			return
		}
	}
	p.t.Errorf("%s %s %s: got %v, want %v", c.Op, c.Path, c.To, err, want)
}

const (
	forNew   = unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC
	forNewRW = unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC
)

func (p *process) open(path string, flags int) int {
	p.t.Helper()
	return int(p.do(call{Op: "open", Path: path, Flags: flags, Mode: 0o644}).N)
}

func (p *process) write(fd int, s string) {
	p.t.Helper()
	if n := p.do(call{Op: "write", Fd: fd, Data: []byte(s)}).N; n != int64(len(s)) {
		p.t.Fatalf("wrote %d bytes of %d", n, len(s))
	}
}

func (p *process) pwrite(fd int, off int64, s string) {
	p.t.Helper()
	p.do(call{Op: "pwrite", Fd: fd, Off: off, Data: []byte(s)})
}

func (p *process) close(fd int) {
	p.t.Helper()
	p.do(call{Op: "close", Fd: fd})
}

func (p *process) put(path, content string) {
	p.t.Helper()
	fd := p.open(path, forNew)
	if content != "" {
		p.write(fd, content)
	}
	p.close(fd)
}

func (p *process) get(path string) string {
	p.t.Helper()
	fd := p.open(path, unix.O_RDONLY)
	defer p.close(fd)
	return p.pread(fd, 0, 4<<20)
}

func (p *process) pread(fd int, off, size int64) string {
	p.t.Helper()
	return string(p.do(call{Op: "pread", Fd: fd, Off: off, Size: size}).Data)
}

func (p *process) list(path string) []string {
	p.t.Helper()
	return p.do(call{Op: "list", Path: path}).Names
}

func (p *process) exists(path string) bool {
	p.t.Helper()
	_, err := p.try(call{Op: "stat", Path: path})
	if err != nil && err != syscall.ENOENT {
		p.t.Fatalf("stat %s: %v", path, err)
	}
	return err == nil
}

func (p *process) size(path string) int64 {
	p.t.Helper()
	return p.do(call{Op: "stat", Path: path}).Stat.Size
}
