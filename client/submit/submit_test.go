package submit

import (
	"testing"

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
