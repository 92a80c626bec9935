package faults

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"holdfast/internal/proc"
	"holdfast/proto"
	"holdfast/test/testcluster"
)

// Kind is a fault that can be injected any number of times.
type Kind struct {
	name   string
	inject func(*job, *proto.JobStatus) (hit, error)
}

// Round is faults that strike together, the later ones some seconds after the
// first.
type Round []Kind

func (r Round) String() string {
	var names []string
	for _, k := range r {
		names = append(names, k.name)
	}
	return strings.Join(names, " + ")
}

// hit is what became of an injection.
type hit struct {
	what    string    // was lost, for a person
	missed  bool      // nothing was struck: it was not there
	masters int       // application masters that this ends; anyMasters: it depends
	on      string    // the node that they are lost with; empty: with none
	gone    []process // that must have ended by the end of the round
	free    bool      // no task may be charged for it
	apart   bool      // no task may be lost with it
	hold    time.Duration
	heal    func(context.Context) error // after hold; nil: there is nothing to heal
}

const (
	anyMasters = -1
	// paused is how long what is stopped stays so: longer than the lease of 10 s
	// and than the AM waits after it, 12 s.
	paused = 14 * time.Second
	// nodeGone is longer than the RM of the test cluster waits before it gives a
	// node up: its expiry of 10 s, looked at every third of that.
	nodeGone = 16 * time.Second
	down     = 4 * time.Second // before a killed daemon is started again
)

// kinds are all faults. A pause is a SIGSTOP and, later, a SIGCONT.
var kinds = []Kind{
	{"kill ps", onTask("ps", (*proto.TaskStatus).GetPid, kill)},
	{"kill worker", onTask("worker", (*proto.TaskStatus).GetPid, kill)},
	{"kill chief", onTask(chief, (*proto.TaskStatus).GetPid, kill)},
	{"kill ps agent", onTask("ps", (*proto.TaskStatus).GetAgentPid, kill)},
	{"kill worker agent", onTask("worker", (*proto.TaskStatus).GetAgentPid, kill)},
	{"kill chief agent", onTask(chief, (*proto.TaskStatus).GetAgentPid, kill)},
	{"kill AM", apart(onMaster(kill, 1))},
	{"kill node", onNode(killNode)},
	{"kill AM's node", onMastersNode(killNode)},
	{"kill NM", onNode(onRunning(killManager))},
	{"kill AM's NM", onMastersNode(onRunning(killManager))},
	// It comes up before YARN has missed it, and removes what its containers had.
	{"restart NM", onNode(onRunning(restartManager))},
	{"kill RM", apart(onDaemon(killDaemon, "rm"))},
	{"kill DN", onDaemon(killDaemon, "dn0", "dn1", "dn2")},
	{"kill NN", onNameNode(killDaemon)},
	{"pause ps", onTask("ps", (*proto.TaskStatus).GetPid, stop)},
	{"pause worker", onTask("worker", (*proto.TaskStatus).GetPid, stop)},
	{"pause chief", onTask(chief, (*proto.TaskStatus).GetPid, stop)},
	{"pause ps agent", onTask("ps", (*proto.TaskStatus).GetAgentPid, stop)},
	{"pause worker agent", onTask("worker", (*proto.TaskStatus).GetAgentPid, stop)},
	{"pause chief agent", onTask(chief, (*proto.TaskStatus).GetAgentPid, stop)},
	{"pause AM", onMaster(stop, 0)},
	{"pause NM", onNode(onRunning(pauseManager))},
	{"pause node", onNode(pauseNode)},
	// A ResourceManager that comes to after longer than its nodes' expiry takes
	// them for lost.
	{"pause RM", func(j *job, _ *proto.JobStatus) (hit, error) {
		h, err := onDaemon(pauseDaemon, "rm")(j, nil)
		h.masters = anyMasters
		return h, err
	}},
	{"pause DN", onDaemon(pauseDaemon, "dn0", "dn1", "dn2")},
	{"pause NN", onNameNode(pauseDaemon)},
	{"cut node", onNode(cutNode)},
	{"cut AM's node", onMastersNode(cutNode)},
	// Two application masters can live then, and all but YARN is within reach of both.
	{"cut AM's node off the RM", onMastersNode(cutFromManager)},
	{"kill everything", killEverything}, // the power is cut
	{"grow worker", growWorker},
	{"preempt", preempt},
}

// pairs are faults that have to strike together to show what they are there for.
var pairs = []string{
	// The next application master registers while nodes are still unknown to the ResourceManager.
	"kill RM + kill AM",
}

