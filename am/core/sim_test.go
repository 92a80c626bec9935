package core_test

import (
	"cmp"
	"container/heap"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/am/core"
	"holdfast/proto"
)

var (
	seeds = flag.Int("seeds", 10000, "how many jobs TestSimulation runs")
	first = flag.Uint64("first", 1, "the seed of the first of them")
	seed  = flag.Uint64("seed", 0, "run only the job of this seed, and tell its story")
)

// limits are those of a job that names none.
var limits = core.New(nil, 0, 0, core.Limits{}).Limits()

// sim is a model of a cluster in virtual time, in which things go wrong at
// random: processes and containers die, agents lose their connection for a
// while or for good, containers fail to start, the application master itself is
// killed and another takes over. It checks what must hold whatever happens:
//
//   - a task never has two live processes;
//   - a node that is taken out of service in time, with all agents there connected,
//     is empty by then, and so is a container that is lost to YARN alone;
//   - what runs in one that the scheduler takes back has been told to stop before that, also
//     where another application master is there by then;
//   - attempts of a task count up, and so do the generations of tasks that
//     run together only, of which no two are ever at work at the same time;
//   - nothing is told to an agent of another task;
//   - no container is left that the job does not know of, nor an agent that is
//     connected, in one that is lost to YARN alone;
//   - spares are handed from one application master to the next, and are never more than
//     wanted;
//   - what parameter servers hold is built on only where it is of one piece;
//   - nothing is asked of the cluster any longer that the job does not want;
//   - a task is charged only with failures that were its own, also where others, that
//     end because of it, are heard first, and the job ends
//     when one has used up its failures or losses, and not before;
//   - what is restarted because no steps are made is restarted only then, and not while a
//     task is busy, for a while;
//   - the job ends, also where it makes no steps any longer, and succeeds unless it may not, once nothing goes wrong;
//   - nothing is left when it has ended.
type sim struct {
	t     *testing.T
	seed  uint64
	r     *rand.Rand
	now   time.Time
	queue timers
	order int

	rehearse         time.Duration  // that stand-ins get
	sweeps           bool           // the cluster ends all containers with the application master
	restarts, losses int            // budgets of a task
	faults           map[string]int // task -> how often it was at fault itself
	innocent         map[string]int // and how often it failed by another's loss
	ousted           time.Time      // when a container's directory was removed last
	missed           map[string]int // task -> losses told that count
	forgotten        bool           // a journal was lost, and what it counted
	forgets          int            // how many were
	died             time.Time      // an application master, last

	model     simModel
	roles     []*proto.RoleSpec
	spares    int
	job       *core.Job
	down      bool
	touches   int // of the file that shows that an application master lives
	announced int // the epoch of the one whose file that is
	epoch     int // of the application master; what was meant for an older one is lost
	saved     core.Journal
	shown     core.Journal           // what others can know of it, a little late
	stale     time.Time              // since when it is out of date; zero: it is not
	newest    map[string]*simProcess // task -> the process that was started last
	unsure    map[string]bool        // tasks whose numbers nobody can know
	kept      map[string]bool        // attempt -> whether it was told to go on from what services hold
	told      map[string]bool        // tasks whose numbers are not written down yet
	alive     map[string]*simProcess // task -> its live process
	boxes     map[string]*simBox
	asked     map[string]bool
	boxNo     int
	work      map[string]time.Duration // what is left to do, per worker
	calm      time.Time                // no faults after it
	story     []string
	tell      bool
	finish    *core.Finish
	steps     int64                // made
	doomed    bool                 // no steps are made any longer, whatever is done
	alike     int                  // processes that failed in the same way before a step
	stepped   bool                 // an application master has been told of a step
	stuckAt   time.Time            // when none could be made, last
	exports   *simProcess          // works without steps
	exported  time.Time            // until then
	closing   map[string]time.Time // nodes out of service, and since or by when
}

type simProcess struct {
	task       string
	attempt    int
	generation int
	started    time.Time
	box        *simBox
	share      simShare
	steps      int64 // of the job, that it took part in
	hangs      bool  // no steps are made while it runs
	polls      bool  // it uses a CPU while it hangs
	cpu        time.Duration
	reports    int  // of what it has used, to the present application master
	failing    bool // it has said why it fails, and takes its time to end
	stopped    bool // it has been told to end
}

// simBox is a container with its agent.
type simBox struct {
	id, node  string
	launched  bool
	unwanted  time.Time // when the scheduler says that it does not want it back any longer
	excused   bool      // the cluster does not tell of it any longer
	astray    time.Time // since when the job does not know of it
	ended     bool
	agent     bool // it runs
	connected bool
	since     time.Time // of being connected
	master    int       // the epoch in which it was connected last
	line      int       // counts connections, so that an old loss is not taken for a new one
	task      string
	port      int
	peerPort  int
	told      time.Time // when the last message reached it
	attempt   int
	gen       int
	process   *simProcess
	exited    *core.TaskExited
}

// stepEvery is how often steps are told of.
const stepEvery = 3 * time.Second

