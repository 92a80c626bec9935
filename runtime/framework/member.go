package framework

import (
	"encoding/json"
	"fmt"
	"net/netip"
)

// Task is one member of a role.
type Task struct {
	Name  string // ps-1
	Role  string
	Index int
}

// Attempt is one run of a task, for which runtime.Command makes the command and the
// environment.
type Attempt struct {
	Task       Task
	Local      int    // which of the task's processes, from 0
	Number     int    // how often the task was started before
	Generation int    // how often all tasks were started again together
	Job        string // the job's ID
	// Absent are the tasks that the generation is without, by their places in
	// runtime.Tasks.
	// WorldChanged: it has other members than the one before.
	Absent       []int32
	WorldChanged bool
	// Ports are those of the tasks, by their names. That of the task itself is the
	// one on which it is to listen; of the others, those by which they are reached.
	Ports map[string]int
	// Host is the address or the name under which peers reach the task's node.
	Host string
	// Addresses replace the names of tasks where these cannot be resolved; nil
	// elsewhere.
	Addresses map[string]string
	// Forwarded says that connections to peers are forwarded by the agent, which does
	// so for the ports in Ports only.
	Forwarded bool
	// Virtual are the addresses by which the task reaches the others, in the order of
	// runtime.Tasks; nil: those of runtime.VirtualAddress.
	Virtual []netip.Addr
	// Interface is the network interface by which peers reach the node, where programs
	// would not find it by themselves; empty elsewhere.
	Interface string
	// MorePorts are free ports of the node: the second, the third. Their number is
	// that of runtime.MorePorts for the task.
	MorePorts []int
	// GPUs are those that the task may use, in the order and by the names of
	// CUDA_VISIBLE_DEVICES; nil: all that it sees.
	GPUs []string
}

// Address returns what stands for a task in front of a port.
func (a Attempt) Address(task string) string {
	if address := a.Addresses[task]; address != "" {
		return address
	}
	return task
}

// Member is an attempt of a task as its framework sees it.
type Member struct {
	Attempt
	// Observer is true for a task that is no member of the cluster; it has no rank.
	Observer bool
	Members  []Peer // all members, by rank
	// Node is the member's position in Members, and Rank that of this process among
	// the processes of all members.
	Node, Rank int
	// Locals is how many processes the task is started as: see Attempt.Local.
	Locals int
	// Launched is how many processes the command is to start, where it is a launcher.
	Launched int
	// TensorBoardPort is one of MorePorts; 0: the task has no TensorBoard.
	TensorBoardPort int
}

// World is the number of processes of all members.
func (m Member) World() int {
	n := 0
	for _, p := range m.Members {
		n += p.Processes
	}
	return n
}

// Cluster returns the addresses of the members, NAME:PORT, by their roles.
func (m Member) Cluster() map[string][]string {
	c := map[string][]string{}
	for _, p := range m.Members {
		c[p.Role] = append(c[p.Role], fmt.Sprintf("%s:%d", p.Host, p.Port))
	}
	return c
}

// RoleIndex is the position of the member among those of its role.
func (m Member) RoleIndex() int {
	n := 0
	for _, p := range m.Members {
		if p.Role == m.Task.Role && p.Index < m.Task.Index {
			n++
		}
	}
	return n
}

// ClusterJSON is Cluster as text.
func (m Member) ClusterJSON() string {
	b, err := json.Marshal(m.Cluster())
	if err != nil {
		panic(err) // strings
	}
	return string(b)
}

// Peer is a member with the address at which the others reach it.
type Peer struct {
	Task
	Host    string
	Virtual string // the address that Host stands for, as a number
	Port    int
	// Processes is how many it is started as, and Launched how many its command is to start,
	// where that is a launcher.
	Processes, Launched int
}
