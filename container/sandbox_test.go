package container_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"holdfast/container"
	"holdfast/container/proctree"
	"holdfast/proto"
)

func init() {
	parts["part-greet"] = greetPart
	parts["part-dial"] = dialPart
}

// greetPart greets who comes to an address.
func greetPart(args []string) error {
	l, err := net.Listen("tcp", args[0])
	if err != nil {
		return err
	}
	fmt.Println("listening")
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		fmt.Fprint(c, "greetings")
		c.Close()
	}
}

// dialPart says what it hears at an address.
func dialPart(args []string) error {
	c, err := net.Dial("tcp", args[0])
	if err != nil {
		return err
	}
	b, err := io.ReadAll(c)
	fmt.Println(string(b))
	return err
}

// Ordinary users.
const (
	nobody   = 65534
	stranger = 65533 // for whom /dev/fuse is not open
)

// ways are the surroundings that an agent may find.
var ways = map[string]struct {
	uid    uint32
	change func(*container.Config)
	forbid []string // system calls that steering needs
}{
	"root":                 {uid: 0},
	"root, user namespace": {0, func(c *container.Config) { c.UserNamespace = true }, nil},
	"root, no namespace":   {0, func(c *container.Config) { c.NoNamespace = true }, nil},
	"root, no filters":     {0, nil, []string{"seccomp"}},
	"root, no memory":      {0, nil, []string{"process_vm_readv"}},
	"a user":               {uid: nobody},
	"a user, no namespace": {nobody, func(c *container.Config) { c.NoNamespace = true }, nil},
	"a user, no sockets":   {nobody, nil, []string{"pidfd_getfd"}},
	"a user, no memory":    {nobody, nil, []string{"process_vm_readv"}},
	"a user, neither":      {nobody, func(c *container.Config) { c.NoNamespace, c.NoSteering = true, true }, nil},
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("this test starts agents as other users and must run as root")
	}
}

func TestPeersFindEachOtherByName(t *testing.T) {
	needRoot(t)
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			m := newMaster(t)
			binary := testBinary(t)
			var c container.Config
			if way.change != nil {
				way.change(&c)
			}
			steering := "seccomp"
			if c.NoSteering || way.forbid != nil {
				steering = "forwarding"
			}
			task := func(container, task string) (*connected, *proto.Prepared) {
				m.startAgentProcess(container, way.uid, way.change, way.forbid...)
				c := m.agent()
				c.send(assignment(func(a *proto.Assign) {
					a.Task = task
				}))
				p := c.prepared()
				if p.Steering != steering {
					t.Fatalf("not steered by %s: %v (Linux 5.6 or later is needed)", steering, p)
				}
				if said := strings.Join(p.Notes, "\n"); strings.Contains(said, "forwarded by the agent") != (steering == "forwarding") || !strings.Contains(said, strings.Join(way.forbid, "")) {
					t.Errorf("what is forbidden is %q, and this is said: %s", way.forbid, said)
				}
				return c, p
			}
			ps, prepared := task("c1", "ps-1")
			worker, _ := task("c2", "worker-0")
			ps.send(&proto.Start{Command: []string{binary, "part-greet", fmt.Sprintf("ps-1:%d", prepared.Port)}})
			ps.started()
			eventually(t, "ps-1 listens", func() bool {
				c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", prepared.Port))
				if err == nil {
					c.Close()
				}
				return err == nil
			})
			worker.send(&proto.Start{Attempt: 0, Command: []string{binary, "part-dial", "ps-1:4000"}})
			if e := worker.exited(); e.Code != 1 || !strings.Contains(strings.Join(e.Tail, " "), "connection refused") {
				t.Fatalf("without a route: %v", e)
			}
			worker.send(proto.NewRoutes([]int{1}, []proto.TaskAddress{{Port: 4000, Host: "127.0.0.1", RealPort: int(prepared.Port)}}, nil))
			worker.send(&proto.Start{Attempt: 1, Command: []string{binary, "part-dial", "ps-1:4000"}})
			if e := worker.exited(); e.Code != 0 || !slices.Equal(e.Tail, []string{"greetings"}) {
				t.Fatalf("with a route: %v", e)
			}
		})
	}
}

// sharedDir is a directory that any user may use.
func sharedDir(t *testing.T, uid uint32) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "shared-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chown(dir, int(uid), int(uid)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAUsersTaskIsPrivateAndHasNoPrivileges(t *testing.T) {
	needRoot(t)
	m := newMaster(t)
	m.startAgentProcess("c1", nobody, nil)
	c := m.agent()
	c.send(assignment(nil))
	c.prepared()
	c.send(&proto.Start{Command: shell(`id -u; id -g; grep CapEff: /proc/self/status; grep -c 127.77 /etc/hosts; getent hosts worker-0; getent hosts localhost >/dev/null && echo localhost`)})
	e := c.exited()
	if len(e.Tail) != 6 {
		t.Fatalf("exited: %v", e)
	}
	want := []string{"65534", "65534", "CapEff: 0000000000000000", "3", "127.77.0.3 worker-0", "localhost"}
	for i, line := range e.Tail {
		if got := strings.Join(strings.Fields(line), " "); got != want[i] {
			t.Errorf("line %d: %q, want %q", i, got, want[i])
		}
	}
	if b, err := os.ReadFile("/etc/hosts"); err != nil || strings.Contains(string(b), "127.77.") {
		t.Errorf("the machine's own hosts file: %q, %v", b, err)
	}
}

