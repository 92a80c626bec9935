package core_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/am/core"
	"holdfast/am/core/event"
	"holdfast/am/core/journal"
	"holdfast/proto"
)

// since is what a player has written down after a mark.
func (p *player) since(mark int) string { return p.log.String()[mark:] }

// attach has the agents of the first containers come back, as they were before.
func (p *player) attach(containers ...string) {
	p.t.Helper()
	for _, c := range containers {
		e := event.AgentConnected{Container: c, Host: "h", PID: 100, Attempt: -1}
		if t, hosted := p.job.Hosted(c); hosted {
			e.Task, e.Port, e.PeerPort, e.Attempt, e.Generation = t.Name, 20000, t.Port, t.Attempt, p.job.Generation()
			if t.State == proto.TaskState_TASK_STATE_RUNNING {
				e.TaskPID = 200
			}
		}
		p.step(e)
	}
}

// TestSparesAreTakenOver: another master keeps the spares that it is handed, and neither
// asks for others in their place nor leaves any behind.
func TestSparesAreTakenOver(t *testing.T) {
	all := map[string]string{"c1": "n1", "c2": "n2", "c3": "n0"}
	without := map[string]string{"c1": "n1", "c2": "n2"}
	for name, c := range map[string]struct {
		handed  map[string]string
		forgets bool
		script  func(p *player)
		spare   string   // that is there after it
		want    []string // in the event log
		never   []string
	}{
		"its agent comes back": {all, false, func(p *player) { p.attach("c1", "c2", "c3") },
			"c3", nil, []string{"action.Ask", "Release{Container:c3}", "ReleaseAgent{Container:c3"}},
		"its agent does not come back": {all, false, func(p *player) {
			p.attach("c1", "c2")
			p.wait(time.Minute)
		}, "c4", []string{"Release{Container:c3}"}, nil},
		"it is not handed over, and its agent is there": {without, false, func(p *player) { p.attach("c1", "c2", "c3") },
			"c4", []string{"ReleaseAgent{Container:c3"}, nil},
		"it is not handed over, and has ended": {without, false, func(p *player) {
			p.attach("c1", "c2")
			p.wait(time.Minute)
		}, "c4", nil, []string{"c3"}},
		"nothing is handed over, and all have ended": {map[string]string{}, false, func(p *player) { p.wait(time.Minute) },
			"c6", nil, []string{"Release{Container:c3}"}},
		"it was given to a task a moment ago": {all, false, func(p *player) {
			p.attach("c1", "c2")
			p.step(event.AgentConnected{Container: "c3", Host: "h", PID: 100, Task: "ps-0", Attempt: -1})
		}, "c4", []string{"ReleaseAgent{Container:c3", "Release{Container:c3}"}, nil},
		"there is no journal": {all, true, func(p *player) {
			p.step(event.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "ps-0", Port: 20000, PeerPort: 20000, TaskPID: 200})
			p.step(event.AgentConnected{Container: "c2", Host: "h", PID: 100, Task: "worker-0", Port: 20000, PeerPort: 20000, TaskPID: 200})
			p.step(event.AgentConnected{Container: "c3", Host: "h", PID: 100, Attempt: -1})
		}, "c4", []string{"Release{Container:c3}"}, nil},
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			p := playWith(t, psAndWorkers(1, 1), 3, 1, core.Limits{})
			p.step(event.Begin{})
			p.forgets = c.forgets
			mark := p.log.Len()
			p.takeOver(event.Recovered{Attempt: 2, Containers: c.handed})
			c.script(p)
			transcript := p.since(mark)
			spares := p.job.Spares()
			if len(spares) != 1 || spares[0].Container != c.spare || spares[0].AgentPID == 0 {
				t.Errorf("the spares are %+v, want %s\n%s", spares, c.spare, transcript)
			}
			for _, s := range c.want {
				if !strings.Contains(transcript, s) {
					t.Errorf("there is no %s in\n%s", s, transcript)
				}
			}
			for _, s := range c.never {
				if strings.Contains(transcript, s) {
					t.Errorf("there is %s in\n%s", s, transcript)
				}
			}
			p.step(event.ContainerEnded{Container: p.named("ps-0").Container, Cause: event.CauseKilled})
			if got := p.named("ps-0").Container; got != c.spare {
				t.Errorf("ps-0 is in %s after its container was lost, want %s\n%s", got, c.spare, p.since(mark))
			}
			if spares := p.job.Spares(); len(spares) != 1 || spares[0].Container == c.spare {
				t.Errorf("the spares are %+v after one was used", spares)
			}
		})
	}
}

