package proto

import (
	"cmp"
	"fmt"
)

// Place is where one task is.
type Place struct {
	Port     int    // that its peers know; 0: none yet
	Host     string // address or name; empty: it is nowhere
	RealPort int    // where it listens there
}

// NewRoutes makes a message of where tasks are: all of them in order, if tasks is
// nil, or else those with these places in the order. Connections to the tasks in
// cut are to be shut down.
func NewRoutes(tasks []int, places []Place, cut []int) *Routes {
	r := &Routes{
		Full:      tasks == nil,
		PeerPorts: make([]uint32, len(places)), Hosts: make([]uint32, len(places)), RealPorts: make([]uint32, len(places)),
	}
	known := map[string]uint32{}
	for i, p := range places {
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

// Take takes the message into what is known of all tasks, by their places in the
// job. After an error that is not to be relied on.
func (r *Routes) Take(known []Place) error {
	n := len(r.PeerPorts)
	told := len(r.Tasks)
	if r.Full {
		told = len(known)
	}
	if n != told || n != len(r.Hosts) || n != len(r.RealPorts) {
		return fmt.Errorf("a message with the places of %d tasks makes no sense in a job of %d", n, len(known))
	}
	for i := range n {
		at := i
		if !r.Full {
			at = int(r.Tasks[i])
		}
		if at >= len(known) || int(r.Hosts[i]) > len(r.HostNames) {
			return fmt.Errorf("a message with the place of task %d makes no sense in a job of %d", at, len(known))
		}
		p := Place{Port: int(r.PeerPorts[i])}
		if h := r.Hosts[i]; h > 0 {
			p.Host, p.RealPort = r.HostNames[h-1], cmp.Or(int(r.RealPorts[i]), p.Port)
		}
		known[at] = p
	}
	return nil
}
