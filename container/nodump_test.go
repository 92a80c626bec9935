package container_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/container"
	"holdfast/container/proctree"
	"holdfast/proto"
)

func init() { parts["part-peek"] = peekPart }

// peekPart says which doors to another process's memory are open to this one.
func peekPart(args []string) error {
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	say := func(door string, err error) {
		if err == nil {
			fmt.Println(door)
		} else {
			fmt.Fprintln(os.Stderr, door, err)
		}
	}
	for _, name := range []string{"environ", "maps", "mem"} {
		f, err := os.Open(fmt.Sprintf("/proc/%d/%s", pid, name))
		if err == nil {
			f.Close()
		}
		say(name, err)
	}
	_, err = os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	say("fd", err)
	p, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(p)
	_, err = unix.PidfdGetfd(p, 0, 0)
	say("descriptor", err)
	return nil
}

// peek has a user's process, outside of the task's namespaces, try the doors to another.
func peek(t *testing.T, binary string, uid uint32, pid int) (doors string) {
	t.Helper()
	cmd := exec.Command(binary, "part-peek", strconv.Itoa(pid))
	cmd.Dir = "/"
	cmd.Stderr = &testLog{t}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(out)), " ")
}

// An agent's memory, where its job's keys are, is shut to other processes of its
// user, and nothing that it does for its task is hindered by that: mounts, steering
// and the cutting of connections, the warm interpreter, stacks, output and the end.
func TestAnAgentsMemoryIsShutToItsUser(t *testing.T) {
	needRoot(t)
	for _, name := range []string{"a user", "a user, no namespace"} {
		t.Run(name, func(t *testing.T) {
			way := ways[name]
			m := newMaster(t)
			binary := testBinary(t)
			var dirs [2]string
			begin := func(n int, task string) (*connected, *proto.Prepared, int) {
				agent := m.startAgentProcess(task, way.uid, func(c *container.Config) {
					if way.change != nil {
						way.change(c)
					}
					c.WarmAfter = time.Millisecond
				})
				dirs[n] = agent.Dir
				c := m.agent()
				c.send(assignment(func(a *proto.Assign) {
					a.Task = task
					a.Checkpoints = []*proto.CheckpointSpec{{Path: "logs", Uri: filepath.Join(sharedDir(t, way.uid), "store")}}
				}))
				p := c.prepared()
				if p.Steering != "seccomp" || (p.Mounting == "fuse") != (name == "a user") {
					t.Fatalf("prepared: %v", p)
				}
				return c, p, agent.Process.Pid
			}
			worker, _, pid := begin(0, "worker-0")
			ps, prepared, _ := begin(1, "ps-1")

			site, err := filepath.Abs("testdata/site")
			if err != nil {
				t.Fatal(err)
			}
			library := filepath.Join(sharedDir(t, way.uid), "slowlib") // this directory may be no other user's
			if err := os.CopyFS(library, os.DirFS(filepath.Join(site, "slowlib"))); err != nil {
				t.Fatal(err)
			}
			work := filepath.Join(dirs[0], "container", "work")
			script := `
import os, socket, sys, time, slowlib
def stands_still():
    print("still", flush=True)
    while True: time.sleep(1000)
with open("logs/saved", "w") as f: f.write("bytes")
print(os.stat("logs/saved").st_size, "bytes", flush=True)
c = socket.create_connection(sys.argv[1].rsplit(":", 1))
print(c.recv(100).decode(), flush=True)
if os.environ["HOLDFAST_ATTEMPT"] == "0":
    print("cut:", c.recv(100), flush=True)
    while os.path.exists("hold"): time.sleep(0.01)
else:
    stands_still()
`
			for file, text := range map[string]string{"hold": "", "w.py": script} {
				if err := os.WriteFile(filepath.Join(work, file), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			python, err := exec.Command("python3", "-c", "import sys; print(sys.executable, end='')").Output()
			if err != nil {
				t.Fatal(err)
			}
			try := exec.Command(string(python), "-c", "")
			try.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: way.uid, Gid: way.uid}}
			if err := try.Run(); err != nil {
				python = []byte("/usr/bin/python3") // the other one is in a directory of root's
			}
			serve := func(number int32, text string) {
				ps.send(&proto.Start{Attempt: number, Command: []string{string(python), "-c", `
import socket, sys, time
host, port = sys.argv[1].rsplit(":", 1)
l = socket.create_server((host, int(port)))
kept = []
while True:
    c, _ = l.accept()
    c.sendall(sys.argv[2].encode())
    kept.append(c)
`, fmt.Sprintf("ps-1:%d", prepared.Port), text}})
				ps.started()
				eventually(t, "ps-1 to listen", func() bool {
					c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", prepared.Port))
					if err == nil {
						c.Close()
					}
					return err == nil
				})
			}
			serve(0, "hello")
			at := []proto.TaskAddress{{Port: 4000, Host: "127.0.0.1", RealPort: int(prepared.Port)}}
			worker.send(proto.NewRoutes([]int{1}, at, nil))
			start := func(n int32) *proto.Started {
				worker.send(&proto.Start{Attempt: n, Command: []string{string(python), "w.py", "ps-1:4000"}, Env: map[string]string{
					"PYTHONPATH": filepath.Dir(library), proto.EnvWarm: "slowlib", "PYTHONDONTWRITEBYTECODE": "1",
				}})
				return worker.started()
			}
			task := int(start(0).Pid)
			log := func(n int) string {
				text, _ := os.ReadFile(filepath.Join(m.jobDir, "logs", "worker-0", fmt.Sprintf("%d.log", n)))
				return string(text)
			}
			says := func(n int, what string) {
				t.Helper()
				eventually(t, "attempt "+fmt.Sprint(n)+" to say "+what, func() bool { return strings.Contains(log(n), what) })
			}
			says(0, "5 bytes\nhello\n")

			for _, p := range []int{pid, task} {
				doors := peek(t, binary, way.uid, p)
				if p == pid && doors != "" {
					t.Errorf("other processes of its user come to the agent's memory by %s", doors)
				}
				if p == task && !strings.HasPrefix(doors, "environ maps") { // shows that it tries right
					t.Errorf("other processes of its user come to the task's memory by %q only", doors)
				}
			}

			worker.send(proto.NewRoutes([]int{1}, []proto.TaskAddress{{}}, []int{1}))
			says(0, "cut: b''")
			eventually(t, "a warm interpreter", func() bool {
				b := <-worker.beats
				if strings.HasPrefix(b.WarmStatus, "no warm") {
					t.Fatalf("%s\n%s", b.WarmStatus, log(0))
				}
				return strings.Contains(b.WarmStatus, "is ready") && b.RssBytes > 1<<20 && b.WarmRssBytes > 1<<20
			})
			if err := os.Remove(filepath.Join(work, "hold")); err != nil {
				t.Fatal(err)
			}
			if e := worker.exited(); e.Code != 0 {
				t.Fatalf("exited: %v", e)
			}
			worker.send(proto.NewRoutes([]int{1}, at, nil))
			start(1)
			says(1, "still")
			eventually(t, "word that it came from the warm interpreter", func() bool { return strings.Contains((<-worker.beats).WarmStatus, "came from") })
			worker.send(&proto.Stop{GraceMs: 60000, DumpStacks: true})
			if e := worker.exited(); !e.Stopped || len(e.Stack) < 2 || !strings.Contains(e.Stack[1], "stands_still") {
				t.Fatalf("exited: %v", e)
			}

			below := proctree.Descendants(pid)
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			for _, p := range below {
				eventually(t, "the end of process "+strconv.Itoa(p), func() bool { return !alive(p) })
			}
		})
	}
}
