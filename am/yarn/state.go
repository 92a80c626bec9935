package yarn

import (
	"slices"
	"time"

	"holdfast/am/core/action"
	hadoop "holdfast/internal/hadoop/yarn"
)

// state is what the driver knows. It must not be used concurrently.
type state struct {
	table     *table
	later     []pausedAsk
	held      map[string]*held // by container
	byID      map[hadoop.ContainerID]*held
	toRelease []hadoop.ContainerID // with the next heartbeat
	packed    map[string]string    // where the containers of roles that are packed were last, by role
	broken    bool

	allocatedAt        time.Time            // when an ask was last answered, or the first one came
	asksChangedAt      time.Time            // when an ask last came or was answered
	nodesChangedAt     time.Time            // when the RM last said that a node's state has changed
	suspectedAt        time.Time            // when a container was last suspected to have ended (Driver.Check)
	heartbeatNow       bool                 // the next heartbeat is due at once
	inspectedAt        time.Time            // when the cluster was last inspected
	inspecting         bool                 // an inspection is under way
	givenLeaving       bool                 // a container has come on a node that is taken out of service
	querying           bool                 // a query about the application is under way
	leaving            map[string]time.Time // hosts that were reported as being decommissioned, and when
	unhealthy          map[string]string    // the health reports of unhealthy hosts, by host
	waitingWhy         string               // of the last event.Waiting
	headroom           hadoop.Resource
	hasRoom            bool
	downSince          time.Time // since when the RM does not answer; zero: it does
	unknownErrorsSince time.Time // since when it answers with errors of an unknown kind; zero: it does not
	served             bool      // the RM has served this job, so that a failure may be temporary
	heartbeatAt        time.Time // of the last heartbeat
	refusedAt          time.Time // of the last heartbeat in which the RM refused an ask
	answeredAt         time.Time // when the RM last answered
	soleMasterAt       time.Time // when it was last certain that there is no other master
	successorCheckedAt time.Time // when a check for another master was last begun
	checkingSuccessor  bool      // such a check is under way
	unknownErrors      int       // the number of consecutive errors of an unknown kind
	failed             bool      // the last heartbeat, or registration, was not answered or was refused

	added func(hadoop.Container) // is told of each container that the job gets; nil: nobody is
}

// held is a container of the job.
type held struct {
	name             string
	container        hadoop.Container
	role             string    // whose image it is launched in; empty: the job's
	launching        bool      // startContainers is under way
	launched         bool      // startContainers has succeeded
	released         bool      // it is to end
	releaseAt        time.Time // when it was told to end
	releasedAtRM     bool      // it was released at the RM
	endReported      bool      // nothing more is to be reported about it
	preemptionWarned bool      // event.PreemptionWarned was emitted for it
}

func newState() *state {
	s := &state{table: newTable(), held: map[string]*held{}, packed: map[string]string{}, byID: map[hadoop.ContainerID]*held{}, leaving: map[string]time.Time{}, unhealthy: map[string]string{}}
	s.table.hostOf = func(container string) string {
		if h := s.held[container]; h != nil && !h.endReported {
			return h.container.Node.Host
		}
		return ""
	}
	return s
}

func (s *state) add(c hadoop.Container) *held {
	h := &held{name: c.ID.String(), container: c}
	s.held[h.name], s.byID[c.ID] = h, h
	if s.added != nil {
		s.added(c)
	}
	return h
}

func (s *state) remove(h *held) {
	delete(s.held, h.name)
	delete(s.byID, h.container.ID)
	s.table.ended()
}

// reported notes that nothing more is to be reported about a container.
func (s *state) reported(h *held) {
	h.endReported = true
	s.table.ended()
}

// releaseAtRM releases a container at the RM, with the next heartbeat.
func (s *state) releaseAtRM(h *held) {
	if !h.releasedAtRM {
		h.releasedAtRM = true
		s.toRelease = append(s.toRelease, h.container.ID)
	}
}

// resend makes the next heartbeat repeat all that the RM may not have received.
func (s *state) resend() {
	s.table.resend()
	s.toRelease = nil
	for _, h := range s.held {
		if h.releasedAtRM {
			s.toRelease = append(s.toRelease, h.container.ID)
		}
	}
}

