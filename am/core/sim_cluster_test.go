package core_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/proto"
)

func (s *sim) act(a action.Action) {
	switch a := a.(type) {
	case action.Ask:
		s.asked[a.Request] = true
		s.after(a.Pause+s.upTo(time.Second), func() { s.allocate(a) })
	case action.Withdraw:
		delete(s.asked, a.Request)
	case action.Launch:
		s.launch(s.boxes[a.Container])
	case action.Release:
		b := s.boxes[a.Container]
		switch {
		case b == nil || b.excused: // the NodeManager would do it
		case b.process != nil && b.process.immortal && s.immortals.IntN(2) == 0: // the NodeManager hangs, too
			b.excused = true
			s.tellAM(s.upTo(50*time.Millisecond), event.ContainerEnded{Container: b.id, Cause: event.CauseReleased})
		case b.agent && !b.connected && s.r.IntN(2) == 0: // its node cannot be reached either
			b.excused = true
			s.tellAM(s.upTo(50*time.Millisecond), event.ContainerEnded{Container: b.id, Cause: event.CauseReleased})
		default:
			s.after(s.upTo(50*time.Millisecond), func() { s.end(b, event.CauseReleased) })
		}
	case action.Assign:
		s.toAgent(a.Container, a, func(b *simBox) {
			b.task = a.Task
			s.after(s.upTo(time.Second), func() {
				if s.chance(3) {
					s.fromAgent(b, event.AgentFailed{Container: b.id, Detail: "no", NodeSpecific: true})
					return
				}
				b.port = a.Port
				if b.port == 0 || s.chance(10) {
					b.port = 20000 + s.r.IntN(100)
				}
				b.peerPort = cmp.Or(a.Port, b.port)
				s.fromAgent(b, event.AgentPrepared{Container: b.id, Port: b.port})
			})
		})
	case action.ChangePort:
		s.changePort(a)
	case action.Start:
		s.checkGroup(a)
		s.noteAddress(a)
		// Who is told again is told the same: what it does with the model goes by that.
		if first, again := s.fromServices[fmt.Sprintf("%s %d", a.Task, a.Attempt)]; again && first != a.ConsistentServerState {
			s.fail("attempt %d of %s is told to go on from what services hold (%v), and was told otherwise", a.Attempt, a.Task, a.ConsistentServerState)
		}
		s.fromServices[fmt.Sprintf("%s %d", a.Task, a.Attempt)] = a.ConsistentServerState
		s.toAgent(a.Container, a, func(b *simBox) { s.run(b, a) })
		if s.chance(1) || a.ConsistentServerState && s.chance(20) { // the worst moment
			s.after(s.upTo(200*time.Millisecond), s.restartAM)
		}
	case action.Vacate:
		s.stop(a.Container, a.Grace)
	case action.Stop:
		if a.Stack && !s.requested(a.Container) {
			stalled, _ := s.job.Hosted(a.Container)
			s.faults[stalled.Name]++
			if s.mute {
				s.fail("%s is stopped because no steps are told of, and none ever was", a.Container)
			}
			if s.now.Sub(s.stuckAt) > 2*stepEvery {
				s.fail("%s is stopped because no steps are made, and they are", a.Container)
			}
			if s.exporting() && s.exports.reports > 1 && !s.hanging() {
				s.fail("%s is stopped because no steps are made, and %s is busy with an export", a.Container, s.exports.task)
			}
		}
		s.stop(a.Container, 5*time.Second)
	case action.RequestAnswered:
		s.answers++
		s.refused = a.Refusal != ""
	case action.EndLingering:
		s.endLingering(a)
	case action.ReleaseAgent:
		s.toAgent(a.Container, a, func(b *simBox) {
			if p := b.process; p != nil && p.immortal { // for which its agent waits
				s.disconnect(b, time.Hour)
				return
			}
			s.after(s.upTo(2*time.Second), func() {
				if b.agent && b.connected {
					s.fromAgent(b, event.AgentDisconnected{Container: b.id, Orderly: true})
					b.connected = false
				}
				s.kill(b)
				s.end(b, event.CauseOwnFault)
			})
		})
	case action.PrepareStore:
		within, epoch := s.upTo(100*time.Millisecond), s.epoch
		s.after(within, func() {
			if s.epoch == epoch {
				s.saves.prepared(a)
			}
		})
		s.tellAM(within, event.StorePrepared{})
	case action.Record:
		s.slow.told(a)
		s.checkFound(a)
		s.checkKilled(a)
		s.checkDeaf(a)
		s.checkUnneeded(a)
		s.quiet = s.quiet || strings.Contains(a.Text, "in which all tasks ran")
		if n := 0; strings.Contains(a.Text, "all tasks start again because") {
			fmt.Sscanf(a.Text, "generation %d:", &n)
			s.explained[n] = true
		}
		free := strings.Contains(a.Text, "stopped in order") || strings.Contains(a.Text, "killed because its directory") || strings.Contains(a.Text, unneeded)
		for _, c := range []event.Cause{event.CauseRestartedAll, event.CauseNodeLost, event.CausePreempted, event.CauseRequested, event.CauseScaledDown} {
			free = free || strings.Contains(a.Text, c.String())
		}
		// Of those that start together, who ends because of another is not counted.
		free = free || s.together(a.Task) && strings.Contains(a.Text, event.CausePeerLost.String())
		if a.Kind == action.KindLost && !free {
			s.missed[a.Task]++
		}
	case action.Finish:
		s.finish = &a
		for _, id := range slices.Sorted(maps.Keys(s.boxes)) { // the cluster takes back what an ended job has
			s.end(s.boxes[id], event.CauseReleased)
			s.kill(s.boxes[id])
		}
	}
}

