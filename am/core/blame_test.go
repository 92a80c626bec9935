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

var peerGone = event.TaskExited{Code: 1, PeerLost: true, Error: "RuntimeError: Connection closed by peer", Tail: []string{"Connection closed by peer"}}

// TestTranscriptsOfBlame: several ranks end, and one of them is the reason.
func TestTranscriptsOfBlame(t *testing.T) {
	culprit := event.TaskExited{Code: 1, Error: "ValueError: bad batch", Tail: []string{"ValueError: bad batch"}, Step: 7}
	at := func(e event.TaskExited, ms int64) event.TaskExited { e.AtMS = ms; return e }
	stopped := func(e event.TaskExited) event.TaskExited { e.Stopped = true; return e }
	for _, s := range []struct {
		name    string
		script  func(p *player)
		charged string // "" for nobody
		because string // of which the event log says that all start again
	}{
		{"the culprit ends last", func(p *player) {
			p.exit("worker-0", peerGone)
			p.exit("worker-1", peerGone)
			p.exit("worker-2", culprit)
		}, "worker-2", "worker-2: its process failed (ValueError: bad batch)"},
		{"the culprit ends last, and the signal to stop has reached it", func(p *player) {
			p.exit("worker-0", peerGone)
			p.exit("worker-1", stopped(event.TaskExited{Code: 143}))
			p.exit("worker-2", stopped(culprit))
		}, "worker-2", "worker-2: its process failed (ValueError: bad batch)"},
		{"the culprit dies of the signal to stop", func(p *player) {
			p.exit("worker-0", peerGone)
			p.exit("worker-1", stopped(event.TaskExited{Signal: 15}))
			p.exit("worker-2", stopped(event.TaskExited{Signal: 15, Error: "ValueError: bad batch"}))
		}, "worker-2", "worker-2: its process failed (ValueError: bad batch)"},
		{"who dies of the signal to stop in a shell is not to blame", func(p *player) {
			p.exit("worker-0", peerGone)
			p.exit("worker-1", stopped(event.TaskExited{Code: 137}))
			p.exit("worker-2", stopped(event.TaskExited{Code: 137}))
		}, "worker-0", "worker-0: a peer was lost (RuntimeError: Connection closed by peer)"},
		{"the culprit aborts in a shell", func(p *player) {
			p.exit("worker-0", peerGone)
			p.exit("worker-1", peerGone)
			p.exit("worker-2", event.TaskExited{Code: 134, Detail: "exited with 134 (a shell's code for SIGABRT)", Error: "terminate called", Step: 7})
		}, "worker-2", "worker-2: its process failed (exited with 134 (a shell's code for SIGABRT): terminate called)"},
		{"two fail, and the first of them is not heard first", func(p *player) {
			p.exit("worker-0", at(culprit, 2000))
			p.exit("worker-1", at(culprit, 1000))
			p.exit("worker-2", stopped(event.TaskExited{Signal: 15}))
		}, "worker-1", "worker-1: its process failed (ValueError: bad batch)"},
		{"who fails when told to stop is not to blame", func(p *player) {
			p.exit("worker-0", culprit)
			p.exit("worker-1", stopped(at(culprit, 1)))
			p.exit("worker-2", stopped(event.TaskExited{Signal: 15}))
		}, "worker-0", "worker-0: its process failed (ValueError: bad batch)"},
		{"a container was lost", func(p *player) {
			p.exit("worker-0", peerGone)
			p.exit("worker-1", stopped(event.TaskExited{Code: 1}))
			p.step(event.ContainerEnded{Container: p.hosted["worker-2"], Cause: event.CausePreempted, Diagnostics: "preempted"})
		}, "", "worker-2: container preempted (preempted)"},
		{"all blame a peer", func(p *player) {
			p.exit("worker-0", at(peerGone, 2000))
			p.exit("worker-1", at(peerGone, 1000))
			p.exit("worker-2", at(peerGone, 3000))
		}, "worker-1", "worker-1: a peer was lost (RuntimeError: Connection closed by peer)"},
		{"another application master judges", func(p *player) {
			p.exit("worker-0", peerGone)
			p.exit("worker-2", culprit)
			p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c2": "n2", "c3": "n0"}})
			for i, c := range []string{"c1", "c3"} {
				p.step(event.AgentConnected{Container: c, Host: "h", PID: 100, Task: fmt.Sprintf("worker-%d", 2*i), Port: 20000, Exited: &event.TaskExited{Code: 1}})
			}
			p.mute["TaskExited"] = false
			p.step(event.AgentConnected{Container: "c2", Host: "h", PID: 100, Task: "worker-1", Port: 20000, TaskPID: 200})
		}, "worker-2", "worker-2: its process failed (ValueError: bad batch)"},
	} {
		t.Run(strings.ReplaceAll(s.name, " ", "-"), func(t *testing.T) {
			p := play(t, ranks(3), 3)
			p.t = t
			p.step(event.Begin{})
			p.mute["TaskExited"] = true // they end as the script says
			s.script(p)
			p.mute["TaskExited"] = false
			p.wait(time.Minute)
			p.state(proto.JobState_JOB_STATE_RUNNING)
			for _, task := range p.job.Tasks() {
				want := 0
				if task.Name == s.charged {
					want = 1
				}
				if task.Failures() != want || task.Attempt != 1 {
					t.Errorf("%s is charged with %d failures, want %d, and runs attempt %d", task.Name, task.Failures(), want, task.Attempt)
				}
			}
			p.says("generation 1: all tasks start again because of " + s.because)
			if n := strings.Count(p.log.String(), "all tasks start again"); n != 1 {
				t.Errorf("why all start again is told %d times\n%s", n, p.log.String())
			}
			p.golden()
		})
	}
}

