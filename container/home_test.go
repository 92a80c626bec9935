package container_test

import (
	"os"
	"strings"
	"testing"

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