// simError is what a process writes that is about to fail.
const simError = "ValueError: no"

type timer struct {
	at    time.Time
	order int
	do    func()
}
type timers []timer

func (q timers) Len() int { return len(q) }
func (q timers) Less(a, b int) bool {
	return q[a].at.Before(q[b].at) || q[a].at.Equal(q[b].at) && q[a].order < q[b].order
}
func (q timers) Swap(a, b int) { q[a], q[b] = q[b], q[a] }
func (q *timers) Push(x any)   { *q = append(*q, x.(timer)) }
func (q *timers) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}

func (s *sim) after(d time.Duration, do func()) {
	s.order++
	heap.Push(&s.queue, timer{s.now.Add(d), s.order, do})
}

func (s *sim) upTo(d time.Duration) time.Duration { return time.Duration(s.r.Int64N(int64(d))) }

func (s *sim) chance(percent int) bool { return s.now.Before(s.calm) && s.r.IntN(100) < percent }

func (s *sim) log(format string, args ...any) {
	if s.tell {
		s.story = append(s.story, fmt.Sprintf("%8.3f ", s.now.Sub(time.Unix(0, 0)).Seconds())+fmt.Sprintf(format, args...))
	}
}

func (s *sim) fail(format string, args ...any) {
	s.t.Helper()
	if !s.tell {
		s.t.Log("its story: go test ./am/core -run TestSimulation -seed N")
	}
	for _, l := range s.story {
		fmt.Println(l)
	}
	s.t.Fatalf("seed %d: %s", s.seed, fmt.Sprintf(format, args...))
}

// tellAM gives an event to the application master after a while, unless that is gone or
// another one by then.
func (s *sim) tellAM(d time.Duration, e core.Event) {
	epoch := s.epoch
	s.after(d, func() {
		if s.epoch == epoch && !s.down {
			s.step(e)
		}
	})
}

func (s *sim) step(e core.Event) {
	s.log("%T%+v", e, e)
	if x, ok := e.(core.ContainerEnded); ok && x.Cause == core.CauseOutOfMemory {
		for _, t := range s.job.Tasks() {
			if t.Container == x.Container {
				s.faults[t.Name]++
			}
		}
	}
	if a, ok := e.(core.AgentConnected); ok {
		if p := s.newest[a.Task]; p != nil && p.box.id == a.Container {
			s.told[a.Task] = true
		}
	}
	actions := s.job.Step(s.now, e)
	_, steps := e.(core.StepsReported)
	s.stepped = s.stepped || steps
	switch {
	case slices.ContainsFunc(actions, core.RequiresWriteAhead):
		s.save()
	case !s.job.NeedsJournal():
	default:
		epoch := s.epoch
		s.after(200*time.Millisecond, func() {
			if s.epoch == epoch {
				s.save()
			}
		})
	}
	s.check()
	for _, a := range actions {
		s.log("    %T%+v", a, a)
		s.act(a)
	}
	s.wake()
}

// wake has the job step when it wants to.
func (s *sim) wake() {
	if at, ok := s.job.Deadline(); ok {
		epoch := s.epoch
		s.after(max(0, at.Sub(s.now)), func() {
			if next, ok := s.job.Deadline(); s.epoch == epoch && ok && !next.After(s.now) {
				s.step(core.Tick{})
			}
		})
	}
}

// save writes the journal.
func (s *sim) save() {
	text, err := json.Marshal(s.job.Journal())
	if err != nil {
		s.fail("%v", err)
	}
	for task := range s.told {
		delete(s.unsure, task)
	}
	clear(s.told)
	s.saved = core.Journal{}
	if err := json.Unmarshal(text, &s.saved); err != nil {
		s.fail("%v", err)
	}
	s.show()
}

// check looks at what must hold after each step.
func (s *sim) check() {
	known := map[string]bool{}
	for _, c := range slices.Concat(s.job.Containers(), s.job.Journal().Containers()) {
		known[c] = true
	}
	for _, b := range s.boxes {
		switch {
		case b.ended || known[b.id] || b.excused && !b.connected: // who is connected can be sent home
			b.astray = time.Time{}
		case b.astray.IsZero():
			b.astray = s.now
		case s.now.Sub(b.astray) > 30*time.Second:
			s.fail("container %s is left, and the job does not know of it", b.id)
		}
	}
	if err := s.job.CheckInvariants(); err != nil {
		s.fail("%v", err)
	}
	if task := s.job.Overlooked(); task != "" {
		s.fail("%s has been overlooked", task)
	}
	if n := s.job.IdleSpares(); n > s.spares {
		s.fail("there are %d spares, and %d are wanted", n, s.spares)
	}
	for _, t := range s.job.Tasks() {
		if t.Failures() > s.faults[t.Name] {
			s.fail("%s is charged with %d failures, and was at fault %d times", t.Name, t.Failures(), s.faults[t.Name])
		}
		if n := s.missed[t.Name]; !s.forgotten && n > s.restarts+s.losses+2 {
			s.fail("%s was lost %d times, and may fail %d times and lose its container %d times", t.Name, n, s.restarts, s.losses)
		}
	}
}

