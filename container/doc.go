// Package container is the agent: it runs in a container, hosts one task of the job, and
// carries out what the application master (AM) decides about that task.
//
// An agent opens one stream to the AM (AgentService.Connect in proto), sends Hello and is
// assigned a task. It prepares for the task (working directory, files, checkpoint mounts,
// names, ports, GPUs), sends Prepared, and then runs attempts of the task's command as the AM
// orders, one at a time, as one process or several; namespace, mounts and steering are
// reused. It ends when the AM sends Release, when ctx ends, or when its lease expires. Its
// task does not outlive it, but for a process that SIGKILL does not end since it waits in the
// kernel: the agent leaves that to the end of its container after proto.EndLimit, and leaves the
// AM without closing the stream in order.
//
// # Without a master
//
// An agent whose stream breaks opens another one: to the last known address of the AM, or
// to the one that the job's am.json has now. The task keeps running, and Hello reports to
// the AM, which may be another one, what it has missed. Each heartbeat that the AM answers
// renews the lease (package master). So does reading am.json, which an AM touches as long
// as it lives and a successor replaces: while there is no AM, nobody can give the task to
// another container. The mounts check the lease before each change of the store, so an
// agent that was suspended or cut off for longer commits nothing. The AM of a local job
// has no successor and grants no lease: there the task ends with the stream.
//
// # Directories
//
//	WorkDir/work            the task's working directory, with the job's files; the task sees
//	                        it at /tmp/holdfast-USER, in whatever container it is
//	WorkDir/hosts           bound over the task's /etc/hosts
//	LogDir/TASK.ATTEMPT.log output of each attempt, unchanged
//	TmpDir                  the mounts' spool and, unless its name is too long, the task's TMPDIR
//	JOB/logs/TASK/ATTEMPT.log  the same output in the job's directory, a second or two later
//
// The output of an attempt's processes after the first is in ATTEMPT.PROCESS.log.
//
// # Goroutines
//
// Run owns all state and is one loop. It starts goroutines that receive from the stream,
// send on it, and prepare the task; for each process of an attempt, one that reads its output,
// one that copies the output to the job's directory and one that waits for its end; and with a
// lease, one that watches am.json (master.Lease.Watch). All have ended when Run returns,
// except the receiving one, which ends with the connection. Packages sandbox and steer
// document their own.
package container
