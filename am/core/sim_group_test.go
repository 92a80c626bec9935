package core_test

import (
	"math/rand/v2"
	"slices"
	"time"

	"holdfast/am/core"
	"holdfast/proto"
)

// makeElastic has half of the groups of ranks do with fewer of them.
func (s *sim) makeElastic(r *proto.RoleSpec) {
	own := rand.New(rand.NewPCG(s.seed, 3)) // what goes wrong in a job does not depend on it
	if r.Loss != proto.LossRule_LOSS_RULE_ALL || own.IntN(2) == 0 {
		return
	}
	r.Min = 1 + own.Int32N(r.Count)
	if r.Count%2 == 0 && own.IntN(3) == 0 {
		r.Multiple, r.Min = 2, r.Min+r.Min%2
	}
	s.quorumWait = time.Duration(own.IntN(3)) * 10 * time.Second
	if own.IntN(2) == 0 {
		s.grow = 5 * time.Second
	}
	s.after(5*time.Second, s.sealRanks)
}

// planScaling has a person want other numbers of tasks of a role, in a third of the jobs in
// which that is possible.
func (s *sim) planScaling(r *proto.RoleSpec) {
	own := rand.New(rand.NewPCG(s.seed, 4))
	if r.Min == 0 || r.Min == r.Count || own.IntN(3) > 0 {
		return
	}
	s.wanted = r.Count
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
	s.step(core.ScaleRequested{Role: r.Name, Count: n, User: "alice"})
	if s.answers != 1 {
		s.fail("a request to scale %s to %d has %d answers", r.Name, n, s.answers)
	}
	if s.refused {
		return
	}
	s.wanted = n
	// Tasks that are not wanted are gone once they have had their time to leave.
	epoch, within := s.epoch, limits.Save+2*max(limits.Save, limits.Stop)+2*limits.LeaseExpiry
	var look func()
	look = func() {
		switch {
		case s.finish != nil || s.wanted != n:
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

// sealRanks completes checkpoints of ranks, as long as all members of a generation work.
func (s *sim) sealRanks() {
	if s.finish != nil {
		return
	}
	s.after(5*time.Second, s.sealRanks)
	if !s.down && !s.stuck() && len(s.alive) > 0 {
		s.step(core.CheckpointSealed{FixedWorld: s.seed%9 == 0})
	}
}

// checkGroup checks which members a generation has whose attempts are started.
func (s *sim) checkGroup(a core.Start) {
	r := s.roles[0]
	if r.Loss != proto.LossRule_LOSS_RULE_ALL {
		if a.Absent != nil {
			s.fail("%s is started in generation %d, which is without %v", a.Task, a.Generation, a.Absent)
		}
		return
	}
	if before, known := s.groups[a.Generation]; known && !slices.Equal(before, a.Absent) {
		s.fail("%s is told that generation %d is without %v, and others that it is without %v", a.Task, a.Generation, a.Absent, before)
	}
	s.groups[a.Generation] = a.Absent
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
