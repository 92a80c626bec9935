package am

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"

	"holdfast/hdfsckpt/store"
	"holdfast/proto"
)

// Place is where agents and clients find a master. It exists before the master
// does: agents that look for the next one come while that still reads what the one
// before it has left, and wait in the listener's queue.
type Place struct {
	host     string
	listener net.Listener
}

// Listen opens a port for a master; host is the name or address under which agents
// and clients reach this machine. A loopback address keeps others out.
func Listen(host string) (*Place, error) {
	where := ":0"
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		where = net.JoinHostPort(host, "0")
	}
	l, err := net.Listen("tcp", where)
	if err != nil {
		return nil, fmt.Errorf("listening for the job's agents on %s: %w", where, err)
	}
	return &Place{host, l}, nil
}

// Port is the port of the master's gRPC service.
func (p *Place) Port() int { return p.listener.Addr().(*net.TCPAddr).Port }

// Address is host:port of the master's gRPC service.
func (p *Place) Address() string { return net.JoinHostPort(p.host, strconv.Itoa(p.Port())) }

// Heirs tells of the application masters that come after one. It is for one
// goroutine.
type Heirs struct {
	dir  store.Store
	file store.Latest
}

// NewHeirs is for what Announce writes into a job's directory.
func NewHeirs(dir store.Store) *Heirs { return &Heirs{dir: dir} }

// Last is the attempt of the application that has announced itself last.
func (h *Heirs) Last(ctx context.Context) (attempt int, err error) {
	if err := h.file.Read(ctx, h.dir, proto.AddressFile); err != nil {
		return 0, fmt.Errorf("looking for another application master: %w", err)
	}
	where, err := proto.UnmarshalAddress(h.file.Text)
	return where.Attempt, err
}

// Announce tells clients, and agents that look for their master, by a file in the
// job's directory. attempt is Config's. A master before this one may still live, if
// only YARN does not hear of it: once this has returned, it gives no order that
// FindPredecessor does not know of.
func (p *Place) Announce(ctx context.Context, dir store.Store, attempt int) error {
	return p.tell(ctx, dir, proto.Address{Attempt: attempt})
}

// retire tells agents that cannot be reached that the job has ended.
func (p *Place) retire(ctx context.Context, dir store.Store, attempt int) error {
	return p.tell(ctx, dir, proto.Address{Attempt: attempt, Ended: true})
}

func (p *Place) tell(ctx context.Context, dir store.Store, a proto.Address) error {
	a.Address, a.PID = p.Address(), os.Getpid()
	text, err := a.Marshal()
	if err != nil {
		return err
	}
	if err := store.WriteFile(ctx, dir, proto.AddressFile, text, 0o600); err != nil {
		return fmt.Errorf("writing where the application master is: %w", err)
	}
	return nil
}
