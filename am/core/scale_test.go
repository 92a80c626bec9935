package core_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/am/core"
	"holdfast/am/core/event"
	"holdfast/proto"
)

// scale has alice ask for a number of workers, and returns the refusal.
func (p *player) scale(n int32) string {
	p.t.Helper()
	return p.answered(event.ScaleRequested{Role: "worker", Count: n, User: "alice"})
}

// TestWhoHasEndedIsSetAside: a rank that is not wanted any longer and has ended already leaves its
// container when the others start again, too.
func TestWhoHasEndedIsSetAside(t *testing.T) {
	p := playElastic(t, core.Limits{})
	for _, task := range []string{"worker-1", "worker-2", "worker-3"} {
		p.exit(task, event.TaskExited{})
	}
	if r := p.scale(2); r != "" {
		t.Fatalf("refused: %s", r)
	}
	p.wait(2 * time.Minute)
	p.members("worker-1", "worker-2")
	for _, name := range []string{"worker-0", "worker-3"} {
		if k := p.named(name); k.Container != "" || k.State != proto.TaskState_TASK_STATE_PARKED {
			t.Errorf("%s is %s in %q", name, k.State, k.Container)
		}
	}
}

func TestRanksAreScaled(t *testing.T) {
	p := playElastic(t, core.Limits{})
	if r := p.scale(2); r != "" {
		t.Fatalf("refused: %s", r)
	}
	// What was trained since the last checkpoint is not lost.
	p.wait(10 * time.Second)
	p.members("worker-0", "worker-1", "worker-2", "worker-3")
	p.step(event.CheckpointSealed{})
	p.wait(time.Second)
	p.members("worker-0", "worker-1")
	p.says("alice wants 2 tasks of the role worker")
	p.says("generation 1 works with 2 of 4 tasks (at least 2), without worker-2, worker-3")
	// Nothing is asked for, and containers are given back.
	mark := p.log.Len()
	p.wait(time.Hour)
	p.step(event.CheckpointSealed{})
	p.members("worker-0", "worker-1")
	if strings.Contains(p.since(mark), "action.Ask{") {
		t.Errorf("containers are asked for that nobody wants:\n%s", p.since(mark))
	}
	for _, name := range []string{"worker-2", "worker-3"} {
		if k := p.named(name); k.Container != "" || k.State != proto.TaskState_TASK_STATE_PARKED || k.Failures() != 0 {
			t.Errorf("%s: container %q, %s, %d failures", name, k.Container, k.State, k.Failures())
		}
	}
	// A loss does not bring them back.
	p.step(event.ContainerEnded{Container: "c1", Cause: event.CauseUnknown})
	p.wait(time.Second)
	p.members("worker-0", "worker-1")

	// More are wanted again: they join at the next checkpoint.
	if r := p.scale(3); r != "" {
		t.Fatalf("refused: %s", r)
	}
	p.wait(time.Second)
	p.members("worker-0", "worker-1")
	p.step(event.CheckpointSealed{})
	p.members("worker-0", "worker-1", "worker-2")
	p.scale(4)
	p.wait(time.Second)
	p.step(event.CheckpointSealed{}) // what a person wants does not wait for five minutes
	p.members("worker-0", "worker-1", "worker-2", "worker-3")
	for _, name := range []string{"worker-0", "worker-1", "worker-2", "worker-3"} {
		p.exit(name, event.TaskExited{})
	}
	p.state(proto.JobState_JOB_STATE_SUCCEEDED)
}

// TestScalingDoesNotWaitForACheckpointForLong: those that are too many leave, and those
// that are wanted again join, within the time of Limits.Save, and at once where nothing saves.
func TestScalingDoesNotWaitForACheckpointForLong(t *testing.T) {
	for save, want := range map[time.Duration]time.Duration{0: 30 * time.Second, 10 * time.Second: 10 * time.Second, -1: 0} {
		p := playElastic(t, core.Limits{Save: save})
		p.scale(2)
		if want > 0 {
			p.wait(want - time.Millisecond)
			p.members("worker-0", "worker-1", "worker-2", "worker-3")
		}
		p.wait(time.Second)
		p.members("worker-0", "worker-1")
		p.wait(time.Hour)
		p.members("worker-0", "worker-1")
		p.scale(4)
		if want > 0 {
			p.wait(want - time.Millisecond)
			p.members("worker-0", "worker-1")
		}
		p.wait(time.Second)
		p.members("worker-0", "worker-1", "worker-2", "worker-3")
		if k := p.named("worker-3"); k.Parked {
			t.Errorf("with %s, worker-3 is still parked", save)
		}
	}
}

