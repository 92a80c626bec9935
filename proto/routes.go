package proto

import (
	"cmp"
	"fmt"
)

// TaskAddress is where a task's peers reach it.
type TaskAddress struct {
	Port     int    // that its peers know; 0: none yet
	Host     string // address or name of its host; empty: it does not run
	RealPort int    // on which it listens there
}

// NewRoutes returns a message with the addresses of tasks: of all tasks in order if tasks is
// nil, and otherwise of those with these indices. Connections to the tasks in cut are to be
// closed.
func NewRoutes(tasks []int, addresses []TaskAddress, cut []int) *Routes {
	r := &Routes{
		Full:      tasks == nil,
		PeerPorts: make([]uint32, len(addresses)), Hosts: make([]uint32, len(addresses)), RealPorts: make([]uint32, len(addresses)),
	}
	known := map[string]uint32{}
	for i, p := range addresses {
		r.PeerPorts[i] = uint32(p.Port)
		if p.Host == "" {
			continue
		}
		host, ok := known[p.Host]
		if !ok {
			r.HostNames = append(r.HostNames, p.Host)
			host = uint32(len(r.HostNames))
			known[p.Host] = host
		}
		r.Hosts[i] = host
		if p.RealPort != p.Port {
			r.RealPorts[i] = uint32(p.RealPort)
		}
	}
	for _, t := range tasks {
		r.Tasks = append(r.Tasks, uint32(t))
	}
	for _, t := range cut {
		r.Disconnect = append(r.Disconnect, uint32(t))
	}
	return r
}

// Apply updates the known addresses of all tasks, by their index in the job. After an error
// they are undefined.
func (r *Routes) Apply(known []TaskAddress) error {
	n := len(r.PeerPorts)
	told := len(r.Tasks)
	if r.Full {
		told = len(known)
	}
	if n != told || n != len(r.Hosts) || n != len(r.RealPorts) {
		return fmt.Errorf("a message with the addresses of %d tasks makes no sense in a job of %d", n, len(known))
	}
	for i := range n {
		at := i
		if !r.Full {
			at = int(r.Tasks[i])
		}
		if at >= len(known) || int(r.Hosts[i]) > len(r.HostNames) {
			return fmt.Errorf("a message with the address of task %d makes no sense in a job of %d", at, len(known))
		}
		p := TaskAddress{Port: int(r.PeerPorts[i])}
		if h := r.Hosts[i]; h > 0 {
			p.Host, p.RealPort = r.HostNames[h-1], cmp.Or(int(r.RealPorts[i]), p.Port)
		}
		known[at] = p
	}
	return nil
}
