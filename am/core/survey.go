package core

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"holdfast/proto"
)

// survey is how an application master takes over without the journal of the
// one before it: it listens to the agents until all that there can be have
// spoken, or the leases of those that have not must have ended. What they say
// makes a journal, and from there on all goes the way of one that was read.
// Until then nothing is asked for, started or stopped.
type survey struct {
	known Journal // from other sources: may be out of date, and empty
	first Recovered
	until time.Time
	heard []heard // in order, to be taken in afterwards

	silent map[string]bool            // containers of first of which nothing was heard
	said   map[string]*AgentConnected // by container, the last
	ended  map[string]bool            // containers in which nothing can run
}

type heard struct {
	at    time.Time
	event Event
}

func newSurvey(known Journal) *survey {
	return &survey{known: known, silent: map[string]bool{}, said: map[string]*AgentConnected{}, ended: map[string]bool{}}
}

// listen takes in an event of the survey, and ends it once it may.
func (j *Job) listen(e Event) {
	s := j.survey
	over := false
	switch e := e.(type) {
	case Recovered:
		s.first, s.until = e, j.now.Add(j.limits.LeaseExpiry)
		j.waiting = "for what the agents report to the new application master"
		for c := range e.Containers {
			s.silent[c] = true
		}
		j.record(nil, KindNote, "where the tasks are is not known any longer: application master attempt %d waits for what the agents in %d containers report, %s at most", e.Attempt, len(e.Containers), j.limits.LeaseExpiry)
	case AgentConnected:
		delete(s.silent, e.Container)
		s.said[e.Container] = &e
		s.learn(e)
	case ContainerFound:
		s.first.Containers[e.Container] = e.Node
		if s.said[e.Container] == nil {
			s.silent[e.Container] = true
		}
	case ContainerEnded:
		if e.Cause != CauseNodeLost { // else what runs there may go on
			delete(s.silent, e.Container)
			s.ended[e.Container] = true
		}
	case Kill, Broken:
		over = true
	}
	if _, first := e.(Recovered); !first {
		s.heard = append(s.heard, heard{j.now, e})
	}
	if over || !s.until.After(j.now) || len(s.silent) == 0 && j.allHeard() {
		j.survey, j.waiting = nil, ""
		j.conclude(s)
	}
}

// learn keeps the numbers that an agent tells, for another master if this one
// is lost, too.
func (s *survey) learn(e AgentConnected) {
	s.known.Generation = max(s.known.Generation, e.Generation)
	if e.Attempt < 0 {
		return
	}
	i := slices.IndexFunc(s.known.Tasks, func(k TaskRecord) bool { return k.Name == e.Task })
	if i < 0 {
		i = len(s.known.Tasks)
		s.known.Tasks = append(s.known.Tasks, TaskRecord{Name: e.Task, Attempt: -1})
	}
	k := &s.known.Tasks[i]
	k.Port = cmp.Or(k.Port, e.PeerPort)
	if e.Attempt >= k.Attempt {
		k.Attempt, k.Container = e.Attempt, e.Container
	}
	if e.TaskPID != 0 {
		k.State = proto.TaskState_TASK_STATE_RUNNING
	}
}

// allHeard tells whether every task that can be anywhere has been reported.
func (j *Job) allHeard() bool {
	newest, known := j.survey.newest(), j.survey.records()
	missing, begun := false, len(known) < len(j.tasks)
	for _, t := range j.tasks {
		k, ok := known[t.Name]
		// An attempt that its agent has run began after older ones had ended
		// elsewhere; where none has, an older one may still run.
		e := newest[t.Name]
		here := j.survey.kept(e) && e.Attempt >= 0
		missing = missing || !here && !(ok && done(k.State))
		begun = begun || k.Attempt >= 0
	}
	return !missing || !begun
}

func (s *survey) records() map[string]TaskRecord {
	m := map[string]TaskRecord{}
	for _, k := range s.known.Tasks {
		m[k.Name] = k
	}
	return m
}

func done(s proto.TaskState) bool {
	return s == proto.TaskState_TASK_STATE_SUCCEEDED || s == proto.TaskState_TASK_STATE_FAILED
}

// newest finds for each task the agent with its newest attempt. An agent whose
// attempt is older than what is known to have been elsewhere has been given up.
func (s *survey) newest() map[string]*AgentConnected {
	known := s.records()
	newest := map[string]*AgentConnected{}
	for _, c := range slices.Sorted(maps.Keys(s.said)) {
		e := s.said[c]
		if k, ok := known[e.Task]; e.Task == "" || ok && k.Attempt > e.Attempt && k.Container != c {
			continue
		}
		if o := newest[e.Task]; o == nil || o.Attempt < e.Attempt {
			newest[e.Task] = e
		}
	}
	return newest
}

