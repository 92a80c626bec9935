// Package warm starts attempts of Python tasks without the seconds that
// importing TensorFlow takes: from a process that has imported it
// already, and forks.
//
// # The warm interpreter
//
// It is the command of an attempt, byte for byte, with the attempt's
// environment and in its sandbox, and it stops in the task's start-up file
// (package runtime, python/_holdfast/start.py), before Python looks at the script.
// There it imports one module, named by proto.EnvWarm, and waits. For an attempt
// it forks, twice, so that its grandchild falls to the sandbox's keeper as an
// attempt of its own would. The child gets the attempt's output, directory,
// environment and the words of its command after the script, leads a session,
// and returns from the start-up file: Python goes on to the script. What a script
// could see of the import (sys.modules and such) is put away until it imports the
// module itself: python/_holdfast/hidden.py.
//
// If the attempt is wanted while the import still goes on, the interpreter does
// not fork but becomes the attempt itself when it has done: what is done of the
// import is saved, and nobody waits for more than the rest.
//
// # Who gets one
//
// Only a command that is known to come to that place: an attempt that started
// the ordinary way has written there, as its own process, under which
// environment and sys.path its script imports the module. That serves
//   - its own container: some while after, the interpreter is prepared, slowly, so
//     as not to take processors from the task, for the next attempt;
//   - other containers of the job, which learn it through the application
//     master (Known, Prewarm): a spare one, and one for a task that has lost its
//     own, so that their first attempt comes from an interpreter already.
//
// The attempt's command up to the script and all of its environment on which an
// import may depend must be the interpreter's; if they are not, or if anything
// else is amiss, the attempt starts the ordinary way. Of a script that no
// attempt of the job has run yet nothing is known: the first start of a job is an
// ordinary one.
//
// The interpreter refuses if the import leaves what a fork would not inherit or
// would share: threads, processes, descriptors, devices (a GPU in use is one),
// and if it runs files of the task's own. An attempt from it that fails soon is
// the last: Standby.Refuse.
//
// # Memory
//
// The interpreter gives back what it can read again from its files. It is ended
// when the container would come near its limit, where it has one, or the machine
// to the end of its memory.
//
// # Goroutines
//
// Standby.Exec and Prewarm start one, which ends by the next Exec or by Close. One
// more ends with each attempt.
package warm