// Rounds are those that each have a row in the table: all faults, and some pairs.
func Rounds() []string { return append(Names(), pairs...) }

// Names are those of all faults.
func Names() []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// Of is a round of faults by their names.
func Of(names ...string) (Round, error) {
	var r Round
	for _, name := range names {
		i := slices.IndexFunc(kinds, func(k Kind) bool { return k.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no fault %q: choose from %s, or %s", name, strings.Join(Names(), ", "), strings.Join(ScenarioNames(), ", "))
		}
		r = append(r, kinds[i])
	}
	return r, nil
}

// Plan is each named round as often as rounds says, and as many pairs of their
// faults as pairs says, in an order that the seed decides: each round strikes once
// before any does again, and the pairs come last. A name is a fault's, or those of
// some joined by " + ".
func Plan(seed uint64, rounds, pairs int, names []string) ([]Round, error) {
	var alone []Round
	var all []Kind
	for _, name := range names {
		r, err := Of(strings.Split(name, " + ")...)
		if err != nil {
			return nil, err
		}
		alone, all = append(alone, r), append(all, r...)
	}
	rng := rand.New(rand.NewPCG(seed, 2))
	var plan []Round
	for range rounds {
		rng.Shuffle(len(alone), func(a, b int) { alone[a], alone[b] = alone[b], alone[a] })
		plan = append(plan, alone...)
	}
	for range pairs {
		plan = append(plan, Round{all[rng.IntN(len(all))], all[rng.IntN(len(all))]})
	}
	return plan, nil
}

// apart is a fault of what tasks run without: they must all run on.
func apart(inject func(*job, *proto.JobStatus) (hit, error)) func(*job, *proto.JobStatus) (hit, error) {
	return func(j *job, s *proto.JobStatus) (hit, error) {
		h, err := inject(j, s)
		h.apart = true
		return h, err
	}
}

// strike is what is done to a process that lives.
type strike func(process) (hit, error)

// kill ends a process; the round waits until it has.
func kill(p process) (hit, error) {
	return hit{gone: []process{p}}, signal(p.pid, syscall.SIGKILL)
}

// stop returns when the process has stopped, which one that waits for its file system does
// once that answers (D), or when it has ended.
func stop(p process) (hit, error) {
	h := hit{hold: paused, heal: func(context.Context) error { return signal(p.pid, syscall.SIGCONT) }}
	if err := signal(p.pid, syscall.SIGSTOP); err != nil {
		return h, err
	}
	for end := time.Now().Add(paused); p.lives() && state(p.pid) != "T" && state(p.pid) != "D"; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return h, fmt.Errorf("process %d is in the state %s, %s after SIGSTOP", p.pid, state(p.pid), paused)
		}
	}
	return h, nil
}

// missing is a hit on what is not there.
func missing(what string) hit { return hit{what: what + ", which is not there", missed: true} }

// signal sends a signal; one to a process that has ended meanwhile is no error.
func signal(pid int, s syscall.Signal) error {
	if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("sending %v to process %d: %w", s, pid, err)
	}
	return nil
}

// onTask strikes at a process of a task: that of a name, or any of a role.
func onTask(which string, process func(*proto.TaskStatus) int32, do strike) func(*job, *proto.JobStatus) (hit, error) {
	return func(j *job, s *proto.JobStatus) (hit, error) {
		t := anyTask(j.rng, s, which)
		living := processes(int(process(t)))
		if len(living) == 0 {
			return missing(t.Task), nil
		}
		struck := living[0]
		both := processes(int(t.AgentPid), int(t.Pid))
		h, err := do(struck)
		if struck.pid == int(t.AgentPid) { // it has no lease any longer, and the task goes with it
			h.gone = both
		}
		h.what = fmt.Sprintf("%s on %s, process %d", t.Task, t.Node, struck.pid)
		return h, err
	}
}

// state is a process's, as proc(5) has it.
func state(pid int) string {
	if fields := stat(pid); len(fields) > 0 {
		return fields[0]
	}
	return ""
}

// process is one that cannot be taken for another of the same number.
type process struct {
	pid   int
	since string // it was started: proc(5), starttime in stat
}

// processes are those that live.
func processes(pids ...int) []process {
	var all []process
	for _, pid := range pids {
		if since := started(pid); since != "" {
			all = append(all, process{pid, since})
		}
	}
	return all
}

// started is when a process was; "" for one that does not live.
func started(pid int) string {
	fields := stat(pid)
	if len(fields) < 20 || fields[0] == "Z" {
		return ""
	}
	return fields[19]
}

