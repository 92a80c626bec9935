package core_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/core/journal"
	"holdfast/am/core/nodes"
	"holdfast/proto"
)

// fault breaks something.
func (s *sim) fault() {
	if !s.now.Before(s.calm) || s.finish != nil {
		return
	}
	s.after(s.upTo(8*time.Second), s.fault)
	ids := slices.Sorted(maps.Keys(s.boxes))
	var live []*simBox
	for _, id := range ids {
		if b := s.boxes[id]; !b.ended {
			live = append(live, b)
		}
	}
	if len(live) == 0 {
		return
	}
	b := live[s.r.IntN(len(live))]
	switch s.r.IntN(14) {
	case 13:
		s.request(b.task)
	case 12:
		if p := b.process; p != nil {
			s.export(p)
		}
	case 11:
		s.cascade(b)
	case 0, 1:
		if p := b.process; p != nil {
			e := event.TaskExited{Signal: 9}
			switch s.r.IntN(3) {
			case 0:
				e = event.TaskExited{Code: 1, PeerLost: true}
			case 1:
				e.OutOfMemory = true
			}
			if p.failing && e.PeerLost { // it fails by its own error, and has said so
				e = event.TaskExited{Code: 1, Error: simError}
			}
			s.log("kill the process of %s", p.task)
			if !p.failing { // else that is counted
				s.faults[p.task]++
			}
			s.exit(p, e)
		}
	case 2:
		s.end(b, event.CauseOwnFault)
	case 3:
		cause := []event.Cause{event.CausePreempted, event.CauseOutOfMemory}[s.r.IntN(2)]
		s.end(b, cause)
	case 4:
		if b.agent { // the NodeManager is lost, and what it ran goes on
			s.log("node of %s is lost", b.id)
			b.excused = true
			s.tellAM(0, event.ContainerEnded{Container: b.id, Cause: event.CauseNodeLost})
			s.checkOrphan(b)
		}
		if s.r.IntN(2) == 0 { // and is restarted
			s.after(s.upTo(20*time.Second), func() { s.removeDir(b) })
		}
	case 5:
		s.disconnect(b, s.upTo(20*time.Second))
	case 6:
		s.disconnect(b, time.Hour)
	case 7:
		if p := b.process; p != nil {
			s.hang(p)
		}
	case 10:
		if s.r.IntN(3) == 0 {
			s.restartAM()
		}
	case 8:
		s.preempt(b)
	case 9:
		s.closeNode(b.node)
	}
}

// cascade has a rank fail that takes its time to end, and the others of its generation say at
// once that a peer has gone.
func (s *sim) cascade(b *simBox) {
	p := b.process
	if p == nil || p.failing || p.lingers || !b.connected || !s.together(p.task) {
		return
	}
	s.log("%s fails, and the others hear of it", p.task)
	s.faults[p.task]++
	p.failing = true
	s.after(s.upTo(3*time.Second), func() { s.exit(p, event.TaskExited{Code: 1, Error: simError}) })
	for _, task := range slices.Sorted(maps.Keys(s.alive)) {
		o := s.alive[task]
		if o == p || s.r.IntN(3) == 0 || !s.together(task) || o.generation != p.generation {
			continue
		}
		s.after(s.upTo(time.Second), func() {
			if s.alive[task] == o && !o.failing { // who has an error of its own ends by that
				s.exit(o, event.TaskExited{Code: 1, PeerLost: true})
			}
		})
	}
}

// request has a person ask for the restart of a task.
func (s *sim) request(task string) {
	if s.down {
		return
	}
	s.log("a person asks for the restart of %s", task)
	s.answers = 0
	left, leaves := s.alive[task], false
	if left != nil {
		before := left.requested
		left.requested = true
		defer func() { left.requested = before || !s.refused }()
		leaves = s.leaving(left.box) // and has time for that
	}
	s.step(event.RestartRequested{Task: task, User: "alice"})
	if s.answers != 1 {
		s.fail("a request to restart %s has %d answers", task, s.answers)
	}
	if s.refused || leaves || left == nil || !left.box.connected {
		return
	}
	epoch, line, asked := s.epoch, left.box.line, s.now
	s.after(2*limits.Stop, func() {
		if s.epoch == epoch && !s.heldSince(asked) && left.box.connected && !left.immortal && left.box.line == line && s.alive[task] == left && s.finish == nil {
			s.fail("%s still runs a process of %s, whose restart was asked for", left.box.id, task)
		}
	})
}

