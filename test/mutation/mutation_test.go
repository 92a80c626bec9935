// Package mutation breaks the code in one place at a time and looks whether a test
// finds out: a check that never fails proves nothing. The broken source is an overlay
// of the compiler's; no file changes.
//
// A mutation breaks the policy of am/core, and its simulator must find it. A rule is
// what users are promised: each names the code that keeps it and the test that must
// fail without that code.
package mutation

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// mutation replaces a piece of a file in am/core, which must be there once.
type mutation struct {
	name, file, old, new string
}

var mutations = []mutation{
	{"a job that is given up waits for nobody", "job.go",
		`		j.decide()
	}
`, `		j.decide()
		return j.actions
	}
`},
	{"whose end is heard first is blamed", "blame.go",
		`k > first.loss.fault.Kind || k == first.loss.fault.Kind &&`, `false &&`},
	{"what fails after it was told to stop is forgotten", "blame.go",
		`		j.noteFault(t, journal.FaultLate, e.AtMS)
`, ``},
	{"a rank is blamed before the others have ended", "blame.go",
		` || j.any(func(t *task) bool { return t.together() && t.state.active() })`, ``},
	{"an agent without a connection is not waited for", "loss.go",
		`j.becomeUnreachable(t, heard, heard.Add(j.limits.LeaseExpiry))`,
		`j.becomeUnreachable(t, heard, j.now)`},
	{"agents are given up that may know of no master", "deadlines.go",
		`	if at := w.since.Add(j.limits.LeaseExpiry); at.After(end) {
		end = at
	}
`, ``},
	{"the container of a silent agent is not given back", "deadlines.go",
		`	j.loseContainer(t, cause, why)
	j.emit(action.Release{Container: c})`,
		`	j.loseContainer(t, cause, why)
	_ = c`},
	{"the container of a spare that is given up is not given back", "spare.go",
		`	j.releaseAgent(s.container, s.agentPID)
	j.emit(action.Release{Container: s.container})
`, `	j.releaseAgent(s.container, s.agentPID)
`},
	{"an agent that is not needed any longer is not released", "spare.go",
		`	if agentPID != 0 {`, `	if false {`},
	{"what another master did not get from the cluster stays where it is", "takeover.go",
		`	j.becomeOrphan(t, j.now.Add(j.limits.Orphan), "YARN did not hand its container over to this application master")
`, ``},
	{"a task leaves its container although YARN has found that again", "containers.go",
		`	j.endOrphan(t)
	if t.loc.leave.whateverNode() {`, `	if t.loc.leave.whateverNode() {`},
	{"the event log does not say why all start again", "blame.go",
		`	if j.unexplained != nil && !j.ending() {`, `	if false {`},
	{"the event log does not say that no steps are told of", "stall.go",
		`		return j.quietDue()`, `		return next.time`},
	{"a job that tells of no steps is restarted for that", "stall.go",
		`	if j.unpaced() {
		j.tellQuiet()
		return
	}
`, `	if j.unpaced() {
		j.tellQuiet()
		j.escalate(j.tasks[len(j.tasks)-1], 0)
		return
	}
`},
	{"what does not end although it is killed is waited for", "deadlines.go",
		`		if j.past(t.run.stop.until) {`, `		if false {`},
	{"what does not end is followed by another attempt before its lease has expired", "loss.go",
		`	j.awaitRelease(t, c, j.limits.LeaseExpiry)
	j.emit(action.ReleaseAgent{Container: c, Why: toAgent}`, `	j.emit(action.ReleaseAgent{Container: c, Why: toAgent}`},
	{"an agent that does not answer is waited for", "deadlines.go",
		`		if j.past(t.loc.told.until) {`, `		if false {`},
	{"who was not told yet is given up for not doing it", "states.go",
		`return j.limits.Journaled && decided.After(j.sent)`, `return false`},
	{"the lease of an agent counts as expired that was not told to end yet", "deadlines.go",
		`is && j.unsent(r.decided) {`, `is && false && j.unsent(r.decided) {`},
	{"a stop that another application master has decided is forgotten", "containers.go",
		`		if e.Stopping != nil && e.Attempt`, `		if false && e.Attempt`},
	{"a stall is put down to an attempt that was not started", "stall.go",
		` || t.run.pid == 0 ||`, ` ||`},
	{"of a job whose steps are told of again, users see that they are not", "stall.go",
		`		j.record(nil, action.KindNote, again)
`, ``},
	{"what the others work without is said to be lost", "loss.go",
		`	if unneeded && without {`, `	if false {`},
	{"an ask that is given up is not taken back", "spare.go",
		`		j.emit(action.Withdraw{Request: s.request})
`, ``},
	{"a preempted container counts as a failure", "loss.go",
		`	if charged && !j.ending() {
		j.charge(t)`,
		`	if (charged || c == event.CausePreempted) && !j.ending() {
		j.charge(t)`},
	{"an attempt starts before the journal has it", "action/action.go",
		`	case Start, ReleaseAgent, ChangePort, RequestAnswered:`,
		`	case ReleaseAgent, ChangePort, RequestAnswered:`},
	{"a generation is given twice", "loss.go",
		`		j.generation++
`, ``},
	{"a task starts while another container may still run it", "start.go",
		` || len(t.expiring) > 0 ||`, ` ||`},
	{"failures are not limited", "exit.go",
		`	if n > j.restarts {`, `	if false {`},
	{"losses are not limited", "loss.go",
		`	if n := j.within(t.history.losses); n > j.limits.Losses {
		j.fail(t, fmt.Sprintf("lost its container`,
		`	if n := j.within(t.history.losses); false {
		j.fail(t, fmt.Sprintf("lost its container`},
	{"what fails by another's loss of its directory is charged", "exit.go",
		`	if e.Signal == 0 && e.Code != 0 &&`, `	if false &&`},
	{"whoever was to put a checkpoint on the services has", "start.go",
		`	if !j.served() || t.loss.suspectsServices || j.consistentSaves < consistentAfter {
		j.consistentSaves = 0
	}
	return j.consistentSaves == consistentAfter
`, `	consistent := j.served() && !t.loss.suspectsServices && j.consistentSaves == consistentAfter
	if t.service() {
		j.consistentSaves = 0
	}
	return consistent
`},
	{"who never heard of its attempt is not told again that it is to go on from what services hold", "containers.go",
		`j.emit(j.startOf(t))`, `again := j.startOf(t); again.ConsistentServerState = false; j.emit(again)`},
	{"an optional task ends the job", "ending.go",
		`	if t.optional() {
		j.giveUp`, `	if false {
		j.giveUp`},
	{"a job that has not made its first step after a restart is not looked at", "pace/pace.go",
		`return p.assumed || len(p.pauses) > 0 }`, `return !p.last.IsZero() && (p.assumed || len(p.pauses) > 0) }`},
	{"nothing is done any more about a stall that two restarts have not ended", "stall.go",
		`j.limits.Stall < 0 || !p.Known() {`, `j.limits.Stall < 0 || !p.Known() || p.Tried >= stallTries {`},
	{"a task that is busy is restarted as early as others", "stall.go",
		`busy != nil && j.now.Before`, `false && j.now.Before`},
	{"a task that is busy is never restarted", "stall.go",
		`Add(pace.Leniency * j.pace`, `Add(1000 * j.pace`},
	{"what hangs when the journal is lost is left alone", "reconcile/reconcile.go",
		`made.Pace = pace.Assumed()`, `_ = pace.Assumed()`},
	{"a stall is not measured by how steps were made", "pace/pace.go",
		`	least = max(least, Factor*p.longest())
`, `	least /= 10
`},
	{"a group works with a number that is no multiple", "group.go",
		`		n -= n % r.Multiple
`, ``},
	{"what YARN says has ended because it was given back is taken for ended", "loss.go",
		` && e.Cause != event.CauseReleased && e.Cause`, ` && e.Cause`},
	{"what is preempted is taken for ended at once", "loss.go",
		`	if c == event.CausePreempted && t.loc.agentPID != 0 && t.state.active() {`, `	if false {`},
	{"a group goes on while a lost member can complete a save", "group.go",
		`			list = append(list, t.expiringContainers()...)
`, ``},
	{"what is left behind knows where those are met that go on", "group.go",
		`	if j.leavesBehind() {
		j.changePorts()`, `	if false {
		j.changePorts()`},
	{"ranks start on what others have left half written, and may still write", "start.go",
		`		if t.dirty {
			dirty = true
			continue
		}
`, ``},
	{"another application master does not know who is in the group", "takeover.go",
		`t.parked, t.surplus = r.Parked, r.Surplus`, `t.parked, t.surplus = false, r.Surplus`},
	{"another application master does not know which tasks nobody wants", "takeover.go",
		`t.parked, t.surplus = r.Parked, r.Surplus`, `t.parked, t.surplus = r.Parked, false`},
	{"a group starts again while one that leaves it still works", "start.go",
		`return t.together() && t.state == stopping`, `return false`},
	{"containers are asked for that nobody wants", "containers.go",
		`	if t.surplus {
`, `	if false {
`},
	{"a task that is to leave is not looked at", "states.go",
		`	j.touch(t)
	t.loc.leave = o
`, `	t.loc.leave = o
`},
	{"what becomes busy when all have started is not looked at", "deadlines.go",
		`found != j.busyIn {`, `false && found != j.busyIn {`},
	{"services hold what they held before they began anew", "start.go",
		`		j.consistentSaves = 0
`, `		return false
`},
	{"a checkpoint that was under way when a service was lost is taken for one of after", "start.go",
		`const consistentAfter = 2`, `const consistentAfter = 1`},
	{"a decided stop is not in the journal", "takeover.go",
		`	if s := t.run.stop; s.reason != "" {`, `	if s := t.run.stop; false {`},
	{"spares are not in the journal", "takeover.go",
		`		Spares: j.spareRecords(), `, `		`},
	{"a preempted task waits for its move", "moving.go",
		`t == nil || t.loc.leave.reason == journal.LeaveScheduler ||`, `t == nil || !t.loc.leave.by.IsZero() ||`},
	{"when a preempted task is to leave is not in the journal", "takeover.go",
		`if o := t.loc.leave; o.whateverNode() {`, `if o := t.loc.leave; false {`},
	{"without a journal, generations begin anew", "reconcile/reconcile.go",
		`	r.known.Generation = max(r.known.Generation, e.Generation)
`, ``},
	{"without a journal, who has not reported yet is not waited for", "takeover.go",
		`over || j.past(j.confirmedExpiry(r.Until()))`, `over || !r.Until().IsZero()`},
}

func TestLongTheSimulatorFindsMutations(t *testing.T) {
	core := inModule(t, "am/core")
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			overlay, err := overlayFor(t, filepath.Join(core, m.file), m.old, m.new)
			if err != nil {
				t.Fatal(err)
			}
			text, err := exec.Command("go", "test", "-overlay", overlay, "-run", "^TestLongSimulation$", core).CombinedOutput()
			out := string(text)
			if err == nil {
				t.Fatal("the simulator has not found it")
			}
			found := regexp.MustCompile(`(?m)seed \d+: .*$`).FindString(out)
			if found == "" {
				t.Fatalf("it did not run: %v\n%s", err, out)
			}
			t.Log(found)
		})
	}
}