// TestAGenerationFailsOnce: where every rank fails, each time another first, the job
// ends after as many generations as one task may have attempts.
func TestAGenerationFailsOnce(t *testing.T) {
	p := play(t, ranks(4), 3)
	p.step(event.Begin{})
	generations := 0
	for ; !p.job.Finished(); generations++ {
		if generations == 20 {
			t.Fatal("it never ends")
		}
		first := generations % 4
		p.mute["TaskExited"] = true
		for i := range 4 {
			p.exit(fmt.Sprintf("worker-%d", (first+i)%4), event.TaskExited{Code: 1, Step: int64(generations + 1), AtMS: int64(1000 + i)})
		}
		p.mute["TaskExited"] = false
		p.wait(time.Minute)
	}
	if _, why := p.job.State(); generations != 4 || !strings.Contains(why, "worker-3") {
		t.Errorf("%d generations: %s\n%s", generations, why, p.log.String())
	}
}

// TestTheSignalThatStopsIsNoReason: of a rank that had failed before it was stopped, its own error
// is told, and not by which signal the agent then ended its launcher.
func TestTheSignalThatStopsIsNoReason(t *testing.T) {
	p := play(t, ranks(2), 3)
	p.step(event.Begin{})
	p.mute["TaskExited"] = true
	p.exit("worker-0", peerGone)
	p.exit("worker-1", event.TaskExited{Signal: 15, Stopped: true, Detail: "killed by SIGTERM", Error: "ValueError: bad batch", Step: 4})
	p.mute["TaskExited"] = false
	p.wait(time.Minute)
	if log := p.log.String(); !strings.Contains(log, "because of worker-1: its process failed (ValueError: bad batch)") || strings.Contains(log, "SIGTERM: ") {
		t.Errorf("the event log is\n%s", log)
	}
	if n := p.named("worker-1").Failures(); n != 1 {
		t.Errorf("worker-1 is charged with %d failures", n)
	}
}