// TestWhoIsMissingLaterWaitsForACheckpoint: that a person wanted more ranks is about those
// that were missing then.
func TestWhoIsMissingLaterWaitsForACheckpoint(t *testing.T) {
	p := playElastic(t, core.Limits{})
	p.scale(2)
	p.step(event.CheckpointSealed{})
	p.members("worker-0", "worker-1")
	p.scale(4)
	p.wait(time.Second)
	p.exit("worker-0", event.TaskExited{Code: 1}) // all start again, with those that are prepared
	p.wait(time.Minute)
	p.members("worker-0", "worker-1", "worker-2", "worker-3")
	p.step(event.PreemptionWarned{Containers: []string{p.named("worker-1").Container}, Strict: true, Within: time.Minute})
	p.step(event.CheckpointSealed{})
	p.wait(time.Hour)
	p.members("worker-0", "worker-2", "worker-3")
	p.step(event.CheckpointSealed{})
	p.members("worker-0", "worker-1", "worker-2", "worker-3")
}

// TestScalingLeavesOtherReasons: a task that is missing because its container was preempted is
// shown as such, whatever number a person wants.
func TestScalingLeavesOtherReasons(t *testing.T) {
	p := playElastic(t, core.Limits{})
	p.step(event.PreemptionWarned{Containers: []string{"c3", "c4"}, Strict: true, Within: time.Minute})
	p.step(event.CheckpointSealed{})
	p.members("worker-0", "worker-1")
	p.scale(3)
	for _, name := range []string{"worker-2", "worker-3"} {
		if k := p.named(name); k.ParkedBy != event.CausePreempted {
			t.Errorf("%s is parked by %q", name, k.ParkedBy)
		}
	}
}

func TestRanksAreScaledBeforeTheyStart(t *testing.T) {
	p := playWith(t, elastic(2, 4), 3, 0, core.Limits{})
	p.mute["Allocated"] = true
	p.step(event.Begin{})
	p.scale(2)
	p.mute["Allocated"] = false
	p.step(event.Allocated{Request: "worker-0/1", Container: "c1", Node: "n1"})
	p.step(event.Allocated{Request: "worker-1/2", Container: "c2", Node: "n1"})
	p.members("worker-0", "worker-1")
	p.step(event.Allocated{Request: "worker-3/4", Container: "c4", Node: "n1"})
	p.says(`action.Release{Container:c4}`) // it came before it was taken back
}

// TestWhatIsWantedAgainStays: before it has left.
func TestWhatIsWantedAgainStays(t *testing.T) {
	p := playElastic(t, core.Limits{})
	p.scale(2)
	p.wait(time.Second)
	p.scale(4)
	p.step(event.CheckpointSealed{})
	p.wait(time.Minute)
	p.members("worker-0", "worker-1", "worker-2", "worker-3")
	if g := p.job.Generation(); g != 0 {
		t.Errorf("the group formed again: generation %d\n%s", g, p.log.String())
	}
}

// TestParkedTasksAreSurplusFirst: those that work go on.
func TestParkedTasksAreSurplusFirst(t *testing.T) {
	p := playElastic(t, core.Limits{})
	p.preempt("c1")
	p.members("worker-1", "worker-2", "worker-3")
	p.scale(3)
	p.says("action.Withdraw{Request:worker-0/")
	p.wait(time.Hour)
	p.members("worker-1", "worker-2", "worker-3")
	if g := p.job.Generation(); g != 1 {
		t.Errorf("generation %d; those that worked did not go on", g)
	}
}

// TestWorkersWithParameterServersAreScaled: each by itself.
func TestWorkersWithParameterServersAreScaled(t *testing.T) {
	roles := psAndWorkers(1, 3)
	roles[1].Min = 1
	p := trains(t, roles, 3)
	if r := p.scale(1); r != "" {
		t.Fatalf("refused: %s", r)
	}
	p.wait(time.Minute)
	for name, attempt := range map[string]int{"ps-0": 0, "worker-0": 0} {
		if k := p.named(name); k.Attempt != attempt || k.PID == 0 {
			t.Errorf("%s runs attempt %d as process %d", name, k.Attempt, k.PID)
		}
	}
	for _, name := range []string{"worker-1", "worker-2"} {
		if k := p.named(name); k.State != proto.TaskState_TASK_STATE_PARKED || k.Cause != event.CauseScaledDown {
			t.Errorf("%s is %s: %s", name, k.State, k.Cause)
		}
	}
	p.scale(2)
	if k := p.named("worker-1"); k.PID == 0 || k.Attempt != 1 {
		t.Errorf("worker-1 runs attempt %d as process %d", k.Attempt, k.PID)
	}
	p.exit("worker-0", event.TaskExited{})
	p.state(proto.JobState_JOB_STATE_RUNNING)
	p.exit("worker-1", event.TaskExited{})
	p.state(proto.JobState_JOB_STATE_SUCCEEDED)
}