// sticks has a process that is stopped hang in the kernel, and its container be given up for
// that once it could not be killed.
func (s *sim) sticks(p *simProcess, grace time.Duration) {
	s.log("the process of %s does not end", p.task)
	p.immortal = true
	s.checkStuck(p, grace)
}

// checkStuck checks that the container is given up in time of a process that was to end within
// grace, hangs in the kernel, and whose agent is connected: also by an application master that
// has not told it to end.
func (s *sim) checkStuck(p *simProcess, grace time.Duration) {
	epoch, line := s.epoch, p.box.line
	if s.job.Journal().Partial { // it listens to all agents first
		s.after(time.Second, func() {
			if s.epoch == epoch && p.box.connected && p.box.line == line {
				s.checkStuck(p, grace)
			}
		})
		return
	}
	since := s.now
	s.after(grace+2*limits.Stop+limits.Kill, func() {
		if s.heldSince(since) {
			s.checkStuck(p, 0)
			return
		}
		if state, _ := s.job.State(); state == proto.JobState_JOB_STATE_STOPPING || s.finish != nil {
			return
		}
		if t, _ := s.job.Hosted(p.box.id); s.epoch == epoch && p.box.connected && p.box.line == line && s.alive[p.task] == p && t.Name == p.task {
			s.fail("%s is still in %s, in which a process does not end that was killed long ago", p.task, p.box.id)
		}
	})
}

// checkKilled checks that only what does not end is said not to.
func (s *sim) checkKilled(a action.Record) {
	if p := s.alive[a.Task]; p != nil && !p.immortal && p.box.connected && a.Kind == action.KindLost && strings.Contains(a.Text, "of SIGKILL") {
		s.fail("%s is given up, and its process is about to end: %s", a.Task, a.Text)
	}
}

// planDeafness has an agent not hear one kind of message, in a quarter of the jobs.
func (s *sim) planDeafness() {
	if s.deafness.IntN(4) > 0 {
		return
	}
	kinds := []string{"Assign", "ChangePort", "Start", "EndLingering", "ReleaseAgent"}
	kind := kinds[s.deafness.IntN(len(kinds))]
	s.after(time.Duration(s.deafness.IntN(60_000))*time.Millisecond, func() {
		for _, id := range slices.Sorted(maps.Keys(s.boxes)) {
			if b := s.boxes[id]; !b.ended && s.deafness.IntN(2) == 0 {
				s.log("the agent in %s does not hear %s", id, kind)
				b.deafTo = kind
			}
		}
	})
}

// tells reports whether an action is a message to an agent.
func tells(a action.Action) bool {
	switch a.(type) {
	case action.Assign, action.ChangePort, action.Start, action.Stop, action.Vacate, action.EndLingering, action.ReleaseAgent:
		return true
	}
	return false
}

// later tells an agent what was decided, if it is connected now and its stream lasts until then.
func (s *sim) later(a action.Action) func() {
	b := s.boxes[reflect.ValueOf(a).FieldByName("Container").String()]
	if b == nil || !b.connected {
		return func() {}
	}
	line := b.line
	return func() {
		if b.line == line {
			s.act(a)
		}
	}
}

// planHold has the journal's store not answer for a while, in a quarter of the jobs: until then,
// nothing is written and no agent is told anything.
func (s *sim) planHold() {
	own := rand.New(rand.NewPCG(s.seed, 8)) // what else goes wrong does not depend on it
	if own.IntN(4) > 0 {
		return
	}
	s.after(time.Duration(own.IntN(100_000))*time.Millisecond, func() {
		if s.down || s.finish != nil {
			return
		}
		within := time.Duration(own.IntN(120_000)) * time.Millisecond
		s.log("the journal cannot be written for %s", within)
		s.held = s.now.Add(within)
		epoch := s.epoch
		s.after(within, func() {
			if s.epoch != epoch {
				return
			}
			queued := s.queued
			s.queued = nil
			s.save()
			for _, tell := range queued {
				tell()
			}
			s.tellAM(0, event.Sent{Until: s.now})
		})
	})
}

