package submit

import (
	"testing"
	"time"

	"holdfast/internal/hadoop/yarn"
	"holdfast/proto"
)

// TestMasterKeepsWithinItsContainer: the limit follows the container's memory.
func TestMasterKeepsWithinItsContainer(t *testing.T) {
	for _, c := range []struct {
		tasks  int32
		memory int64
		want   string
	}{{1, 0, "230MiB"}, {13000, 0, "1130MiB"}, {13000, 2000, "1800MiB"}} {
		spec := &proto.JobSpec{AmMemoryMb: c.memory, Roles: []*proto.RoleSpec{{Name: "worker", Count: c.tasks}}}
		if got := environmentOfMaster("job", "dir", resourceOfMaster(spec))["GOMEMLIMIT"]; got != c.want {
			t.Errorf("with %d tasks the limit is %s, want %s", c.tasks, got, c.want)
		}
	}
}

// A job's application has the reservation that its spec names, and its attempts count for ten
// minutes.
func TestWhatASpecSaysOfItsApplication(t *testing.T) {
	s, err := submissionOf(&proto.JobSpec{Reservation: "reservation_1700000000000_0012"})
	if err != nil {
		t.Fatal(err)
	}
	if want := (yarn.ReservationID{Timestamp: 1700000000000, Number: 12}); s.Reservation != want || s.AttemptsWithin != 10*time.Minute || s.MaxAttempts < 2 {
		t.Errorf("submitted is %+v", s)
	}
	if _, err := submissionOf(&proto.JobSpec{Reservation: "tomorrow"}); err == nil {
		t.Error("what is no reservation is one")
	}
}
