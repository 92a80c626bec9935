package warm

import (
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/test/bound"
)

// FuzzReceive reads what an interpreter says, in which the user's code runs.
func FuzzReceive(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x0b{\"pid\": 17}"))
	f.Add([]byte("\x00\x10\x00\x00{"))
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 64<<10 {
			return // it is sent before anybody reads
		}
		near, far := socketPair(t)
		defer near.Close()
		if _, err := far.Write(b); err != nil {
			t.Fatal(err)
		}
		far.Close()
		defer bound.Memory(t, len(b), 100)()
		for {
			if _, err := receive(near); err != nil {
				return
			}
		}
	})
}

func socketPair(t *testing.T) (near, far *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var conns [2]*net.UnixConn
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "pair")
		c, err := net.FileConn(file)
		file.Close()
		if err != nil {
			t.Fatal(err)
		}
		conns[i] = c.(*net.UnixConn)
	}
	return conns[0], conns[1]
}
