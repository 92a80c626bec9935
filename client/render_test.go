package client

import (
	"fmt"
	"strings"
	"testing"

	"holdfast/proto"
)

// TestStatusOfManyTasks: a person is told of what does not run, and not of
// thousands of tasks that do.
func TestStatusOfManyTasks(t *testing.T) {
	s := &proto.JobStatus{Id: "application_1_0001", State: proto.JobState_JOB_STATE_RUNNING}
	for i := range 5000 {
		s.Tasks = append(s.Tasks, &proto.TaskStatus{Task: fmt.Sprintf("worker-%d", i), Role: "worker", State: proto.TaskState_TASK_STATE_RUNNING})
	}
	s.Tasks[4321].State = proto.TaskState_TASK_STATE_PREPARING
	var b strings.Builder
	if err := WriteStatus(&b, s); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"worker: 1 preparing, 4999 running", "200 of 5000 tasks", "worker-4321"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("status does not say %q:\n%s", want, b.String())
		}
	}
	if n := strings.Count(b.String(), "\n"); n > 210 {
		t.Errorf("status has %d lines", n)
	}
}
