// Package steer gives a task's peers addresses that never change: virtual addresses in
// 127.77.0.0/16. The kernel notifies the Supervisor, in the agent, of the task's calls of
// connect(2) (seccomp user notification, Documentation/userspace-api/seccomp_filter.rst).
// For a virtual destination, the Supervisor connects a duplicate of the task's own socket
// (pidfd_getfd(2)) to the peer's current address, and its result becomes the result of the
// task's connect. Other calls are not affected, and data does not pass through the agent.
//
// A connect to a peer that is not there, because its virtual address has no route or no
// process listens, is held for a second, since lost peers often return within moments, and
// then refused; frameworks try again. One that waits for the answer of a peer that is lost
// (Cut) goes on to where the peer is then. The task's own virtual address always leads to
// itself, and bind(2) to it binds all addresses, since peers connect to the real one. Where
// the task binds its own port, SO_REUSEADDR is set, so that its next attempt can listen
// there at once.
//
// IPv4 and IPv4-mapped IPv6 destinations are steered. Where a peer has no IPv4 address, or
// the task can be reached by IPv6 only, the task's IPv4 socket is replaced by an IPv6
// socket with the same options (SECCOMP_IOCTL_NOTIF_ADDFD, Linux 5.9). Connections by
// io_uring, by programs of another architecture, and datagrams sent without connect are
// not steered.
//
// New starts a goroutine that receives notifications and starts another one for each, so
// that a slow connect delays no other. Close ends the first and waits for it; the others
// end with their connect.
package steer
