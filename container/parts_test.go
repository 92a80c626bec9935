package container_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"holdfast/container"
	"holdfast/internal/jobtls"
	"holdfast/test/forbid"
)

// The test binary plays other parts too, as the first argument says.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if part, ok := parts[os.Args[1]]; ok {
			if err := part(os.Args[2:]); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(m.Run())
}

var parts = map[string]func([]string) error{}

func init() {
	parts["part-agent"] = agentPart
	parts["part-user"] = userPart
}

// agentFile says what agent a process is to be.
type agentFile struct {
	Master, JobDirectory, Container, Dir   string
	OwnLog                                 string
	Keys                                   jobtls.Keys
	NoNamespace, UserNamespace, NoSteering bool
	WarmAfter                              time.Duration
	Forbidden                              []string // system calls
}

// agentPart is an agent in a process of its own.
func agentPart(args []string) error {
	var f agentFile
	b, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, &f); err != nil {
		return err
	}
	for _, call := range f.Forbidden {
		if err := forbid.Call(call); err != nil {
			return err
		}
	}
	return container.Run(context.Background(), container.Config{
		Master: f.Master, JobDirectory: f.JobDirectory, Container: f.Container, Host: "127.0.0.1", Keys: f.Keys,
		WorkDir: filepath.Join(f.Dir, "container"), LogDir: filepath.Join(f.Dir, "logs"), TmpDir: filepath.Join(f.Dir, "tmp"), OwnLog: f.OwnLog,
		Log:         logrus.NewEntry(logrus.New()),
		NoNamespace: f.NoNamespace, UserNamespace: f.UserNamespace, NoSteering: f.NoSteering,
		WarmAfter: f.WarmAfter, OwnProcess: true,
	})
}

// userPart becomes an ordinary user, for whom /dev/fuse is open, and then an
// agent. It is started as root in a mount namespace of its own.
func userPart(args []string) error {
	uid, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	node := filepath.Join(filepath.Dir(args[1]), "fuse")
	for _, step := range []func() error{
		func() error { return syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "") },
		func() error { return syscall.Mknod(node, syscall.S_IFCHR, 10<<8|229) }, // Documentation/admin-guide/devices.txt
		func() error { return os.Chmod(node, 0o666) },
		func() error { return syscall.Mount(node, "/dev/fuse", "", syscall.MS_BIND, "") },
		func() error { return syscall.Setgroups(nil) },
		func() error { return syscall.Setresgid(uid, uid, uid) },
		func() error { return syscall.Setresuid(uid, uid, uid) },
		// A process that changed its user must exec to be looked at by its own.
		func() error {
			return syscall.Exec("/proc/self/exe", []string{os.Args[0], "part-agent", args[1]}, os.Environ())
		},
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// startAgentProcess starts an agent in a process of its own, as a user, to whom
// some system calls are forbidden.
func (m *master) startAgentProcess(name string, uid uint32, change func(*container.Config), forbidden ...string) *exec.Cmd {
	m.t.Helper()
	dir, err := os.MkdirTemp("", "agent-")
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { os.RemoveAll(dir) })
	var c container.Config
	if change != nil {
		change(&c)
	}
	b, err := json.Marshal(agentFile{
		Master: m.address, JobDirectory: m.jobDir, Container: name, Dir: dir, Keys: m.keys.Agent,
		NoNamespace: c.NoNamespace, UserNamespace: c.UserNamespace, NoSteering: c.NoSteering,
		WarmAfter: c.WarmAfter, OwnLog: c.OwnLog, Forbidden: forbidden,
	})
	if err != nil {
		m.t.Fatal(err)
	}
	file := filepath.Join(dir, "config.json")
	if err := os.WriteFile(file, b, 0o644); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Chown(dir, int(uid), int(uid)); err != nil {
		m.t.Fatal(err)
	}
	cmd := exec.Command(testBinary(m.t), "part-agent", file)
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = &testLog{m.t}, &testLog{m.t}
	if c.OwnLog != "" { // it is copied from a file
		stderr, err := os.Create(filepath.Join(dir, "stderr"))
		if err != nil {
			m.t.Fatal(err)
		}
		defer stderr.Close()
		cmd.Stderr = stderr
	}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	switch uid {
	case nobody:
		cmd.Args = []string{cmd.Path, "part-user", strconv.Itoa(int(uid)), file}
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS
	case stranger:
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: uid}
	}
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// testBinary is a copy of this binary that every user may run.
func testBinary(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "test-binary-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	path := filepath.Join(dir, "test")
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