// TestStandInsAreTakenOver: a task's stand-in goes on to be that.
func TestStandInsAreTakenOver(t *testing.T) {
	p := playWith(t, psAndWorkers(1, 1), 3, 0, core.Limits{Prewarm: 20 * time.Second})
	p.step(event.Begin{})
	p.step(event.NodeDecommissioning{Node: "n1"})
	mark := p.log.Len()
	p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c2": "n2", "c3": "n0"}})
	p.step(event.NodeDecommissioning{Node: "n1"})
	p.attach("c1", "c2", "c3")
	p.step(event.Prewarmed{Container: "c3"})
	p.step(event.CheckpointSealed{})
	if got := p.named("ps-0").Container; got != "c3" || strings.Contains(p.since(mark), "action.Ask") {
		t.Errorf("ps-0 is in %s, want c3, with no further container asked for\n%s", got, p.since(mark))
	}
}

// TestUnneededStandInsAreGivenBack: its task stays where it is after all.
func TestUnneededStandInsAreGivenBack(t *testing.T) {
	p := playWith(t, psAndWorkers(1, 1), 3, 0, core.Limits{Prewarm: 20 * time.Second})
	p.step(event.Begin{})
	p.step(event.NodeDecommissioning{Node: "n1"})
	mark := p.log.Len()
	p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c2": "n2", "c3": "n0"}})
	p.attach("c3", "c1", "c2")
	if spares := p.job.Spares(); len(spares) != 0 || !strings.Contains(p.since(mark), "Release{Container:c3}") {
		t.Errorf("the stand-ins are %+v, want none\n%s", spares, p.since(mark))
	}
}

// TestThriftIsTakenOver: what the scheduler wanted back is not asked for by another
// master.
func TestThriftIsTakenOver(t *testing.T) {
	p := playWith(t, psAndWorkers(1, 1), 3, 1, core.Limits{})
	p.step(event.Begin{})
	p.step(event.PreemptionWarned{Containers: []string{"c3"}, Within: 15 * time.Second})
	mark := p.log.Len()
	p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c2": "n2"}})
	p.attach("c1", "c2")
	p.wait(59 * time.Second)
	if transcript := p.since(mark); strings.Contains(transcript, "action.Ask") {
		t.Errorf("a spare is asked for less than a minute after the scheduler wanted one back\n%s", transcript)
	}
	p.wait(time.Second)
	if transcript := p.since(mark); !strings.Contains(transcript, "action.Ask") {
		t.Errorf("no spare is asked for\n%s", transcript)
	}
}

// TestAnAnnouncedPreemptionIsTakenOver: a scheduler announces it once, and takes the
// container at the time that it has said, whoever is master then.
func TestAnAnnouncedPreemptionIsTakenOver(t *testing.T) {
	p := play(t, psAndWorkers(1, 1), 3)
	p.step(event.Begin{})
	p.step(event.PreemptionWarned{Containers: []string{"c1"}, Strict: true, Within: 40 * time.Second})
	p.wait(15 * time.Second)
	mark := p.log.Len()
	p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c2": "n2"}})
	p.attach("c1", "c2")
	p.wait(4 * time.Second)
	if transcript := p.since(mark); strings.Contains(transcript, "Vacate") {
		t.Fatalf("it is stopped too early\n%s", transcript)
	}
	p.wait(time.Second)
	if transcript := p.since(mark); !strings.Contains(transcript, "action.Vacate{Container:c1 Grace:10s}") || !strings.Contains(transcript, "container preempted") {
		t.Errorf("it is not stopped 20 s after the announcement, with 10 s to save\n%s", transcript)
	}
}