// stop ends a container's process, which takes up to grace.
func (s *sim) stop(container string, grace time.Duration) {
	reason, cause := s.job.Stopping(container)
	s.toAgent(container, nil, func(b *simBox) {
		if p := b.process; p != nil {
			p.stop = event.Stopping{Reason: reason, Cause: cause}
			if at := s.now.Add(grace); !p.stopped || at.Before(p.killed) {
				p.killed = at
			}
			p.stopped = true
			if s.now.Before(s.calm) && s.immortals.IntN(100) == 0 {
				s.sticks(p, grace)
			}
			s.after(s.upTo(max(grace, time.Millisecond)), func() {
				e := event.TaskExited{Signal: 15, Stopped: true}
				if p.failing {
					e.Error = simError
				}
				s.exit(p, e)
			})
		}
	})
}

// requested reports whether a person wants the process in a container restarted, if it has
// not ended.
func (s *sim) requested(container string) bool {
	p := s.boxes[container].process
	return p == nil || p.requested
}

// needsPeers reports whether workers need each other's processes after their work.
func (s *sim) needsPeers() bool { return s.linger && s.seed%8 == 1 }

// endLingering lets a process end that lingers. Now and again it fails at that.
func (s *sim) endLingering(a action.EndLingering) {
	for _, task := range slices.Sorted(maps.Keys(s.alive)) {
		if _, works := s.work[task]; works && s.job.Journal().PeersNeeded && !s.alive[task].lingers {
			s.fail("%s is let end, and %s is at work", a.Container, task)
		}
	}
	s.toAgent(a.Container, a, func(b *simBox) {
		p := b.process
		if p == nil {
			return
		}
		s.fromAgent(b, event.LetEnd{Container: b.id, Attempt: p.attempt})
		if !p.lingers || p.letEnd {
			return
		}
		p.letEnd = true
		s.after(s.upTo(time.Second), func() {
			e := event.TaskExited{}
			if s.chance(5) && s.alive[p.task] == p {
				e.Code = 1
				s.faults[p.task]++
			}
			s.exit(p, e)
		})
	})
}

// toAgent delivers a message to a connected agent, which does what it is told if it hears that.
func (s *sim) toAgent(container string, a action.Action, do func(*simBox)) {
	b := s.boxes[container]
	if b == nil || !b.connected {
		return
	}
	line := b.line
	if at := s.now.Add(s.upTo(20 * time.Millisecond)); at.After(b.told) { // one stream keeps their order
		b.told = at
	}
	s.after(b.told.Sub(s.now), func() {
		if b.agent && b.connected && b.line == line && s.hears(b, a) {
			do(b)
		}
	})
}

func (s *sim) fromAgent(b *simBox, e event.Event) {
	if b.agent && b.connected {
		s.tellAM(20*time.Millisecond, e) // one delay for all keeps their order
	}
}

func (s *sim) allocate(a action.Ask) {
	if !s.asked[a.Request] {
		return
	}
	delete(s.asked, a.Request)
	s.boxNo++
	b := &simBox{id: fmt.Sprintf("c%d", s.boxNo), node: s.someNode(), attempt: -1}
	s.boxes[b.id] = b
	s.step(event.Allocated{Request: a.Request, Container: b.id, Node: b.node})
	s.checkReopened(b)
	if !b.launched {
		s.fail("the ask %s was answered by %s, and the job did not want that any longer: it should have taken the ask back", a.Request, b.id)
	}
}

