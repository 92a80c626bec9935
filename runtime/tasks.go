package runtime

import (
	"fmt"
	"strings"

	"holdfast/proto"
)

// Task is one member of a role.
type Task struct {
	Name  string // ps-1
	Role  string
	Index int
}

// Tasks lists the tasks of a job, roles in the user's order. The order never
// changes while the job lives: addresses and ranks follow from it.
func Tasks(spec *proto.JobSpec) []Task {
	var all []Task
	for _, r := range spec.Roles {
		for i := range int(r.Count) {
			all = append(all, Task{Name: taskName(r.Name, i), Role: r.Name, Index: i})
		}
	}
	return all
}

func taskName(role string, index int) string { return fmt.Sprintf("%s-%d", role, index) }

// A third octet has 254 addresses to give: .0 and .255 look like a network's
// own and a broadcast address, which some resolvers and scripts refuse.
const (
	perOctet = 254
	maxTasks = 256 * perOctet
)

// VirtualAddress is the address of the i-th task, for the life of the job. It
// is in 127.77.0.0/16: loopback, so that it can leave the machine by no
// mistake, and away from 127.0.0.1 and Debian's 127.0.1.1.
func VirtualAddress(i int) string {
	return fmt.Sprintf("127.77.%d.%d", i/perOctet, i%perOctet+1)
}

// hosts is the value of {ROLE_hosts}. A task without a port is not there yet
// and may never be, if the job can do without it; it has no address to tell.
func hosts(spec *proto.JobSpec, role string, peers map[string]int) []string {
	list := []string{}
	for _, t := range Tasks(spec) {
		if port := peers[t.Name]; t.Role == role && port != 0 {
			list = append(list, fmt.Sprintf("%s:%d", t.Name, port))
		}
	}
	return list
}

// variable is a role's name as it stands in an environment variable.
func variable(role string) string {
	return strings.ToUpper(strings.ReplaceAll(role, "-", "_"))
}
