package yarn

import (
	"time"

	"holdfast/am/core"
	hadoop "holdfast/internal/hadoop/yarn"
)

// state is what the driver knows. It is touched by one goroutine at a time.
type state struct {
	table  *table
	held   map[string]*held // by container
	byID   map[hadoop.ContainerID]*held
	give   []hadoop.ContainerID // to be released with the next heartbeat
	broken bool

	answered  time.Time         // when an ask was answered last, or came after there was none
	moved     time.Time         // when an ask came or was answered last
	doubted   time.Time         // when a container was last thought to have ended
	hurry     bool              // the next heartbeat is due at once
	nodesAt   time.Time         // when the nodes were looked at
	looking   bool              // somebody looks at the cluster
	asking    bool              // somebody asks after the application
	leaving   map[string]bool   // hosts that are being decommissioned, as was told
	sick      map[string]string // hosts that are unhealthy, with what their NodeManagers report
	said      string            // the last Waiting
	headroom  hadoop.Resource
	hasRoom   bool
	downSince time.Time // the RM does not answer
	oddSince  time.Time // it answers with errors of an unknown kind
	served    bool      // it has served this job: what it cannot do now, it may be able to do again
	beatAt    time.Time // of the last heartbeat
	refusedAt time.Time // of the last one in which the RM refused an ask
	heard     time.Time // when it answered last
	sure      time.Time // when there was certainly no other master
	heirAt    time.Time // when another master was last looked for
	heirs     bool      // somebody looks for one
	odd       int       // errors in a row of an unknown kind
}

// held is a container that is ours.
type held struct {
	name      string
	container hadoop.Container
	launching bool // startContainers is under way
	launched  bool // and has succeeded
	released  bool // its end is wanted
	releaseAt time.Time
	given     bool // released at the RM
	quiet     bool // the AM has heard the last of it
	wanted    bool // the AM was told that the scheduler wants it back
}

func newState() *state {
	return &state{table: newTable(), held: map[string]*held{}, byID: map[hadoop.ContainerID]*held{}, leaving: map[string]bool{}, sick: map[string]string{}}
}

func (s *state) add(c hadoop.Container) *held {
	h := &held{name: c.ID.String(), container: c}
	s.held[h.name], s.byID[c.ID] = h, h
	return h
}

func (s *state) remove(h *held) {
	delete(s.held, h.name)
	delete(s.byID, h.container.ID)
}

// giveBack releases a container at the RM.
func (s *state) giveBack(h *held) {
	if !h.given {
		h.given = true
		s.give = append(s.give, h.container.ID)
	}
}

// again makes all that the RM may not have got be sent once more.
func (s *state) again() {
	s.table.resend()
	s.give = nil
	for _, h := range s.held {
		if h.given {
			s.give = append(s.give, h.container.ID)
		}
	}
}

func (s *state) setNodes(list []hadoop.Node, at time.Time) {
	if list != nil {
		s.nodesAt = at
		s.table.setNodes(list, true)
	}
}

// ask takes an ask up.
func (s *state) ask(a core.Ask, now time.Time) {
	if len(s.table.pending()) == 0 {
		s.answered = now
	}
	if now.Sub(s.nodesAt) > freshFor {
		s.table.stale()
	}
	s.moved = now
	s.table.add(a)
}

// launchedByNode are the containers in which something runs.
func (s *state) launchedByNode() map[hadoop.NodeID][]hadoop.ContainerID {
	m := map[hadoop.NodeID][]hadoop.ContainerID{}
	for _, h := range s.held {
		if h.launched || h.launching {
			m[h.container.Node] = append(m[h.container.Node], h.container.ID)
		}
	}
	return m
}

// ending tells whether the end of a container is awaited, and not for long.
func (s *state) ending(now time.Time) bool {
	for _, h := range s.held {
		if h.released && now.Sub(h.releaseAt) < 30*time.Second {
			return true
		}
	}
	return false
}

// doubtFor is how long the RM is asked often after a container's agent was
// lost: an end is known to the RM some milliseconds after it.
const doubtFor = 3 * time.Second

// keenFor is how long the answer to an ask, or a doubted container's end, is
// awaited at the shortest pace: where there is room, it comes with the next
// heartbeat of a node, which is each second unless YARN is configured otherwise
// (yarn.resourcemanager.nodemanagers.heartbeat-interval-ms).
const keenFor = 1500 * time.Millisecond

// pace is the time between heartbeats: short while something is awaited, longer
// as that takes longer, so that a full queue's jobs do not keep the RM busy.
func (s *state) pace(now time.Time) time.Duration {
	ending := s.ending(now) || now.Sub(s.doubted) < doubtFor
	if len(s.table.pending()) == 0 && !ending {
		return time.Second
	}
	switch waited := now.Sub(s.moved); {
	case waited < keenFor || now.Sub(s.doubted) < keenFor:
		return 20 * time.Millisecond
	case waited < 30*time.Second || ending:
		return 60 * time.Millisecond
	case waited < 5*time.Minute:
		return 250 * time.Millisecond
	}
	return time.Second
}
