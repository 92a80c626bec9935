package steer_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"holdfast/container/proctree"
	"holdfast/container/steer"
)

// patience is how long a test waits for anything, on a slow machine too.
const patience = 90 * time.Second

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "part-client" {
		client()
		return
	}
	os.Exit(m.Run())
}

// steered is a client under a supervisor.
type steered struct {
	t          *testing.T
	supervisor *steer.Supervisor
	cmd        *exec.Cmd
	in         io.Writer
	out        chan string
}

var own = netip.MustParseAddr("127.77.0.1")
var peer = netip.MustParseAddr("127.77.0.2")

func start(t *testing.T) *steered {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "part-client")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		listener int
		err      error
	}
	started := make(chan result)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread carries the filter, and ends with the goroutine
		fd, err := steer.Install()
		if err != nil {
			started <- result{err: fmt.Errorf("%w (a kernel from 5.6 on is needed, with seccomp)", err)}
			return
		}
		started <- result{fd, cmd.Start()}
	}()
	r := <-started
	if r.err != nil {
		t.Fatal(r.err)
	}
	log := logrus.New()
	log.SetOutput(io.Discard)
	s, err := steer.New(os.NewFile(uintptr(r.listener), "listener"), logrus.NewEntry(log))
	if err != nil {
		t.Fatal(err)
	}
	s.Host(own, "127.0.0.1", []netip.Addr{own, peer})
	c := &steered{t: t, supervisor: s, cmd: cmd, in: in, out: make(chan string, 100)}
	go func() {
		defer close(c.out)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			c.out <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		s.Close()
	})
	return c
}

func (c *steered) tell(format string, args ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintf(c.in, format+"\n", args...); err != nil {
		c.t.Fatal(err)
	}
}

func (c *steered) hear() string {
	c.t.Helper()
	select {
	case line, ok := <-c.out:
		if !ok {
			c.t.Fatal("the client has ended")
		}
		return line
	case <-time.After(patience):
		c.t.Fatal("the client does not answer")
		return ""
	}
}

func (c *steered) do(format string, args ...any) string {
	c.t.Helper()
	c.tell(format, args...)
	return c.hear()
}

func (c *steered) expect(want, format string, args ...any) {
	c.t.Helper()
	if got := c.do(format, args...); got != want {
		c.t.Errorf("%s: %q, want %q", fmt.Sprintf(format, args...), got, want)
	}
}

// greet listens on a loopback address and greets who comes.
func greet(t *testing.T, address, greeting string) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var mu sync.Mutex
	var conns []net.Conn
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		for _, c := range conns {
			c.Close()
		}
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			c.Write([]byte(greeting))
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// deaf listens and never accepts, and its queue is full: who connects waits.
func deaf(t *testing.T, address string) netip.AddrPort {
	t.Helper()
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(s) })
	ip := netip.MustParseAddr(address)
	if err := unix.Bind(s, &unix.SockaddrInet4{Addr: ip.As4()}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Listen(s, 0); err != nil {
		t.Fatal(err)
	}
	sa, err := unix.Getsockname(s)
	if err != nil {
		t.Fatal(err)
	}
	at := netip.AddrPortFrom(ip, uint16(sa.(*unix.SockaddrInet4).Port))
	for range 8 {
		c, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { unix.Close(c) })
		if err := unix.Bind(c, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 9}}); err != nil { // to be told apart
			t.Fatal(err)
		}
		_ = unix.Connect(c, &unix.SockaddrInet4{Addr: ip.As4(), Port: int(at.Port())})
	}
	return at
}

func route(virtualPort uint16, to netip.AddrPort) steer.Route {
	return steer.Route{Virtual: netip.AddrPortFrom(peer, virtualPort), Host: to.Addr().String(), Port: to.Port()}
}

func TestConnectsAreSteered(t *testing.T) {
	c := start(t)
	first, second := greet(t, "127.0.0.1", "first"), greet(t, "127.0.0.2", "second")

	c.expect("connection refused", "connect a 4 %s:4000", peer)
	c.expect("connection refused", "connect a 6 %s:4000", peer)
	c.expect("connection refused", "start a 4 %s:4000", peer)

	c.supervisor.Replace([]steer.Route{route(4000, first)})
	c.expect("ok", "connect b 4 %s:4000", peer)
	c.expect("first", "read b")
	c.expect("ok", "connect c 6 %s:4000", peer)
	c.expect("first", "read c")
	if got := c.do("start d 4 %s:4000", peer); got != "ok" && got != "operation now in progress" {
		t.Errorf("a non-blocking connect: %q", got)
	}
	c.expect("ok", "finish d")
	c.expect("first", "read d")
	c.expect("first", "dial %s:4000", peer)

	c.supervisor.Replace([]steer.Route{route(4000, second)})
	c.expect("second", "dial %s:4000", peer)

	// A port without a route of its own leads to the same port there.
	c.expect("second", "dial %s:%d", peer, second.Port())

	// A host's name does as well.
	c.supervisor.Replace([]steer.Route{{Virtual: netip.AddrPortFrom(peer, 4000), Host: "localhost", Port: first.Port()}})
	c.expect("first", "dial %s:4000", peer)

	// Other addresses are left alone.
	c.expect("first", "dial %s", first)
	if got := c.do("connect e 4 127.78.0.2:%d", first.Port()); got != "connection refused" {
		t.Errorf("an address that is not virtual: %q", got)
	}
}

