package steer_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// client is a steered process that does what its standard input says, a line
// each, and answers each by a line. Each request has a goroutine of its own
// when it begins with "&"; its answer then begins with its first word.
func client() {
	var mu sync.Mutex
	conns := map[string]int{}
	get := func(name string) int {
		mu.Lock()
		defer mu.Unlock()
		return conns[name]
	}
	do := func(f []string) error {
		switch f[0] {
		case "connect", "start": // NAME FAMILY ADDRESS; start: without waiting
			to := netip.MustParseAddrPort(f[3])
			family, sa := unix.AF_INET, unix.Sockaddr(&unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
			if f[2] == "6" {
				family, sa = unix.AF_INET6, &unix.SockaddrInet6{Port: int(to.Port()), Addr: to.Addr().As16()}
			}
			kind := unix.SOCK_STREAM
			if f[0] == "start" {
				kind |= unix.SOCK_NONBLOCK
			}
			s, err := unix.Socket(family, kind, 0)
			if err != nil {
				return err
			}
			mu.Lock()
			conns[f[1]] = s
			mu.Unlock()
			// To be looked at by "options".
			if err := unix.SetsockoptInt(s, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1); err != nil {
				return err
			}
			if f[0] == "start" {
				unix.CloseOnExec(s)
			}
			return unix.Connect(s, sa)
		case "again": // NAME ADDRESS: connect a socket that could not
			to := netip.MustParseAddrPort(f[2])
			return unix.Connect(get(f[1]), &unix.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()})
		case "options": // NAME: what is set on it
			var said []string
			say := func(is bool, yes, no string) {
				if !is {
					yes = no
				}
				said = append(said, yes)
			}
			flags, err := unix.FcntlInt(uintptr(get(f[1])), unix.F_GETFL, 0)
			if err != nil {
				return err
			}
			say(flags&unix.O_NONBLOCK != 0, "nonblocking", "blocking")
			alive, err := unix.GetsockoptInt(get(f[1]), unix.SOL_SOCKET, unix.SO_KEEPALIVE)
			if err != nil {
				return err
			}
			say(alive != 0, "keepalive", "no keepalive")
			own, err := unix.FcntlInt(uintptr(get(f[1])), unix.F_GETFD, 0)
			if err != nil {
				return err
			}
			say(own&unix.FD_CLOEXEC != 0, "closed on exec", "stays on exec")
			return errors.New(strings.Join(said, " "))
		case "finish": // NAME: waits for the end of start
			ready(get(f[1]), unix.POLLOUT)
			e, err := unix.GetsockoptInt(get(f[1]), unix.SOL_SOCKET, unix.SO_ERROR)
			if err == nil && e != 0 {
				err = syscall.Errno(e)
			}
			return err
		case "read": // NAME: what comes, as the text of an error
			b := make([]byte, 100)
			ready(get(f[1]), unix.POLLIN) // a non-blocking socket does not wait
			n, err := unix.Read(get(f[1]), b)
			if err != nil {
				return err
			}
			if n == 0 {
				return io.EOF
			}
			return errors.New(string(b[:n]))
		case "write": // NAME
			_, err := unix.Write(get(f[1]), []byte("x"))
			return err
		case "listen": // ADDRESS: says the port
			l, err := net.Listen("tcp4", f[1])
			if err != nil {
				return err
			}
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					c.Write([]byte("itself"))
				}
			}()
			return fmt.Errorf("%d", l.Addr().(*net.TCPAddr).Port)
		case "serve": // NAME ADDRESS: listens without SO_REUSEADDR
			at := netip.MustParseAddrPort(f[2])
			s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			mu.Lock()
			conns[f[1]] = s
			mu.Unlock()
			if err := unix.Bind(s, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}); err != nil {
				return err
			}
			return unix.Listen(s, 8)
		case "refuse": // NAME: accepts a connection and closes it
			c, _, err := unix.Accept(get(f[1]))
			if err != nil {
				return err
			}
			return unix.Close(c)
		case "close": // NAME
			return unix.Close(get(f[1]))
		case "dial": // Go's own way: ADDRESS
			c, err := net.Dial("tcp", f[1])
			if err != nil {
				return err
			}
			b := make([]byte, 100)
			n, err := c.Read(b)
			if err != nil {
				return err
			}
			return errors.New(string(b[:n]))
		}
		return errors.New("what?")
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		answer := func(prefix string, f []string) {
			text := "ok"
			if err := do(f); err != nil {
				text = err.Error()
			}
			mu.Lock()
			fmt.Println(prefix + text)
			mu.Unlock()
		}
		if name, ok := strings.CutPrefix(f[0], "&"); ok {
			go answer(name+" ", f[1:])
		} else {
			answer("", f)
		}
	}
}

// ready waits until a socket can be written to or read from, or is broken.
func ready(s int, events int16) {
	p := []unix.PollFd{{Fd: int32(s), Events: events}}
	for {
		if _, err := unix.Poll(p, -1); err != unix.EINTR {
			return
		}
	}
}