// TestASuccessorKnowsWhatIsSurplus: the number that a person wants outlives an application
// master.
func TestASuccessorKnowsWhatIsSurplus(t *testing.T) {
	p := playElastic(t, core.Limits{})
	p.scale(2)
	p.step(event.CheckpointSealed{})
	p.members("worker-0", "worker-1")
	mark := p.log.Len()
	p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c2": "n2"}})
	p.attach("c1", "c2")
	p.wait(time.Minute)
	p.members("worker-0", "worker-1")
	if strings.Contains(p.since(mark), "action.Ask{") {
		t.Errorf("containers are asked for that nobody wants:\n%s", p.since(mark))
	}
}

// TestWhoACheckpointNeedsStays: that as many ranks only can read it as have saved it is known
// once there is one, and a person may have wanted fewer before.
func TestWhoACheckpointNeedsStays(t *testing.T) {
	p := playElastic(t, core.Limits{})
	p.step(event.ScaleRequested{Role: "worker", Count: 3, User: "alice"})
	p.wait(time.Second)
	p.step(event.CheckpointSealed{FixedWorld: true})
	p.wait(time.Hour)
	p.members("worker-0", "worker-1", "worker-2", "worker-3")
	p.says("so that worker-3 cannot be done without")
	if p.named("worker-0").Attempt != 0 {
		t.Errorf("the others were stopped\n%s", p.log.String())
	}

	// One that has been stopped already comes back.
	p = playElastic(t, core.Limits{})
	p.mute["TaskExited"], p.mute["Allocated"] = true, true
	p.step(event.ScaleRequested{Role: "worker", Count: 3, User: "alice"})
	p.step(event.CheckpointSealed{})
	p.step(event.CheckpointSealed{FixedWorld: true})
	for i := range 4 {
		p.exit(fmt.Sprintf("worker-%d", i), event.TaskExited{Signal: 15, Stopped: true})
	}
	p.wait(time.Hour)
	p.starts("worker-0", false)
	p.free("worker-3", "c9")
	p.members("worker-0", "worker-1", "worker-2", "worker-3")
}

func TestScalingIsRefused(t *testing.T) {
	for _, s := range []struct {
		name  string
		roles []*proto.RoleSpec
		do    func(*player)
		n     int32
		want  string
	}{
		{"no range", ranks(4), nil, 3, "was submitted with 4 tasks, no more and no fewer; a range, as --worker 1..4"},
		{"too many", elastic(2, 4), nil, 5, "with 2 to 4 tasks"},
		{"too few", elastic(2, 4), nil, 1, "with 2 to 4 tasks"},
		{"no multiple", func() []*proto.RoleSpec {
			roles := elastic(2, 4)
			roles[0].Multiple = 2
			return roles
		}(), nil, 3, "a multiple of 2"},
		{"another role", []*proto.RoleSpec{{Name: "ps", Count: 2}}, nil, 1, "no role worker"},
		{"a job that ends", elastic(2, 4), func(p *player) {
			p.mute["TaskExited"] = true
			p.step(event.Kill{Why: "enough"})
		}, 3, "the job ends"},
		{"checkpoints for as many ranks only", elastic(2, 4), func(p *player) { p.step(event.CheckpointSealed{FixedWorld: true}) }, 3, "as many ranks only as have saved it, which are 4"},
	} {
		t.Run(s.name, func(t *testing.T) {
			p := playWith(t, s.roles, 3, 0, core.Limits{})
			p.step(event.Begin{})
			if s.do != nil {
				s.do(p)
			}
			if r := p.scale(s.n); !strings.Contains(r, s.want) {
				t.Errorf("refused with %q; want %q", r, s.want)
			}
		})
	}
}

// TestWhatTheSchedulerWantsLeavesHoweverManyAreWanted: it takes the container in any case.
func TestWhatTheSchedulerWantsLeavesHoweverManyAreWanted(t *testing.T) {
	for name, then := range map[string]func(p *player, warn func()){
		"wanted all the time": func(p *player, warn func()) { warn(); p.scale(3); p.scale(4) },
		"surplus before":      func(p *player, warn func()) { p.scale(3); warn(); p.scale(4) },
		"surplus meanwhile":   func(p *player, warn func()) { p.scale(2); p.scale(3); warn(); p.scale(4) },
	} {
		t.Run(name, func(t *testing.T) {
			p := playElastic(t, core.Limits{})
			p.t = t
			p.mute["Allocated"] = true
			then(p, func() {
				p.step(event.PreemptionWarned{Containers: []string{"c4"}, Strict: true, Within: 16 * time.Second})
			})
			p.wait(8 * time.Second)
			p.says("action.Vacate{Container:c4 Grace:4s}")
			p.members("worker-0", "worker-1", "worker-2")
		})
	}
}
