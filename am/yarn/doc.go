// Package yarn is the driver of jobs that run on a YARN cluster: it gets
// containers from the ResourceManager and starts agents in them at the
// NodeManagers.
//
// # Asking
//
// YARN's scheduler keeps, for each priority, a table from place (node, rack,
// anywhere) to a number of containers. A request replaces numbers, and the
// scheduler lowers them as it allocates. The driver gives each distinct resource
// a priority of its own, so that a container's priority says which asks it can
// answer. What it asks for is in table, which does no I/O.
//
// Asks name the nodes of a small cluster, each with its share of the number,
// with locality relaxed: a container on a node that was named is not bound by
// the scheduler's limit of one off-switch container a node and heartbeat. A
// container that nobody asked for any more is released.
//
// # Ending
//
// A container that runs is stopped at its NodeManager, so that it has really ended when
// its end is reported. Only if that fails is it released at the RM, which reports the end
// at once.
//
// # Goroutines
//
// One, run, owns all state. Calls to the RM (one at a time), calls to NodeManagers, and
// inspections of the cluster, which explain why a job waits, have goroutines of their own.
// They pass their results to run and end with the driver's context. Finish cancels that,
// waits for them and then tells the outcome to the RM.
package yarn
