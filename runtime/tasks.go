package runtime

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"holdfast/proto"
	"holdfast/runtime/framework"
)

// Tasks lists the tasks of a job, roles in the user's order. The order never
// changes while the job lives: addresses and ranks follow from it.
func Tasks(spec *proto.JobSpec) []framework.Task {
	var all []framework.Task
	for _, r := range spec.Roles {
		for i := range int(r.Count) {
			all = append(all, framework.Task{Name: taskName(r.Name, i), Role: r.Name, Index: i})
		}
	}
	return all
}

// Count is how many tasks a job has.
func Count(spec *proto.JobSpec) int {
	n := 0
	for _, r := range spec.GetRoles() {
		n += int(r.Count)
	}
	return n
}

func taskName(role string, index int) string { return role + "-" + strconv.Itoa(index) }

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

// PeerPort is the port under which its peers know the i-th task at first, wherever it
// runs and whether it has been there yet: lists of addresses are complete from the start.
// Where a container has another task or program on it, the task listens on another port,
// and its peers are led there. It differs between jobs, that these are few. Only ranks
// that go on without one of them that may still run are known under others from then on.
func PeerPort(job string, i int) int {
	h := fnv.New32a()
	h.Write([]byte(job))
	return proto.PortAfter(proto.LowestPort, int((uint64(h.Sum32())+uint64(i))%(proto.EphemeralPorts-proto.LowestPort)))
}

// hosts is the value of {ROLE_hosts}. One without a port has no address to tell.
func hosts(spec *proto.JobSpec, role string, peers map[string]int) []string {
	list := []string{}
	for i := range int(framework.FindRole(spec, role).Count) {
		name := taskName(role, i)
		if port := peers[name]; port != 0 {
			list = append(list, name+":"+strconv.Itoa(port))
		}
	}
	return list
}

// variable is a role's name as it stands in an environment variable.
func variable(role string) string {
	return strings.ToUpper(strings.ReplaceAll(role, "-", "_"))
}

// hostsVariable holds the addresses of a role's tasks.
func hostsVariable(role string) string { return "HOLDFAST_" + variable(role) + "_HOSTS" }
