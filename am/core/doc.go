// Package core decides what an application master does. It does no I/O, reads no
// clock and starts no goroutine: Job.Step(now, event) changes the job's state and
// returns the actions to carry out, and Job.Deadline says when the next Tick is due.
// The loop around it is package am. A Job is not safe for concurrent use.
//
// # States of a task
//
// Each task is in one state. Only the methods in states.go change it; each of them
// resets what does not belong to the new state. CheckInvariants, which the
// simulator calls after each step, checks that.
//
//	waiting ─► launching ─► preparing ─► ready ─► running ─► succeeded
//	                                       ▲       ▲   │
//	                                       │       │   ├──────────┐ its attempt ends
//	                                       │       │   ▼          ▼ by itself
//	                                       │       │ stopping ─► restarting
//	                                       └───────┼───┘          │
//	                                               └──────────────┘
//
//	running ◄─► lingering     its work is done, and its process stays for others, until
//	                          it is let end; it may end otherwise as if it ran
//	waiting ─► preparing      a spare is given to it
//	any but done ─► surplus   its role was scaled down, and it has left its container
//	surplus ─► waiting        its role was scaled up
//	any ─► waiting            its container is lost or left
//	succeeded ─► ready        all start again together
//	running ─► finishing ─► succeeded, failed or stopping
//	                          the job has succeeded, and it may go on for a while
//	any ─► failed             it is given up, or the job fails because of it
//	any but done ─► stopped   the job ends
//
//	state       its task
//	waiting     has no container; has an outstanding request for one
//	surplus     has no container and asks for none, since a person wants fewer tasks
//	launching   has a container whose agent has not connected yet
//	preparing   was assigned to a connected agent, which prepares it
//	ready       can start; waits for its gang start, a delay or the store
//	restarting  the same, after its attempt ended in this container
//	running     has an attempt; the process is known once pid is set
//	lingering   has an attempt that has done its work, and whose process others may need
//	stopping    has an attempt that was told to end; stop says what follows, and by when its
//	            container is given up. Its agent says so too, to the next application master
//	finishing   has an attempt that may go on for a while although the job ends
//	succeeded   ended with exit code 0; may still hold its container
//	failed      was given up, or the job ended because of it
//	stopped     was ended, or never started, because the job ends
//
// What belongs to which states:
//
//	request                  waiting
//	loc (container, node)    all but waiting and surplus; optional in succeeded, failed and stopped
//	loc.deadline             launching, preparing, and while the agent is unreachable
//	loc.silent               any with a container whose agent was connected: the agent
//	                         is unreachable, and may be back until loc.deadline
//	loc.orphan               any with a container: YARN has lost it, its agent has not
//	loc.leave                any with a container that the task is to leave
//	loc.slow                 any with a container in which the task is a straggler, and is
//	                         to be moved
//	loc.told                 running, or ready and restarting, or succeeded: what the agent was
//	                         told and has not answered, in time or its container is given up
//	run.pid                  running, lingering, stopping, finishing
//	run.stop                 stopping
//	run.finishBy             finishing
//	loss.blamesPeer,
//	loss.suspectsServices    not in running, lingering, stopping and finishing
//	loss.since               from a loss until the process of the next attempt is known
//
// Being unreachable, an orphan or about to leave is a fact about a task's container,
// which comes together with any state of the task. A lease that may not have expired
// in a former container (expiring) outlives the stay there.
//
// # Phases of a job
//
//	reconciling ─► assembling ◄─► running ─► stopping ─► releasing ─► finished
//
//	phase        the job
//	reconciling  was taken over without a journal; waits for the agents' reports
//	assembling   starts nothing until its tasks can start together (gang start)
//	running      starts each task as soon as it is ready
//	stopping     stops its tasks; those that may finish go on for a while
//	releasing    releases its agents, which save what they hold
//	finished     has decided Finish; later events change nothing
//
// # Words
//
//	gang start      the common start of all tasks, at first and after a loss that
//	                concerns all (a new generation)
//	services        tasks that hold what others work on, as parameter servers hold
//	                the model
//	together        of tasks: restarted with all others of their kind
//	group           tasks that restart together; elastic: one that may do with fewer
//	parked          of tasks: the generation that was formed last is without it; while
//	                that runs, the task waits, or is ready, and does not start
//	surplus         of tasks: a person wants fewer of its role; it leaves its container,
//	                or has left it
//	optional        of tasks: without influence on the job's outcome
//	spare           a container with an agent and without a task
//	stand-in        a spare for one task that has to leave its container, or whose
//	                agent is unreachable
//	orphan          a container that YARN has lost with its NodeManager, while its
//	                agent is connected
//	straggler       a task that is slower than the others of its role, for a while
//	evicted         of a task: its container's directory was removed
//	dirty           of a task: its attempt may have left a broken save, and the store
//	                was not prepared since
//	early failure   one soon after the start and before the first step
package core
