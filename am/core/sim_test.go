package core_test

import (
	"container/heap"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/am/core"
	"holdfast/am/core/action"
	"holdfast/am/core/event"
	"holdfast/am/core/journal"
	"holdfast/am/core/pace"
	"holdfast/proto"
)

var (
	seeds = flag.Int("seeds", 10000, "how many jobs of each kind TestLongSimulation runs")
	first = flag.Uint64("first", 1, "the seed of the first of them")
	seed  = flag.Uint64("seed", 0, "run only the job of this seed, and print what happens in it")
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
//   - what ranks have saved together is of one generation, and nothing changes under those
//     that have begun from it;
//   - what is left of a generation knows no address at which one of a later generation is
//     met;
//   - no generation works with fewer members than its role needs, or with a number that is
//     no multiple, and all its members are told the same of who they are;
//   - nothing is told to an agent of another task;
//   - no container is left that the job does not know of, nor an agent that is
//     connected, in one that is lost to YARN alone; but in one that YARN has found again a
//     task stays;
//   - spares are handed from one application master to the next, and are never more than
//     wanted;
//   - what parameter servers hold is built on only where it is of one piece;
//   - nothing is asked of the cluster any longer that the job does not want;
//   - a task is charged only with failures that were its own, also where others, that
//     end because of it, are heard first, and the job ends
//     when one has used up its failures or losses, and not before;
//   - the loss of a container in which nothing works, of a task without which the others do,
//     does not end the job, and is told as no loss where they were formed without it;
//   - no process that lingers for others is let end while one of them is at work;
//   - what is restarted because no steps are made is restarted only then, and not while a
//     task is busy, for a while;
//   - of a job that tells of no steps nothing is restarted for that, and the event log says so
//     after a while;
//   - what users see of the job's state is updated when that changes;
//   - who is named as a straggler is one, and is not moved more often than is allowed;
//   - what a person asks to be restarted ends, which is no failure of it;
//   - what does not end although it is killed is given up in time, and nothing else is for that;
//   - an agent that is connected and does not do what it was told is given up, and nothing else
//     is for that;
//   - the job ends, also where it makes no steps any longer, and succeeds unless it may not, once nothing goes wrong;
//   - nothing is left when it has ended.
type sim struct {
	t     *testing.T
	seed  uint64
	r     *rand.Rand
	now   time.Time
	queue timers
	order int

	prewarm          time.Duration // that stand-ins get
	quorumWait, grow time.Duration
	sweeps           bool           // the cluster ends all containers with the application master
	restarts, losses int            // budgets of a task
	faults           map[string]int // task -> how often it was at fault itself
	innocent         map[string]int // and how often it failed by another's loss
	removedAt        time.Time      // when a container's directory was removed last
	missed           map[string]int // task -> losses told that count
	forgotten        bool           // a journal was lost, and what it counted
	forgets          int            // how many were
	died             time.Time      // an application master, last

	model        simModel
	saves        *simSaves
	resizes      int // generations that had other members than the one before
	slow         *simSlow
	roles        []*proto.RoleSpec
	spares       int
	linger       bool // workers stay after their work, until they are let end
	job          *core.Job
	before       map[string]core.Task // its tasks before the present step
	down         bool
	touchedAt    time.Time               // by a master
	touches      int                     // of the file that shows that an application master lives
	confirmed    event.LivenessConfirmed // the last
	announced    int                     // the epoch of the one whose file that is
	epoch        int                     // of the application master; what was meant for an older one is lost
	saved        journal.Journal
	shown        journal.Journal        // what others can know of it, a little late
	stale        time.Time              // since when it is out of date; zero: it is not
	newest       map[string]*simProcess // task -> the process that was started last
	unsure       map[string]bool        // tasks whose numbers nobody can know
	fromServices map[string]bool        // attempt -> whether it was told to go on from what services hold
	told         map[string]bool        // tasks whose numbers are not written down yet
	alive        map[string]*simProcess // task -> its live process
	boxes        map[string]*simBox
	asked        map[string]bool
	boxNo        int
	ports        int                      // that were taken
	work         map[string]time.Duration // what is left to do, per worker
	calm         time.Time                // no faults after it
	transcript   []string
	tell         bool
	finish       *action.Finish
	steps        int64                // made
	listened     bool                 // this step may take in all that was heard in many
	answers      int                  // to the last request to restart a task
	refused      bool                 // the last of them was a refusal
	doomed       bool                 // no steps are made any longer, whatever is done
	alike        int                  // processes that failed in the same way before a step
	stepped      bool                 // an application master has been told of a step
	stuckAt      time.Time            // when none could be made, last
	mute         bool                 // steps are made, and none is told of, or not before the event log says so
	whole        time.Time            // since when all tasks run, as one application master knows; zero: they do not
	quiet        bool                 // the event log of that one says that no step was told
	groups       map[int][]int32      // generation -> who is not in it
	addresses    map[int]simAddresses // generation -> where its members are met
	explained    map[int]bool         // generations of which the event log says why they began
	found        map[string]bool      // tasks whose container YARN has found again
	scalings     int                  // how often a person has scaled a role, or that was forgotten
	fenced       map[string]bool      // containers in which nothing can complete a save any longer
	deafness     *rand.Rand           // decides who does not hear what; its own for the same reason as the next
	held         time.Time            // until when the journal cannot be written, and nothing is told: last
	queued       []func()             // tells what is to be told then
	immortals    *rand.Rand           // decides which processes do not end; their own: what else goes wrong does not depend on it
	exports      *simProcess          // works without steps
	exported     time.Time            // until then
	closing      map[string]time.Time // nodes out of service, and since or by when
	unsaid       map[string]time.Time // nodes that are in service again, which was not said, and by when they should have been gone
}

type simProcess struct {
	task       string
	attempt    int
	generation int
	started    time.Time
	box        *simBox
	peers      simAddresses
	rank       int
	world      *simWorld
	share      simShare
	steps      int64 // of the job, that it took part in
	hangs      bool  // no steps are made while it runs
	polls      bool  // it uses a CPU while it hangs
	cpu        time.Duration
	count      pace.Count
	reports    int  // of what it has used, to the present application master
	failing    bool // it has said why it fails, and takes its time to end
	stopped    bool // it has been told to end
	stop       event.Stopping
	killed     time.Time // when it gets SIGKILL by that
	immortal   bool      // it does not end by that, since it hangs in the kernel
	requested  bool      // a person wants it restarted
	lingers    bool      // its work is done, and it stays until it is let end
	letEnd     bool
}

// simBox is a container with its agent.
type simBox struct {
	id, node  string
	launched  bool
	unwanted  time.Time // when the scheduler says that it does not want it back any longer
	excused   bool      // the cluster does not tell of it any longer
	astray    time.Time // since when the job does not know of it
	found     time.Time // when YARN found it again
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
	exited    *event.TaskExited
	deafTo    string // kind of message that its agent does not hear
	unheard   bool   // one came
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

func (q *timers) Push(x any) { *q = append(*q, x.(timer)) }

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
		s.transcript = append(s.transcript, fmt.Sprintf("%8.3f ", s.now.Sub(time.Unix(0, 0)).Seconds())+fmt.Sprintf(format, args...))
	}
}

