// Package sandbox isolates a task: in a private user and mount namespace, where that is
// allowed, with the checkpoint mounts and a hosts file of its own, and with the seccomp
// filter for steering (package steer).
//
// # The keeper
//
// A Go program is multithreaded and cannot enter a user namespace, so a process is cloned
// into one: the keeper. It is this same binary, started under the name KeeperName; the
// init function of this package takes it over before anything else runs. The keeper makes
// the mounts and forks the task's process for each attempt, so that all attempts share
// namespace, mounts and steering.
//
// The keeper leads a session and is a subreaper (prctl(2)), so that everything that the
// task starts stays below it. When the agent dies, even by SIGKILL, the keeper's socket
// is closed; the keeper then kills everything below it and ends, and the namespace and its
// mounts go with it. It holds calls to the mounts back until all is killed, so that none
// fails before. When the keeper dies, the kernel kills the task's process
// (PR_SET_PDEATHSIG), and the agent, a subreaper as well, inherits the rest and ends.
//
// A standing process (Command.Standing) runs beside the attempts and outlives them. A
// process that it forks and orphans is made an attempt by Adopt.
//
// Only the keeper's main thread has the steering filter, and it does all the forking:
// seccomp filters belong to threads and are inherited by what they fork.
//
// # Messages
//
// Agent and keeper exchange messages over a socket pair, descriptor 3 of the keeper. Each
// message is its length (four bytes, big-endian, which carry descriptors as SCM_RIGHTS)
// and a JSON object (message). The keeper sends "up" first. It answers the agent's
// requests in order; "exit" may come at any time.
//
// # Goroutines
//
// Start starts two, which end with the keeper. Close ends the keeper and waits for them.
package sandbox