// someNode is one that is in service.
func (s *sim) someNode() string {
	for {
		if n := fmt.Sprintf("n%d", s.r.IntN(4)); s.closing[n].IsZero() {
			return n
		}
	}
}

func (s *sim) launch(b *simBox) {
	if b == nil || b.ended || b.launched {
		return
	}
	b.launched = true
	if s.chance(3) {
		b.ended = true
		s.tellAM(10*time.Millisecond, event.LaunchFailed{Container: b.id, Why: "no"})
		return
	}
	if s.chance(2) {
		return // it hangs
	}
	s.after(s.upTo(300*time.Millisecond), func() {
		if !b.ended {
			b.agent = true
			s.connect(b)
		}
	})
}

func (s *sim) connect(b *simBox) {
	if !b.agent || b.connected {
		return
	}
	if s.down {
		s.after(200*time.Millisecond, func() { s.connect(b) })
		return
	}
	b.connected, b.since = true, s.now
	b.master = s.epoch
	b.line++
	e := event.AgentConnected{Container: b.id, Host: b.node, PID: 1, Task: b.task, Port: b.port, PeerPort: b.peerPort, Attempt: b.attempt, Generation: b.gen}
	if b.process != nil {
		e.TaskPID, e.NeedsPeers = 2, s.needsPeers()
		if p := b.process; p.stopped {
			stop := p.stop
			stop.KillIn = p.killed.Sub(s.now)
			e.Stopping = &stop
			if p.immortal {
				s.checkStuck(p, max(0, stop.KillIn))
			}
		}
	} else if b.exited != nil {
		x := *b.exited
		e.Exited = &x
	}
	s.fromAgent(b, e)
	if p := b.process; p != nil {
		p.reports = 0
		if p.lingers {
			s.fromAgent(b, event.TaskLingers{Container: b.id, Attempt: p.attempt})
		}
		if p.steps > 0 { // its heartbeats say so
			s.fromAgent(b, event.StepsReported{Steps: []event.Step{{Task: b.task, Step: p.steps}}})
		}
	}
	if line := b.line; b.task == "" && s.prewarm > 0 {
		s.after(s.upTo(2*s.prewarm), func() {
			if b.line == line {
				s.fromAgent(b, event.Prewarmed{Container: b.id})
			}
		})
	}
}

func (s *sim) disconnect(b *simBox, back time.Duration) {
	if !b.agent || !b.connected || b.ended { // the last: it is about to be gone
		return
	}
	s.log("disconnect %s for %s", b.id, back)
	b.connected = false
	line := b.line
	noticed := 20 * time.Millisecond
	if back > 6*time.Second && s.r.IntN(2) == 0 { // nothing breaks, it is only silent
		noticed = s.upTo(5 * time.Second)
	}
	s.tellAM(noticed, event.AgentDisconnected{Container: b.id, Silent: noticed})
	if back < time.Minute {
		s.after(back, func() {
			if b.line == line {
				s.connect(b)
			}
		})
	}
	s.alone(b)
}

// lookEvery is how often an agent without a connection looks for a master.
const lookEvery = 500 * time.Millisecond

// alone has an agent keep its lease without a connection: it begins anew where the
// file that masters touch shows that there is none, or none that has begun to wait
// (package proto, lease.go), unless the agent is cut off from that, too.
func (s *sim) alone(b *simBox) {
	cut, line, end := s.r.IntN(2) == 0, b.line, s.now.Add(limits.Lease)
	seen, since := -1, time.Time{}
	named, last := b.master, time.Time{}
	left := s.down // for want of a master, and not of a network
	var look func()
	look = func() {
		if !b.agent || b.line != line || b.connected {
			return
		}
		switch {
		case cut:
		case s.announced != named:
			if !last.IsZero() && s.now.Before(end) {
				end = last.Add(limits.Lease)
			}
			seen, since = s.touches, s.now
		case s.touches != seen:
			seen, since = s.touches, s.now
		case s.now.Sub(since) >= proto.Untouched(limits.Lease) && s.now.Before(end):
			end = s.now.Add(limits.Lease)
		}
		named, last = s.announced, s.now
		noticed := proto.Untouched(limits.Lease) + 2*lookEvery // after a master's last sign of life
		if left && !cut && s.down && !s.now.Before(end) && s.now.Sub(s.touchedAt) > noticed {
			s.fail("the lease of %s has run out, and no application master serves", b.id)
		}
		if !s.now.Before(end) { // it stops its task and ends; nobody may hear of it
			s.log("the lease of %s has run out", b.id)
			s.kill(b)
			if s.r.IntN(2) == 0 {
				s.end(b, event.CauseOwnFault)
			}
			return
		}
		s.after(min(lookEvery, end.Sub(s.now)), look)
	}
	s.after(limits.Lease/4, look)
}

