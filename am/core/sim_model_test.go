package core_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"holdfast/am/core/event"
	"holdfast/proto"
)

// simModel is what services hold in a simulated job, as parameter servers hold the
// model. The chief, who may be the first worker, puts a checkpoint on them, one after
// the other, whenever its session begins or a service has begun anew, unless it is
// told to go on from what they hold. While that is of one piece, it saves. What must
// hold: no chief is told to go on from pieces of several checkpoints.
type simModel struct {
	s        *sim
	r        *rand.Rand // its own: what goes wrong in a job does not depend on it
	sessions int
}

// chief is the task's name.
func (m *simModel) chief() string {
	for _, r := range m.s.roles {
		if r.Name == "chief" {
			return "chief-0"
		}
	}
	return "worker-0"
}

// simShare is a process's part in it.
type simShare struct {
	piece        int  // the session that put there what it holds; 0: nothing
	session      int  // of a chief
	fromServices bool // a chief's first session is to go on from what services hold
}

// began takes in that a process runs.
func (m *simModel) began(p *simProcess, fromServices bool) {
	p.share.fromServices = fromServices
	services, all := m.services()
	c := m.s.alive[m.chief()]
	if c == nil || !all || p != c && !slices.Contains(services, p) {
		return
	}
	m.sessions++
	session := m.sessions
	c.share.session = session
	fromServices, c.share.fromServices = c.share.fromServices, false
	pieces := piecesOf(services)
	if fromServices && !pieces[0] { // the task looks itself whether anything is missing
		if len(pieces) > 1 {
			m.s.fail("the chief is told to go on from what services hold, which is of %d checkpoints", len(pieces))
		}
		m.save(c, session, services[0].share.piece)
		return
	}
	for _, o := range services {
		m.after(5*time.Second, c, session, func() { o.share.piece = session })
	}
	m.save(c, session, session)
}

// save completes checkpoints as long as a session goes on, once services hold the
// piece on which it builds. What was read from them is written also if one is lost
// meanwhile, and told a while later, before another one is.
func (m *simModel) save(c *simProcess, session, piece int) {
	const told = 4 * time.Second
	m.after(4*time.Second, c, session, func() {
		services, all := m.services()
		if pieces := piecesOf(services); all && len(pieces) == 1 && pieces[piece] {
			m.s.after(time.Duration(m.r.Int64N(int64(told))), func() {
				if !m.s.down {
					m.s.step(event.CheckpointSealed{})
				}
			})
		}
		m.s.after(told, func() { m.save(c, session, piece) })
	})
}

// after does something within a time, if the session goes on until then.
func (m *simModel) after(within time.Duration, c *simProcess, session int, do func()) {
	m.s.after(time.Duration(m.r.Int64N(int64(within))), func() {
		if m.s.alive[m.chief()] == c && c.share.session == session {
			do()
		}
	})
}

// services are those that run, and whether all do.
func (m *simModel) services() (running []*simProcess, all bool) {
	count := 0
	for _, r := range m.s.roles {
		if r.Completion != proto.CompletionRule_COMPLETION_RULE_SERVICE {
			continue
		}
		for i := range int(r.Count) {
			count++
			if p := m.s.alive[fmt.Sprintf("%s-%d", r.Name, i)]; p != nil {
				running = append(running, p)
			}
		}
	}
	return running, count > 0 && len(running) == count
}

// piecesOf is what services hold, each once.
func piecesOf(services []*simProcess) map[int]bool {
	pieces := map[int]bool{}
	for _, p := range services {
		pieces[p.share.piece] = true
	}
	return pieces
}
