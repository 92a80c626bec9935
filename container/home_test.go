package container_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"holdfast/container"
	"holdfast/proto"
)

// TestTheContainersDirectoryIsRemoved as a NodeManager does that was restarted: the
// master is told, and the next one too.
func TestTheContainersDirectoryIsRemoved(t *testing.T) {
	m := newMaster(t)
	m.startAgent("c1", nil)
	c := m.agent()
	c.send(leased(longLease))
	c.prepared()
	c.send(&proto.Start{Attempt: 0, Command: shell(`exec sleep 1000`)})
	pid := int(c.started().Pid)
	dir := m.last.config.WorkDir
	if err := os.Rename(dir, dir+"_DEL_1"); err != nil {
		t.Fatal(err)
	}
	said := func(c *connected) {
		t.Helper()
		if said := c.trouble(); !said.DirectoryRemoved || said.NodeSpecific || said.Permanent || !strings.Contains(said.Detail, "directory") {
			t.Errorf("the master is told %v", said)
		}
	}
	said(c)
	if !alive(pid) {
		t.Error("the task was ended, and nobody asked for that")
	}
	m.server.Stop()
	next := m.successor()
	said(next.agent())
	if err := os.Rename(dir+"_DEL_1", dir); err != nil { // for the test's end
		t.Fatal(err)
	}
}

// TestTheDirectoryOfAMountIsRemoved by somebody on the node, which takes the mount away from a
// task that runs: it is killed before it saves to the node, and the master is told why before it
// is told of the end.
func TestTheDirectoryOfAMountIsRemoved(t *testing.T) {
	logs := filepath.Join(t.TempDir(), "logs")
	t.Run("a checkpoint directory", func(t *testing.T) { mountPointRemoved(t, logs, logs, nil) })
	work, change := workPathOf(t)
	t.Run("the working directory", func(t *testing.T) { mountPointRemoved(t, "", work, change) })
}

// mountPointRemoved removes a directory on which there is a mount for a task with a checkpoint path;
// "": it has none.
func mountPointRemoved(t *testing.T, checkpoints, point string, change func(*container.Config)) {
	m := newMaster(t)
	m.startAgent("c1", change)
	c := m.agent()
	a := leased(longLease)
	if checkpoints != "" {
		a.Checkpoints = []*proto.CheckpointSpec{{Path: checkpoints, Uri: filepath.Join(t.TempDir(), "store")}}
	}
	c.send(a)
	c.prepared()
	c.send(&proto.Start{Attempt: 0, Command: shell(`exec sleep 1000`)})
	pid := int(c.started().Pid)
	if err := os.RemoveAll(point); err != nil {
		t.Fatal(err)
	}
	if f := c.trouble(); !f.DirectoryRemoved || !strings.Contains(f.Detail, point) || !strings.Contains(f.Detail, "127.0.0.1") {
		t.Errorf("the master is told %v", f)
	}
	if e := c.exited(); e.Signal != int32(syscall.SIGKILL) {
		t.Errorf("the end is told as %v", e)
	}
	if alive(pid) {
		t.Error("the task lives")
	}
	if err := m.last.end(); err == nil || !strings.Contains(err.Error(), point) {
		t.Errorf("the agent ended with %v", err)
	}
}
