package sandbox_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"holdfast/container/sandbox"
)

// What this binary is to be instead of its tests, and where the mount is.
const (
	envPlay  = "SANDBOX_PLAY"
	envMount = "SANDBOX_MOUNT"
	asAgent  = "agent"
	asGuard  = "guard" // an agent whose task starts groups of its own
	asTask   = "task"
)

func TestMain(m *testing.M) {
	switch dir := os.Getenv(envMount); os.Getenv(envPlay) {
	case asAgent:
		fmt.Fprintln(os.Stderr, playAgent(dir))
		os.Exit(1)
	case asGuard:
		fmt.Fprintln(os.Stderr, playGuard())
		os.Exit(1)
	case asTask:
		_, err := os.Stat(filepath.Join(dir, "file"))
		fmt.Printf("it was told: %v\n", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// silent is a file system with nothing but a root. When it is asked for a file,
// it says so on standard output and gives no answer.
type silent struct{ fuse.RawFileSystem }

func (silent) GetAttr(_ <-chan struct{}, _ *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	out.Mode = fuse.S_IFDIR | 0o755
	return fuse.OK
}

func (silent) Lookup(<-chan struct{}, *fuse.InHeader, string, *fuse.EntryOut) fuse.Status {
	fmt.Println("asked")
	select {}
}

func mountSilent(b *sandbox.Box, dir string) error {
	options := fmt.Sprintf("rootmode=40000,user_id=%d,group_id=%d", os.Geteuid(), os.Getegid())
	return b.Mount(dir, options, func(fd int) error {
		s, err := fuse.NewServer(silent{fuse.NewDefaultRawFileSystem()}, fmt.Sprintf("/dev/fd/%d", fd), &fuse.MountOptions{})
		if err == nil {
			go s.Serve()
		}
		return err
	})
}

// playAgent serves a mount to a task, whose output is descriptor 3.
func playAgent(dir string) error {
	b, err := sandbox.Start(context.Background(), sandbox.Options{NoSteering: true})
	if err != nil {
		return err
	}
	if err := mountSilent(b, dir); err != nil {
		return err
	}
	p, err := b.Exec(sandbox.Command{
		Argv: []string{os.Args[0]}, Env: []string{envPlay + "=" + asTask, envMount + "=" + dir}, Dir: "/",
		Output: os.NewFile(3, "output"),
	})
	if err != nil {
		return err
	}
	status, ok := p.Status()
	return fmt.Errorf("the task has ended: %v, %v", status, ok)
}

// TestTheAgentsDeathIsNoError: a task that waits for the mount is killed without
// an error from it, which it might tell its peers.
func TestTheAgentsDeathIsNoError(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	agent := exec.CommandContext(limited(t), os.Args[0])
	agent.Env = []string{envPlay + "=" + asAgent, envMount + "=" + t.TempDir()}
	agent.ExtraFiles, agent.Stderr = []*os.File{w}, os.Stderr
	out, err := agent.StdoutPipe()
	if err == nil {
		err = agent.Start()
	}
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Error(err) // it was never asked
	}
	if err := agent.Process.Kill(); err != nil {
		t.Error(err)
	}
	var exit *exec.ExitError
	if err := agent.Wait(); !errors.As(err, &exit) || exit.Exited() {
		t.Errorf("the agent: %v", err)
	}
	_ = r.SetReadDeadline(time.Now().Add(30 * time.Second))
	// Until the task, too, has closed it.
	if told, err := io.ReadAll(r); err != nil || len(told) > 0 {
		t.Errorf("the task wrote %q, %v", told, err)
	}
}
