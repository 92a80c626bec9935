package core_test

import (
	"maps"
	"slices"
	"strings"
	"time"

	"holdfast/am/core"
	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/core/journal"
	"holdfast/proto"
)

// restartAM kills the application master. Agents find the next one.
func (s *sim) restartAM() {
	s.log("the application master is killed")
	if s.saved.Partial || s.now.Sub(s.removedAt) < time.Second || s.now.Before(s.held) { // the journal may not have it
		s.excuseNone()
	}
	spares := s.idleSpares()
	if s.now.Before(s.held) { // what was counted since is lost
		s.forgotten, s.held, s.queued = true, s.now, nil
		s.scalings++
		spares = nil
	}
	s.epoch++
	s.whole, s.quiet = time.Time{}, false
	clear(s.found)
	s.down, s.died = true, s.now
	clear(s.told)
	epoch := s.epoch
	if s.sweeps {
		for _, id := range slices.Sorted(maps.Keys(s.boxes)) {
			s.end(s.boxes[id], event.CauseReleased)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.boxes)) {
		if b := s.boxes[id]; b.connected {
			b.connected = false
			s.alone(b)
		}
	}
	clear(s.asked)
	away := 500*time.Millisecond + s.upTo(4*time.Second)
	if s.r.IntN(3) == 0 { // its node is gone, which the cluster has to miss first
		away = s.upTo(time.Minute)
	}
	starts := time.Duration(0) // once it has announced itself
	if s.r.IntN(3) == 0 {
		starts = s.upTo(30 * time.Second)
	}
	s.after(away, func() {
		if s.epoch == epoch {
			s.announced = epoch
		}
	})
	s.after(away+starts, func() {
		if s.epoch != epoch {
			return
		}
		s.down = false
		s.job = s.newJob()
		if journal := s.r.IntN(4); journal == 0 {
			s.log("the journal is lost")
			s.forget()
			spares = nil
		} else {
			if s.saved.Partial {
				s.excuseStall(s.saved)
			}
			s.job.Resume(s.saved)
		}
		e := event.Recovered{Attempt: epoch + 1, Containers: map[string]string{}}
		gone := "" // the node on which the one before was
		if s.chance(50) {
			gone = s.someNode()
		}
		for _, id := range slices.Sorted(maps.Keys(s.boxes)) {
			b := s.boxes[id]
			b.excused = b.excused || b.node == gone || s.chance(5) // it may have forgotten one
			if !b.ended && !b.excused {
				e.Containers[id] = b.node
			}
		}
		s.step(e)
		s.saves.takenOver()
		s.checkSpares(spares, e)
		s.touch()
		for _, node := range slices.Sorted(maps.Keys(s.closing)) { // as the cluster's list of nodes says
			s.tellAM(s.upTo(time.Second), event.NodeDecommissioning{Node: node, Within: max(time.Millisecond, s.closing[node].Sub(s.now))})
		}
		for _, id := range slices.Sorted(maps.Keys(s.boxes)) {
			switch b := s.boxes[id]; {
			case b.ended && s.sweeps: // of these, no other master is told
			case b.ended:
				s.tellAM(s.upTo(200*time.Millisecond), event.ContainerEnded{Container: id, Cause: event.CauseOwnFault, Exit: 137})
			case b.excused && s.chance(50): // or it is not told at all
				s.tellAM(s.upTo(time.Second), event.ContainerEnded{Container: id, Cause: event.CauseNodeLost})
			case b.excused && (s.seed+uint64(b.line))%2 == 0:
				s.findAgain(b)
			}
		}
		for _, id := range slices.Sorted(maps.Keys(s.boxes)) {
			b := s.boxes[id]
			s.after(s.upTo(500*time.Millisecond), func() {
				s.connect(b)
				if b.excused {
					s.checkOrphan(b)
				}
			})
		}
	})
}

