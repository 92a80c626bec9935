// Package warm starts attempts of Python tasks without the seconds that importing
// TensorFlow takes: by forking a process that has imported it already.
//
// # The warm interpreter
//
// A warm interpreter is the exact command of an attempt, with the attempt's environment and
// in its sandbox, which stops in the task's start-up file (package runtime,
// python/_holdfast/start.py) before Python reads the script. There it imports one module,
// named by proto.EnvWarm, and waits. For an attempt it forks twice, so that its grandchild
// becomes a child of the sandbox's init process, as an ordinary attempt is. The grandchild
// gets the attempt's output, directory, environment and the arguments after the script,
// leads a session and returns from the start-up file, so that Python runs the script. What
// a script could see of the import (sys.modules and such) is hidden until it imports the
// module itself: python/_holdfast/hidden.py.
//
// If an attempt is to start while the import is still under way, the interpreter does not
// fork, but becomes the attempt itself once the import has finished. The attempt waits only
// for the rest of the import.
//
// # Which attempts
//
// Only a command that is known to reach the start-up file in this way gets a warm
// interpreter: an attempt that was started normally has written there, as its own process,
// under which environment and sys.path its script imports the module (ImportProfile). It
// is used in
//   - the task's own container: some time later an interpreter is prepared for the next
//     attempt, slowly, so as not to take processors from the task;
//   - other containers of the job, which receive it through the application master (Known,
//     Prewarm): a spare one, and one for a task that has lost its own, so that even their
//     first attempt is forked.
//
// The attempt's command up to the script, and all of its environment on which an import
// may depend, must be the interpreter's. If they are not, or anything else fails, the
// attempt is started normally. Nothing is known of a script that no attempt of the job has
// run: the first start of a job is always a normal one.
//
// The interpreter refuses if the import leaves what a fork would not inherit or would
// share (threads, processes, descriptors, devices such as a GPU in use), or if it runs
// files of the task's own. If an attempt that was forked fails soon after its start, no
// other is forked (Standby.Refuse).
//
// # Memory
//
// The interpreter releases the pages that it can read again from its files. It is ended
// when the container comes near its memory limit, or, where there is none, when the machine
// runs short.
//
// # Goroutines
//
// Standby.Exec and Prewarm start one, which ends by the next Exec or by Close. One more
// ends with each attempt.
package warm
