package mount_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/hdfsckpt/mount"
	"holdfast/hdfsckpt/store"
	"holdfast/internal/hadoop/conf"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"
)

// box is a mount as a container has it, with nothing in our own process: an
// agent that serves it, and a task in a namespace that uses it, both an
// ordinary user's.
type box struct {
	agent, task *process
	dir         string // of the mount, in the task's namespace
	onHDFS      bool
}

// newBox shows a store, a directory or an URI of the cluster whose
// configuration is in confDir.
func newBox(t *testing.T, store, confDir string) *box {
	t.Helper()
	uid, gid := ordinary()
	spool := t.TempDir()
	letOthersIn(spool)
	os.Chown(spool, uid, gid)
	logFile := filepath.Join(spool, "agent.log")
	t.Cleanup(func() {
		if log, err := os.ReadFile(logFile); err == nil && t.Failed() {
			t.Logf("the agent's log:\n%s", log)
		}
	})
	task, socket, dir := inNamespace(t, uid, gid)
	b := &box{task: task, dir: dir, onHDFS: confDir != ""}
	b.agent = startProcess(t, func(cmd *exec.Cmd) {
		as(t, uid, gid)(cmd)
		cmd.ExtraFiles = []*os.File{socket}
		cmd.Env = append(cmd.Env, "HADOOP_USER_NAME="+boxUser, "TMPDIR="+spool)
	})
	b.task.do(call{Op: "mountfuse", Path: dir, Fd: 3})
	b.agent.do(call{Op: "servefuse", Fd: 3, Path: store, To: confDir, Data: []byte(logFile)})
	b.task.do(call{Op: "stat", Path: dir}) // as the init stage must: see ServeFD
	return b
}

// boxUser is who the box's agent is on HDFS.
const boxUser = "holdfast-test"

// localBox is a box over a new local directory.
func localBox(t *testing.T) (b *box, store string) {
	t.Helper()
	store = t.TempDir()
	letOthersIn(store)
	uid, gid := ordinary()
	os.Chown(store, uid, gid)
	return newBox(t, store, ""), store
}

// script runs a script in a directory.
func (p *process) script(dir string, lines []string) []string {
	p.t.Helper()
	return p.do(call{Op: "script", Path: dir, Data: []byte(strings.Join(lines, "\n"))}).Names
}

func init() {
	more["script"] = func(c call, a *answer) (err error) {
		a.Names, err = run(c.Path, strings.Split(string(c.Data), "\n"))
		return err
	}
	more["removeall"] = func(c call, _ *answer) error { return os.RemoveAll(c.Path) }
	more["tmpfs"] = func(c call, _ *answer) error {
		return unix.Mount("oracle", c.Path, "tmpfs", 0, "size=64m,mode=755")
	}
	more["servefuse"] = func(c call, _ *answer) error {
		if err := serveReceived(c); err != nil {
			fmt.Fprintln(os.Stderr, "serving:", err)
			return err
		}
		return nil
	}
}

func serveReceived(c call) error {
	var cfg *conf.Conf
	if c.To != "" {
		var err error
		if cfg, err = conf.Load(c.To); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := store.OpenExisting(ctx, c.Path, cfg)
	if err != nil {
		return err
	}
	log := logrus.New()
	if log.Out, err = os.Create(string(c.Data)); err != nil {
		return err
	}
	fs, err := mount.New(s, mount.Options{
		UID: uint32(os.Getuid()), GID: uint32(os.Getgid()),
		Log: logrus.NewEntry(log), FlushEvery: 200 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	fd, err := receiveFD(c.Fd)
	if err != nil {
		return err
	}
	return fs.ServeFD(fd)
}
