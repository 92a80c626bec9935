// Package peers lets a task reach the other tasks of its job: it knows their current
// addresses, the names and virtual addresses that stand for them, and the port that the
// task itself listens on.
package peers

import (
	"fmt"
	"net/netip"
	"slices"

	pb "google.golang.org/protobuf/proto"

	"holdfast/container/failure"
	"holdfast/container/steer"
	"holdfast/proto"
	"holdfast/runtime"
	"holdfast/runtime/framework"
)

// Peers are the tasks of the job, including the agent's own, with their addresses. They are
// for one goroutine at a time.
type Peers struct {
	job       string
	spec      *proto.JobSpec // roles and framework
	tasks     []framework.Task
	index     map[string]int // of tasks, by name
	virtual   []netip.Addr
	addresses []proto.TaskAddress
	last      []proto.TaskAddress // where each task was known to run last
	own       int
}

// New returns the peers of a task from its assignment.
func New(a *proto.Assign) (*Peers, error) {
	p := &Peers{job: a.Job, spec: a.Spec, tasks: runtime.Tasks(a.Spec), index: map[string]int{}}
	p.addresses = make([]proto.TaskAddress, len(p.tasks))
	for i, t := range p.tasks {
		p.index[t.Name] = i
		p.virtual = append(p.virtual, netip.MustParseAddr(runtime.VirtualAddress(i)))
	}
	own, ok := p.index[a.Task]
	if !ok {
		return nil, failure.Permanent(fmt.Errorf("the application master has assigned %s, which is no task of the job", a.Task))
	}
	p.own = own
	if a.Routes != nil {
		if err := a.Routes.Apply(p.addresses); err != nil {
			return nil, failure.Permanent(err)
		}
	}
	p.last = slices.Clone(p.addresses)
	return p, nil
}

// Take applies new addresses of tasks. It returns the virtual addresses of the tasks to
// which connections are to be cut: those that r names, and those that run elsewhere than
// they did, since an agent that had lost its stream may not have been told to cut these.
// A task of which r knows no address may still run where it did.
func (p *Peers) Take(r *proto.Routes) (cut []netip.Addr, err error) {
	if err := r.Apply(p.addresses); err != nil {
		return nil, err
	}
	named := map[int]bool{}
	for _, t := range r.Disconnect {
		named[int(t)] = true
	}
	for i, at := range p.addresses {
		moved := at.Host != "" && p.last[i].Host != "" && at != p.last[i]
		if moved || named[i] {
			cut = append(cut, p.virtual[i])
		}
		if at.Host != "" {
			p.last[i] = at
		}
	}
	return cut, nil
}

// MoveTo has the tasks' addresses in a block of this agent's stand for them, instead of those
// that are virtual, and the same for all agents.
func (p *Peers) MoveTo(b *steer.Block) {
	for i, a := range p.virtual {
		p.virtual[i] = b.Address(a)
	}
}

// Virtual returns the virtual addresses of the tasks, in the order of runtime.Tasks.
func (p *Peers) Virtual() []netip.Addr { return p.virtual }

// Own returns the virtual address of the agent's task.
func (p *Peers) Own() netip.Addr { return p.virtual[p.own] }

// OwnPort returns the port by which peers know the agent's task; 0 if not known yet.
func (p *Peers) OwnPort() int { return p.addresses[p.own].Port }

// Table returns the routes for steering.
func (p *Peers) Table() []steer.Route {
	table := make([]steer.Route, 0, len(p.addresses))
	for i, at := range p.addresses {
		if at.Host != "" {
			table = append(table, steer.Route{
				Virtual: netip.AddrPortFrom(p.virtual[i], uint16(at.Port)), Host: at.Host, Port: uint16(at.RealPort),
			})
		}
	}
	return table
}

// Command makes the command and environment of an attempt of the agent's task, which is to
// listen on port, from those with placeholders. It sets the task, job and ports of a.
func (p *Peers) Command(words []string, variables map[string]string, port int, a framework.Attempt) ([]string, map[string]string, error) {
	spec := pb.Clone(p.spec).(*proto.JobSpec)
	spec.Command, spec.Env = words, variables
	a.Job, a.Task, a.Virtual = p.job, p.tasks[p.own], p.virtual
	a.Ports = make(map[string]int, len(p.tasks))
	for i, t := range p.tasks {
		if !slices.Contains(a.Absent, int32(i)) {
			a.Ports[t.Name] = p.addresses[i].Port
		}
	}
	a.Ports[a.Task.Name] = port // it listens there, whatever its peers believe
	argv, env, err := runtime.Command(spec, a)
	if err != nil {
		return nil, nil, fmt.Errorf("making the command of %s: %w", a.Task.Name, err)
	}
	return argv, env, nil
}

// Processes returns how many processes the agent's task is started as.
func (p *Peers) Processes() int { return runtime.Processes(p.spec, p.tasks[p.own].Role) }

// Called returns the names of tasks, given by their virtual addresses.
func (p *Peers) Called(addresses []netip.Addr) []string {
	var names []string
	for _, a := range addresses {
		names = append(names, p.tasks[slices.Index(p.virtual, a)].Name)
	}
	return names
}
