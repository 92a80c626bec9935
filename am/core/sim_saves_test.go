package core_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/proto"
)

// simSaves is what ranks of a simulated job save together: each writes its part of a step
// once all parts of the step before are there. Those that work begin from the newest complete
// step. What must hold: what a rank of one generation writes is never mixed with what one of
// another has written, what is left half written is put right before others begin, and nothing
// changes any longer under who has begun from it.
type simSaves struct {
	s      *sim
	r      *rand.Rand // its own: what goes wrong in a job does not depend on it
	steps  map[int]*simSave
	newest int // of the complete ones; 0: none
	worlds []*simWorld
	torn   *simWorld // has left a step half written, which was not put right since
	// told is when the present application master was told first that checkpoints can be read
	// by as many ranks only as have saved them, where that is so; zero: it was not. How many
	// those were is in the journal alone.
	told time.Time
}

// simSave is a step in the store.
type simSave struct {
	parts    map[int]*simWorld // by rank
	complete bool
}

// simWorld are the ranks of a generation.
type simWorld struct {
	generation, forgets int
	size, begins        int // number of ranks; the step from which they have begun
	saved               int // the last that they have saved together
	absent              []int32
}

// simSaveEvery is how often ranks save.
const simSaveEvery = 5 * time.Second

func newSimSaves(s *sim) *simSaves {
	return &simSaves{s: s, r: rand.New(rand.NewPCG(s.seed, 5)), steps: map[int]*simSave{}}
}

// saves reports whether a task is one of those that save together.
func (v *simSaves) saves(task string) bool { return v.s.together(task) }

// began takes in that a process runs.
func (v *simSaves) began(p *simProcess, absent []int32) {
	if !v.saves(p.task) {
		return
	}
	t, _ := v.s.job.Task(p.task)
	p.rank = t.Ordinal
	for _, a := range absent {
		if int(a) < t.Ordinal {
			p.rank--
		}
	}
	i := slices.IndexFunc(v.worlds, func(w *simWorld) bool { return w.generation == p.generation && w.forgets == v.s.forgets })
	if i < 0 {
		i = len(v.worlds)
		w := &simWorld{generation: p.generation, forgets: v.s.forgets, size: int(v.s.roles[0].Count) - len(absent), begins: v.newest, saved: v.newest, absent: absent}
		if i > 0 && !slices.Equal(v.worlds[i-1].absent, absent) {
			v.s.resizes++
		}
		v.worlds = append(v.worlds, w)
		if v.torn != nil {
			v.s.fail("generation %d begins, and what generation %d has left half written was not put right", p.generation, v.torn.generation)
		}
		known := !v.s.forgotten && !v.told.IsZero() && v.s.now.Sub(v.told) > time.Second
		// One that began before that was known may be too many or too few already.
		if n := v.newest; n > 0 && v.fixed() && known && i > 0 && v.worlds[i-1].size == v.steps[n].parts[0].size && v.steps[n].parts[0].size != w.size {
			v.s.fail("generation %d has %d ranks and goes on from step %d, which %d have saved, and only as many can read", p.generation, w.size, n, v.steps[n].parts[0].size)
		}
	}
	p.world = v.worlds[i]
	if p.world.saved == p.world.begins && v.newest != p.world.begins {
		v.s.fail("%s of generation %d finds step %d, and the others have begun from %d", p.task, p.generation, v.newest, p.world.begins)
	}
}

// save has all ranks save that can, again and again.
func (v *simSaves) save() {
	if v.s.finish != nil {
		return
	}
	v.s.after(simSaveEvery, v.save)
	if v.s.stuck() {
		return
	}
	for _, task := range slices.Sorted(maps.Keys(v.s.alive)) {
		if p := v.s.alive[task]; p.world != nil && !p.lingers {
			step := p.world.saved + 1
			v.s.after(time.Duration(v.r.Int64N(int64(2*time.Second))), func() {
				if v.s.alive[task] == p && p.world.saved+1 == step {
					v.write(p, step)
				}
			})
		}
	}
}

// write has a process write its part of a step, unless it is fenced off.
func (v *simSaves) write(p *simProcess, step int) {
	if v.s.fenced[p.box.id] {
		return
	}
	if last := v.worlds[len(v.worlds)-1]; last != p.world {
		v.s.fail("%s of generation %d saves step %d, and generation %d is at work", p.task, p.generation, step, last.generation)
	}
	save := v.steps[step]
	if save == nil {
		save = &simSave{parts: map[int]*simWorld{}}
		v.steps[step] = save
	}
	if save.complete {
		v.s.fail("%s of generation %d writes to step %d, which is complete", p.task, p.generation, step)
	}
	save.parts[p.rank] = p.world
	v.torn = p.world
	for rank := range p.world.size {
		if save.parts[rank] != p.world { // what others have left is replaced
			return
		}
	}
	save.complete, v.newest, p.world.saved, v.torn = true, step, step, nil
	v.s.log("step %d is saved by generation %d", step, p.generation)
	v.s.after(time.Duration(v.r.Int64N(int64(time.Second))), v.tell)
}

// fixed reports whether as many ranks only can read a checkpoint as have saved it.
func (v *simSaves) fixed() bool { return v.s.seed%9 == 0 }

// tell tells the application master that a checkpoint is complete.
func (v *simSaves) tell() {
	if !v.s.down && v.s.finish == nil && v.newest > 0 {
		v.report(event.CheckpointSealed{FixedWorld: v.fixed()})
	}
}

// found tells an application master that has taken over of the newest checkpoint.
func (v *simSaves) found() {
	if !v.s.down && v.s.finish == nil && v.newest > 0 {
		v.report(event.CheckpointFound{FixedWorld: v.fixed()})
	}
}

func (v *simSaves) report(e event.Event) {
	v.s.step(e)
	if v.told.IsZero() && !v.s.job.Journal().Partial {
		v.told = v.s.now
	}
}

// prepared has the store made safe to start from.
func (v *simSaves) prepared(a action.PrepareStore) {
	for _, c := range a.Fenced {
		v.s.fenced[c] = true
	}
	v.torn = nil
}

// takenOver has a new application master find what there is.
func (v *simSaves) takenOver() {
	v.told = time.Time{}
	if v.s.roles[0].Loss == proto.LossRule_LOSS_RULE_ALL {
		v.s.after(time.Duration(v.r.Int64N(int64(2*time.Second))), v.found)
	}
}