// show models status.json: it is written some time after a change.
func (s *sim) show() {
	if s.stale.IsZero() {
		s.stale = s.now
	}
	if s.now.Sub(s.stale) < time.Second {
		return
	}
	s.stale = time.Time{}
	s.shown = core.Journal{Generation: s.saved.Generation, Outcome: s.saved.Outcome, Why: s.saved.Why}
	for _, t := range s.saved.Tasks {
		s.shown.Tasks = append(s.shown.Tasks, core.TaskRecord{Name: t.Name, State: t.State, Attempt: t.Attempt, Container: t.Container, Port: t.Port, Step: t.Step})
	}
}

func (s *sim) act(a core.Action) {
	switch a := a.(type) {
	case core.Ask:
		s.asked[a.Request] = true
		s.after(s.upTo(time.Second), func() { s.allocate(a) })
	case core.Withdraw:
		delete(s.asked, a.Request)
	case core.Launch:
		s.launch(s.boxes[a.Container])
	case core.Release:
		b := s.boxes[a.Container]
		switch {
		case b == nil || b.excused: // the NodeManager would do it
		case b.agent && !b.connected && s.r.IntN(2) == 0: // its node cannot be reached either
			b.excused = true
			s.tellAM(s.upTo(50*time.Millisecond), core.ContainerEnded{Container: b.id, Cause: core.CauseReleased})
		default:
			s.after(s.upTo(50*time.Millisecond), func() { s.end(b, core.CauseReleased) })
		}
	case core.Assign:
		s.toAgent(a.Container, func(b *simBox) {
			b.task = a.Task
			s.after(s.upTo(time.Second), func() {
				if s.chance(3) {
					s.fromAgent(b, core.AgentFailed{Container: b.id, Detail: "no", NodeSpecific: true})
					return
				}
				b.port = a.Port
				if b.port == 0 || s.chance(10) {
					b.port = 20000 + s.r.IntN(100)
				}
				b.peerPort = cmp.Or(a.Port, b.port)
				s.fromAgent(b, core.AgentPrepared{Container: b.id, Port: b.port})
			})
		})
	case core.Start:
		// Who is told again is told the same: what it does with the model goes by that.
		if first, again := s.kept[fmt.Sprintf("%s %d", a.Task, a.Attempt)]; again && first != a.ConsistentServerState {
			s.fail("attempt %d of %s is told to go on from what services hold (%v), and was told otherwise", a.Attempt, a.Task, a.ConsistentServerState)
		}
		s.kept[fmt.Sprintf("%s %d", a.Task, a.Attempt)] = a.ConsistentServerState
		s.toAgent(a.Container, func(b *simBox) { s.run(b, a) })
		if s.chance(1) || a.ConsistentServerState && s.chance(20) { // the worst moment
			s.after(s.upTo(200*time.Millisecond), s.restartAM)
		}
	case core.Vacate:
		s.stop(a.Container, a.Grace)
	case core.Stop:
		if a.Stack {
			stalled, _ := s.job.Hosted(a.Container)
			s.faults[stalled.Name]++
			if s.now.Sub(s.stuckAt) > 2*stepEvery {
				s.fail("%s is stopped because no steps are made, and they are", a.Container)
			}
			if s.exporting() && s.exports.reports > 1 && !s.hanging() {
				s.fail("%s is stopped because no steps are made, and %s is busy with an export", a.Container, s.exports.task)
			}
		}
		s.stop(a.Container, 5*time.Second)
	case core.ReleaseAgent:
		s.toAgent(a.Container, func(b *simBox) {
			s.after(s.upTo(2*time.Second), func() {
				if b.agent && b.connected {
					s.fromAgent(b, core.AgentDisconnected{Container: b.id, Orderly: true})
					b.connected = false
				}
				s.end(b, core.CauseOwnFault)
			})
		})
	case core.PrepareStore:
		s.tellAM(s.upTo(100*time.Millisecond), core.StorePrepared{})
	case core.Record:
		free := strings.Contains(a.Text, "stopped in order")
		for _, c := range []core.Cause{core.CauseRestartedAll, core.CauseNodeLost, core.CausePreempted} {
			free = free || strings.Contains(a.Text, c.String())
		}
		// Of those that start together, who ends because of another is not counted.
		free = free || s.together(a.Task) && strings.Contains(a.Text, core.CausePeerLost.String())
		if a.Kind == core.KindLost && !free {
			s.missed[a.Task]++
		}
	case core.Finish:
		s.finish = &a
		for _, id := range slices.Sorted(maps.Keys(s.boxes)) { // the cluster takes back what an ended job has
			s.end(s.boxes[id], core.CauseReleased)
		}
	}
}

// stop ends a container's process, which takes up to grace.
func (s *sim) stop(container string, grace time.Duration) {
	s.toAgent(container, func(b *simBox) {
		if p := b.process; p != nil {
			p.stopped = true
			s.after(s.upTo(max(grace, time.Millisecond)), func() {
				e := core.TaskExited{Signal: 15, Stopped: true}
				if p.failing {
					e.Error = simError
				}
				s.exit(p, e)
			})
		}
	})
}

