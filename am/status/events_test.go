package status

import (
	"fmt"
	"testing"
	"time"

	"holdfast/am/status/samples"
	"holdfast/proto"
)

// TestTheEventLogIsBounded: also where nothing happens in a job but what is noted of it from outside,
// as the commands that a script runs in its containers.
func TestTheEventLogIsBounded(t *testing.T) {
	s := New(&proto.JobStatus{}, samples.New("", time.Now(), nil), nil, 0)
	const notes = 5000
	for i := range notes {
		s.Note(fmt.Sprint("note ", i))
	}
	status, _ := s.Snapshot()
	n := len(status.Events)
	if n > 2000 {
		t.Fatalf("it has %d entries", n)
	}
	if first, last := status.Events[0].Text, status.Events[n-1].Text; first != "note 0" || last != fmt.Sprint("note ", notes-1) {
		t.Errorf("it begins with %q and ends with %q", first, last)
	}
}