// stat are the fields of a process from the third on, its state; none of one that is not there.
func stat(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

func (p process) lives() bool { return started(p.pid) == p.since }

// anyTask is the task of a name or one of a role, but for the chief, or of all.
func anyTask(rng *rand.Rand, s *proto.JobStatus, which string) *proto.TaskStatus {
	var some []*proto.TaskStatus
	for _, t := range s.Tasks {
		if t.Task == which || t.Role == which && t.Task != chief || which == "" && t.Node != "" {
			some = append(some, t)
		}
	}
	if len(some) == 0 {
		return &proto.TaskStatus{Task: which}
	}
	return some[rng.IntN(len(some))]
}

func onMaster(do strike, masters int) func(*job, *proto.JobStatus) (hit, error) {
	return func(j *job, _ *proto.JobStatus) (hit, error) {
		pid, err := j.master()
		living := processes(pid)
		if len(living) == 0 || err != nil {
			return missing("the application master"), err
		}
		h, err := do(living[0])
		h.what, h.masters = fmt.Sprintf("the application master, process %d", pid), masters
		return h, err
	}
}

// master is the process of the job's application master, the newest if a node
// that is lost still runs another; 0 if there is none.
func (j *job) master() (int, error) {
	all, err := j.containers()
	if err != nil {
		return 0, err
	}
	found := 0
	for _, c := range all { // in order of their ids
		for _, pid := range c.PIDs {
			if command, err := proc.CommandLine(pid); err == nil && len(command) == 2 && strings.HasSuffix(command[0], "yarn-submit") && command[1] == "am" {
				found = pid
			}
		}
	}
	return found, nil
}

type daemonStrike func(*job, *testcluster.Daemon) (hit, error)

func onDaemon(do daemonStrike, names ...string) func(*job, *proto.JobStatus) (hit, error) {
	return func(j *job, _ *proto.JobStatus) (hit, error) {
		d := j.Cluster.Daemon(names[j.rng.IntN(len(names))])
		h, err := onRunning(do)(j, d)
		h.what = cmp.Or(h.what, d.Name())
		return h, err
	}
}

// onRunning strikes at a daemon that runs, and misses another.
func onRunning(do daemonStrike) daemonStrike {
	return func(j *job, d *testcluster.Daemon) (hit, error) {
		if !d.Running() {
			return missing(d.Name()), nil
		}
		return do(j, d)
	}
}

func killDaemon(j *job, d *testcluster.Daemon) (hit, error) {
	return hit{hold: down, heal: j.restarting(d)}, d.Kill()
}

func pauseDaemon(_ *job, d *testcluster.Daemon) (hit, error) {
	return hit{hold: paused, heal: func(context.Context) error { return d.Resume() }}, d.Pause()
}

// restarting starts a daemon again.
func (j *job) restarting(d *testcluster.Daemon) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, callLimit)
		defer cancel()
		if c := j.cutOf(d); c != nil {
			return c.restart(ctx, d)
		}
		return d.Restart(ctx)
	}
}

// masterOn reports whether the application master is lost with a node.
func (j *job) masterOn(s *proto.JobStatus, node *testcluster.Daemon) bool {
	return s.AmHost != "" && j.Cluster.NodeManager(s.AmHost) == node
}

// onNode strikes at a node with tasks, but not with the application master unless
// there is no other.
func onNode(do daemonStrike) func(*job, *proto.JobStatus) (hit, error) {
	return func(j *job, s *proto.JobStatus) (hit, error) {
		others := &proto.JobStatus{}
		for _, t := range s.Tasks {
			if t.Node != s.AmHost {
				others.Tasks = append(others.Tasks, t)
			}
		}
		if len(others.Tasks) == 0 {
			others = s
		}
		host := anyTask(j.rng, others, "").Node
		if host == "" {
			return missing("a node with tasks"), nil
		}
		node := j.Cluster.NodeManager(host)
		h, err := do(j, node)
		if !h.missed && j.masterOn(s, node) {
			h.masters, h.on = 1, s.AmHost
		}
		return h, err
	}
}

func onMastersNode(do daemonStrike) func(*job, *proto.JobStatus) (hit, error) {
	return func(j *job, s *proto.JobStatus) (hit, error) {
		if s.AmHost == "" {
			return missing("the application master's node"), nil
		}
		h, err := do(j, j.Cluster.NodeManager(s.AmHost))
		if !h.missed {
			h.masters, h.on = 1, s.AmHost
		}
		return h, err
	}
}