func (s *state) setNodes(list []hadoop.Node, at time.Time) {
	if list != nil {
		s.inspectedAt = at
		s.table.setNodes(list, true)
	}
}

// pausedAsk is an ask that the scheduler is not told yet.
type pausedAsk struct {
	ask action.Ask
	due time.Time
}

// wake adds the asks whose pauses are over, and returns when the next one is; zero: there is
// none.
func (s *state) wake(now time.Time) time.Time {
	var next time.Time
	s.later = slices.DeleteFunc(s.later, func(p pausedAsk) bool {
		if !now.Before(p.due) {
			s.tell(p.ask, now)
			return true
		}
		if next.IsZero() || p.due.Before(next) {
			next = p.due
		}
		return false
	})
	return next
}

// withdraw takes an ask back that is not answered.
func (s *state) withdraw(request string) {
	s.table.remove(request)
	s.later = slices.DeleteFunc(s.later, func(p pausedAsk) bool { return p.ask.Request == request })
}

// ask adds an ask, once its pause is over.
func (s *state) ask(a action.Ask, now time.Time) {
	if a.Pause > 0 {
		s.later = append(s.later, pausedAsk{a, now.Add(a.Pause)})
		return
	}
	s.tell(a, now)
}

// tell adds an ask that the scheduler is told with the next heartbeat.
func (s *state) tell(a action.Ask, now time.Time) {
	if len(s.table.pending()) == 0 {
		s.allocatedAt = now
	}
	if now.Sub(s.inspectedAt) > inspectionValid {
		s.table.roomUnknown()
	}
	s.asksChangedAt = now
	s.table.add(a)
}

// leftWithin reports whether a node has been reported as being decommissioned, for less than
// some time, and is not known to be back.
func (s *state) leftWithin(now time.Time, limit time.Duration) bool {
	for _, at := range s.leaving {
		if now.Sub(at) < limit {
			return true
		}
	}
	return false
}

// launchedByNode returns the containers in which something runs.
func (s *state) launchedByNode() map[hadoop.NodeID][]hadoop.ContainerID {
	m := map[hadoop.NodeID][]hadoop.ContainerID{}
	for _, h := range s.held {
		if h.launched || h.launching {
			m[h.container.Node] = append(m[h.container.Node], h.container.ID)
		}
	}
	return m
}

// ending reports whether the end of a container has been awaited, for less than 30 s.
func (s *state) ending(now time.Time) bool {
	for _, h := range s.held {
		if h.released && now.Sub(h.releaseAt) < 30*time.Second {
			return true
		}
	}
	return false
}

// suspectFor is how long heartbeats are frequent after a container's agent was lost: the
// RM learns of an end within milliseconds.
const suspectFor = 3 * time.Second

// fastFor is how long heartbeats are sent at the shortest interval for the answer to an
// ask, or the end of a suspected container. Where there is room, the answer comes with
// the next heartbeat of a node, which by default is within a second
// (yarn.resourcemanager.nodemanagers.heartbeat-interval-ms).
const fastFor = 1500 * time.Millisecond

// inspectionInterval returns the time between two inspections while asks wait. It grows as that
// takes longer, and no node's state changes: the list of a large cluster's nodes is megabytes.
func (s *state) inspectionInterval(now time.Time) time.Duration {
	switch waited := min(now.Sub(s.asksChangedAt), now.Sub(s.nodesChangedAt)); {
	case waited < 30*time.Second:
		return inspectionInterval
	case waited < 5*time.Minute:
		return 5 * inspectionInterval
	}
	return 15 * inspectionInterval
}

// heartbeatInterval returns the time until the next heartbeat. It is short while something
// is awaited, and grows as that takes longer, so that the jobs of a full queue do not
// keep the RM busy.
func (s *state) heartbeatInterval(now time.Time) time.Duration {
	ending := s.ending(now) || now.Sub(s.suspectedAt) < suspectFor
	if len(s.table.pending()) == 0 && !ending {
		return time.Second
	}
	switch waited := now.Sub(s.asksChangedAt); {
	case waited < fastFor || now.Sub(s.suspectedAt) < fastFor:
		return 20 * time.Millisecond
	case waited < 30*time.Second || ending:
		return 60 * time.Millisecond
	case waited < 5*time.Minute:
		return 250 * time.Millisecond
	}
	return time.Second
}