func TestNothingOutlivesAKilledAgent(t *testing.T) {
	needRoot(t)
	for name, way := range ways {
		for _, victim := range []string{"agent", "init process"} {
			t.Run(name+", "+victim, func(t *testing.T) {
				m := newMaster(t)
				agent := m.startAgentProcess("c1", way.uid, way.change)
				c := m.agent()
				c.send(assignment(nil))
				c.prepared()
				c.send(&proto.Start{Command: shell(`trap '' TERM HUP; setsid sh -c 'setsid sleep 1000 & echo; echo $!' & sh -c 'sleep 1000' & sleep 1000`)})
				c.started()
				var below []int
				eventually(t, "the task's processes", func() bool {
					below = proctree.Descendants(agent.Process.Pid)
					return len(below) >= 6 // init process, shell, orphan, two of the background, foreground
				})
				victimPid := agent.Process.Pid
				if victim == "init process" {
					victimPid = below[0]
				}
				if err := syscall.Kill(victimPid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				_ = agent.Wait()
				for _, p := range below {
					eventually(t, "the end of process "+strconv.Itoa(p), func() bool { return !alive(p) })
				}
			})
		}
	}
}

func TestAWantedPortThatIsTaken(t *testing.T) {
	m := newMaster(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := int32(l.Addr().(*net.TCPAddr).Port)
	m.startAgent("c1", nil)
	c := m.agent()
	c.send(assignment(func(a *proto.Assign) { a.Port = taken }))
	p := c.prepared()
	if p.Port == taken || p.Port == 0 || len(p.Notes) == 0 || !strings.Contains(p.Notes[len(p.Notes)-1], strconv.Itoa(int(taken))) {
		t.Fatalf("prepared: %v", p)
	}
	// The held port is nobody else's, and nobody is let in.
	at := fmt.Sprintf("127.0.0.1:%d", p.Port)
	if l, err := net.Listen("tcp", at); err == nil {
		l.Close()
		t.Error("somebody else could take the held port")
	}
	if conn, err := net.Dial("tcp", at); err == nil {
		conn.Close()
		t.Error("the held port answers")
	}
	// Another agent wants it, since it was the task's before; a connection of
	// that time lingers.
	c.send(&proto.Release{})
	if err := m.last.end(); err != nil {
		t.Fatal(err)
	}
	linger(t, at)
	m.startAgent("c2", nil)
	c = m.agent()
	c.send(assignment(func(a *proto.Assign) { a.Port = p.Port }))
	if again := c.prepared(); again.Port != p.Port {
		t.Fatalf("got port %d instead of %d, which only a closed connection uses", again.Port, p.Port)
	}
}

// linger leaves a connection in TIME_WAIT on the server's side of an address.
func linger(t *testing.T, address string) {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	server.Close() // who closes first lingers
	_, _ = io.ReadAll(client)
	client.Close()
}

func TestTheContainersDiskIsFull(t *testing.T) {
	needRoot(t)
	small := t.TempDir()
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=256k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(small, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	big := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(big, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("while files are fetched", func(t *testing.T) {
		m := newMaster(t)
		m.startAgent("c1", func(c *container.Config) { c.WorkDir = filepath.Join(small, "c1") })
		c := m.agent()
		c.send(assignment(func(a *proto.Assign) {
			a.Files = []*proto.FileSpec{{Name: "big", Uri: big, Size: 1 << 20}}
		}))
		if tr := c.trouble(); !tr.NodeSpecific || tr.Permanent || !strings.Contains(tr.Detail, "no space left") || !strings.Contains(tr.Detail, "big") {
			t.Fatalf("trouble: %v", tr)
		}
	})
	t.Run("while the task prints", func(t *testing.T) {
		m := newMaster(t)
		r := m.startAgent("c1", func(c *container.Config) { c.LogDir = filepath.Join(small, "logs") })
		c := m.agent()
		c.send(assignment(nil))
		c.prepared()
		c.send(&proto.Start{Command: shell(`head -c 400000 /dev/zero | tr '\0' x; echo; echo end`)})
		if e := c.exited(); e.Code != 0 || e.Tail[len(e.Tail)-1] != "end" {
			t.Fatalf("exited: %v", e)
		}
		c.send(&proto.Release{})
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(m.jobDir, "logs", "ps-1", "0.log"))
		if err != nil || len(b) != 400005 {
			t.Fatalf("the copy of the output has %d bytes, %v", len(b), err)
		}
	})
}