// killNode kills all that a node runs.
func killNode(j *job, node *testcluster.Daemon) (hit, error) {
	data := j.Cluster.DataNode(node)
	managed, stored := j.restarting(node), j.restarting(data)
	return hit{
		what: node.Name() + " and " + data.Name(), hold: down,
		heal: func(ctx context.Context) error { return errors.Join(managed(ctx), stored(ctx)) },
	}, j.Cluster.KillNode(node)
}

// killManager kills a NodeManager alone: what it ran goes on.
func killManager(j *job, node *testcluster.Daemon) (hit, error) {
	pids, err := j.Cluster.ProcessesOn(node)
	return hit{what: node.Name(), gone: processes(pids...), free: true, hold: nodeGone, heal: j.restarting(node)}, errors.Join(err, node.Kill())
}

func restartManager(j *job, node *testcluster.Daemon) (hit, error) {
	h, err := killManager(j, node)
	h.hold = 0
	return h, err
}

// pauseManager stops a NodeManager alone.
func pauseManager(j *job, node *testcluster.Daemon) (hit, error) {
	pids, err := j.Cluster.ProcessesOn(node)
	heal := func(context.Context) error { return node.Resume() }
	return hit{what: node.Name(), gone: processes(pids...), hold: nodeGone, heal: heal}, errors.Join(err, node.Pause())
}

// pauseNode stops a NodeManager and all that it runs: a host that hangs.
func pauseNode(j *job, node *testcluster.Daemon) (hit, error) {
	pids, err := j.Cluster.ProcessesOn(node)
	h := hit{what: node.Name(), gone: processes(pids...), hold: nodeGone}
	if err != nil {
		return h, err
	}
	all := func(s syscall.Signal) error {
		var errs []error
		for _, pid := range pids {
			errs = append(errs, signal(pid, s))
		}
		return errors.Join(errs...)
	}
	h.heal = func(context.Context) error { return errors.Join(node.Resume(), all(syscall.SIGCONT)) }
	if err := all(syscall.SIGSTOP); err != nil || !node.Running() {
		return h, err
	}
	return h, node.Pause()
}

// killEverything kills all daemons and all that they run.
func killEverything(j *job, _ *proto.JobStatus) (hit, error) {
	h := hit{what: "all daemons and containers", masters: anyMasters, hold: down}
	all, err := j.Cluster.Containers()
	var errs []error
	h.heal = func(ctx context.Context) error { // at once: they wait for each other
		var group errgroup.Group
		for _, d := range j.Cluster.Daemons() {
			group.Go(func() error { return j.restarting(d)(ctx) })
		}
		return group.Wait()
	}
	for _, d := range j.Cluster.Daemons() {
		errs = append(errs, d.Kill())
	}
	for _, c := range all {
		h.gone = append(h.gone, processes(c.PIDs...)...)
		for _, pid := range c.PIDs {
			errs = append(errs, signal(pid, syscall.SIGKILL))
		}
	}
	return h, errors.Join(append(errs, err)...)
}

// cutNode takes a node off the network, for as long as makes it lost.
func cutNode(j *job, node *testcluster.Daemon) (hit, error) { return j.cut(node) }

// cutFromManager keeps a node, and what it runs, from the ResourceManager only, and
// its NodeManager from all.
func cutFromManager(j *job, node *testcluster.Daemon) (hit, error) {
	h, err := j.cut(node, append(j.Cluster.RMPorts(), j.Cluster.NMPorts(node.Name())...)...)
	h.hold = nodeGone + 2*paused // another application master is there for longer than leases last
	return h, err
}

func (j *job) cut(node *testcluster.Daemon, ports ...int) (hit, error) {
	cut := j.cutOf(node)
	if cut == nil {
		return hit{}, fmt.Errorf("%s cannot be cut off: see NewCut", node.Name())
	}
	pids, err := j.Cluster.ProcessesOn(node)
	h := hit{what: node.Name(), gone: processes(pids...), hold: nodeGone}
	h.heal = func(context.Context) error { return cut.join() }
	return h, errors.Join(err, cut.sever(ports...))
}

// cutOf is what cuts a node off; nil if nothing does.
func (j *job) cutOf(node *testcluster.Daemon) *Cut {
	for _, c := range j.Cuts {
		if c.node == node.Name() {
			return c
		}
	}
	return nil
}

// cuts reports whether a round cuts nodes off.
func (r Round) cuts() bool {
	return slices.ContainsFunc(r, func(k Kind) bool { return strings.HasPrefix(k.name, "cut ") })
}
