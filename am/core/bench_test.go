package core_test

import (
	"fmt"
	"testing"
	"time"

	"holdfast/am/core"
	"holdfast/am/core/event"
	"holdfast/am/core/journal"
	"holdfast/proto"
)

// BenchmarkStep is what one event costs in a job of 10,000 running tasks: nearly all of
// them have nothing to do with it.
func BenchmarkStep(b *testing.B) {
	const size = 10000
	for name, event := range map[string]func(i int) event.Event{
		"Tick":              func(int) event.Event { return event.Tick{} },
		"TaskStarted":       func(i int) event.Event { return event.TaskStarted{Container: fmt.Sprintf("c%d", i%size), PID: 2} },
		"AgentDisconnected": func(i int) event.Event { return event.AgentDisconnected{Container: fmt.Sprintf("c%d", i%size)} },
	} {
		b.Run(name, func(b *testing.B) {
			role := &proto.RoleSpec{Name: "worker", Count: size, Loss: proto.LossRule_LOSS_RULE_ALONE, Completion: proto.CompletionRule_COMPLETION_RULE_REQUIRED}
			now := time.Unix(1000, 0)
			job := running(role, now)
			b.ResetTimer()
			for i := range b.N {
				if i%size == size-1 && name == "AgentDisconnected" {
					b.StopTimer()
					job = running(role, now)
					b.StartTimer()
				}
				job.Step(now, event(i))
			}
			if state, why := job.State(); state != proto.JobState_JOB_STATE_RUNNING {
				b.Errorf("the job is %s: %s", state, why)
			}
		})
	}
}

// running is a job whose tasks all run, each in the container of its number.
func running(role *proto.RoleSpec, now time.Time) *core.Job {
	var tasks []core.Task
	for i := range int(role.Count) {
		tasks = append(tasks, core.Task{Name: fmt.Sprintf("%s-%d", role.Name, i), Role: role, Index: i})
	}
	job := core.New(tasks, 3, 0, core.Limits{})
	saved := journal.Journal{}
	handed := map[string]string{}
	for i, t := range tasks {
		c := fmt.Sprintf("c%d", i)
		handed[c] = "n"
		saved.Tasks = append(saved.Tasks, journal.TaskRecord{Name: t.Name, State: proto.TaskState_TASK_STATE_RUNNING, Container: c, PID: 1, Port: 1})
	}
	job.Resume(saved)
	job.Step(now, event.Recovered{Containers: handed})
	for i, t := range tasks {
		job.Step(now, event.AgentConnected{Container: fmt.Sprintf("c%d", i), Task: t.Name, Port: 1, TaskPID: 1})
	}
	return job
}
