package steer

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// A process id may be another's by the time that a socket is taken from it: nothing is
// done with a socket after its announcement has ended.
func TestNothingIsTakenFromAnotherThanTheCaller(t *testing.T) {
	listener := make(chan int)
	over := make(chan struct{})
	defer close(over)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread carries the filter
		fd, err := Install()
		if err != nil {
			t.Errorf("%v (a kernel from 5.6 on is needed, with seccomp)", err)
			fd = -1
		}
		listener <- fd
		<-over
	}()
	fd := <-listener
	if fd < 0 {
		return
	}
	defer unix.Close(fd)
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(s)
	n := &notification{id: 12345, pid: uint32(os.Getpid()), number: unix.SYS_CONNECT}
	n.args[0] = uint64(s)
	if sock, _, err := socket(fd, n, false); err == nil {
		unix.Close(sock)
		t.Error("a socket was taken for an announcement that nobody waits for")
	}
	if v, err := unix.GetsockoptInt(s, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || v != unix.SOCK_STREAM {
		t.Errorf("the socket: %d, %v", v, err)
	}
}