func (s *sim) fail(format string, args ...any) {
	s.t.Helper()
	if !s.tell {
		s.t.Log("what happens: go test ./am/core -run TestSimulation -seed N")
	}
	for _, l := range s.transcript {
		fmt.Println(l)
	}
	s.t.Fatalf("seed %d: %s", s.seed, fmt.Sprintf(format, args...))
}

// tellAM gives an event to the application master after a while, unless that is gone or
// another one by then.
func (s *sim) tellAM(d time.Duration, e event.Event) {
	epoch := s.epoch
	s.after(d, func() {
		if s.epoch == epoch && !s.down {
			s.step(e)
		}
	})
}

func (s *sim) step(e event.Event) {
	s.log("%T%+v", e, e)
	if x, ok := e.(event.ContainerEnded); ok && x.Cause == event.CauseOutOfMemory {
		for _, t := range s.job.Tasks() {
			if t.Container == x.Container {
				s.faults[t.Name]++
			}
		}
	}
	if a, ok := e.(event.AgentConnected); ok {
		if p := s.newest[a.Task]; p != nil && p.box.id == a.Container {
			s.told[a.Task] = true
		}
	}
	clear(s.before)
	if _, takes := e.(event.Recovered); !takes { // else what follows was decided before
		for _, t := range s.job.Tasks() {
			s.before[t.Name] = t
		}
	}
	state, why := s.job.State()
	s.listened = s.job.Journal().Partial
	actions := s.job.Step(s.now, e)
	if is, says := s.job.State(); (is != state || says != why) && !s.job.NeedsJournal() {
		s.fail("the job is %s (%s) now, and users are shown that it is %s (%s)", is, says, state, why)
	}
	steps, _ := e.(event.StepsReported)
	s.stepped = s.stepped || len(steps.Steps) > 0
	switch {
	case slices.ContainsFunc(actions, action.RequiresWriteAhead):
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
	told := false
	for _, a := range actions {
		s.log("    %T%+v", a, a)
		told = told || tells(a)
		if tells(a) && (s.now.Before(s.held) || len(s.queued) > 0) {
			s.queued = append(s.queued, s.later(a))
			continue
		}
		s.act(a)
	}
	if told && len(s.queued) == 0 {
		s.tellAM(time.Millisecond, event.Sent{Until: s.now})
	}
	s.checkQuiet()
	s.wake()
}

// wake has the job step when it wants to.
func (s *sim) wake() {
	if at, ok := s.job.Deadline(); ok {
		epoch := s.epoch
		s.after(max(0, at.Sub(s.now)), func() {
			if next, ok := s.job.Deadline(); s.epoch == epoch && ok && !next.After(s.now) {
				s.step(event.Tick{})
			}
		})
	}
}

// save writes the journal.
func (s *sim) save() {
	if s.now.Before(s.held) {
		return
	}
	text, err := json.Marshal(s.job.Journal())
	if err != nil {
		s.fail("%v", err)
	}
	for task := range s.told {
		delete(s.unsure, task)
	}
	clear(s.told)
	s.saved = journal.Journal{}
	if err := json.Unmarshal(text, &s.saved); err != nil {
		s.fail("%v", err)
	}
	s.show()
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
	s.shown = journal.Journal{Generation: s.saved.Generation, Outcome: s.saved.Outcome, Why: s.saved.Why}
	for _, t := range s.saved.Tasks {
		s.shown.Tasks = append(s.shown.Tasks, journal.TaskRecord{Name: t.Name, State: t.State, Attempt: t.Attempt, Container: t.Container, Port: t.Port, Step: t.Step})
	}
}

func (s *sim) newJob() *core.Job {
	var tasks []core.Task
	for _, r := range s.roles {
		for i := range int(r.Count) {
			tasks = append(tasks, core.Task{Name: fmt.Sprintf("%s-%d", r.Name, i), Role: r, Index: i, Port: s.firstPort(r, len(tasks))})
		}
	}
	return core.New(tasks, s.restarts, s.spares, s.slow.limits(core.Limits{Losses: s.losses, Prewarm: s.prewarm, Stall: simStall, LivenessFile: true, Journaled: true,
		QuorumWait: s.quorumWait, Grow: s.grow, GrowPause: 20 * time.Second}))
}

// simulate runs the job of a seed, and returns how often its group had other members than
// before.
func simulate(t *testing.T, n uint64, tell bool) (resizes int) {
	start := time.Unix(0, 0)
	s := &sim{
		t: t, seed: n, r: rand.New(rand.NewPCG(n, 1)), now: start, tell: tell,
		alive: map[string]*simProcess{}, boxes: map[string]*simBox{}, newest: map[string]*simProcess{}, unsure: map[string]bool{}, told: map[string]bool{}, fromServices: map[string]bool{}, asked: map[string]bool{}, work: map[string]time.Duration{}, closing: map[string]time.Time{}, unsaid: map[string]time.Time{}, groups: map[int][]int32{}, addresses: map[int]simAddresses{}, explained: map[int]bool{}, found: map[string]bool{}, fenced: map[string]bool{},
		faults: map[string]int{}, innocent: map[string]int{}, missed: map[string]int{},
	}
	s.before = map[string]core.Task{}
	s.immortals, s.deafness = rand.New(rand.NewPCG(n, 6)), rand.New(rand.NewPCG(n, 7))
	s.model = simModel{s: s, r: rand.New(rand.NewPCG(n, 2))}
	s.slow = newSimSlow(s)
	s.saves = newSimSaves(s)
	s.roles = psAndWorkers(int32(s.r.IntN(3)), 1+int32(s.r.IntN(3)))
	if n >= simGroups {
		s.roles = ranks(2 + int32(s.r.IntN(4)))
	} else if n%3 == 0 {
		s.roles = ranks(1 + int32(s.r.IntN(4)))
	} else if n%7 == 2 {
		s.roles = coordinated(s.roles[0].Count, s.roles[1].Count)
	}
	if n%5 == 1 {
		s.roles = append(s.roles, &proto.RoleSpec{Name: "evaluator", Count: 1, MemoryMb: 1024, Vcores: 1, FinishMs: int64(n%3) * 30000,
			Loss: proto.LossRule_LOSS_RULE_ALONE, Completion: proto.CompletionRule_COMPLETION_RULE_OPTIONAL})
	}
	s.spares = s.r.IntN(3)
	s.prewarm = time.Duration(s.r.IntN(2)) * 20 * time.Second
	s.restarts, s.losses = 1000, 1000
	if s.r.IntN(4) == 0 {
		s.restarts, s.losses = 1, 2
	}
	s.linger = n%4 == 1 && n%3 != 0 && n < simGroups
	s.sweeps = n%11 == 4
	s.mute = n%13 == 6
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
		s.makeElastic(r)
		r.SavesTogether = s.together(r.Name) && n%2 == 0
		s.planScaling(r)
		if r.Completion == proto.CompletionRule_COMPLETION_RULE_REQUIRED {
			for i := range int(r.Count) {
				s.work[fmt.Sprintf("%s-%d", r.Name, i)] = least + s.upTo(50*time.Second)
			}
		}
	}
	s.calm = start.Add(2 * time.Minute)
	s.job = s.newJob()
	s.after(0, func() {
		s.step(event.Begin{})
		s.touch()
	})
	s.after(s.upTo(8*time.Second), s.fault)
	s.planDeafness()
	s.planHold()
	if s.roles[0].Loss == proto.LossRule_LOSS_RULE_ALL {
		s.after(simSaveEvery, s.saves.save)
	}
	s.after(stepEvery, s.makeSteps)
	s.after(stepEvery, s.reportUsage)
	s.slow.begin()
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
	return s.resizes
}

