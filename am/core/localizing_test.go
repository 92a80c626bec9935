package core_test

import (
	"strings"
	"testing"
	"time"

	"holdfast/am/core"
	"holdfast/am/core/event"
	"holdfast/proto"
)

// unpacking plays a job whose container gets its files for a time, told every five
// seconds.
func unpacking(t *testing.T, spares int, d time.Duration) *player {
	t.Helper()
	return unpackingWithin(t, core.Limits{}, spares, d)
}

func unpackingWithin(t *testing.T, limits core.Limits, spares int, d time.Duration) *player {
	t.Helper()
	p := playWith(t, psAndWorkers(0, 1), 3, spares, limits)
	p.mute["AgentConnected"] = true
	p.step(event.Begin{})
	for end := p.now.Add(d); p.now.Before(end); {
		p.wait(5 * time.Second)
		p.step(event.Localizing{Container: "c1", What: "is fetching and unpacking venv.tar.gz (4 GB)"})
	}
	return p
}

func TestAnAgentIsWaitedForWhileItsContainerGetsItsFiles(t *testing.T) {
	p := unpacking(t, 0, 12*time.Minute)
	k := p.named("worker-0")
	if k.Container != "c1" {
		t.Fatalf("its container was given up for %s\n%s", k.Container, p.log.String())
	}
	if n := strings.Count(p.log.String(), "n1 is fetching and unpacking venv.tar.gz (4 GB)"); n != 1 {
		t.Errorf("what is unpacked is told %d times", n)
	}
	p.mute["AgentConnected"] = false
	p.step(event.AgentConnected{Container: "c1", Host: "h", PID: 100})
	p.step(event.Localizing{Container: "c1", What: "is late"})
	if k = p.named("worker-0"); k.State != proto.TaskState_TASK_STATE_RUNNING {
		t.Errorf("it is %s", k.State)
	}
	p.wait(time.Hour)
	if p.named("worker-0").Container != "c1" {
		t.Error("its container was given up after it had begun")
	}
}

func TestTheLimitOfTheStartBeginsWhenFilesAreThere(t *testing.T) {
	limits := core.Limits{Start: 30 * time.Second}
	p := unpackingWithin(t, limits, 0, 12*time.Minute)
	p.mute["AgentConnected"] = false
	p.wait(20 * time.Second)
	p.step(event.AgentConnected{Container: "c1", Host: "h", PID: 100})
	if k := p.named("worker-0"); k.State != proto.TaskState_TASK_STATE_RUNNING {
		t.Errorf("it is %s\n%s", k.State, p.log.String())
	}
	p = unpackingWithin(t, limits, 0, 12*time.Minute)
	p.wait(40 * time.Second)
	if s, why := p.job.State(); s != proto.JobState_JOB_STATE_FAILED || !strings.Contains(why, "within 30s") {
		t.Errorf("a job that cannot start with its files there is %s: %s", s, why)
	}
}

func TestAnAgentThatDoesNotComeIsGivenUpOnceItHasItsFiles(t *testing.T) {
	p := unpacking(t, 0, 2*time.Minute)
	p.wait(61 * time.Second)
	if k := p.named("worker-0"); k.Container == "c1" {
		t.Error("it is waited for")
	}
	if p = unpacking(t, 0, 35*time.Minute); p.named("worker-0").Container == "c1" {
		t.Error("files that never come are waited for")
	}
}
