package mount_test

import (
	"encoding/gob"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

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

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// stop stops the process, and returns when all its threads have: until then it may go on
// to answer.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	if err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		p.t.Fatalf("waiting for process %d to stop: %v", p.cmd.Process.Pid, err)
	}
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
	return p.receiveWithin(c, 2*time.Minute)
}

func (p *process) receiveWithin(c call, limit time.Duration) answer {
	p.t.Helper()
	var a answer
	done := make(chan error, 1)
	go func() { done <- p.dec.Decode(&a) }()
	select {
	case err := <-done:
		if err != nil {
			p.t.Fatalf("%s %s: the process is gone: %v", c.Op, c.Path, err)
		}
	case <-time.After(limit):
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