// TestSimulation runs jobs of all kinds, more than half of them of groups that can do with
// fewer, which go on with others than before in 3,000 jobs at least. TestLongSimulation runs
// more.
func TestSimulation(t *testing.T) {
	if *seed != 0 {
		simulate(t, *seed, true)
		return
	}
	groups := *seeds * 9 / 20
	others := *seeds * 7 / 20
	if underRace() {
		groups, others = groups/20, others/20
	}
	n := simulateMany(t, *first, others) + simulateMany(t, simGroups+*first, groups)
	t.Logf("in %d of %d jobs, a group has gone on with others than before", n, others+groups)
	if n < 3000 && *seeds >= 10000 && !underRace() {
		t.Error("those are fewer than 3000")
	}
}

// underRace reports whether the race detector is on, with which many jobs take many minutes.
// There is nothing for it to find: package core has no goroutines.
func underRace() bool {
	info, _ := debug.ReadBuildInfo()
	return info != nil && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// TestLongSimulation runs as many jobs of all kinds as of groups that can do with fewer.
func TestLongSimulation(t *testing.T) {
	n := simulateMany(t, *first, *seeds) + simulateMany(t, simGroups+*first, *seeds)
	t.Logf("in %d of %d jobs, a group has gone on with others than before", n, 2**seeds)
}

// simulateMany returns in how many jobs a group had other members than before.
func simulateMany(t *testing.T, first uint64, count int) (resized int) {
	t.Helper()
	for n := range count {
		if simulate(t, first+uint64(n), false) > 0 {
			resized++
		}
		if t.Failed() {
			return resized
		}
	}
	return resized
}
