// Package sandbox is the place in which a task runs: a private user and mount
// namespace, where that is allowed, with the checkpoint mounts and a hosts
// file of its own, and with steering installed (package steer).
//
// # The keeper
//
// A Go program has many threads and cannot enter a user namespace, so a
// process that was cloned into one is kept: the keeper. It is this same binary,
// started under the name KeeperName; the init function of this package takes
// it over before anything else runs. The keeper makes the mounts, and forks the
// task's process for each attempt, so that all attempts share namespace,
// mounts and steering.
//
// The keeper leads a session of its own and is a subreaper (prctl(2)): what
// the task starts stays below it, whatever it does. When the agent dies, by
// SIGKILL too, the keeper sees its socket close, kills everything below it and
// ends; the namespace and its mounts go with it. Until all are killed, it keeps
// calls to the mounts waiting, so that none fails before. When the keeper dies, the
// task's process gets SIGKILL from the kernel (PR_SET_PDEATHSIG), and the rest
// falls to the agent, which is a subreaper as well and ends.
//
// A process may stand beside the attempts and outlive them (Command.Standing);
// what it forks and leaves to the keeper becomes an attempt's by Adopt.
//
// The keeper's main thread alone carries the steering filter and does all the
// forking: seccomp filters belong to threads and pass to what they fork.
//
// # Messages
//
// Agent and keeper speak over a socket pair, descriptor 3 of the keeper: each
// message is its length (four bytes, big-endian, which carry descriptors as
// SCM_RIGHTS) and a JSON object, see message. The keeper says "up" first. Each
// request of the agent is answered in order; "exit" comes at any time.
//
// # Goroutines
//
// Start starts two, which end with the keeper; Close ends the keeper and waits
// for them.
package sandbox
