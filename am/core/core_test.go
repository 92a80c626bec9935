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

func TestTranscripts(t *testing.T) {
	succeeded, failed, killed, running := proto.JobState_JOB_STATE_SUCCEEDED, proto.JobState_JOB_STATE_FAILED, proto.JobState_JOB_STATE_KILLED, proto.JobState_JOB_STATE_RUNNING
	for _, s := range []struct {
		name     string
		roles    []*proto.RoleSpec
		restarts int
		script   func(p *player)
		want     proto.JobState
	}{
		{"all goes well", psAndWorkers(1, 2), 3, func(p *player) {
			p.step(event.Begin{})
			p.exit("worker-0", event.TaskExited{})
			p.exit("worker-1", event.TaskExited{})
		}, succeeded},
		{"a process dies", psAndWorkers(1, 1), 3, func(p *player) {
			p.step(event.Begin{})
			p.exit("ps-0", event.TaskExited{Signal: 9})
		}, running},
		{"a process dies again and again", psAndWorkers(1, 1), 2, func(p *player) {
			p.step(event.Begin{})
			for range 3 {
				p.exit("worker-0", event.TaskExited{Code: 1, Step: 9, Tail: []string{"ValueError"}})
				p.wait(time.Minute)
			}
		}, failed},
		{"a process dies now and then", psAndWorkers(1, 1), 3, func(p *player) {
			p.step(event.Begin{})
			for range 3 {
				p.wait(3 * time.Minute)
				p.exit("ps-0", event.TaskExited{Signal: 9})
			}
		}, running},
		{"a container is lost", psAndWorkers(1, 1), 3, func(p *player) {
			p.step(event.Begin{})
			p.step(event.AgentDisconnected{Container: "c1"})
			p.step(event.ContainerEnded{Container: "c1", Cause: event.CauseOwnFault, Exit: 137})
		}, running},
		{"an agent is silent and its container does not end", psAndWorkers(1, 1), 3, func(p *player) {
			p.step(event.Begin{})
			p.step(event.AgentDisconnected{Container: "c1"})
			p.wait(time.Minute)
		}, running},
		{"an agent is connected again", psAndWorkers(1, 1), 3, func(p *player) {
			p.step(event.Begin{})
			p.step(event.AgentDisconnected{Container: "c1"})
			p.wait(2 * time.Second)
			p.step(event.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "ps-0", Port: 20000, TaskPID: 200})
			p.wait(time.Minute)
		}, running},
		{"a process ends while its agent is not connected", psAndWorkers(1, 1), 3, func(p *player) {
			p.step(event.Begin{})
			p.step(event.AgentDisconnected{Container: "c2"})
			p.wait(2 * time.Second)
			p.step(event.AgentConnected{Container: "c2", Host: "h", PID: 100, Task: "worker-0", Port: 20000, Exited: &event.TaskExited{}})
		}, succeeded},
		{"a worker comes back to what the parameter servers hold", psAndWorkers(1, 1), 9, func(p *player) {
			p.step(event.Begin{})
			p.exit("worker-0", event.TaskExited{Signal: 9}) // nothing is saved yet
			p.wait(time.Minute)
			p.step(event.CheckpointSealed{})
			p.step(event.CheckpointSealed{})
			p.exit("worker-0", event.TaskExited{Signal: 9})
			p.wait(time.Minute)
			p.exit("worker-0", event.TaskExited{Code: 1}) // maybe because of what they hold
			p.wait(time.Minute)
			// It may have put the last checkpoint on half of them.
			p.step(event.ContainerEnded{Container: "c2", Cause: event.CausePreempted, Diagnostics: "preempted"})
			p.wait(time.Minute)
			p.step(event.CheckpointSealed{})
			p.step(event.CheckpointSealed{})
			p.step(event.ContainerEnded{Container: "c3", Cause: event.CausePreempted, Diagnostics: "preempted"})
			p.wait(time.Minute)
			p.exit("ps-0", event.TaskExited{Signal: 9})
			p.exit("worker-0", event.TaskExited{Signal: 9, PeerLost: true})
			p.wait(time.Minute)
			p.step(event.CheckpointSealed{}) // it may be of before
			p.exit("worker-0", event.TaskExited{Signal: 9})
			p.wait(time.Minute)
			p.step(event.CheckpointSealed{})
			p.step(event.CheckpointSealed{})
			p.exit("worker-0", event.TaskExited{Signal: 9})
			p.wait(time.Minute)
		}, running},
		{"an agent that is silent had prepared its task", psAndWorkers(0, 1), 3, func(p *player) {
			p.mute["AgentPrepared"] = true
			p.step(event.Begin{})
			p.step(event.AgentDisconnected{Container: "c1"})
			p.mute["AgentPrepared"] = false
			p.step(event.AgentPrepared{Container: "c1", Port: 20000}) // heard late
			p.wait(time.Minute)
		}, running},
		{"an agent never heard of an attempt", psAndWorkers(0, 1), 3, func(p *player) {
			p.mute["TaskStarted"] = true
			p.step(event.Begin{})
			p.step(event.AgentDisconnected{Container: "c1"})
			p.mute["TaskStarted"] = false
			p.step(event.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "worker-0", Port: 20000, Attempt: -1})
		}, running},
		{"an agent never heard that its attempt is to go on from what parameter servers hold", psAndWorkers(1, 1), 3, func(p *player) {
			p.step(event.Begin{})
			p.step(event.CheckpointSealed{})
			p.step(event.CheckpointSealed{})
			p.mute["TaskStarted"] = true
			p.exit("worker-0", event.TaskExited{Signal: 9})
			p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c2": "n2"}})
			p.mute["TaskStarted"] = false
			p.step(event.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "ps-0", Port: 20000, TaskPID: 200})
			p.step(event.AgentConnected{Container: "c2", Host: "h", PID: 100, Task: "worker-0", Port: 20000, Exited: &event.TaskExited{Signal: 9}})
		}, running},
		{"a NodeManager is lost and its containers go on", psAndWorkers(1, 1), 3, func(p *player) {
			p.mute["AgentDisconnected"] = true
			p.step(event.Begin{})
			p.step(event.ContainerEnded{Container: "c1", Cause: event.CauseNodeLost, Diagnostics: "node lost"})
			p.wait(2 * time.Second)
			p.step(event.AgentDisconnected{Container: "c1", Orderly: true})
		}, running},
		{"a second loss while the store is made safe", psAndWorkers(2, 1), 3, func(p *player) {
			p.step(event.Begin{})
			p.mute["StorePrepared"] = true
			p.exit("ps-0", event.TaskExited{Signal: 9})
			p.now = p.now.Add(time.Second)
			p.exit("ps-1", event.TaskExited{Signal: 9})
			p.now = p.now.Add(time.Second)
			p.mute["StorePrepared"] = false
			p.step(event.StorePrepared{})
		}, running},
		{"another application master takes over", psAndWorkers(2, 2), 3, func(p *player) {
			p.step(event.Begin{})
			p.exit("worker-1", event.TaskExited{})
			p.exit("ps-0", event.TaskExited{Signal: 9})
			p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c3": "n0", "c9": "n2"}})
			p.step(event.ContainerEnded{Container: "c2", Cause: event.CauseKilled, Exit: 137})
			p.step(event.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "ps-0", Port: 20000, Attempt: 1, TaskPID: 200})
			p.wait(time.Second)
			p.step(event.AgentConnected{Container: "c3", Host: "h", PID: 100, Task: "worker-0", Port: 20000, Exited: &event.TaskExited{}})
		}, succeeded},
		{"another application master is not told what became of a container", psAndWorkers(1, 1), 3, func(p *player) {
			p.step(event.Begin{})
			p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c2": "n2"}})
			p.step(event.AgentConnected{Container: "c2", Host: "h", PID: 100, Task: "worker-0", Port: 20000, Attempt: 0, TaskPID: 200})
			p.wait(time.Minute)
		}, running},
		{"another application master takes over, and the node manager of the one before is gone", psAndWorkers(1, 1), 3, func(p *player) {
			p.step(event.Begin{})
			p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c2": "n2"}})
			p.step(event.AgentConnected{Container: "c2", Host: "h", PID: 100, Task: "worker-0", Port: 20000, Attempt: 0, TaskPID: 200})
			p.step(event.ContainerEnded{Container: "c1", Cause: event.CauseNodeLost, Diagnostics: "lost"})
			p.step(event.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "ps-0", Port: 20000, Attempt: 0, TaskPID: 200})
			p.wait(time.Minute)
		}, running},
		{"another application master brings a rank back that had succeeded", ranks(2), 3, func(p *player) {
			p.step(event.Begin{})
			p.exit("worker-1", event.TaskExited{})
			p.step(event.ContainerEnded{Container: "c2", Cause: event.CausePreempted})
			p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{}})
			p.wait(time.Minute)
		}, running},
		{"an agent does not come back to another application master", psAndWorkers(0, 1), 3, func(p *player) {
			p.step(event.Begin{})
			p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1"}})
			p.wait(time.Minute)
		}, running},
		{"a worker ends because its parameter server was lost", psAndWorkers(1, 1), 0, func(p *player) {
			p.step(event.Begin{})
			p.exit("worker-0", event.TaskExited{Code: 1, PeerLost: true})
			p.step(event.ContainerEnded{Container: "c1", Cause: event.CauseKilled, Diagnostics: "killed"})
			p.wait(time.Minute)
		}, running},
		{"two workers blame each other for ever", psAndWorkers(0, 2), 3, func(p *player) {
			p.step(event.Begin{})
			for i := 0; !p.job.Finished() && i < 100; i++ {
				p.exit(fmt.Sprintf("worker-%d", i%2), event.TaskExited{Code: 1, PeerLost: true})
				p.wait(5 * time.Second)
			}
		}, failed},
		{"a worker blames a peer that was never lost", psAndWorkers(1, 1), 0, func(p *player) {
			p.step(event.Begin{})
			p.exit("worker-0", event.TaskExited{Code: 1, PeerLost: true})
			p.wait(time.Minute)
		}, failed},
		{"the port is taken on the new node", psAndWorkers(1, 1), 3, func(p *player) {
			p.step(event.Begin{})
			p.port = func(string, string) int { return -20007 }
			p.step(event.ContainerEnded{Container: "c1", Cause: event.CausePreempted})
		}, running},
		{"all ranks start again", ranks(3), 3, func(p *player) {
			p.step(event.Begin{})
			p.exit("worker-1", event.TaskExited{Code: 1})
			p.exit("worker-0", event.TaskExited{})
			p.exit("worker-2", event.TaskExited{Signal: 11})
			p.wait(time.Minute)
			for i := range 3 {
				p.exit(fmt.Sprintf("worker-%d", i), event.TaskExited{})
			}
		}, succeeded},
		{"no journal is found, and one agent is silent", psAndWorkers(1, 2), 3, func(p *player) {
			p.step(event.Begin{})
			p.forgets = true
			p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c2": "n2", "c3": "n0"}})
			p.step(event.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "ps-0", Port: 20001, PeerPort: 20000, TaskPID: 200})
			p.step(event.AgentConnected{Container: "c3", Host: "h", PID: 100, Task: "worker-1", Port: 20000, PeerPort: 20000, TaskPID: 200})
			p.containers = 3
			p.wait(12 * time.Second)
		}, running},
		{"no journal is found, and an agent comes that nobody knows of", ranks(1), 3, func(p *player) {
			p.step(event.Begin{})
			p.forgets = true
			p.mute["Allocated"] = true
			p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{}})
			p.wait(12 * time.Second)
			p.mute["Allocated"] = false
			p.step(event.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "worker-0", Port: 20000, PeerPort: 20000, Attempt: 6, Generation: 3, TaskPID: 200})
			p.step(event.Allocated{Request: "worker-0/1", Container: "c2", Node: "n2"})
			p.step(event.AgentDisconnected{Container: "c1", Orderly: true})
		}, running},
		{"no journal is found, and all ranks report", ranks(2), 3, func(p *player) {
			p.step(event.Begin{})
			p.forgets = true
			p.takeOver(event.Recovered{Attempt: 2, Containers: map[string]string{"c1": "n1", "c2": "n2"}})
			p.step(event.AgentConnected{Container: "c1", Host: "h", PID: 100, Task: "worker-0", Port: 20000, PeerPort: 20000, Attempt: 4, Generation: 5, TaskPID: 200})
			p.step(event.AgentConnected{Container: "c2", Host: "h", PID: 100, Task: "worker-1", Port: 20000, PeerPort: 20000, Attempt: 3, Generation: 4,
				Exited: &event.TaskExited{Attempt: 3, Signal: 15, Stopped: true}})
		}, running},
		{"a user kills the job", psAndWorkers(1, 1), 3, func(p *player) {
			p.step(event.Begin{})
			p.step(event.Kill{Why: "killed by alice"})
		}, killed},
		{"killed while it waits", psAndWorkers(1, 1), 3, func(p *player) {
			p.mute["Allocated"] = true
			p.step(event.Begin{})
			p.step(event.Waiting{Why: "the queue is full"})
			p.step(event.Kill{Why: "killed by alice"})
		}, killed},
		{"a task does not stop", psAndWorkers(1, 1), 3, func(p *player) {
			p.step(event.Begin{})
			p.mute["TaskExited"], p.mute["AgentDisconnected"] = true, true
			p.step(event.Kill{Why: "killed by alice"})
			p.wait(time.Minute)
		}, killed},
		{"the command is not there", psAndWorkers(1, 1), 3, func(p *player) {
			p.step(event.Begin{})
			p.exit("worker-0", event.TaskExited{Code: 127, CommandMissing: true, Detail: "pyton: not found"})
		}, failed},
		{"a node cannot mount", psAndWorkers(0, 1), 3, func(p *player) {
			p.mute["AgentPrepared"] = true
			p.step(event.Begin{})
			for i := range 3 {
				p.step(event.AgentFailed{Container: fmt.Sprintf("c%d", i+1), Detail: "no /dev/fuse", NodeSpecific: true})
			}
		}, proto.JobState_JOB_STATE_WAITING},
		{"nothing can mount", psAndWorkers(0, 1), 3, func(p *player) {
			p.mute["AgentPrepared"] = true
			p.step(event.Begin{})
			for i := 1; !p.job.Finished() && i < 100; i++ {
				p.step(event.AgentFailed{Container: fmt.Sprintf("c%d", i), Detail: "no /dev/fuse", NodeSpecific: true})
			}
		}, failed},
		{"an agent never comes up", psAndWorkers(0, 1), 3, func(p *player) {
			p.mute["AgentConnected"] = true
			p.step(event.Begin{})
			p.wait(61 * time.Second)
		}, proto.JobState_JOB_STATE_WAITING},
		{"out of memory", psAndWorkers(0, 1), 1, func(p *player) {
			p.step(event.Begin{})
			for i := range 2 {
				p.step(event.ContainerEnded{Container: fmt.Sprintf("c%d", i+1), Cause: event.CauseOutOfMemory, Diagnostics: "beyond physical memory limits"})
			}
		}, failed},
		{"a container grows after it was too small", growing(psAndWorkers(0, 1), 5000), 3, func(p *player) {
			p.step(event.Begin{})
			p.step(event.ContainerEnded{Container: "c1", Cause: event.CauseOutOfMemory, Diagnostics: "beyond physical memory limits"})
			p.exit("worker-0", event.TaskExited{Signal: 9, OutOfMemory: true})
			p.wait(time.Minute)
		}, running},
		{"a node limits virtual memory", growing(psAndWorkers(0, 1), 3000), 1, func(p *player) {
			p.step(event.Begin{})
			for i := range 3 {
				p.step(event.ContainerEnded{Container: fmt.Sprintf("c%d", i+1), Cause: event.CauseVirtualLimit, Diagnostics: "beyond the 'VIRTUAL' memory limit"})
			}
		}, failed},
		{"a late container is given back", psAndWorkers(0, 1), 3, func(p *player) {
			p.step(event.Begin{})
			p.step(event.Allocated{Request: "worker-0/99", Container: "c99", Node: "n1"})
		}, running},
		{"the evaluator does not matter", append(psAndWorkers(0, 1), &proto.RoleSpec{Name: "evaluator", Count: 1,
			Loss: proto.LossRule_LOSS_RULE_ALONE, Completion: proto.CompletionRule_COMPLETION_RULE_OPTIONAL}), 0, func(p *player) {
			p.step(event.Begin{})
			p.exit("evaluator-0", event.TaskExited{Code: 1})
			p.exit("worker-0", event.TaskExited{})
		}, succeeded},
		{"the chief is done and its workers serve on", coordinated(1, 2), 0, func(p *player) {
			p.step(event.Begin{})
			p.exit("worker-1", event.TaskExited{}) // which is as good
			p.exit("chief-0", event.TaskExited{})
		}, succeeded},
		{"a worker of a chief fails too often", coordinated(1, 2), 0, func(p *player) {
			p.step(event.Begin{})
			p.exit("worker-1", event.TaskExited{Code: 1})
		}, failed},
		{"the cluster breaks", psAndWorkers(1, 1), 3, func(p *player) {
			p.step(event.Begin{})
			p.step(event.Broken{Why: "the ResourceManager does not know this attempt"})
		}, failed},
	} {
		t.Run(strings.ReplaceAll(s.name, " ", "-"), func(t *testing.T) {
			p := play(t, s.roles, s.restarts)
			p.t = t
			s.script(p)
			p.state(s.want)
			if s.want.Done() != p.job.Finished() {
				t.Errorf("finished: %v", p.job.Finished())
			}
			p.golden()
		})
	}
}

