// Package pty runs commands in pseudo-terminals, for tests of what a person sees and presses.
package pty

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Limit is much more than anything takes that a test waits for.
const Limit = 2 * time.Minute

// Terminal is a pseudo-terminal with a command in it.
type Terminal struct {
	t             testing.TB
	cmd           *exec.Cmd
	master        *os.File
	columns, rows int
	ended         chan struct{}

	mu   sync.Mutex
	text strings.Builder
}

// Start runs a command in a terminal of its own, which ends with the test.
func Start(t testing.TB, cmd *exec.Cmd, columns, rows int) *Terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatalf("open a pseudo-terminal (is devpts mounted?): %v", err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(columns)}); err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, "TERM=xterm")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	x := &Terminal{t: t, cmd: cmd, master: master, columns: columns, rows: rows, ended: make(chan struct{})}
	var reading sync.WaitGroup
	reading.Go(func() {
		buffer := make([]byte, 4096)
		for {
			n, err := master.Read(buffer)
			x.mu.Lock()
			x.text.Write(buffer[:n])
			x.mu.Unlock()
			if err != nil {
				return // EIO: nobody has the terminal open any longer
			}
		}
	})
	go func() {
		_ = cmd.Wait()
		reading.Wait() // what it wrote last has been read
		close(x.ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		select {
		case <-x.ended:
		case <-time.After(Limit):
			t.Error("a process that the command has left behind has the terminal open")
		}
		master.Close()
	})
	return x
}

// Shown returns all that was written to the terminal.
func (x *Terminal) Shown() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.text.String()
}

// last returns the end of what was written to the terminal.
func (x *Terminal) last() string {
	text := x.Shown()
	return text[max(0, len(text)-4000):]
}

// See waits until text was written to the terminal so many times.
func (x *Terminal) See(text string, times int) {
	x.t.Helper()
	x.Until(fmt.Sprintf("%q %d times", text, times), func() bool { return strings.Count(x.Shown(), text) >= times })
}

// Until waits until ok.
func (x *Terminal) Until(what string, ok func() bool) {
	x.t.Helper()
	for deadline := time.Now().Add(Limit); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			x.t.Fatalf("the terminal has not shown %s; it has shown last\n%q", what, x.last())
		}
	}
}

// Press sends what the terminal sends for keys.
func (x *Terminal) Press(keys string) {
	x.t.Helper()
	if _, err := x.master.WriteString(keys); err != nil {
		x.t.Fatal(err)
	}
}

// Code waits for the end of the command, and returns its exit code.
func (x *Terminal) Code() int {
	x.t.Helper()
	select {
	case <-x.ended:
		return x.cmd.ProcessState.ExitCode()
	case <-time.After(Limit):
		x.t.Fatalf("the command has not ended; the terminal has shown last\n%q", x.last())
		return -1
	}
}

// Lines returns the lines that the terminal has shown since its beginning, as they were last:
// without those of the alternate screen, and not broken at the right edge.
func (x *Terminal) Lines() []string { return newScreen(1<<20, 1<<20, x.Shown()).lines() }

// Screen returns the lines that the terminal shows now.
func (x *Terminal) Screen() []string { return newScreen(x.columns, x.rows, x.Shown()).lines() }