// idleSpares are the spares for any task that the job has had for a while, which the
// journal says.
func (s *sim) idleSpares() []string {
	var list []string
	if s.down {
		return nil
	}
	for _, k := range s.job.Spares() {
		if b := s.boxes[k.Container]; k.For == "" && k.AgentPID != 0 && s.now.Sub(b.since) > time.Second {
			list = append(list, k.Container)
		}
	}
	return list
}

// checkSpares sees that the spares that a new master was handed are spares still.
func (s *sim) checkSpares(spares []string, e event.Recovered) {
	if state, _ := s.job.State(); state == proto.JobState_JOB_STATE_STOPPING || s.finish != nil {
		return
	}
	there := s.job.Spares()
	for _, c := range spares {
		if e.Containers[c] != "" && !slices.ContainsFunc(there, func(k core.Spare) bool { return k.Container == c }) {
			s.fail("the spare container %s was handed to the new application master, which has no use for it", c)
		}
	}
}

// excuseNone lets tasks be charged with what they failed by through no fault of their
// own: agents tell of exits, and not why.
func (s *sim) excuseNone() {
	for task, n := range s.innocent {
		s.faults[task] += n
	}
	clear(s.innocent)
}

// stepsKnown reports whether an application master can know that the job has made steps.
func (s *sim) stepsKnown(known journal.Journal) bool {
	for _, p := range s.alive {
		if p.steps > 0 && p.box.agent {
			return true
		}
	}
	return slices.ContainsFunc(known.Tasks, func(k journal.TaskRecord) bool { return k.Step > 0 })
}

// excuseStall ends a stall where an application master that knows only part of the journal
// cannot know that steps are due.
func (s *sim) excuseStall(known journal.Journal) {
	if s.stepsKnown(known) {
		return
	}
	s.doomed = false
	for _, p := range s.alive {
		p.hangs = false
	}
}

// forget has the job taken over without a journal, and now and then without
// anything else. What nobody can know is not asked of it: that it counts on
// from numbers that were given a moment ago to what is gone already.
func (s *sim) forget() {
	s.forgotten = true
	s.forgets++
	clear(s.groups)
	clear(s.addresses) // the maps themselves are what processes know
	s.scalings++       // the wish is forgotten
	s.excuseNone()
	clear(s.fromServices)
	known := s.shown
	switch {
	case s.saved.Partial: // nothing was learned since
		known = s.saved
	case s.r.IntN(3) == 0:
		known = journal.Journal{}
	}
	known.Partial = true
	s.excuseStall(known)
	for _, task := range slices.Sorted(maps.Keys(s.alive)) { // only their agents know that these are to end
		if p := s.alive[task]; p.stopped && s.immortals.IntN(4) == 0 {
			s.log("the process of %s does not end", task)
			p.immortal = true
		}
	}
	s.job.Resume(known)
	for task, p := range s.newest {
		s.unsure[task] = known.Generation < p.generation || !slices.ContainsFunc(known.Tasks, func(k journal.TaskRecord) bool {
			return k.Name == task && k.Attempt >= p.attempt
		})
	}
}

// findAgain has YARN tell an application master of a container that was not handed over to it,
// as a ResourceManager does that was lost with the one before, once the node is back. Its task
// stays there, unless it is on its way out.
func (s *sim) findAgain(b *simBox) {
	epoch := s.epoch
	s.after(5*time.Second, func() {
		if s.epoch != epoch || s.down || b.ended || s.finish != nil {
			return
		}
		t, _ := s.job.Hosted(b.id)
		stays := !s.leaving(b)
		b.excused, b.found = false, s.now
		s.step(event.ContainerFound{Container: b.id, Node: b.node})
		if stays {
			s.found[t.Name] = true
		}
	})
}

// checkFound checks that no task leaves a container because YARN had lost it, and has told of
// it since.
func (s *sim) checkFound(a action.Record) {
	if a.Kind != action.KindLost {
		return
	}
	if s.found[a.Task] && strings.Contains(a.Text, "did not hand its container over") {
		s.fail("%s leaves its container, which YARN has found again: %s", a.Task, a.Text)
	}
	delete(s.found, a.Task)
}