// TestTheSameErrorEachTime: before the first step, a second attempt that fails in the
// same way is the last.
func TestTheSameErrorEachTime(t *testing.T) {
	fails := func(text string, step int64) event.TaskExited {
		return event.TaskExited{Code: 1, Error: text, Step: step, Tail: []string{text}}
	}
	for _, c := range []struct {
		name   string
		roles  []*proto.RoleSpec
		script func(p *player)
		want   int // attempts, of 0 to 3 in all
	}{
		{"the same", psAndWorkers(1, 1), func(p *player) { p.exit("worker-0", fails("KeyError: 'x' at 0x7f12", 0)) }, 2},
		{"the same, of any rank", ranks(2), func(p *player) { p.exit("worker-0", fails("KeyError: 'x'", 0)) }, 2},
		{"no exception, but the same last line", psAndWorkers(1, 1), func(p *player) {
			p.exit("worker-0", event.TaskExited{Code: 2, Tail: []string{"python: can't open file 'train.py': [Errno 2]"}})
		}, 2},
		{"another each time", psAndWorkers(1, 1), func(p *player) {
			p.exit("worker-0", fails("KeyError: "+strings.Repeat("x", p.named("worker-0").Attempt), 0))
		}, 4},
		{"after a step", psAndWorkers(1, 1), func(p *player) { p.exit("worker-0", fails("KeyError: 'x'", 1)) }, 4},
		{"after a while", psAndWorkers(1, 1), func(p *player) {
			p.wait(3 * time.Minute)
			p.exit("worker-0", fails("KeyError: 'x'", 0))
		}, 4},
		{"a first attempt that made steps", psAndWorkers(1, 1), func(p *player) {
			p.exit("worker-0", fails("KeyError: 'x'", int64(1-min(1, p.named("worker-0").Attempt))))
		}, 4},
		{"nothing is known of it", psAndWorkers(1, 1), func(p *player) { p.exit("worker-0", event.TaskExited{Signal: 9}) }, 4},
	} {
		p := play(t, c.roles, 3)
		p.step(event.Begin{})
		n := 0
		for ; n < 10 && !p.job.Finished(); n++ {
			c.script(p)
			p.wait(time.Minute)
		}
		if state, why := p.job.State(); n != c.want || state != proto.JobState_JOB_STATE_FAILED {
			t.Errorf("%s: %d attempts, then it is %s: %s", c.name, n, state, why)
		}
	}
}

// TestWhoBlamesAPeerStartsWithTheOthers: while all tasks start together, a task that
// has blamed a parameter server does not wait for that, which waits for it.
func TestWhoBlamesAPeerStartsWithTheOthers(t *testing.T) {
	roles := append(psAndWorkers(1, 1), ranks(2)[0])
	roles[2].Name = "rank"
	p := play(t, roles, 3)
	p.step(event.Begin{})
	p.exit("ps-0", event.TaskExited{Signal: 9, Detail: "killed by SIGKILL"})
	p.exit("ps-0", event.TaskExited{Signal: 9, Detail: "killed by SIGKILL"}) // its next attempt waits for a while
	p.exit("worker-0", peerGone)
	p.exit("rank-0", event.TaskExited{Code: 1, Error: "ValueError: bad batch"})
	p.exit("rank-1", event.TaskExited{Signal: 15, Stopped: true})
	p.wait(5 * time.Minute)
	for _, name := range []string{"ps-0", "worker-0", "rank-0", "rank-1"} {
		if s := p.named(name).State; s != proto.TaskState_TASK_STATE_RUNNING {
			t.Errorf("%s is %s\n%s", name, s, p.log.String())
		}
	}
}

// TestNobodyIsBlamedForWhatIsNotKnown: without a journal, and without the agent of the
// one that failed, all that is heard is that a peer was lost.
func TestNobodyIsBlamedForWhatIsNotKnown(t *testing.T) {
	p := play(t, ranks(2), 3)
	p.step(event.Begin{})
	p.forgets = true
	p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c2": "n2"}})
	p.step(event.AgentConnected{Container: "c2", Host: "h", PID: 100, Task: "worker-1", Port: 20000, PeerPort: 20000,
		Exited: &event.TaskExited{Container: "c2", Code: 1, PeerLost: true}})
	p.wait(time.Minute)
	if w := p.named("worker-1"); w.Failures() != 0 || w.State != proto.TaskState_TASK_STATE_RUNNING || w.Attempt != 1 {
		t.Errorf("%s is %s, attempt %d, after %d failures\n%s", w.Name, w.State, w.Attempt, w.Failures(), p.log.String())
	}
}