// A connect that is under way when a peer comes back reaches it, whether the
// peer had no address or nobody listened there.
func TestAPeerThatIsBackAtOnce(t *testing.T) {
	c := start(t)
	there := greet(t, "127.0.0.1", "there")
	for _, how := range []string{"connect", "start"} {
		c.supervisor.Replace(nil)
		c.tell("&A %s a%s 4 %s:4000", how, how, peer)
		c.expect("connection refused", "connect own 4 %s:4000", own) // meanwhile; and no use to wait for itself
		c.supervisor.Replace([]steer.Route{route(4000, there)})
		if got := c.hear(); got != "A ok" && got != "A operation now in progress" {
			t.Errorf("%s, and the peer gets an address: %q", how, got)
		}
		c.expect("ok", "finish a%s", how)
		c.expect("there", "read a%s", how)
	}
	for i, how := range []string{"connect", "start"} {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.%d:0", i+5))
		if err != nil {
			t.Fatal(err)
		}
		at := l.Addr().(*net.TCPAddr).AddrPort()
		l.Close()
		c.supervisor.Replace([]steer.Route{route(4000, at)})
		c.tell("&B %s b%s 4 %s:4000", how, how, peer)
		c.expect("connection refused", "connect own 4 %s:4000", own)
		if l, err = net.Listen("tcp", at.String()); err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if got := c.hear(); got != "B ok" && got != "B operation now in progress" {
			t.Errorf("%s, and the peer listens: %q", how, got)
		}
		c.expect("ok", "finish b%s", how)
	}
}

// A peer whose host has no IPv4 address is reached by IPv4 sockets too, which
// become others; what the task has set on them stays.
func TestPeersWithIPv6(t *testing.T) {
	c := start(t)
	to := greet(t, "::1", "six")
	keep := greet(t, "127.0.0.1", "four")
	other := steer.Route{Virtual: netip.AddrPortFrom(peer, 4001), Host: keep.Addr().String(), Port: keep.Port()}
	c.supervisor.Replace([]steer.Route{route(4000, to), other})
	for _, family := range []string{"4", "6"} {
		c.expect("ok", "connect a%s %s %s:4000", family, family, peer)
		c.expect("six", "read a%s", family)
		if got := c.do("start b%s %s %s:4000", family, family, peer); got != "ok" && got != "operation now in progress" {
			t.Errorf("a non-blocking connect: %q", got)
		}
		c.expect("ok", "finish b%s", family)
		c.expect("six", "read b%s", family)
		c.expect("ok", "connect k%s %s %s:4001", family, family, peer)
		c.expect("four", "read k%s", family)
	}
	c.expect("six", "dial %s:4000", peer)
	c.expect("nonblocking keepalive closed on exec", "options b4")
	c.expect("blocking keepalive stays on exec", "options a4")
	before := c.supervisor.Replace([]steer.Route{other})
	if n := c.supervisor.Cut(before, []netip.Addr{peer}, append(proctree.Descendants(c.cmd.Process.Pid), c.cmd.Process.Pid)); n < 6 {
		t.Errorf("%d connections were cut instead of at least 6", n)
	}
	for _, name := range []string{"a4", "a6", "b4", "b6"} {
		c.expect("EOF", "read %s", name)
	}
	// Tried again, the socket is another's already.
	c.supervisor.Replace([]steer.Route{{Virtual: netip.AddrPortFrom(peer, 4000), Host: "::1", Port: 9}})
	c.expect("connection refused", "connect r 4 %s:4000", peer)
	c.supervisor.Replace([]steer.Route{route(4000, to)})
	c.expect("ok", "again r %s:4000", peer)
	c.expect("six", "read r")
}

// A task whose host is reached by IPv6 alone listens there, with an IPv4 socket too.
func TestListeningWhereThereIsIPv6(t *testing.T) {
	c := start(t)
	c.supervisor.Host(own, "fd00::1", []netip.Addr{own, peer})
	port, err := strconv.Atoi(c.do("listen %s:0", own))
	if err != nil {
		t.Fatalf("listening on the task's own virtual address: %v", err)
	}
	c.expect("itself", "dial %s:%d", own, port)
	for _, address := range []string{"::1", "127.0.0.1"} {
		conn, err := net.Dial("tcp", net.JoinHostPort(address, strconv.Itoa(port)))
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
	}
}

func TestATaskReachesItselfUnderItsVirtualAddress(t *testing.T) {
	c := start(t)
	port, err := strconv.Atoi(c.do("listen %s:0", own))
	if err != nil {
		t.Fatalf("listening on the task's own virtual address: %v", err)
	}
	c.expect("itself", "dial %s:%d", own, port)
	// Peers come in on the real address.
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	// And under a port that the peers believe it has.
	c.supervisor.Replace([]steer.Route{{Virtual: netip.AddrPortFrom(own, 4000), Host: "192.0.2.1", Port: uint16(port)}})
	c.expect("itself", "dial %s:4000", own)
}