// toAgent delivers a message to a connected agent.
func (s *sim) toAgent(container string, do func(*simBox)) {
	b := s.boxes[container]
	if b == nil || !b.connected {
		return
	}
	line := b.line
	if at := s.now.Add(s.upTo(20 * time.Millisecond)); at.After(b.told) { // one stream keeps their order
		b.told = at
	}
	s.after(b.told.Sub(s.now), func() {
		if b.agent && b.connected && b.line == line {
			do(b)
		}
	})
}

func (s *sim) fromAgent(b *simBox, e core.Event) {
	if b.agent && b.connected {
		s.tellAM(20*time.Millisecond, e) // one delay for all keeps their order
	}
}

func (s *sim) allocate(a core.Ask) {
	if !s.asked[a.Request] {
		return
	}
	delete(s.asked, a.Request)
	s.boxNo++
	b := &simBox{id: fmt.Sprintf("c%d", s.boxNo), node: s.someNode(), attempt: -1}
	s.boxes[b.id] = b
	s.step(core.Allocated{Request: a.Request, Container: b.id, Node: b.node})
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
		s.tellAM(10*time.Millisecond, core.LaunchFailed{Container: b.id, Why: "no"})
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
	e := core.AgentConnected{Container: b.id, Host: b.node, PID: 1, Task: b.task, Port: b.port, PeerPort: b.peerPort, Attempt: b.attempt, Generation: b.gen}
	if b.process != nil {
		e.TaskPID = 2
	} else if b.exited != nil {
		x := *b.exited
		e.Exited = &x
	}
	s.fromAgent(b, e)
	if p := b.process; p != nil {
		p.reports = 0
		if p.steps > 0 { // its heartbeats say so
			s.fromAgent(b, core.StepsReported{Steps: []core.Step{{Task: b.task, Step: p.steps}}})
		}
	}
	if line := b.line; b.task == "" && s.rehearse > 0 {
		s.after(s.upTo(2*s.rehearse), func() {
			if b.line == line {
				s.fromAgent(b, core.Prewarmed{Container: b.id})
			}
		})
	}
}

func (s *sim) disconnect(b *simBox, back time.Duration) {
	if !b.agent || !b.connected {
		return
	}
	s.log("disconnect %s for %s", b.id, back)
	b.connected = false
	line := b.line
	noticed := 20 * time.Millisecond
	if back > 6*time.Second && s.r.IntN(2) == 0 { // nothing breaks, it is only silent
		noticed = s.upTo(5 * time.Second)
	}
	s.tellAM(noticed, core.AgentDisconnected{Container: b.id, Silent: noticed})
	if back < time.Minute {
		s.after(back, func() {
			if b.line == line {
				s.connect(b)
			}
		})
	}
	s.alone(b)
}

