package steer

import (
	"errors"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"unsafe"

	"github.com/sirupsen/logrus"
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

	// Nor is what its memory holds taken for the address that the caller asked for.
	own, peer := netip.MustParseAddr("127.77.0.2"), netip.MustParseAddr("127.77.0.3")
	asked := &unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: peer.As4()}
	n.args[1], n.args[2] = uint64(uintptr(unsafe.Pointer(asked))), unix.SizeofSockaddrInet4
	supervisor := &Supervisor{table: newTable(), log: logrus.NewEntry(logrus.New()), ctx: t.Context()}
	supervisor.table.host(own, "127.0.0.1", []netip.Addr{peer})
	if err := supervisor.handle(fd, n); !errors.Is(err, errNotOurs) {
		t.Errorf("an address was read for an announcement that nobody waits for: %v", err)
	}
	runtime.KeepAlive(asked)
}
