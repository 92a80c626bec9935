package container_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/container"
	"holdfast/proto"
)

// meets connects to where the ranks meet, again and again, and writes down what became of
// each try.
const meets = `
import os, socket
tries = open(os.environ["TRIES"], "a")
while True:
    try:
        s = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])), timeout=20)
        s.sendall(os.environ["RANK"].encode())
        answer = s.recv(10).decode()
        print("met" if answer == "welcome" else "nobody", file=tries, flush=True)
    except OSError as e:
        print("nobody", file=tries, flush=True)
`

// serves is where the ranks meet.
const serves = `
import os, socket
l = socket.create_server(("", int(os.environ["MASTER_PORT"])))
open(os.environ["LISTENS"], "w").close()
while True:
    c, _ = l.accept()
    if c.recv(10):
        c.sendall(b"welcome")
`

// TestWhatIsLeftBehindMeetsNobody: a rank of a generation before, whose agent has not been
// told of the one that runs now, does not reach that one where its own met.
func TestWhatIsLeftBehindMeetsNobody(t *testing.T) {
	for name, change := range map[string]func(*container.Config){
		"steered":   nil,
		"forwarded": func(c *container.Config) { c.NoSteering = true },
	} {
		t.Run(name, func(t *testing.T) {
			m := newMaster(t)
			dir := t.TempDir()
			assign := func(i int32) *proto.Assign {
				return assignment(func(a *proto.Assign) {
					a.Task, a.Role, a.Index, a.Port = fmt.Sprintf("worker-%d", i), "worker", i, 21100+i
					a.LeaseMs = longLease.Milliseconds()
					a.Spec = &proto.JobSpec{Framework: "pytorch", Roles: []*proto.RoleSpec{{Name: "worker", Count: 2}}}
				})
			}
			agent := func(container string, i int32) (*connected, *proto.Prepared) {
				m.startAgent(container, change)
				c := m.agent()
				c.send(assign(i))
				return c, c.prepared()
			}
			routes := func(first, second *proto.Prepared) *proto.Routes {
				return proto.NewRoutes(nil, []proto.TaskAddress{
					{Port: int(first.PeerPort), Host: "127.0.0.1", RealPort: int(first.Port)},
					{Port: int(second.PeerPort), Host: "127.0.0.1", RealPort: int(second.Port)},
				}, nil)
			}
			start := func(c *connected, generation int32, script, file string) {
				c.send(&proto.Start{Attempt: generation, Generation: generation, Command: []string{"python3", "-c", script},
					Env: map[string]string{"TRIES": filepath.Join(dir, file), "LISTENS": filepath.Join(dir, file)}})
				c.started()
			}
			tries := func(file, of string) int {
				b, _ := os.ReadFile(filepath.Join(dir, file))
				return strings.Count(string(b), of)
			}

			first, before := agent("c1", 0)
			lost, was := agent("c2", 1)
			for _, c := range []*connected{first, lost} {
				c.send(routes(before, was))
			}
			start(first, 0, serves, "listens.0")
			eventually(t, "the first rank to listen", func() bool { _, err := os.Stat(filepath.Join(dir, "listens.0")); return err == nil })
			start(lost, 0, meets, "lost")
			eventually(t, "the ranks to meet", func() bool { return tries("lost", "met") > 0 })

			// Nothing that is told from now on reaches the second.
			first.send(&proto.Stop{})
			first.exited()
			first.send(&proto.ChangePort{Port: 21200})
			now := first.prepared()
			if now.Port == before.Port || now.PeerPort != 21200 {
				t.Fatalf("it listened on %d, and now on %d, known as %d", before.Port, now.Port, now.PeerPort)
			}
			next, is := agent("c3", 1)
			for _, c := range []*connected{first, next} {
				c.send(routes(now, is))
			}
			met := tries("lost", "met")
			start(first, 1, serves, "listens.1")
			start(next, 1, meets, "next")
			eventually(t, "the ranks to meet again", func() bool { return tries("next", "met") > 0 })
			eventually(t, "the one that is left behind to have tried", func() bool { return tries("lost", "nobody") > 3 || tries("lost", "met") > met })
			if n := tries("lost", "met") - met; n > 0 {
				t.Errorf("it has met the others %d times", n)
			}

			// Nor does it find a program there that has nothing to do with the job.
			if l, err := net.Listen("tcp", fmt.Sprintf(":%d", before.Port)); err == nil {
				l.Close()
				t.Errorf("anybody can listen on port %d, where the ranks met before", before.Port)
			}

			// Who is told twice, or has missed the answer, stays where it is.
			first.send(&proto.Stop{})
			first.exited()
			first.send(&proto.ChangePort{Port: 21200})
			if again := first.prepared(); again.Port != now.Port || again.PeerPort != now.PeerPort {
				t.Errorf("told twice, it listens on %d, known as %d; before that on %d", again.Port, again.PeerPort, now.Port)
			}
			close(first.drop)
			if h := m.agent().hello; h.Port != now.Port || h.PeerPort != 21200 {
				t.Errorf("it comes back with port %d, known as %d", h.Port, h.PeerPort)
			}
		})
	}
}
