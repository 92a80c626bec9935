package core_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/proto"
)

// simGroups is the first seed of those whose jobs are all of ranks that can do with fewer.
const simGroups = 1_000_000

// makeElastic has half of the groups of ranks do with fewer of them.
func (s *sim) makeElastic(r *proto.RoleSpec) {
	own := rand.New(rand.NewPCG(s.seed, 3)) // what goes wrong in a job does not depend on it
	if r.Loss != proto.LossRule_LOSS_RULE_ALL || own.IntN(2) == 0 && s.seed < simGroups {
		return
	}
	r.Min = 1 + own.Int32N(r.Count)
	if s.seed >= simGroups {
		r.Min = 1 + own.Int32N(r.Count-1)
	}
	if r.Count%2 == 0 && own.IntN(3) == 0 {
		r.Multiple, r.Min = 2, r.Min+r.Min%2
	}
	s.quorumWait = time.Duration(own.IntN(3)) * 10 * time.Second
	if s.seed >= simGroups && own.IntN(2) == 0 {
		s.quorumWait = -1 // it does not wait
	}
	if own.IntN(2) == 0 {
		s.grow = 5 * time.Second
	}
}

// planScaling has a person want other numbers of tasks of a role, in a third of the jobs in
// which that is possible, and in all from simGroups on.
func (s *sim) planScaling(r *proto.RoleSpec) {
	own := rand.New(rand.NewPCG(s.seed, 4))
	if rare := own.IntN(3) > 0; r.Min == 0 || r.Min == r.Count || rare && s.seed < simGroups {
		return
	}
	for range 1 + own.IntN(4) {
		s.after(time.Duration(own.IntN(100_000))*time.Millisecond, func() { s.scale(r, r.Min+own.Int32N(r.Count-r.Min+1)) })
	}
}

// scale has a person want a number of tasks of a role.
func (s *sim) scale(r *proto.RoleSpec, n int32) {
	if s.down || s.finish != nil {
		return
	}
	s.log("a person wants %d tasks of %s", n, r.Name)
	s.answers = 0
	s.step(event.ScaleRequested{Role: r.Name, Count: n, User: "alice"})
	if s.answers != 1 {
		s.fail("a request to scale %s to %d has %d answers", r.Name, n, s.answers)
	}
	if s.refused {
		return
	}
	s.scalings++
	// Tasks that are not wanted are gone once they have had their time to leave.
	epoch, scaling, within := s.epoch, s.scalings, limits.Save+2*max(limits.Save, limits.Stop)+2*limits.LeaseExpiry
	var look func()
	look = func() {
		switch {
		case s.finish != nil || s.scalings != scaling || s.saves.fixed(): // a checkpoint may need them
			return
		case s.epoch != epoch || s.down: // another application master knows it, too
			epoch = s.epoch
			s.after(within, look)
			return
		}
		if state, _ := s.job.State(); state == proto.JobState_JOB_STATE_STOPPING {
			return
		}
		works := int32(0)
		for _, t := range s.job.Tasks() {
			if t.Role == r && t.State != proto.TaskState_TASK_STATE_PARKED {
				works++
			}
		}
		if works != n {
			s.fail("a person wanted %d tasks of %s, and %d are not set aside", n, r.Name, works)
		}
	}
	s.after(within, look)
}

// checkGroup checks which members a generation has whose attempts are started.
func (s *sim) checkGroup(a action.Start) {
	r := s.roles[0]
	if r.Loss != proto.LossRule_LOSS_RULE_ALL {
		if a.Absent != nil {
			s.fail("%s is started in generation %d, which is without %v", a.Task, a.Generation, a.Absent)
		}
		return
	}
	if !s.together(a.Task) { // it may be told again while the others have not formed yet
		return
	}
	if before, known := s.groups[a.Generation]; known && !slices.Equal(before, a.Absent) {
		s.fail("%s is told that generation %d is without %v, and others that it is without %v", a.Task, a.Generation, a.Absent, before)
	}
	s.groups[a.Generation] = a.Absent
	// A task that restarts alone may start before it is known whose failure it was.
	if strings.HasPrefix(a.Task, r.Name+"-") && a.Generation > 0 && !s.explained[a.Generation] && !s.forgotten {
		s.fail("generation %d begins, and the event log does not say why", a.Generation)
	}
	n, least := r.Count-int32(len(a.Absent)), r.Count
	if r.Min > 0 {
		least = r.Min
	}
	if n < least || r.Multiple > 1 && n%r.Multiple != 0 {
		s.fail("generation %d works with %d of %d tasks, and needs %d, a multiple of %d", a.Generation, n, r.Count, least, r.Multiple)
	}
	if t, ok := s.job.Task(a.Task); !ok || slices.Contains(a.Absent, int32(t.Ordinal)) {
		s.fail("%s is started in generation %d, which is without it", a.Task, a.Generation)
	}
}

// simAddress is where a task listens, and how its peers know it.
type simAddress struct {
	box            string
	port, peerPort int
}

// simAddresses are those of the members of a generation, by task.
type simAddresses map[string]simAddress

// firstPort is the port by which peers know a task at first; 0: its agent chooses one.
func (s *sim) firstPort(r *proto.RoleSpec, ordinal int) int {
	if r.Loss == proto.LossRule_LOSS_RULE_ALL && r.Min > 0 {
		return 20000 + ordinal
	}
	return 0
}

// noteAddress notes where the others meet a member of a generation.
func (s *sim) noteAddress(a action.Start) {
	if s.addresses[a.Generation] == nil {
		s.addresses[a.Generation] = simAddresses{}
	}
	b := s.boxes[a.Container]
	s.addresses[a.Generation][a.Task] = simAddress{b.id, b.port, b.peerPort}
}

// changePort has the task in a container listen elsewhere.
func (s *sim) changePort(a action.ChangePort) {
	s.toAgent(a.Container, a, func(b *simBox) {
		if b.process != nil {
			s.fail("%s is told to listen on another port, and runs attempt %d of %s", b.id, b.attempt, b.task)
		}
		if b.peerPort != a.Port {
			b.peerPort, b.port = a.Port, a.Port
			if s.chance(10) { // it is taken
				s.ports++
				b.port = 40000 + s.ports
			}
		}
		e := event.AgentPrepared{Container: b.id, Port: b.port, PeerPort: b.peerPort}
		s.after(s.upTo(100*time.Millisecond), func() { s.fromAgent(b, e) })
	})
}

// checkMeeting checks that what is left of a generation before cannot meet a process that is
// about to run.
func (s *sim) checkMeeting(p *simProcess) {
	p.peers = s.addresses[p.generation]
	if !s.together(p.task) {
		return
	}
	now := simAddress{p.box.id, p.box.port, p.box.peerPort}
	for _, o := range s.alive {
		before, knows := o.peers[p.task]
		if knows && s.together(o.task) && o.generation < p.generation && (before == now || before.peerPort == now.peerPort) {
			s.fail("%s runs in generation %d, and knows where %s of generation %d is met: port %d in %s, known as %d", o.task, o.generation, p.task, p.generation, now.port, now.box, now.peerPort)
		}
	}
}