// TestWhatExcusesAnEndExcusesItLater: shortly after a directory was removed, a failure is
// nobody's, also where the other ranks take so long to stop that it is attributed when
// that was long ago.
func TestWhatExcusesAnEndExcusesItLater(t *testing.T) {
	for _, slow := range []time.Duration{0, 20 * time.Second} {
		p := play(t, ranks(3), 3)
		p.step(event.Begin{})
		p.step(event.AgentFailed{Container: "c3", Detail: "its directory was removed", DirectoryRemoved: true})
		p.wait(50 * time.Second) // of a minute
		p.mute["TaskExited"] = true
		p.exit("worker-0", event.TaskExited{Code: 1, Error: "ValueError: half a checkpoint", Step: 1})
		p.wait(slow)
		for _, name := range []string{"worker-1", "worker-2"} {
			p.exit(name, event.TaskExited{Signal: 15, Stopped: true})
		}
		p.mute["TaskExited"] = false
		p.wait(time.Minute)
		for _, w := range p.job.Tasks() {
			if w.Failures() != 0 || w.State != proto.TaskState_TASK_STATE_RUNNING {
				t.Errorf("others stop after %s: %s is %s, after %d failures\n%s", slow, w.Name, w.State, w.Failures(), p.log.String())
			}
		}
	}
}

// TestAFailureBeforeATakeOverIsItsOwners: the application master that stopped a rank, which
// had failed by itself, was lost before it wrote that down. To the next one its end looks
// as if it had only been stopped, and another rank blames a peer.
func TestAFailureBeforeATakeOverIsItsOwners(t *testing.T) {
	p := play(t, ranks(2), 3)
	p.step(event.Begin{})
	p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c2": "n2"}})
	p.step(event.AgentConnected{Container: "c2", Host: "h", PID: 100, Task: "worker-1", Port: 20000, PeerPort: 20000,
		Exited: &event.TaskExited{Signal: 15, Stopped: true, Error: "ValueError: bad batch", Step: 4}})
	p.step(event.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "worker-0", Port: 20000, PeerPort: 20000,
		Exited: &event.TaskExited{Code: 1, PeerLost: true, Step: 4}})
	p.wait(time.Minute)
	if w0, w1 := p.named("worker-0").Failures(), p.named("worker-1").Failures(); w0 != 0 || w1 != 1 {
		t.Errorf("worker-0 is charged with %d failures, and worker-1 with %d\n%s", w0, w1, p.log.String())
	}
}

// TestAnOldFailureIsNotChargedAgain: an application master without a journal is told of an
// end that one before it had charged to another task.
func TestAnOldFailureIsNotChargedAgain(t *testing.T) {
	p := play(t, ranks(2), 3)
	p.step(event.Begin{})
	p.forgets = true
	p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c2": "n2"}})
	p.step(event.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "worker-0", Port: 20000, PeerPort: 20000, Attempt: 2, Generation: 2, TaskPID: 200})
	p.step(event.AgentConnected{Container: "c2", Host: "h", PID: 100, Task: "worker-1", Port: 20000, PeerPort: 20000, Attempt: 1, Generation: 1,
		Exited: &event.TaskExited{Attempt: 1, Code: 1, PeerLost: true}})
	if w := p.named("worker-1"); w.Failures() != 0 || w.State != proto.TaskState_TASK_STATE_RUNNING || p.job.Generation() != 3 {
		t.Errorf("it is %s in generation %d, and charged with %d failures\n%s", w.State, p.job.Generation(), w.Failures(), p.log.String())
	}
}

// TestWhoServesOthersCanWorkIfTheyDo: a task that makes no steps itself, as a parameter server
// or a node of Ray, is not given up for failing twice alike where others made steps with it.
func TestWhoServesOthersCanWorkIfTheyDo(t *testing.T) {
	for _, completion := range []proto.CompletionRule{proto.CompletionRule_COMPLETION_RULE_SERVICE, proto.CompletionRule_COMPLETION_RULE_EITHER} {
		for steps, want := range map[int64]proto.JobState{0: proto.JobState_JOB_STATE_FAILED, 10: proto.JobState_JOB_STATE_RUNNING} {
			roles := psAndWorkers(1, 1)
			roles[0].Completion = completion
			p := playWith(t, roles, 3, 0, core.Limits{})
			p.step(event.Begin{})
			for range 2 {
				p.step(event.StepsReported{Steps: []event.Step{{Task: "worker-0", Step: steps}}})
				p.exit("ps-0", event.TaskExited{Code: 1, Error: "OSError: the same"})
				p.wait(2 * time.Second)
			}
			if got, why := p.job.State(); got != want {
				t.Errorf("%s, after %d steps: the job is %s: %s", completion, steps, got, why)
			}
		}
	}
}