// TestTimeToStopIsTakenOver: a task that has been told to leave keeps the time that it
// was given to save; it is not told again to hurry.
func TestTimeToStopIsTakenOver(t *testing.T) {
	p := play(t, psAndWorkers(1, 1), 3)
	p.step(event.Begin{})
	p.step(event.PreemptionWarned{Containers: []string{"c1"}, Strict: true, Within: 80 * time.Second})
	p.mute["TaskExited"] = true
	p.step(event.CheckpointSealed{}) // and it gets 20 s
	p.wait(5 * time.Second)
	mark := p.log.Len()
	p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c2": "n2"}})
	p.attach("c1", "c2")
	if transcript := p.since(mark); !strings.Contains(transcript, "action.Vacate{Container:c1 Grace:15s}") || strings.Contains(transcript, "action.Stop{Container:c1") {
		t.Errorf("it does not have the 15 s that are left of 20\n%s", transcript)
	}
}

// TestTheTimeToFinishIsTakenOver: it does not begin anew with each master.
func TestTheTimeToFinishIsTakenOver(t *testing.T) {
	roles := append(psAndWorkers(1, 1), &proto.RoleSpec{Name: "evaluator", Count: 1, MemoryMb: 1024, Vcores: 1, FinishMs: 300000,
		Loss: proto.LossRule_LOSS_RULE_ALONE, Completion: proto.CompletionRule_COMPLETION_RULE_OPTIONAL})
	p := play(t, roles, 3)
	p.step(event.Begin{})
	p.exit("worker-0", event.TaskExited{})
	p.wait(4 * time.Minute)
	p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c3": "n0"}})
	p.attach("c3")
	p.wait(59 * time.Second)
	p.state(proto.JobState_JOB_STATE_STOPPING)
	p.wait(time.Second)
	p.state(proto.JobState_JOB_STATE_SUCCEEDED)
}

// TestASpareOfAnOlderJournalIsATasksSince: it is no spare any longer.
func TestASpareOfAnOlderJournalIsATasksSince(t *testing.T) {
	p := playWith(t, psAndWorkers(1, 1), 3, 1, core.Limits{})
	p.job.Resume(journal.Journal{Partial: true, Spares: []journal.SpareRecord{{Container: "c3", Node: "n0", MemoryMB: 2048}}})
	p.step(event.Recovered{Attempt: 3, Containers: map[string]string{"c2": "n2", "c3": "n0"}})
	for c, task := range map[string]string{"c2": "worker-0", "c3": "ps-0"} {
		p.step(event.AgentConnected{Container: c, Host: "h", PID: 100, Task: task, Port: 20000, PeerPort: 20000, TaskPID: 200})
	}
	if ps := p.named("ps-0"); ps.Container != "c3" || ps.State != proto.TaskState_TASK_STATE_RUNNING {
		t.Errorf("ps-0 is %s in %q\n%s", ps.State, ps.Container, p.log.String())
	}
	for _, s := range p.job.Spares() {
		if s.Container == "c3" {
			t.Error("the container of ps-0 is a spare as well")
		}
	}
}

