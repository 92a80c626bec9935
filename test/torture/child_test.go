package torture

import (
	"encoding/gob"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A process that serves a FUSE mount must not use it itself, so a program's
// operations are carried out by this test binary, started once more with this
// variable.
const childVariable = "HOLDFAST_TORTURE_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childVariable) {
	case "":
		os.Exit(m.Run())
	case "program":
		beProgram()
	}
}

// request is an op on a path of the file system.
type request struct {
	Kind, Path, To string
	Data           []byte
	Size           int64 // write: bytes of a pattern instead of Data
	Seed           int64 // of the pattern
}

type reply struct {
	Errno syscall.Errno
	N     int64
	Sum   uint32
}

// beProgram carries out requests from standard input.
func beProgram() {
	in, out := gob.NewDecoder(os.Stdin), gob.NewEncoder(os.Stdout)
	files := map[string]int{}
	for {
		var r request
		if in.Decode(&r) != nil {
			os.Exit(0)
		}
		var a reply
		var err error
		switch r.Kind {
		case "create":
			files[r.Path], err = unix.Open(r.Path, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC, 0o644)
		case "write":
			_, err = unix.Write(files[r.Path], r.Data)
		case "close":
			err = unix.Close(files[r.Path])
			delete(files, r.Path)
		case "append": // a line, as a logger does; the file stays open
			fd, open := files[r.Path]
			if !open {
				fd, err = unix.Open(r.Path, unix.O_WRONLY|unix.O_CREAT|unix.O_APPEND, 0o644)
			}
			if err == nil {
				files[r.Path] = fd
				err = appendTo(fd, r.Data)
			}
		case "mkdir":
			err = unix.Mkdir(r.Path, 0o755)
		case "rename":
			err = unix.Rename(r.Path, r.To)
		case "remove":
			err = unix.Unlink(r.Path)
		case "rmdir":
			err = unix.Rmdir(r.Path)
		case "read":
			_, err = os.ReadFile(r.Path)
		case "glob": // removes what fits
			var found []string
			found, err = filepath.Glob(r.Path)
			for _, f := range found {
				err = errors.Join(err, unix.Unlink(f))
			}
		default:
			if do := more[r.Kind]; do != nil {
				a, err = do(r)
			} else {
				err = syscall.ENOSYS
			}
		}
		if err != nil && !errors.As(err, &a.Errno) {
			a.Errno = syscall.EPROTO
		}
		if out.Encode(a) != nil {
			os.Exit(0)
		}
	}
}

func appendTo(fd int, line []byte) error {
	if _, err := unix.Write(fd, line); err != nil {
		return err
	}
	return unix.Fsync(fd)
}

// more are requests that a file of tests adds.
var more = map[string]func(request) (reply, error){}

// child is such a process.
type child struct {
	t   testing.TB
	cmd *exec.Cmd
	enc *gob.Encoder
	dec *gob.Decoder
}

func startChild(t testing.TB, env ...string) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: exec.Command(exe)}
	c.cmd.Env = append(append(os.Environ(), env...), childVariable+"=program")
	c.cmd.Stderr = os.Stderr
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := c.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c.enc, c.dec = gob.NewEncoder(in), gob.NewDecoder(out)
	t.Cleanup(c.kill)
	return c
}

// kill is kill -9; it returns when the process is gone.
func (c *child) kill() {
	if c.cmd.ProcessState == nil {
		c.cmd.Process.Kill()
		c.cmd.Wait()
	}
}

func (c *child) try(r request) (reply, error) {
	if err := c.enc.Encode(r); err != nil {
		return reply{}, err
	}
	var a reply
	if err := c.dec.Decode(&a); err != nil {
		return a, err
	}
	if a.Errno != 0 {
		return a, a.Errno
	}
	return a, nil
}

func (c *child) do(r request) reply {
	c.t.Helper()
	a, err := c.try(r)
	if err != nil {
		c.t.Fatalf("%s %s %s: %v", r.Kind, r.Path, r.To, err)
	}
	return a
}
