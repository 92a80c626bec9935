// Package traffic measures what processes send and receive over TCP. It starts no goroutine.
//
// A container of YARN's shares the network of its node, so nothing counts by container. The
// kernel counts the bytes of each TCP socket (tcp_info of sock_diag(7)), and says of each
// process which sockets it has. What is not counted: the bytes of a connection since it was
// looked at last when it is closed, so all of one that is opened and closed between two looks;
// UDP; RDMA. What the store's mount sends for a task is the agent's.
package traffic

import (
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/proc"
)

const (
	// every is the time between two looks at the sockets at least, and cost that in terms of the
	// time that a look takes: the sockets of the whole node are gone through.
	every = 5 * time.Second
	cost  = 200
)

// Meter measures how much processes send and receive. The zero value is ready for use.
type Meter struct {
	sockets        map[uint64]counts // of the processes when they were looked at, by cookie
	at             time.Time         // when that was
	cost           time.Duration     // of a look
	sent, received float64           // bytes a second between the last two looks
	known, failed  bool              // whether there are such; whether the kernel does not tell
}

// socket is a TCP socket of the node.
type socket struct {
	inode  uint32
	cookie uint64 // no other socket gets it while the node runs
	counts
}

// counts are the bytes of a socket since it was opened.
type counts struct{ sent, received int64 }

// Measure returns the bytes a second that processes send, as far as that is acknowledged, and
// receive: as of now, or as of a short while ago. ok is false before there are two looks to
// compare, and where the kernel does not tell.
func (m *Meter) Measure(now time.Time, pids []int) (sent, received float64, ok bool) {
	if m.failed || !m.at.IsZero() && now.Sub(m.at) < max(every, cost*m.cost) {
		return m.sent, m.received, m.known
	}
	begin := time.Now()
	found, err := look(pids)
	if err != nil {
		*m = Meter{failed: true}
		return 0, 0, false
	}
	var more counts
	for cookie, c := range found {
		before := m.sockets[cookie]
		more.sent += max(0, c.sent-before.sent)
		more.received += max(0, c.received-before.received)
	}
	if !m.at.IsZero() {
		seconds := now.Sub(m.at).Seconds()
		m.sent, m.received, m.known = float64(more.sent)/seconds, float64(more.received)/seconds, true
	}
	m.sockets, m.at, m.cost = found, now, time.Since(begin)
	return m.sent, m.received, m.known
}

// look returns the counts of the processes' sockets, by cookie.
func look(pids []int) (map[uint64]counts, error) {
	own, found := socketsOf(pids), map[uint64]counts{}
	if len(own) == 0 {
		return found, nil
	}
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		if err := list(family, func(k socket) {
			if own[k.inode] {
				found[k.cookie] = k.counts
			}
		}); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// socketsOf returns the inodes of the sockets that processes have open.
func socketsOf(pids []int) map[uint32]bool {
	own := map[uint32]bool{}
	for _, pid := range pids {
		fds, _ := proc.Descriptors(pid) // it may have ended
		for _, fd := range fds {
			name, _ := proc.DescriptorPath(pid, fd)
			if text, is := strings.CutPrefix(name, "socket:["); is {
				if inode, err := strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 32); err == nil {
					own[uint32(inode)] = true
				}
			}
		}
	}
	return own
}