// alone has an agent keep its lease without a connection: it begins anew where the
// file that masters touch shows that there is none (package proto, lease.go), unless
// the agent is cut off from that, too.
func (s *sim) alone(b *simBox) {
	cut, line, end := s.r.IntN(2) == 0, b.line, s.now.Add(limits.Lease)
	seen, since := -1, time.Time{}
	var look func()
	look = func() {
		if !b.agent || b.line != line || b.connected {
			return
		}
		switch {
		case cut:
		case s.announced != b.master:
			seen = -1
		case s.touches != seen:
			seen, since = s.touches, s.now
		case s.now.Sub(since) >= proto.Untouched(limits.Lease) && s.now.Before(end):
			end = s.now.Add(limits.Lease)
		}
		if !s.now.Before(end) { // it stops its task and ends; nobody may hear of it
			s.log("the lease of %s has run out", b.id)
			s.kill(b)
			if s.r.IntN(2) == 0 {
				s.end(b, core.CauseOwnFault)
			}
			return
		}
		s.after(min(500*time.Millisecond, end.Sub(s.now)), look)
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
		s.step(core.LivenessConfirmed{Since: since, Until: s.now.Add(until)})
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

func (s *sim) end(b *simBox, cause core.Cause) {
	if b.ended {
		return
	}
	s.log("container %s ends: %s", b.id, cause)
	if b.connected {
		s.tellAM(20*time.Millisecond, core.AgentDisconnected{Container: b.id})
	}
	s.kill(b)
	b.ended = true
	s.tellAM(20*time.Millisecond+s.upTo(200*time.Millisecond), core.ContainerEnded{Container: b.id, Cause: cause, Exit: 137})
}

func (s *sim) run(b *simBox, a core.Start) {
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
	b.process, b.attempt, b.gen, b.exited = p, a.Attempt, a.Generation, nil
	s.alive[a.Task] = p
	s.model.began(p, a.ConsistentServerState)
	s.fromAgent(b, core.TaskStarted{Container: b.id, Attempt: a.Attempt, PID: 2})
	if left, ok := s.work[a.Task]; ok {
		var done func()
		done = func() {
			switch {
			case p.failing || s.alive[p.task] != p:
			case s.stuck():
				s.after(time.Second, done)
			default:
				s.exit(p, core.TaskExited{})
			}
		}
		s.after(left, done)
	}
}

// checkOrder checks the numbers of a process that is about to run.
func (s *sim) checkOrder(p *simProcess) {
	before := s.newest[p.task]
	s.newest[p.task] = p
	if s.unsure[p.task] {
		before = nil
	}
	delete(s.unsure, p.task)
	together := s.together(p.task)
	if before != nil && before.attempt >= p.attempt {
		s.fail("attempt %d of %s runs after attempt %d", p.attempt, p.task, before.attempt)
	}
	if before != nil && (before.generation > p.generation || together && before.generation == p.generation) {
		s.fail("%s runs again in generation %d, after %d", p.task, p.generation, before.generation)
	}
	for _, o := range s.alive {
		if together && o.generation != p.generation && s.together(o.task) {
			s.fail("%s runs in generation %d, and %s in %d", p.task, p.generation, o.task, o.generation)
		}
	}
}

// together tells whether a task restarts with others.
func (s *sim) together(task string) bool {
	return s.roles[0].Loss == proto.LossRule_LOSS_RULE_ALL && !strings.HasPrefix(task, "evaluator")
}

// spend takes what a process has worked off what is left to do: it was saved.
func (s *sim) spend(p *simProcess) {
	if left, ok := s.work[p.task]; ok {
		s.work[p.task] = max(0, left-s.now.Sub(p.started))
	}
}

func (s *sim) exit(p *simProcess, e core.TaskExited) {
	if s.alive[p.task] != p {
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
	switch s.r.IntN(13) {
	case 12:
		if p := b.process; p != nil {
			s.export(p)
		}
	case 11:
		s.cascade(b)
	case 0, 1:
		if p := b.process; p != nil {
			e := core.TaskExited{Signal: 9}
			switch s.r.IntN(3) {
			case 0:
				e = core.TaskExited{Code: 1, PeerLost: true}
			case 1:
				e.OutOfMemory = true
			}
			if p.failing && e.PeerLost { // it fails by its own error, and has said so
				e = core.TaskExited{Code: 1, Error: simError}
			}
			s.log("kill the process of %s", p.task)
			if !p.failing { // else that is counted
				s.faults[p.task]++
			}
			s.exit(p, e)
		}
	case 2:
		s.end(b, core.CauseOwnFault)
	case 3:
		cause := []core.Cause{core.CausePreempted, core.CauseOutOfMemory}[s.r.IntN(2)]
		s.end(b, cause)
	case 4:
		if b.agent { // the NodeManager is lost, and what it ran goes on
			s.log("node of %s is lost", b.id)
			b.excused = true
			s.tellAM(0, core.ContainerEnded{Container: b.id, Cause: core.CauseNodeLost})
			s.checkOrphan(b)
		}
		if s.r.IntN(2) == 0 { // and is restarted
			s.after(s.upTo(20*time.Second), func() { s.oust(b) })
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

// hang has the job make no steps any longer, if it is known by now how it makes them:
// until a process is replaced, or all are, or for ever.
func (s *sim) hang(p *simProcess) {
	if !s.saved.Paced() || s.stuck() {
		return
	}
	s.doomed = s.r.IntN(6) == 0
	polls := s.r.IntN(2) == 0
	all := s.r.IntN(2) == 0
	s.log("%s hangs; all: %v, for ever: %v", p.task, all, s.doomed)
	for _, o := range s.alive {
		o.hangs = all || o == p
		o.polls = o.hangs && polls
	}
}

// hanging reports whether no steps will be made again without a restart.
func (s *sim) hanging() bool {
	hanging := s.doomed
	for _, p := range s.alive {
		hanging = hanging || p.hangs
	}
	return hanging
}

// exporting reports whether no steps are made because a process does something else.
func (s *sim) exporting() bool {
	return s.exports != nil && s.alive[s.exports.task] == s.exports && s.now.Before(s.exported)
}

// stuck reports whether no steps can be made.
func (s *sim) stuck() bool {
	stuck := s.hanging() || s.exporting()
	if stuck {
		s.stuckAt = s.now
	}
	return stuck
}

// export has the job make no steps while a process works on something else, for less than
// the time that busy tasks get.
func (s *sim) export(p *simProcess) {
	if !s.saved.Paced() || s.stuck() || !makesSteps(p.task) {
		return
	}
	s.exports, s.exported = p, s.now.Add(s.upTo(100*time.Second))
	s.log("%s exports until %s", p.task, s.exported)
}

// makesSteps reports whether a task is one that makes steps.
func makesSteps(task string) bool {
	return !strings.HasPrefix(task, "ps") && !strings.HasPrefix(task, "evaluator")
}

// reportUsage tells what processes have used.
func (s *sim) reportUsage() {
	const every = 10 * time.Second
	if s.finish != nil {
		return
	}
	s.after(every, s.reportUsage)
	var e core.StepsReported
	for _, task := range slices.Sorted(maps.Keys(s.alive)) {
		p := s.alive[task]
		if !s.hanging() && !s.exporting() || p.polls || s.exporting() && p == s.exports {
			p.cpu += min(every, s.now.Sub(p.started))
		}
		if p.box.connected && p.box.master == s.epoch {
			p.reports++
			e.Usage = append(e.Usage, core.Usage{Task: task, CPU: p.cpu})
		}
	}
	if len(e.Usage) > 0 {
		s.tellAM(20*time.Millisecond, e)
	}
}

// makeSteps tells of steps, as long as some are made.
func (s *sim) makeSteps() {
	if s.finish != nil {
		return
	}
	s.after(stepEvery, s.makeSteps)
	if s.stuck() || s.down {
		return
	}
	s.steps++
	var e core.StepsReported
	for _, task := range slices.Sorted(maps.Keys(s.alive)) {
		if makesSteps(task) {
			s.alive[task].steps = s.steps
			e.Steps = append(e.Steps, core.Step{Task: task, Step: s.steps})
		}
	}
	if len(e.Steps) > 0 {
		s.tellAM(20*time.Millisecond, e)
	}
}

// cascade has a rank fail that takes its time to end, and the others say at once that
// a peer has gone.
func (s *sim) cascade(b *simBox) {
	p := b.process
	if p == nil || p.failing || !b.connected || !s.together(p.task) {
		return
	}
	s.log("%s fails, and the others hear of it", p.task)
	s.faults[p.task]++
	p.failing = true
	s.after(s.upTo(3*time.Second), func() { s.exit(p, core.TaskExited{Code: 1, Error: simError}) })
	for _, task := range slices.Sorted(maps.Keys(s.alive)) {
		o := s.alive[task]
		if o == p || s.r.IntN(3) == 0 || !s.together(task) {
			continue
		}
		s.after(s.upTo(time.Second), func() {
			if s.alive[task] == o && !o.failing { // who has an error of its own ends by that
				s.exit(o, core.TaskExited{Code: 1, PeerLost: true})
			}
		})
	}
}

// oust removes the directory of a container, by which another task may fail,
// through no fault of its own.
func (s *sim) oust(b *simBox) {
	if b.process == nil || !b.connected || s.finish != nil {
		return
	}
	s.log("the directory of %s is removed", b.id)
	s.ousted = s.now
	s.fromAgent(b, core.AgentFailed{Container: b.id, Detail: "its directory was removed", DirectoryRemoved: true})
	epoch, line, left := s.epoch, b.line, b.process
	if tasks := slices.Sorted(maps.Keys(s.alive)); len(tasks) > 1 {
		p := s.alive[tasks[s.r.IntN(len(tasks))]]
		s.after(100*time.Millisecond+s.upTo(time.Second), func() {
			if s.epoch == epoch && !s.down && p != left && p.box.connected && !s.forgotten {
				s.innocent[p.task]++
				s.exit(p, core.TaskExited{Code: 1})
			}
		})
	}
	s.after(limits.LeaseExpiry+2*limits.Stop, func() { // it may have to listen to all agents first
		if s.epoch == epoch && b.connected && b.line == line && b.process == left && s.finish == nil {
			s.fail("%s still runs a process of %s, and its directory is no longer there", b.id, left.task)
		}
	})
}

// checkOrphan sees that what runs on where YARN has lost it leaves in time.
func (s *sim) checkOrphan(b *simBox) {
	epoch, line := s.epoch, b.line
	s.after(limits.Orphan+2*limits.Stop, func() {
		if s.epoch == epoch && b.connected && b.line == line && b.process != nil && s.finish == nil {
			s.fail("%s still runs a process of %s, and YARN lost it long ago", b.id, b.process.task)
		}
	})
}

// preempt takes a container back after a warning.
func (s *sim) preempt(b *simBox) {
	const within = 15 * time.Second
	s.log("the scheduler wants %s back", b.id)
	strict := s.r.IntN(2) == 0
	s.tellAM(0, core.PreemptionWarned{Containers: []string{b.id}, Strict: strict, Within: within})
	for range s.r.IntN(3) { // it may say so in each round
		s.tellAM(s.upTo(within), core.PreemptionWarned{Containers: []string{b.id}, Strict: strict, Within: within})
	}
	if s.r.IntN(4) == 0 {
		s.log("the scheduler does not want %s back any longer", b.id)
		over := s.upTo(within)
		b.unwanted = s.now.Add(over)
		s.tellAM(over, core.PreemptionCanceled{Containers: []string{b.id}, Why: "the ResourceManager was restarted"})
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
		if left != nil && !left.stopped && b.unwanted.Before(warned) && b.connected && b.process == left && s.finish == nil && (inTime || b.since.Before(warned)) {
			s.fail("%s runs a process of %s that has not been told to stop, and the scheduler takes it now, as it has said", b.id, left.task)
		}
		s.end(b, core.CausePreempted)
	})
}

// leaving tells whether a container's task is stopped, or leaves it, or the job ends, or
// that is not known.
func (s *sim) leaving(b *simBox) bool {
	if state, _ := s.job.State(); state == proto.JobState_JOB_STATE_STOPPING || s.job.Journal().Partial {
		return true
	}
	return slices.ContainsFunc(s.job.Journal().Tasks, func(k core.TaskRecord) bool {
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
	s.tellAM(s.upTo(time.Second), core.NodeDecommissioning{Node: node, Within: within})
	epoch := s.epoch
	lines := map[*simBox]int{}
	for _, b := range s.boxes {
		if b.node == node && b.connected && b.process != nil {
			lines[b] = b.line
		}
	}
	if s.r.IntN(3) == 0 {
		s.after(s.upTo(within), func() {
			delete(s.closing, node)
			s.log("%s stays in service", node)
			s.tellAM(0, core.NodeRecommissioned{Node: node})
		})
		return
	}
	s.after(within, func() {
		for b, line := range lines {
			if s.epoch == epoch && b.connected && b.line == line && b.process != nil && s.finish == nil {
				s.fail("%s runs a process of %s, and its node is out of service now", b.id, b.process.task)
			}
		}
		for _, id := range slices.Sorted(maps.Keys(s.boxes)) {
			if b := s.boxes[id]; b.node == node {
				s.end(b, core.CauseNodeLost)
			}
		}
		s.after(s.upTo(time.Minute), func() {
			delete(s.closing, node)
			s.tellAM(0, core.NodeRecommissioned{Node: node})
		})
	})
}

// restartAM kills the application master. Agents find the next one.
func (s *sim) restartAM() {
	s.log("the application master is killed")
	if s.saved.Partial || s.now.Sub(s.ousted) < time.Second { // the journal may not have it
		s.excuseNone()
	}
	spares := s.idleSpares()
	s.epoch++
	s.down, s.died = true, s.now
	clear(s.told)
	epoch := s.epoch
	if s.sweeps {
		for _, id := range slices.Sorted(maps.Keys(s.boxes)) {
			s.end(s.boxes[id], core.CauseReleased)
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
	s.after(away, func() {
		if s.epoch != epoch {
			return
		}
		s.down = false
		s.announced = epoch
		s.job = s.newJob()
		if journal := s.r.IntN(4); journal == 0 {
			s.log("the journal is lost")
			s.forget()
			spares = nil
		} else {
			s.job.Resume(s.saved)
		}
		e := core.Recovered{Attempt: epoch + 1, Containers: map[string]string{}}
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
		s.checkSpares(spares, e)
		s.touch()
		for _, node := range slices.Sorted(maps.Keys(s.closing)) { // as the cluster's list of nodes says
			s.tellAM(s.upTo(time.Second), core.NodeDecommissioning{Node: node, Within: max(time.Millisecond, s.closing[node].Sub(s.now))})
		}
		for _, id := range slices.Sorted(maps.Keys(s.boxes)) {
			switch b := s.boxes[id]; {
			case b.ended && s.sweeps: // of these, no other master is told
			case b.ended:
				s.tellAM(s.upTo(200*time.Millisecond), core.ContainerEnded{Container: id, Cause: core.CauseOwnFault, Exit: 137})
			case b.excused && s.chance(50): // or it is not told at all
				s.tellAM(s.upTo(time.Second), core.ContainerEnded{Container: id, Cause: core.CauseNodeLost})
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
func (s *sim) checkSpares(spares []string, e core.Recovered) {
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
func (s *sim) stepsKnown(known core.Journal) bool {
	for _, p := range s.alive {
		if p.steps > 0 && p.box.agent {
			return true
		}
	}
	return slices.ContainsFunc(known.Tasks, func(k core.TaskRecord) bool { return k.Step > 0 })
}

// forget has the job taken over without a journal, and now and then without
// anything else. What nobody can know is not asked of it: that it counts on
// from numbers that were given a moment ago to what is gone already.
func (s *sim) forget() {
	s.forgotten = true
	s.forgets++
	s.excuseNone()
	clear(s.kept)
	known := s.shown
	switch {
	case s.saved.Partial: // nothing was learned since
		known = s.saved
	case s.r.IntN(3) == 0:
		known = core.Journal{}
	}
	if known.Partial = true; !s.stepsKnown(known) { // so it is not known that they are due
		s.doomed = false
		for _, p := range s.alive {
			p.hangs = false
		}
	}
	s.job.Resume(known)
	for task, p := range s.newest {
		s.unsure[task] = known.Generation < p.generation || !slices.ContainsFunc(known.Tasks, func(k core.TaskRecord) bool {
			return k.Name == task && k.Attempt >= p.attempt
		})
	}
}

func (s *sim) newJob() *core.Job {
	var tasks []core.Task
	for _, r := range s.roles {
		for i := range int(r.Count) {
			tasks = append(tasks, core.Task{Name: fmt.Sprintf("%s-%d", r.Name, i), Role: r, Index: i})
		}
	}
	return core.New(tasks, s.restarts, s.spares, core.Limits{Losses: s.losses, Prewarm: s.rehearse, Stall: 40 * time.Second, LivenessFile: true})
}

func simulate(t *testing.T, n uint64, tell bool) {
	start := time.Unix(0, 0)
	s := &sim{
		t: t, seed: n, r: rand.New(rand.NewPCG(n, 1)), now: start, tell: tell,
		alive: map[string]*simProcess{}, boxes: map[string]*simBox{}, newest: map[string]*simProcess{}, unsure: map[string]bool{}, told: map[string]bool{}, kept: map[string]bool{}, asked: map[string]bool{}, work: map[string]time.Duration{}, closing: map[string]time.Time{},
		faults: map[string]int{}, innocent: map[string]int{}, missed: map[string]int{},
	}
	s.model = simModel{s: s, r: rand.New(rand.NewPCG(n, 2))}
	s.roles = psAndWorkers(int32(s.r.IntN(3)), 1+int32(s.r.IntN(3)))
	if n%3 == 0 {
		s.roles = ranks(1 + int32(s.r.IntN(4)))
	} else if n%7 == 2 {
		s.roles = coordinated(s.roles[0].Count, s.roles[1].Count)
	}
	if n%5 == 1 {
		s.roles = append(s.roles, &proto.RoleSpec{Name: "evaluator", Count: 1, MemoryMb: 1024, Vcores: 1, FinishMs: int64(n%3) * 30000,
			Loss: proto.LossRule_LOSS_RULE_ALONE, Completion: proto.CompletionRule_COMPLETION_RULE_OPTIONAL})
	}
	s.spares = s.r.IntN(3)
	s.rehearse = time.Duration(s.r.IntN(2)) * 20 * time.Second
	s.restarts, s.losses = 1000, 1000
	if s.r.IntN(4) == 0 {
		s.restarts, s.losses = 1, 2
	}
	s.sweeps = n%11 == 4
	least := 10 * time.Second // of a worker's work
	if s.r.IntN(8) == 0 {
		least = 3 * time.Minute // what may take long shows, and the last of it without faults
	}
	for _, r := range s.roles {
		if s.r.IntN(2) == 0 {
			r.MemoryMaxMb = 2 * r.MemoryMb
		}
		if r.Name == "worker" && r.Loss != proto.LossRule_LOSS_RULE_ALL && s.r.IntN(3) == 0 {
			r.Min = 1 + s.r.Int32N(r.Count)
		}
		if r.Completion == proto.CompletionRule_COMPLETION_RULE_REQUIRED {
			for i := range int(r.Count) {
				s.work[fmt.Sprintf("%s-%d", r.Name, i)] = least + s.upTo(50*time.Second)
			}
		}
	}
	s.calm = start.Add(2 * time.Minute)
	s.job = s.newJob()
	s.after(0, func() {
		s.step(core.Begin{})
		s.touch()
	})
	s.after(s.upTo(8*time.Second), s.fault)
	s.after(stepEvery, s.makeSteps)
	s.after(stepEvery, s.reportUsage)
	limit, at := start.Add(time.Hour), 0 // at counts what happens at one time
	for s.finish == nil {
		if len(s.queue) == 0 {
			s.fail("nothing will ever happen any more, and the job has not ended")
		}
		next := heap.Pop(&s.queue).(timer)
		if at++; next.at.After(s.now) {
			at = 0
		}
		if at > 100000 {
			s.fail("time does not go on")
		}
		s.now = next.at
		if s.now.After(limit) {
			s.fail("the job has not ended after %s", limit.Sub(start))
		}
		next.do()
	}
	if s.finish.State != proto.JobState_JOB_STATE_SUCCEEDED && !s.exhausted() && !(s.alike > 1 && (!s.stepped || s.forgotten) && strings.Contains(s.finish.Why, "in the same way")) && !(s.doomed && strings.Contains(s.finish.Why, "stalled")) {
		s.fail("it ended as %s: %s", s.finish.State, s.finish.Why)
	}
	if len(s.alive) != 0 {
		s.fail("processes are left")
	}
}

// exhausted tells whether a task has used up what it may fail or lose. Without
// a journal, the application master that ends the job may not be the one that counted.
func (s *sim) exhausted() bool {
	failed := func(t core.Task) int {
		if s.forgotten {
			return s.faults[t.Name]
		}
		return t.Failures()
	}
	all := 0 // of tasks that restart together, each failure is the job's
	for _, t := range s.job.Tasks() {
		if t.Role.Loss == proto.LossRule_LOSS_RULE_ALL {
			all += failed(t)
		}
	}
	for _, t := range s.job.Tasks() {
		failures := failed(t)
		if t.Role.Completion == proto.CompletionRule_COMPLETION_RULE_OPTIONAL {
			continue // whatever becomes of it
		}
		if t.Role.Loss == proto.LossRule_LOSS_RULE_ALL {
			failures = all
		}
		if failures > s.restarts || s.missed[t.Name] > s.losses {
			return true
		}
	}
	return false
}

func TestSimulation(t *testing.T) {
	if *seed != 0 {
		simulate(t, *seed, true)
		return
	}
	for n := range *seeds {
		simulate(t, *first+uint64(n), false)
		if t.Failed() {
			return
		}
	}
}
