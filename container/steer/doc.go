// Package steer gives a task's peers addresses that never change. A peer has a
// virtual address, in 127.77.0.0/16; where it really is may change. The task's
// connect(2) is announced by the kernel (seccomp user notification, see
// Documentation/userspace-api/seccomp_filter.rst) to the Supervisor, in the
// agent. If the destination is virtual, the Supervisor connects a duplicate of
// that very socket (pidfd_getfd(2)) to where the peer is now, and the result
// becomes the result of the task's connect. Nothing else is touched, and
// nothing stands in the path of the data.
//
// A connect to a peer that is not there, be it that its virtual address has no
// route or that nobody listens, is held for a second, in case the peer is about
// to come back, and then refused: frameworks try again. The task's own virtual
// address always leads to itself, and bind(2) to it binds all addresses, since
// peers come in on the real one.
//
// IPv4 and IPv4-mapped IPv6 destinations are steered. Where a peer has no IPv4
// address, or the task is reached by IPv6 alone, the task's IPv4 socket is
// exchanged for an IPv6 one that is set alike (SECCOMP_IOCTL_NOTIF_ADDFD, Linux
// 5.9). Connections made by
// io_uring, by programs of another architecture, and datagrams sent without
// connect are not.
//
// Goroutines: New starts one that receives, which starts one for each
// announcement, so that a slow connect holds up nobody. Close ends the first
// and waits for it; the others end when their connect does.
package steer
