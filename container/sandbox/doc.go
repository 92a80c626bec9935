// Package sandbox isolates a task: in a private user and mount namespace, where that is
// allowed, with the checkpoint mounts and a hosts file of its own, and with the seccomp
// filter for steering (package steer).
//
// # The init process
//
// A Go program is multithreaded and cannot enter a user namespace, so a process is cloned
// into one: the init process. It is this same binary, started under the name InitName; the
// init function of this package takes it over before anything else runs. The init process
// makes the mounts and forks the task's process for each attempt, so that all attempts
// share namespace, mounts and steering.
//
// The init process leads a session and is a subreaper (prctl(2)), so that everything that
// the task starts stays below it. When the agent dies, even by SIGKILL, the kernel kills the task's
// process groups before anybody can wait for the agent (guards). The init process's socket is
// closed, too; the init process then kills whatever is left below it and ends, and the
// namespace and its mounts go with it. It holds calls to the mounts back until all is
// killed, so that none fails before. It ends in the same way when a mount was taken away
// (Box.MountRemoved). When the init process dies, the kernel kills the
// task's process (PR_SET_PDEATHSIG), and the agent, a subreaper as well, inherits the rest
// and ends.
//
// A standing process (Command.Standing) runs beside the attempts and outlives them. A
// process that it forks and orphans is made an attempt by Adopt.
//
// Only the init process's main thread has the steering filter, and it does all the forking:
// seccomp filters belong to threads and are inherited by what they fork.
//
// # Messages
//
// Agent and init process exchange messages over a socket pair, descriptor 3 of the init
// process. Each message is its length (four bytes, big-endian, which carry descriptors as
// SCM_RIGHTS) and a JSON object (message). The init process sends "up" first. It answers
// the agent's requests in order; "exit" and "removed" may come at any time, and "guard" and
// "unguard" have no answer.
//
// # Goroutines
//
// Start starts two, which end with the init process. Close ends the init process and waits
// for them.
package sandbox