// TestWaitingIsToldOnce: also while the amounts of its reason change each second.
func TestWaitingIsToldOnce(t *testing.T) {
	p := playWith(t, ranks(2), 3, 0, core.Limits{})
	p.mute["Allocated"] = true
	p.step(event.Begin{})
	for _, why := range []string{
		"the queue is full (4.2 GB of at most 6 GB in use): it leaves this job 64 MB",
		"the queue is full (4.2 GB of at most 6 GB in use): it leaves this job nothing",
		"the queue is full (2.2 GB of at most 6 GB in use): it leaves this job 768 MB",
	} {
		p.step(event.Waiting{Why: why})
		if _, now := p.job.State(); now != why {
			t.Errorf("the job waits for %q; want %q", now, why)
		}
	}
	if n := strings.Count(p.log.String(), "action.Record{Task: Kind:waiting"); n != 1 {
		t.Errorf("the event log has it %d times:\n%s", n, p.log.String())
	}
	p.step(event.Waiting{Why: "no node has 1 GB free now"})
	p.says("no node has 1 GB free now")
}

// TestTextsOfTheEventLog: names of files may have any bytes, and messages only UTF-8.
func TestTextsOfTheEventLog(t *testing.T) {
	p := play(t, ranks(1), 3)
	p.step(event.Begin{})
	p.step(event.Noted{Text: "moved r\xe9sum\xe9 aside"})
	p.says("moved r\ufffdsum\ufffd aside")
}