// kept tells whether the agent's container is there and is the job's.
func (s *survey) kept(e *AgentConnected) bool {
	if e == nil {
		return false
	}
	_, kept := s.first.Containers[e.Container]
	return kept && !s.ended[e.Container]
}

// conclude makes a journal of what was heard and goes on from there.
func (j *Job) conclude(s *survey) {
	newest, known := s.newest(), s.records()
	r := s.known
	r.Tasks, r.Partial, r.GangStart = nil, false, true
	r.Spares = slices.DeleteFunc(slices.Clone(r.Spares), func(k SpareRecord) bool {
		e := s.said[k.Container] // it may have been given to a task since
		return !s.kept(e) || e.Task != ""
	})
	var lost []*Task // that have run, and of which nobody knows
	apart := false   // tasks that run together only do not
	for _, t := range j.tasks {
		k, ok := known[t.Name]
		if !ok {
			k = TaskRecord{Name: t.Name, Attempt: -1}
		}
		k.PID, k.StoreDirty, k.AwaitingExpiry = 0, true, map[string]int64{}
		c := newest[t.Name]
		if c != nil {
			k.Attempt, k.Port = max(k.Attempt, c.Attempt), cmp.Or(k.Port, c.PeerPort)
		}
		k.Port = cmp.Or(k.Port, t.Port)
		behind := !done(k.State)
		switch {
		case s.kept(c):
			k.Container = c.Container
			k.State = proto.TaskState_TASK_STATE_PREPARING
			if k.Attempt >= 0 && c.Attempt == k.Attempt { // else it never heard of that one
				k.State, k.StoreDirty = proto.TaskState_TASK_STATE_RUNNING, false
				behind = c.Generation < r.Generation || c.Exited != nil && c.Exited.Stopped
			}
		case !done(k.State):
			k.State, k.Container = proto.TaskState_TASK_STATE_WAITING, ""
			if k.Attempt >= 0 {
				lost = append(lost, t)
			}
		}
		r.GangStart = r.GangStart && k.Attempt < 0
		apart = apart || behind && t.together()
		r.Tasks = append(r.Tasks, k)
	}
	s.drain(&r, newest, j.limits.LeaseExpiry)
	stray := r.stray()
	if apart && !r.GangStart || stray != "" {
		r.Generation++
		r.GangStart = true
		for i, t := range j.tasks { // they are told when their agents are back
			together := stray != "" || t.together()
			r.Tasks[i].Stopping = together && r.Tasks[i].State == proto.TaskState_TASK_STATE_RUNNING
		}
	}
	j.Resume(r)
	j.recovered(s.first)
	j.noteUnknown()
	for _, t := range lost {
		if !j.ending() {
			t.Why = "no agent has reported it to the new application master"
			j.noteFault(t, FaultLost, 0)
			j.lost(t, CauseAgentLost)
		}
	}
	if stray != "" && !j.ending() {
		j.record(nil, KindNote, "generation %d: all tasks start again, since the port under which they know %s is lost", j.generation, stray)
	}
	for _, h := range s.heard {
		if l, ok := h.event.(AgentDisconnected); ok {
			l.Silent += j.now.Sub(h.at)
			h.event = l
		}
		j.handle(h.event)
	}
}

// noteUnknown notes the faults of tasks of which nothing is known but that they have run, as
// all have that restart together once one has: what they ended by is lost.
func (j *Job) noteUnknown() {
	if !j.any(func(t *Task) bool { return t.together() && t.Attempt >= 0 }) {
		return
	}
	for _, t := range j.tasks {
		if t.Attempt < 0 {
			j.noteFault(t, FaultLost, 0)
		}
	}
}

// drain notes the agents of tasks that others have been given to: what they
// run may go on for a while.
func (s *survey) drain(r *Journal, newest map[string]*AgentConnected, wait time.Duration) {
	index := map[string]int{}
	for i, k := range r.Tasks {
		index[k.Name] = i
	}
	for c, e := range s.said {
		if i, ok := index[e.Task]; ok && !s.ended[c] && !(e == newest[e.Task] && s.kept(e)) {
			r.Tasks[i].AwaitingExpiry[c] = s.lastWord(c).Add(wait).UnixMilli()
		}
	}
}

func (s *survey) lastWord(container string) time.Time {
	for _, h := range slices.Backward(s.heard) {
		if a, ok := h.event.(AgentConnected); ok && a.Container == container {
			return h.at
		}
	}
	return s.until
}

// stray names a task that is nowhere and whose port is not known, while others
// run that know it; "" if there is none.
func (r Journal) stray() string {
	if r.GangStart {
		return ""
	}
	for _, k := range r.Tasks {
		if k.State == proto.TaskState_TASK_STATE_WAITING && k.Port == 0 {
			return k.Name
		}
	}
	return ""
}