// heldSince reports whether what was decided since then may have been told late.
func (s *sim) heldSince(t time.Time) bool { return s.held.After(t) }

// hears reports whether an agent hears a message. One that does not hear that it is to end loses
// its lease, which is not renewed from then on.
func (s *sim) hears(b *simBox, a action.Action) bool {
	if kind := strings.TrimPrefix(fmt.Sprintf("%T", a), "action."); b.deafTo != kind {
		return true
	}
	s.log("%s does not hear %T%+v", b.id, a, a)
	b.unheard = true
	if _, ends := a.(action.ReleaseAgent); ends {
		s.disconnect(b, time.Hour)
	}
	return false
}

// checkDeaf checks that only who did not hear what he was told is said not to answer.
func (s *sim) checkDeaf(a action.Record) {
	t := s.before[a.Task]
	if b := s.boxes[t.Container]; strings.Contains(a.Text, "has not answered within") && a.Kind == action.KindLost && b != nil && !b.unheard {
		s.fail("%s is given up, and has heard all: %s", b.id, a.Text)
	}
}

// removeDir removes the directory of a container, by which another task may fail,
// through no fault of its own.
func (s *sim) removeDir(b *simBox) {
	if b.process == nil || !b.connected || s.finish != nil {
		return
	}
	s.log("the directory of %s is removed", b.id)
	s.removedAt = s.now
	s.fromAgent(b, event.AgentFailed{Container: b.id, Detail: "its directory was removed", DirectoryRemoved: true})
	epoch, line, left := s.epoch, b.line, b.process
	if tasks := slices.Sorted(maps.Keys(s.alive)); len(tasks) > 1 {
		p := s.alive[tasks[s.r.IntN(len(tasks))]]
		s.after(100*time.Millisecond+s.upTo(time.Second), func() {
			if s.epoch == epoch && !s.down && p != left && p.box.connected && !s.forgotten {
				s.innocent[p.task]++
				s.exit(p, event.TaskExited{Code: 1})
			}
		})
	}
	// It may have to listen to all agents first, and knows that it has heard all of them
	// only once its own liveness was confirmed without a gap for as long.
	within, removed := limits.LeaseExpiry+2*limits.Stop, s.now
	var look func()
	look = func() {
		if s.heldSince(removed) {
			return
		}
		if s.epoch != epoch || !b.connected || b.line != line || b.process != left || left.immortal || s.finish != nil {
			return
		}
		if due := s.confirmed.Since.Add(within); s.now.Before(due) || s.now.After(s.confirmed.Until) {
			s.after(max(due.Sub(s.now), time.Second), look)
			return
		}
		s.fail("%s still runs a process of %s, and its directory is no longer there", b.id, left.task)
	}
	s.after(within, look)
}

// checkOrphan sees that what runs on where YARN has lost it leaves in time.
func (s *sim) checkOrphan(b *simBox) {
	epoch, line, within, since := s.epoch, b.line, limits.Orphan+2*limits.Stop, s.now
	if s.job.Journal().Partial { // it has to listen to all agents first
		within += 2 * limits.LeaseExpiry
	}
	s.after(within, func() {
		if s.epoch == epoch && !s.heldSince(since) && b.excused && !b.found.After(since) && b.connected && b.line == line && b.process != nil && !b.process.immortal && s.finish == nil {
			s.fail("%s still runs a process of %s, and YARN lost it long ago", b.id, b.process.task)
		}
	})
}

