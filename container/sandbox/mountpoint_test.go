package sandbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/container/sandbox"
)

// withMount starts a box with a file system mounted on a directory, and a process in it.
func withMount(t *testing.T, dir string) (*sandbox.Box, *sandbox.Process) {
	t.Helper()
	b, err := sandbox.Start(limited(t), sandbox.Options{NoSteering: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if err := mountSilent(b, dir); err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	p, err := b.Exec(sandbox.Command{Argv: []string{"sleep", "1000"}, Env: []string{"PATH=/bin:/usr/bin"}, Dir: "/", Output: null})
	if err != nil {
		t.Fatal(err)
	}
	return b, p
}

// TestAMountThatIsTakenAway from outside ends all in the box, which would go on in a directory
// of the node's.
func TestAMountThatIsTakenAway(t *testing.T) {
	for how, take := range map[string]func(b *sandbox.Box, dir string) error{
		"removed": func(_ *sandbox.Box, dir string) error { return os.Remove(dir) },
		"renamed": func(_ *sandbox.Box, dir string) error { return os.Rename(dir, dir+"2") },
		"its parent renamed": func(_ *sandbox.Box, dir string) error {
			return os.Rename(filepath.Dir(dir), filepath.Dir(dir)+"2")
		},
		// In the box, where mounts on the node appear if they are shared. It may end before it
		// answers.
		"mounted over": func(b *sandbox.Box, dir string) error {
			_ = b.Bind(t.TempDir(), dir)
			return nil
		},
		"its parent, as well": func(b *sandbox.Box, dir string) error {
			_ = b.Bind(t.TempDir(), filepath.Dir(dir))
			return nil
		},
	} {
		if !t.Run(how, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "parent", "logs")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			b, p := withMount(t, dir)
			if err := b.MountRemoved(); err != nil {
				t.Fatal(err)
			}
			if err := take(b, dir); err != nil {
				t.Fatal(err)
			}
			select {
			case <-p.Done():
			case <-time.After(30 * time.Second):
				t.Fatal("the process lives on")
			}
			status, ok := p.Status()
			if err := b.MountRemoved(); err == nil || !strings.Contains(err.Error(), dir) {
				t.Errorf("once the process has ended, the box says %v", err)
			}
			if ok && status.Signal() != syscall.SIGKILL {
				t.Errorf("the process ended with %v", status)
			}
			<-b.Done()
			if b.Err() == nil || !strings.Contains(b.Err().Error(), dir) {
				t.Errorf("the box ended by %v", b.Err())
			}
		}) {
			return // each would wait as long
		}
	}
}

// TestABindIsMadeAgain over a file that another program replaces, as /etc/hosts.
func TestABindIsMadeAgain(t *testing.T) {
	dir := t.TempDir()
	b, _ := withMount(t, t.TempDir())
	mine, over := filepath.Join(dir, "mine"), filepath.Join(dir, "over")
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(mine, "mine")
	write(over, "over")
	if err := b.Bind(mine, over); err != nil {
		t.Fatal(err)
	}
	write(over+".new", "new")
	if err := os.Rename(over+".new", over); err != nil {
		t.Fatal(err)
	}
	seen := fmt.Sprintf("/proc/%d/root%s", b.Pid(), over)
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		text, err := os.ReadFile(seen)
		if err == nil && string(text) == "mine" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("in the box: %q, %v", text, err)
		}
	}
	if text, err := os.ReadFile(over); err != nil || string(text) != "new" {
		t.Errorf("outside: %q, %v", text, err)
	}
	if err := b.MountRemoved(); err != nil {
		t.Error(err)
	}
}