// TestReportsAreWaitedForUntilLeasesHaveExpired: without a journal, and while nobody can
// see that this master lives, agents that have none renew their leases.
func TestReportsAreWaitedForUntilLeasesHaveExpired(t *testing.T) {
	p := playWith(t, psAndWorkers(1, 1), 3, 0, core.Limits{LivenessFile: true})
	p.step(event.Begin{})
	p.forgets = true
	p.known = []journal.TaskRecord{{Name: "worker-0", State: proto.TaskState_TASK_STATE_RUNNING, Container: "c2"}}
	p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c2": "n2"}})
	p.step(event.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "ps-0", Port: 20000, PeerPort: 20000, TaskPID: 200})
	given := func() bool { return p.named("worker-0").Container != "" && p.named("worker-0").Container != "c2" }
	p.wait(20 * time.Second)
	p.step(event.Tick{})
	seen := p.now
	for range 11 {
		p.step(event.LivenessConfirmed{Since: seen, Until: p.now.Add(4 * time.Second)})
		if given() {
			t.Fatalf("worker-0 is given away %s after this master could be seen to live\n%s", p.now.Sub(seen), p.log.String())
		}
		p.wait(time.Second)
	}
	p.step(event.LivenessConfirmed{Since: seen, Until: p.now.Add(4 * time.Second)})
	p.wait(2 * time.Second)
	if !given() {
		t.Errorf("worker-0 is waited for after all leases have expired\n%s", p.log.String())
	}
}

// TestTimesCountWhileReportsAreAwaited: what is said meanwhile to happen within a time is
// not taken to be said later.
func TestTimesCountWhileReportsAreAwaited(t *testing.T) {
	p := play(t, psAndWorkers(1, 1), 3)
	p.step(event.Begin{})
	p.forgets = true
	mark := p.log.Len()
	p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c2": "n2"}})
	p.step(event.NodeDecommissioning{Node: "n1", Within: time.Minute})
	p.step(event.PreemptionWarned{Containers: []string{"c2"}, Strict: true, Within: 30 * time.Second})
	p.wait(5 * time.Second)
	for c, task := range map[string]string{"c1": "ps-0", "c2": "worker-0"} {
		p.step(event.AgentConnected{Container: c, Host: "h", PID: 100, Task: task, Port: 20000, PeerPort: 20000, TaskPID: 200})
	}
	for _, want := range []string{"n1 is taken out of service within 55s", "within 25s"} {
		if !strings.Contains(p.since(mark), want) {
			t.Errorf("there is no %q in\n%s", want, p.since(mark))
		}
	}
}

// TestASuccessorAwaitsTheLeaseOfWhatItGivesBack: YARN says that a container has ended as soon
// as it is given back, and its node, if it can be reached, ends it later.
func TestASuccessorAwaitsTheLeaseOfWhatItGivesBack(t *testing.T) {
	p := trains(t, psAndWorkers(1, 1), 3)
	left := p.hosted["worker-0"]
	p.mute["AgentDisconnected"], p.mute["Allocated"] = true, true
	p.step(event.PreemptionWarned{Containers: []string{left}, Strict: true, Within: 15 * time.Second})
	p.step(event.CheckpointSealed{})
	p.says("action.ReleaseAgent{Container:" + left)
	mark := p.log.Len()
	p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{p.hosted["ps-0"]: "n1", left: "n2"}})
	p.attach(p.hosted["ps-0"])
	if got := p.since(mark); !strings.Contains(got, "action.Release{Container:"+left) || !strings.Contains(got, "Cause:container released") {
		t.Fatalf("the container was not given back:\n%s", got)
	}
	p.free("worker-0", "c9")
	p.wait(5 * time.Second)
	if strings.Contains(p.since(mark), "Task:worker-0 Attempt:1") {
		t.Errorf("the next attempt is started while the one before may run:\n%s", p.since(mark))
	}
	p.wait(30 * time.Second)
	p.says("Task:worker-0 Attempt:1")
}

