package container_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/proto"
)

// TestACommandThatPrintsMuch: its output comes as fast as it is taken, and all of it, also what
// its client takes long after the command has ended; heartbeats do not wait behind it, and the
// agent keeps its connection.
func TestACommandThatPrintsMuch(t *testing.T) {
	m := newMaster(t)
	m.startAgent("c1", nil)
	c := m.agent()
	c.send(assignment(func(a *proto.Assign) { a.HeartbeatIntervalMs = 100 }))
	c.prepared()
	c.send(&proto.Start{Command: shell(`sleep 1000`)})
	c.started()
	output := func() *proto.ExecOutput {
		t.Helper()
		return hear(c, (*proto.FromAgent).GetExecOutput)
	}
	beats := func(n int) {
		t.Helper()
		for len(c.beats) > 0 {
			<-c.beats
		}
		for range n {
			select {
			case <-c.beats:
			case <-time.After(patience):
				t.Fatal("there are no heartbeats any more")
			}
		}
	}

	const much = 64 << 20
	c.send(&proto.Exec{Id: 1, Command: shell(`head -c 67108864 /dev/zero`)})
	got := 0
	for range proto.ExecWindow {
		got += len(output().Output)
	}
	beats(5)
	select {
	case f, ok := <-c.heard:
		if !ok {
			t.Fatal("the agent's stream has ended")
		}
		t.Fatalf("more is sent than is taken: %T", f.Message)
	default:
	}
	for {
		c.send(&proto.ExecTaken{Id: 1})
		o := output()
		if got += len(o.Output); o.Done {
			if o.Code != 0 || o.Error != "" {
				t.Errorf("it has ended with %d: %s", o.Code, o.Error)
			}
			break
		}
	}
	if got != much {
		t.Errorf("%d of %d bytes came", got, much)
	}

	// As much as is in the pipe when the command ends, and more than a window.
	c.send(&proto.Exec{Id: 2, Command: shell(`i=0; while [ $i -lt 40 ]; do echo $i; sleep 0.01; i=$((i+1)); done`)})
	var all []byte
	for range proto.ExecWindow {
		all = append(all, output().Output...)
	}
	beats(30) // the command has ended long since
	for {
		c.send(&proto.ExecTaken{Id: 2})
		o := output()
		if all = append(all, o.Output...); o.Done {
			break
		}
	}
	if want := "39\n"; len(all) != 10*2+30*3 || string(all[len(all)-3:]) != want {
		t.Errorf("what it has printed is %q", all)
	}
}

// TestACommandEndsWithItsStream: nobody takes any more what it prints, and the next stream has
// ids of its own.
func TestACommandEndsWithItsStream(t *testing.T) {
	m := newMaster(t)
	m.startAgent("c1", nil)
	c := m.agent()
	c.send(assignment(func(a *proto.Assign) { a.LeaseMs = 60000 }))
	c.prepared()
	c.send(&proto.Start{Command: shell(`sleep 1000`)})
	c.started()
	c.send(&proto.Exec{Id: 1, Command: shell(`echo $$; exec yes`)})
	hear(c, (*proto.FromAgent).GetExecOutput)
	close(c.drop)
	c = m.agent()
	c.send(&proto.Exec{Id: 1, Command: shell(`echo new; exec sleep 1000`)})
	if o := hear(c, (*proto.FromAgent).GetExecOutput); string(o.Output) != "new\n" {
		t.Errorf("it has printed %.20q, and says %q", o.Output, o.Error)
	}
	for id := int64(2); id < 5; id++ { // what ran has made room
		eventually(t, "room for another command", func() bool {
			c.send(&proto.Exec{Id: id, Command: shell(`echo ran; exec sleep 1000`)})
			return string(hear(c, (*proto.FromAgent).GetExecOutput).Output) == "ran\n"
		})
	}
}

// TestACommandWaitsForItsFileSystem: neither the end of the attempt nor the start of the next
// one waits for it.
func TestACommandWaitsForItsFileSystem(t *testing.T) {
	needRoot(t)
	dir, asked, answer := hung(t)
	m := newMaster(t)
	m.startAgent("c1", nil)
	t.Cleanup(answer) // or the agent would wait for the command
	c := m.agent()
	c.send(assignment(nil))
	c.prepared()
	c.send(&proto.Start{Command: shell(`exec sleep 1000`)})
	c.started()
	c.send(&proto.Exec{Id: 1, Command: []string{filepath.Join(dir, "command")}})
	select {
	case <-asked:
	case <-time.After(patience):
		t.Fatal("nobody looks for the command")
	}
	c.send(&proto.Stop{})
	if e := c.exited(); !e.Stopped {
		t.Errorf("exited: %v", e)
	}
	c.send(&proto.Start{Attempt: 1, Command: shell(`exec sleep 1000`)})
	c.started()
}

// TestACommandThatCannotBeRun: its client is told why.
func TestACommandThatCannotBeRun(t *testing.T) {
	m := newMaster(t)
	m.startAgent("c1", nil)
	c := m.agent()
	c.send(assignment(nil))
	c.prepared()
	c.send(&proto.Start{Command: shell(`exec sleep 1000`)})
	c.started()
	for name, why := range map[string]string{"no-such-command": "PATH", "/dev/null": "permission denied", "./missing": "no such file"} {
		c.send(&proto.Exec{Id: 1, Command: []string{name}})
		o := hear(c, (*proto.FromAgent).GetExecOutput)
		if !o.Done || o.Code != -1 || !strings.Contains(o.Error, "cannot be run") || !strings.Contains(o.Error, name) || !strings.Contains(o.Error, why) {
			t.Errorf("%s: %v", name, o)
		}
	}
	if err := os.WriteFile(filepath.Join(lastWorkDir(m), "of-the-task"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	c.send(&proto.Exec{Id: 1, Command: shell(`ls of-the-task; exit 3`)})
	o := hear(c, (*proto.FromAgent).GetExecOutput)
	if string(o.Output) != "of-the-task\n" {
		t.Errorf("it does not run in the task's working directory: %q", o.Output)
	}
	if o = hear(c, (*proto.FromAgent).GetExecOutput); !o.Done || o.Code != 3 || o.Error != "" {
		t.Errorf("it has ended with %v", o)
	}
}