// preempt takes a container back after a warning.
func (s *sim) preempt(b *simBox) {
	const within = 15 * time.Second
	s.log("the scheduler wants %s back", b.id)
	strict := s.r.IntN(2) == 0
	s.tellAM(0, event.PreemptionWarned{Containers: []string{b.id}, Strict: strict, Within: within})
	for range s.r.IntN(3) { // it may say so in each round
		s.tellAM(s.upTo(within), event.PreemptionWarned{Containers: []string{b.id}, Strict: strict, Within: within})
	}
	if s.r.IntN(4) == 0 {
		s.log("the scheduler does not want %s back any longer", b.id)
		over := s.upTo(within)
		b.unwanted = s.now.Add(over)
		s.tellAM(over, event.PreemptionCanceled{Containers: []string{b.id}, Why: "the ResourceManager was restarted"})
		return
	}
	left := b.process
	if !strict || s.down || !b.connected || s.now.Sub(b.since) < time.Second || s.leaving(b) {
		left = nil // it is not told, or stops for another reason
	}
	forgets, warned := s.forgets, s.now
	s.after(within, func() {
		// Another application master knows it from the journal, if that was written.
		inTime := b.since.Sub(warned) < within/2 && s.forgets == forgets && s.died.Sub(warned) > time.Second
		if left != nil && !s.heldSince(warned) && !left.stopped && b.unwanted.Before(warned) && b.connected && b.process == left && s.finish == nil && (inTime || b.since.Before(warned)) {
			s.fail("%s runs a process of %s that has not been told to stop, and the scheduler takes it now, as it has said", b.id, left.task)
		}
		s.end(b, event.CausePreempted)
	})
}

// leaving reports whether a container's task is stopped, or leaves it, or the job ends, or
// that is not known.
func (s *sim) leaving(b *simBox) bool {
	if state, _ := s.job.State(); state == proto.JobState_JOB_STATE_STOPPING || s.job.Journal().Partial {
		return true
	}
	return slices.ContainsFunc(s.job.Journal().Tasks, func(k journal.TaskRecord) bool {
		return k.Container == b.id && (k.Stop != nil || k.LeaveBy != 0)
	})
}

// closeNode takes a node out of service, and mostly back into it later.
func (s *sim) closeNode(node string) {
	if len(s.closing) >= 2 || !s.closing[node].IsZero() {
		return
	}
	within := time.Minute + s.upTo(time.Minute)
	s.log("%s is taken out of service within %s", node, within)
	s.closing[node] = s.now.Add(within)
	s.tellAM(s.upTo(time.Second), event.NodeDecommissioning{Node: node, Within: within})
	epoch, since := s.epoch, s.now
	lines := map[*simBox]int{}
	for _, b := range s.boxes {
		if b.node == node && b.connected && b.process != nil {
			lines[b] = b.line
		}
	}
	if s.r.IntN(3) == 0 {
		s.after(s.upTo(within), func() {
			s.log("%s stays in service", node)
			s.reopen(node)
		})
		return
	}
	s.after(within, func() {
		for b, line := range lines {
			if s.epoch == epoch && !s.heldSince(since) && b.connected && b.line == line && b.process != nil && !b.process.immortal && s.finish == nil {
				s.fail("%s runs a process of %s, and its node is out of service now", b.id, b.process.task)
			}
		}
		for _, id := range slices.Sorted(maps.Keys(s.boxes)) {
			if b := s.boxes[id]; b.node == node {
				s.end(b, event.CauseNodeLost)
			}
		}
		s.after(s.upTo(time.Minute), func() { s.reopen(node) })
	})
}

// reopen takes a node into service again. Not every ResourceManager says so: the driver of an
// application master may find out, or it does not.
func (s *sim) reopen(node string) {
	gone := s.closing[node].Add(time.Second) // as the job was told
	delete(s.closing, node)
	switch s.seed % 5 {
	case 1:
		s.log("%s is in service again, which nobody says", node)
		s.unsaid[node] = gone
	case 2:
		s.tellAM(s.upTo(time.Minute), event.NodeRecommissioned{Node: node})
	default:
		s.tellAM(0, event.NodeRecommissioned{Node: node})
	}
}

// checkReopened: a node that is in service again, which nobody says, is known to be after a
// container came there when it should have been gone.
func (s *sim) checkReopened(b *simBox) {
	if gone, is := s.unsaid[b.node]; is && s.now.After(gone) && slices.ContainsFunc(s.job.AvoidedNodes(), func(a nodes.Avoided) bool { return a.Node == b.node && a.Until.IsZero() }) {
		s.fail("%s is given on %s, and the job takes that node for one that closes", b.id, b.node)
	}
}
