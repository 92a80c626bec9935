// Package yarn is the driver of jobs that run on a YARN cluster: it gets
// containers from the ResourceManager and starts agents in them at the
// NodeManagers.
//
// # Asking
//
// YARN's scheduler keeps, for each priority, a table from place (node, rack,
// anywhere) to a number of containers; an ask replaces numbers, and the
// scheduler lowers them as it allocates. The driver gives each distinct resource
// a priority of its own, so that a container's priority tells which asks it can
// answer. What it wants is in table, which is pure.
//
// Asks name the nodes of a small cluster, each with its share of the number,
// with locality relaxed: a container on a node that was named is not bound by
// the scheduler's limit of one off-switch container a node and heartbeat. A
// container that nobody asked for any more is released.
//
// # Ending
//
// A container that runs is stopped at its NodeManager, so that its end, when the
// RM reports it, has really happened. Only if that does not work is it released
// at the RM, which reports the end at once.
//
// # Goroutines
//
// One, run, owns all state. It is the only one to call allocate, in a goroutine
// of which there is at most one at a time; calls to NodeManagers, and the look at
// the cluster that explains why a job waits, have goroutines of their own. All of
// them send what came out to run and end with the driver's context; Finish
// cancels it, waits for them and then tells the outcome to the RM.
package yarn