// TestAStopIsTakenOver: an attempt that an application master has told to end, of which the next
// one has not read, ends for what it was told to, and holds nobody up if it hangs, in what is
// left of the time for that.
func TestAStopIsTakenOver(t *testing.T) {
	const gone = -10 * time.Second // SIGKILL was sent so long ago
	running := func(p *player, task string, s *event.Stopping) event.AgentConnected {
		i := strings.TrimPrefix(task, "worker-")
		c := map[string]string{"0": "c1", "1": "c2"}[i]
		return event.AgentConnected{Container: c, Host: "h", PID: 100, Task: task, Port: 20000, PeerPort: 20000, TaskPID: 200, Stopping: s}
	}
	for name, c := range map[string]struct {
		roles   []*proto.RoleSpec
		reason  event.StopReason
		cause   event.Cause
		killIn  time.Duration
		journal bool // there is one, from before the stop
		says    []string
	}{
		"all start again together":              {ranks(2), event.StopTogether, 0, gone, false, nil},
		"all start again, which is not written": {ranks(2), event.StopTogether, 0, gone, true, []string{"generation 1: all tasks start again because worker-1"}},
		"it has to leave":                       {psAndWorkers(0, 2), event.StopToLeave, event.CausePreempted, gone, false, []string{"Text:attempt 0: container lost"}},
		"it has to leave, and has time":         {psAndWorkers(0, 2), event.StopToLeave, event.CausePreempted, 5 * time.Second, false, nil},
		"a person asked for its restart":        {psAndWorkers(0, 2), event.StopRequested, 0, gone, true, nil},
		"it had stalled":                        {psAndWorkers(0, 2), event.StopStalled, 0, gone, false, nil},
		"the job ended, as nobody knows":        {psAndWorkers(0, 2), event.StopJobEnds, 0, gone, false, nil},
		"for what no program of now says":       {psAndWorkers(0, 2), "whim", 0, gone, false, nil},
	} {
		for _, hangs := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, hangs: %v", name, hangs), func(t *testing.T) {
				p := play(t, c.roles, 3)
				p.step(event.Begin{})
				p.wait(5 * time.Minute)
				p.forgets = !c.journal
				mark := p.log.Len()
				p.mute["AgentDisconnected"] = hangs
				p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c2": "n2"}})
				p.step(running(p, "worker-0", nil))
				p.mute["TaskExited"] = true
				p.step(running(p, "worker-1", &event.Stopping{Reason: c.reason, Cause: c.cause, KillIn: c.killIn}))
				delete(p.mute, "TaskExited")
				if p.job.Generation() == 1 { // the other has been stopped with it
					p.exit("worker-0", event.TaskExited{Signal: 15, Stopped: true})
				}
				const until = "has not ended within 30s of SIGKILL"
				if hangs {
					p.wait(limits.Kill + c.killIn - 2*time.Second)
					if strings.Contains(p.since(mark), until) {
						t.Fatalf("it is given up too early\n%s", p.since(mark))
					}
					p.wait(4*time.Second + limits.LeaseExpiry)
					p.says(until)
				} else {
					p.wait(time.Second)
					p.exit("worker-1", event.TaskExited{Signal: 15, Stopped: true})
				}
				p.wait(time.Minute)
				for _, s := range c.says {
					if !hangs && c.reason == event.StopToLeave {
						s = "container preempted"
					}
					p.says(s)
				}
				p.state(proto.JobState_JOB_STATE_RUNNING)
				is, other := p.named("worker-1"), p.named("worker-0")
				if is.State != proto.TaskState_TASK_STATE_RUNNING || is.Attempt != 1 || hangs && is.Container == "c2" {
					t.Errorf("attempt %d in %s is %s\n%s", is.Attempt, is.Container, is.State, p.since(mark))
				}
				if want := map[bool]int{true: 1}[c.reason == event.StopTogether]; other.Attempt != want {
					t.Errorf("the other runs attempt %d, want %d\n%s", other.Attempt, want, p.since(mark))
				}
				if n := is.Failures(); n != 0 && c.reason != event.StopStalled {
					t.Errorf("it is charged with %d failures\n%s", n, p.since(mark))
				}
			})
		}
	}
}
