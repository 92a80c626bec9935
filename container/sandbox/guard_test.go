package sandbox_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/container/sandbox"
	"holdfast/internal/proc"
)

// groups is a task with processes of its own group, and with one that leads a session and has
// a child there. It says who they are once all run.
const groups = `sleep 1000 & echo $!
setsid sh -c 'sleep 1000 & echo $!; echo $$; exec sleep 1000' &
wait`

// playGuard starts that task and says, on standard output, which its processes are, the
// sandbox's init process first.
func playGuard() error {
	b, err := sandbox.Start(context.Background(), sandbox.Options{NoSteering: true})
	if err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	p, err := b.Exec(sandbox.Command{Argv: []string{"sh", "-c", groups}, Env: []string{"PATH=/bin:/usr/bin"}, Dir: "/", Output: w})
	if err != nil {
		return err
	}
	said := []string{strconv.Itoa(b.Pid()), strconv.Itoa(p.Pid)}
	for lines := bufio.NewScanner(r); len(said) < 5 && lines.Scan(); {
		said = append(said, lines.Text())
	}
	if err := b.Guard(b.Processes()); err != nil {
		return err
	}
	fmt.Println(strings.Join(said, " "))
	status, ok := p.Status()
	return fmt.Errorf("the task has ended: %v, %v", status, ok)
}

// TestTheTaskEndsWithItsAgent though the init process does nothing: the node's manager waits
// for the agent alone, and then removes what the task would save to.
func TestTheTaskEndsWithItsAgent(t *testing.T) {
	agent := exec.CommandContext(limited(t), os.Args[0])
	agent.Env = []string{envPlay + "=" + asGuard}
	agent.Stderr = os.Stderr
	out, err := agent.StdoutPipe()
	if err == nil {
		err = agent.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, f := range strings.Fields(line) {
		pid, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
		t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	}
	if err := syscall.Kill(pids[0], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = agent.Wait()
	end := time.Now().Add(20 * time.Second)
	for _, pid := range pids[1:] {
		for { // nobody takes note of the end
			if s, err := proc.ReadStat(pid); err != nil || s.Ended() {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("process %d of %v lives on", pid, pids)
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// TestGuardsOfGroupsThatComeAndGo: a box that runs many commands one after the other holds no
// more descriptors than before, and what runs is not touched.
func TestGuardsOfGroupsThatComeAndGo(t *testing.T) {
	b, err := sandbox.Start(limited(t), sandbox.Options{NoSteering: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	run := func(argv ...string) *sandbox.Process {
		t.Helper()
		p, err := b.Exec(sandbox.Command{Argv: argv, Env: []string{"PATH=/bin:/usr/bin"}, Dir: "/", Output: null})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	open := func() int {
		names, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", b.Pid()))
		if err != nil || len(names) == 0 {
			t.Fatal("no descriptors:", err)
		}
		return len(names)
	}
	stays := run("sleep", "1000")
	before := open()
	for range 40 {
		_, _ = run("true").Status()
	}
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if err := b.Guard(b.Processes()); err != nil {
			t.Fatal(err)
		}
		now := open()
		if now < before+20 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the init process has %d descriptors after 40 commands, and had %d before", now, before)
		}
	}
	if s, err := proc.ReadStat(stays.Pid); err != nil || s.Ended() {
		t.Errorf("the process that stays: %+v, %v", s, err)
	}
}