// touch shows that the application master lives, now and again not for a while.
func (s *sim) touch() {
	epoch := s.epoch
	every, until := proto.TouchInterval(limits.Lease), proto.TouchLimit(limits.Lease)
	var since, last time.Time
	var again func()
	again = func() {
		if s.epoch != epoch || s.finish != nil {
			return
		}
		if s.now.Sub(last) > until {
			since = s.now
		}
		last = s.now
		s.touches++
		s.touchedAt = s.now
		s.confirmed = event.LivenessConfirmed{Since: since, Until: s.now.Add(until)}
		s.step(s.confirmed)
		pause := every
		if s.chance(3) {
			pause = s.upTo(20 * time.Second)
		}
		s.after(pause, again)
	}
	again()
}

// kill ends a container's agent and process.
func (s *sim) kill(b *simBox) {
	if b.process != nil && s.alive[b.process.task] == b.process {
		s.spend(b.process)
		delete(s.alive, b.process.task)
	}
	b.process, b.agent, b.connected = nil, false, false
}

func (s *sim) end(b *simBox, cause event.Cause) {
	if b.ended {
		return
	}
	s.log("container %s ends: %s", b.id, cause)
	if cause == event.CausePreempted && b.connected { // as the ResourceManager says before the node hears of it
		b.ended = true
		s.tellAM(20*time.Millisecond+s.upTo(200*time.Millisecond), event.ContainerEnded{Container: b.id, Cause: cause, Exit: 137})
		s.after(time.Duration(s.immortals.IntN(1500))*time.Millisecond, func() {
			if b.connected {
				s.tellAM(20*time.Millisecond, event.AgentDisconnected{Container: b.id})
			}
			s.kill(b)
		})
		return
	}
	if b.connected {
		s.tellAM(20*time.Millisecond, event.AgentDisconnected{Container: b.id})
	}
	s.kill(b)
	b.ended = true
	s.tellAM(20*time.Millisecond+s.upTo(200*time.Millisecond), event.ContainerEnded{Container: b.id, Cause: cause, Exit: 137})
}

func (s *sim) run(b *simBox, a action.Start) {
	if b.process != nil {
		s.fail("%s was told to start attempt %d of %s, and runs attempt %d", b.id, a.Attempt, a.Task, b.attempt)
	}
	if b.task != a.Task {
		s.fail("%s was told to start %s, and hosts %s", b.id, a.Task, b.task)
	}
	if other := s.alive[a.Task]; other != nil {
		s.fail("two processes of %s: attempt %d in %s and attempt %d in %s", a.Task, other.attempt, other.box.id, a.Attempt, b.id)
	}
	p := &simProcess{task: a.Task, attempt: a.Attempt, generation: a.Generation, started: s.now, box: b}
	s.checkOrder(p)
	s.checkMeeting(p)
	b.process, b.attempt, b.gen, b.exited = p, a.Attempt, a.Generation, nil
	s.alive[a.Task] = p
	s.model.began(p, a.ConsistentServerState)
	s.saves.began(p, a.Absent)
	s.fromAgent(b, event.TaskStarted{Container: b.id, Attempt: a.Attempt, PID: 2})
	if s.needsPeers() {
		s.fromAgent(b, event.PeersNeeded{Container: b.id})
	}
	if left, ok := s.work[a.Task]; ok {
		var done func()
		done = func() {
			switch {
			case p.failing || s.alive[p.task] != p:
			case s.stuck():
				s.after(time.Second, done)
			case s.linger:
				p.lingers = true
				s.fromAgent(b, event.TaskLingers{Container: b.id, Attempt: p.attempt})
			default:
				s.exit(p, event.TaskExited{})
			}
		}
		s.after(left, done)
	}
}

// spend takes what a process has worked off what is left to do: it was saved.
func (s *sim) spend(p *simProcess) {
	if left, ok := s.work[p.task]; ok {
		s.work[p.task] = max(0, left-s.now.Sub(p.started))
	}
}

func (s *sim) exit(p *simProcess, e event.TaskExited) {
	if s.alive[p.task] != p || p.immortal {
		return
	}
	s.spend(p)
	delete(s.alive, p.task)
	p.box.process = nil
	e.Step = p.steps
	if e.Error == simError && p.steps == 0 {
		s.alike++
	}
	e.Container, e.Attempt, e.AtMS = p.box.id, p.attempt, s.now.UnixMilli()
	p.box.exited = &e
	s.fromAgent(p.box, e)
}