func TestASlowConnectHoldsUpNobody(t *testing.T) {
	c := start(t)
	c.supervisor.Replace([]steer.Route{route(4000, deaf(t, "127.0.0.3")), route(4001, greet(t, "127.0.0.1", "quick"))})
	for i := range 3 {
		c.tell("&slow%d connect s%d 4 %s:4000", i, i, peer)
	}
	for range 10 {
		c.expect("quick", "dial %s:4001", peer)
	}
}

func TestCut(t *testing.T) {
	c := start(t)
	good := greet(t, "127.0.0.1", "good")
	lost, silent := greet(t, "127.0.0.2", "lost"), deaf(t, "127.0.0.3")
	otherPeer := netip.MustParseAddr("127.77.0.1")
	keep := steer.Route{Virtual: netip.AddrPortFrom(otherPeer, 4002), Host: good.Addr().String(), Port: good.Port()}
	c.supervisor.Replace([]steer.Route{route(4000, lost), route(4001, silent), keep})

	c.expect("ok", "connect a 4 %s:4000", peer)
	c.expect("lost", "read a")
	c.expect("ok", "connect b 4 %s", lost) // not steered, but there
	c.expect("lost", "read b")
	c.expect("ok", "connect k 4 %s", good)
	c.expect("good", "read k")
	c.tell("&A read a")
	c.tell("&B read b")
	c.tell("&K read k")
	c.expect("operation now in progress", "start n 4 %s:4001", peer)
	c.tell("&N finish n")
	c.tell("&S connect s 4 %s:4001", peer)
	waitForConnecting(t, silent, 2)

	back := greet(t, "127.0.0.4", "back")
	before := c.supervisor.Replace([]steer.Route{route(4000, back), keep})
	c.expect("ok", "connect r 4 %s:4000", peer) // it has come back already
	n := c.supervisor.Cut(before, []netip.Addr{peer}, append(proctree.Descendants(c.cmd.Process.Pid), c.cmd.Process.Pid))
	if n != 4 {
		t.Errorf("%d connections were cut instead of 4", n)
	}
	heard := map[string]string{}
	for range 4 {
		name, text, _ := strings.Cut(c.hear(), " ")
		heard[name] = text
	}
	if heard["A"] != "EOF" || heard["B"] != "EOF" {
		t.Errorf("reads from the lost peer: %q", heard)
	}
	if heard["N"] == "" || heard["S"] == "" || heard["S"] == "ok" {
		t.Errorf("connects to the lost peer: %q", heard)
	}
	c.expect("back", "read r")
	if text, ok := heard["K"]; ok {
		t.Errorf("a connection to somebody else was cut: %q", text)
	}
}

// waitForConnecting waits until some sockets of this host are on their way to an address.
func waitForConnecting(t *testing.T, to netip.AddrPort, count int) {
	t.Helper()
	a := to.Addr().As4()
	remote := fmt.Sprintf("%02X%02X%02X%02X:%04X", a[3], a[2], a[1], a[0], to.Port())
	deadline := time.Now().Add(patience)
	for {
		b, err := os.ReadFile("/proc/net/tcp")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for line := range strings.Lines(string(b)) {
			f := strings.Fields(line)
			if len(f) > 3 && f[2] == remote && f[3] == "02" && !strings.HasPrefix(f[1], "0900007F") { // TCP_SYN_SENT, and not deaf's own
				n++
			}
		}
		if n >= count {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("only %d sockets are on their way to %s", n, to)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestItsOwnPortIsFreeAtOnce: a program that does not set SO_REUSEADDR can listen on its
// task's port again while connections of the attempt before have not expired (TIME_WAIT);
// on other ports it cannot.
func TestItsOwnPortIsFreeAtOnce(t *testing.T) {
	for _, x := range []struct {
		address string
		own     bool
		want    string
	}{
		{"0.0.0.0", true, "ok"},
		{own.String(), true, "ok"},
		{"0.0.0.0", false, "address already in use"},
	} {
		c := start(t)
		port := lowPort(t)
		at := netip.AddrPortFrom(netip.MustParseAddr(x.address), port)
		route := steer.Route{Virtual: netip.AddrPortFrom(own, 4000), Host: "127.0.0.1", Port: port}
		if !x.own {
			route.Port++
		}
		c.supervisor.Replace([]steer.Route{route})
		c.expect("ok", "serve s %s", at)
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Fatal(err)
		}
		c.expect("ok", "refuse s") // who closes first keeps the address
		if _, err := io.ReadAll(conn); err != nil {
			t.Fatal(err)
		}
		conn.Close()
		c.expect("ok", "close s")
		c.expect(x.want, "serve s %s", at)
	}
}

// lowPort returns a port that nobody uses at any address, nor will for a connection.
func lowPort(t *testing.T) uint16 {
	t.Helper()
	for range 100 {
		port := uint16(20000 + rand.IntN(10000))
		if l, err := net.Listen("tcp4", fmt.Sprintf("0.0.0.0:%d", port)); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}
