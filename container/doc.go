// Package container is the agent: what runs in a container, hosts one task of
// the job, and does for it what the application master decides.
//
// An agent opens one stream to the AM (AgentService.Connect in proto), says Hello, is
// assigned a task, prepares for it (working directory, files, checkpoint
// mounts, names, port), says Prepared, and then runs attempts of the task's
// command as the AM orders, one at a time and in place: namespace, mounts and
// steering stay. It ends by Release from the AM, when ctx ends, or when its lease does;
// its task ends with it, always.
//
// # Without a master
//
// An agent whose stream breaks opens another: to the AM where it was, or where
// the job's am.json says that it is now. Its task runs on meanwhile, and Hello
// reports to the AM, which may be another one, what it has missed. Each heartbeat that the AM
// answers renews the lease (package master), and so does reading
// am.json, which an AM touches as long as it lives and a successor replaces: while there
// is no AM, nobody can give the task to another container. The mounts look at the lease before each
// change of the store, so an agent that was stopped or cut off for longer commits
// nothing. The AM of a local job has no successor and grants no lease: there the
// task ends with the stream.
//
// # Directories
//
//	WorkDir/work            the task's working directory, with the job's files
//	WorkDir/hosts           bound over the task's /etc/hosts
//	LogDir/TASK.ATTEMPT.log output of each attempt, as it came
//	TmpDir                  the mounts' spool and, unless its name is too long, the task's TMPDIR
//	JOB/logs/TASK/ATTEMPT.log  the same output in the job's directory, a second or two later
//
// # Goroutines
//
// Run owns all state and is one loop. Goroutines of its own: one receives from
// the stream and one sends; one prepares; for an attempt, one reads its output,
// one copies it to the job's directory and one waits for its end; and where there
// is a lease, one looks whether there is a master (master.Lease.Watch). All have
// ended when Run returns, but for the receiving one, which ends with the
// connection. Packages sandbox and steer say what they start.
package container
