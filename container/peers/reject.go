package peers

import (
	"fmt"
	"net"
)

// Rejector listens on a port on which the task listened before, so that nobody else on this
// host can, and resets all connections to it. Its goroutine ends with Close.
type Rejector struct {
	Number int

	l    net.Listener
	done chan struct{}
}

// Reject makes a Rejector of a port, which is released by that.
func (p *Port) Reject() (*Rejector, error) {
	p.Release()
	// What is only bound does not do: connections of the last attempt that have not expired
	// (TIME_WAIT) have it bound with SO_REUSEADDR, by which others may then listen.
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", p.Number))
	if err != nil {
		return nil, fmt.Errorf("listening on port %d: %w", p.Number, err)
	}
	r := &Rejector{Number: p.Number, l: l, done: make(chan struct{})}
	go r.run()
	return r, nil
}

func (r *Rejector) run() {
	defer close(r.done)
	for {
		c, err := r.l.Accept()
		if err != nil {
			return
		}
		if t, is := c.(*net.TCPConn); is {
			_ = t.SetLinger(0)
		}
		c.Close()
	}
}

// Close frees the port.
func (r *Rejector) Close() {
	r.l.Close()
	<-r.done
}
