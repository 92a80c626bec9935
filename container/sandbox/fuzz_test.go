package sandbox

import (
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast/test/bound"
)

// FuzzReceive reads what the init process of a namespace says, beside which the task's
// processes run.
func FuzzReceive(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x02{}"))
	f.Add([]byte("\x00\x01\x00\x00{"))
	f.Add([]byte("\x7f\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 64<<10 {
			return // it is sent before anybody reads
		}
		var conns [2]*net.UnixConn
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, fd := range fds {
			file := os.NewFile(uintptr(fd), "pair")
			c, err := net.FileConn(file)
			file.Close()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			conns[i] = c.(*net.UnixConn)
		}
		if _, err := conns[1].Write(b); err != nil {
			t.Fatal(err)
		}
		conns[1].Close()
		defer bound.Memory(t, len(b), 100)()
		for {
			if _, _, err := receive(conns[0]); err != nil {
				return
			}
		}
	})
}
