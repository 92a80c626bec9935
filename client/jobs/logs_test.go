package jobs

import "testing"

func TestTaskOrder(t *testing.T) {
	if !taskLess("worker-2", "worker-10") || taskLess("worker-10", "worker-2") || !taskLess("ps-1", "worker-0") {
		t.Error("tasks are in a wrong order")
	}
}
