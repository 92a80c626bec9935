package container_test

import (
	"testing"

	"holdfast/proto"
)

// TestAProcessLingersUntilItIsLetEnd: the master hears of it on each stream, and the exit
// code is what the process ends with then.
func TestAProcessLingersUntilItIsLetEnd(t *testing.T) {
	m := newMaster(t)
	m.startAgent("c1", nil)
	c := m.agent()
	c.send(assignment(func(a *proto.Assign) { a.LeaseMs = patience.Milliseconds() }))
	c.prepared()
	m.leadTo(m.address)
	const stays = `f="$HOLDFAST_LINGER"; mkfifo "$f.$$"; exec 3<>"$f.$$"; echo nonsense >"$f"; echo peers >"$f"; echo $$ >"$f"; read -r line <&3; exit 3`
	c.send(&proto.Start{Attempt: 4, Command: shell(stays), Env: map[string]string{"HOLDFAST_LINGER": "1"}})
	c.started()
	hear(c, (*proto.FromAgent).GetNeedsPeers)
	for range 2 {
		if l := hear(c, (*proto.FromAgent).GetLingers); l.Attempt != 4 {
			t.Fatalf("attempt %d lingers", l.Attempt)
		}
		close(c.drop)
		if c = m.agent(); !c.hello.NeedsPeers {
			t.Fatalf("it does not say again that it needs the others: %v", c.hello)
		}
	}
	hear(c, (*proto.FromAgent).GetLingers)
	c.send(&proto.EndLingering{})
	if l := hear(c, (*proto.FromAgent).GetLetEnd); l.Attempt != 4 {
		t.Errorf("attempt %d is said to be let end", l.Attempt)
	}
	if e := c.exited(); e.Code != 3 || e.Stopped {
		t.Fatalf("exited: %v", e)
	}
	c.send(&proto.Start{Attempt: 5, Command: shell(`exit ${HOLDFAST_LINGER:-1}`), Env: map[string]string{"HOLDFAST_LINGER": "0"}})
	c.started()
	if e := c.exited(); e.Code != 0 {
		t.Fatalf("what was switched off is %v", e)
	}
}

// TestWhoLingersLaterIsLetEndAtOnce: the command may go on after the process that lingered.
func TestWhoLingersLaterIsLetEndAtOnce(t *testing.T) {
	m := newMaster(t)
	m.startAgent("c1", nil)
	c := m.agent()
	c.send(assignment(nil))
	c.prepared()
	const stays = `f="$HOLDFAST_LINGER"; stay() { mkfifo "$f.$1"; exec 3<>"$f.$1"; echo "$1" >"$f"; read -r line <&3; }; stay 1; stay 2`
	c.send(&proto.Start{Command: shell(stays), Env: map[string]string{"HOLDFAST_LINGER": "1"}})
	c.started()
	hear(c, (*proto.FromAgent).GetLingers)
	c.send(&proto.EndLingering{})
	if e := c.exited(); e.Code != 0 {
		t.Fatalf("exited: %v", e)
	}
}
